//! Where packs are found: in the binary, in the modules folder, in the database; and which
//! ones the database assigns.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use moka::future::Cache;
use tokio::sync::Mutex;

use crate::clock::Moment;
use crate::config::{OnFailure, limits};
use crate::db::Db;
use crate::db::bulk::RowChange;
use crate::wasm::compiler::NotCompiled;
use crate::wasm::module::repack;
use crate::wasm::section::CustomSections;
use crate::wasm::{CodeCache, Compiled, Compiler, Engines};

use super::assignment::{AssignedPack, AssignedPacks, Assignments, Missing, Packs, Role, Scope};
use super::pack::{OpenError, Pack, PackKind};
use super::sql::{self, Assigned};

/// A pack that came with the binary or lies in the modules folder.
pub struct SuppliedPack {
    /// The pack, opened.
    pub pack: Arc<Pack>,
    /// The bytes of its file.
    pub component: Vec<u8>,
    /// Whether it travels in the binary.
    pub is_built_in: bool,
}

/// What opens components.
pub struct Loader {
    /// What runs them.
    pub engines: Engines,
    /// Where their code is kept.
    pub cache: CodeCache,
    /// Who compiles those that somebody uploaded.
    pub compiler: Compiler,
}

/// A pack that was opened, and its code, which is kept on disk once the pack is kept.
pub struct OpenedPack {
    /// The pack.
    pub pack: Arc<Pack>,
    code: Compiled,
}

/// Every pack within reach.
pub struct PackStore {
    db: Db,
    loader: Loader,
    on_failure: OnFailure,
    supplied: Vec<SuppliedPack>,
    opened: Cache<String, Arc<Pack>>,
    /// Opening somebody's pack takes a processor for a while: one at a time.
    opening: Arc<Mutex<()>>,
}

/// Why a pack, or the assignments, cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PackStoreError {
    /// The database cannot be read.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The component is nowhere.
    #[error("the component of {0} is not in the database")]
    Missing(String),
    /// The component is another one than it was.
    #[error("the component in the database does not have the digest {0}")]
    Changed(String),
    /// It cannot be used any more.
    #[error("{0}: {1}")]
    Refused(String, OpenError),
    /// Opening it was cut off.
    #[error("opening a pack was cut off")]
    CutOff,
    /// Others are being opened.
    #[error("other packs are being opened")]
    Busy,
    /// This machine cannot compile it now.
    #[error(transparent)]
    Machine(std::io::Error),
}

impl PackStoreError {
    /// Whether trying again may help.
    #[must_use]
    pub const fn passes(&self) -> bool {
        match self {
            Self::Database(_) | Self::CutOff | Self::Busy | Self::Machine(_) => true,
            Self::Missing(_) | Self::Changed(_) | Self::Refused(..) => false,
        }
    }
}

impl PackStore {
    /// Over this database, with packs that need not be looked up there.
    #[must_use]
    pub fn new(db: Db, loader: Loader, on_failure: OnFailure, supplied: Vec<SuppliedPack>) -> Self {
        let opened = Cache::new(limits::PACKS_OPENED_MAX);
        Self { db, loader, on_failure, supplied, opened, opening: Arc::default() }
    }

    /// Opens a component that somebody pushes. It is neither assigned nor kept.
    ///
    /// # Errors
    /// The component or its rules are refused, or it is somebody else's turn.
    pub async fn open(&self, component: Vec<u8>) -> Result<OpenedPack, PackStoreError> {
        let refused = |why| PackStoreError::Refused("the component".into(), why);
        let turn = Arc::clone(&self.opening).lock_owned();
        let turn = tokio::time::timeout(limits::OPENING_WAIT_MAX, turn).await;
        let turn = turn.map_err(|_| PackStoreError::Busy)?;
        let Loader { engines, cache, compiler } = &self.loader;
        let compiled = compiler.compile(&engines.rules, cache, component.clone()).await;
        let code = compiled.map_err(|why| match why {
            NotCompiled::Refused(why) => refused(OpenError::Refused(why.into())),
            NotCompiled::Machine(why) => PackStoreError::Machine(why),
        })?;
        let (engines, cache) = (engines.clone(), cache.with(code.clone()));
        let opening = tokio::task::spawn_blocking(move || {
            // Kept to the end, also when nobody waits for it any more.
            let _turn = turn;
            Pack::load(&engines, &cache, &component)
        });
        let opened = opening.await.map_err(|_| PackStoreError::CutOff)?;
        Ok(OpenedPack { pack: Arc::new(opened.map_err(refused)?), code })
    }

    /// Keeps the code of a pack that is kept.
    pub async fn keep_code(&self, opened: OpenedPack) {
        let cache = self.loader.cache.clone();
        // Without it the code is made again: nobody depends on this.
        let _ = tokio::task::spawn_blocking(move || cache.keep(&opened.code)).await;
    }

    /// The component that rules of text stand for: the built-in pack of their kind with these rules
    /// in it.
    ///
    /// # Errors
    /// The text says nothing of a pack.
    pub fn of_text(&self, text: String) -> Result<Vec<u8>, PackStoreError> {
        let refused = |why| PackStoreError::Refused("rules.toml".into(), why);
        let kind = PackKind::of_text(&text).map_err(refused)?;
        let mut built_in = self.supplied.iter().filter(|supplied| supplied.is_built_in);
        let supplied = built_in.find(|supplied| supplied.pack.about.kind == kind);
        let supplied = supplied.ok_or_else(|| PackStoreError::Missing(kind.as_str().to_owned()))?;
        let sections = CustomSections { declaration: text, ..CustomSections::default() };
        let packed = repack(&supplied.component, &sections);
        packed.map_err(|why| refused(OpenError::Refused(why.into())))
    }

    /// The pack with this digest, wherever it is.
    ///
    /// # Errors
    /// It is nowhere, or cannot be used any more.
    pub async fn pack(&self, digest: &str) -> Result<Arc<Pack>, PackStoreError> {
        let mut supplied = self.supplied.iter().map(|supplied| &supplied.pack);
        if let Some(pack) = supplied.find(|pack| pack.digest == digest) {
            return Ok(Arc::clone(pack));
        }
        if let Some(pack) = self.opened.get(digest).await {
            return Ok(pack);
        }
        let missing = || PackStoreError::Missing(digest.to_owned());
        let text = sql::find_component(self.db.pool(), digest).await?.ok_or_else(missing)?;
        let component = BASE64_STANDARD.decode(text).map_err(|_| missing())?;
        let opened = self.open(component).await?;
        let pack = Arc::clone(&opened.pack);
        if pack.digest != digest {
            return Err(PackStoreError::Changed(digest.to_owned()));
        }
        self.keep_code(opened).await;
        self.opened.insert(digest.to_owned(), Arc::clone(&pack)).await;
        Ok(pack)
    }

    /// The row that makes sure that a pack from the binary is still there after an upgrade.
    #[must_use]
    pub fn keep(&self, version: &sql::Version) -> Option<RowChange> {
        let supplied = self.supplied.iter().find(|s| s.pack.digest == version.digest)?;
        let id = sql::version_id(&version.name, &version.version);
        let component = BASE64_STANDARD.encode(&supplied.component);
        Some(sql::PACK_COMPONENTS.change(&sql::KeptComponent { id, component }))
    }

    /// Puts the packs that came with this host into the list of versions. A version that another
    /// binary brought, and that was used, stays; this binary's is listed beside it with its
    /// digest's beginning.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn list_supplied(&self, now: Moment) -> Result<(), sqlx::Error> {
        let mut tx = self.db.write().await?;
        for supplied in &self.supplied {
            let pack = &supplied.pack;
            let replace = "UPDATE rule_packs SET digest = $1, facts = $2 \
                           WHERE id = $3 AND component IS NULL";
            let facts = serde_json::to_string(&pack.about.facts).unwrap_or_default();
            let plain = sql::version_id(&pack.about.name, &pack.about.version);
            let replaced = sqlx::query(replace).bind(&pack.digest).bind(&facts).bind(&plain);
            if replaced.execute(tx.conn()).await?.rows_affected() == 1 {
                continue;
            }
            let find = "SELECT digest FROM rule_packs WHERE id = $1";
            let known: Option<String> =
                sqlx::query_scalar(find).bind(&plain).fetch_optional(tx.conn()).await?;
            let version = match known {
                Some(digest) if digest == pack.digest => continue,
                Some(_) => format!("{}+{}", pack.about.version, &pack.digest[..8]),
                None => pack.about.version.clone(),
            };
            let insert = "INSERT INTO rule_packs (id, name, version, kind, digest, title, \
                contract, facts, component, report, is_checked, pushed_by, created_at) \
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, '{}', 1, 'host', $9) \
                ON CONFLICT (id) DO NOTHING";
            sqlx::query(insert)
                .bind(sql::version_id(&pack.about.name, &version))
                .bind(&pack.about.name)
                .bind(&version)
                .bind(pack.about.kind.as_str())
                .bind(&pack.digest)
                .bind(&pack.about.title)
                .bind(&pack.about.contract)
                .bind(&facts)
                .bind(now.micros())
                .execute(tx.conn())
                .await?;
        }
        tx.commit().await
    }

    /// Has the fee pack that came with this host decide from now on, if nobody ever did: a later
    /// binary does not change prices by itself.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn assign_fees(&self, now: Moment) -> Result<(), sqlx::Error> {
        let mut fees = self.supplied.iter().filter(|s| s.pack.about.kind == PackKind::Fees);
        let Some(supplied) = fees.next_back() else { return Ok(()) };
        let about = &supplied.pack.about;
        let mut tx = self.db.write().await?;
        let first = "UPDATE rule_generation SET generation = 1 WHERE generation = 0";
        if sqlx::query(first).execute(tx.conn()).await?.rows_affected() == 0 {
            return Ok(());
        }
        let assign = "INSERT INTO rule_assignments \
            (generation, kind, scope, role, name, version, actor, created_at) \
            VALUES (1, 'fees', 'platform', 'active', $1, $2, 'host', $3)";
        let assign = sqlx::query(assign).bind(&about.name).bind(&about.version).bind(now.micros());
        assign.execute(tx.conn()).await?;
        let keep = "UPDATE rule_packs SET component = $1 WHERE id = $2 AND component IS NULL";
        sqlx::query(keep)
            .bind(BASE64_STANDARD.encode(&supplied.component))
            .bind(sql::version_id(&about.name, &about.version))
            .execute(tx.conn())
            .await?;
        tx.commit().await
    }

    /// The assignments as they are in the database now. Where this host cannot open the pack,
    /// the setting for failures decides; the other assignments are not affected.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn assignments(&self) -> Result<Assignments, PackStoreError> {
        // Read first: what is assigned meanwhile is found at the next look.
        let generation = sql::generation(self.db.pool()).await?;
        let mut newest: HashMap<(PackKind, Scope, Role), Assigned> = HashMap::new();
        for row in sql::list_assignments(self.db.pool()).await? {
            newest.insert((row.kind, row.scope, row.role), row.assigned);
        }
        let place = (PackKind::Fees, Scope::Platform, Role::Active);
        let default = self.default_fees().map(|pack| (place, AssignedPack::Pack(Arc::clone(pack))));
        let mut assigned: AssignedPacks = default.into_iter().collect();
        for (place, newest) in newest {
            let pack = match newest {
                Assigned::Pack(name) => self.assigned(name).await?,
                Assigned::Nothing => continue,
                Assigned::Held => {
                    let (kind, scope) = (place.0.as_str(), place.1.as_str());
                    tracing::error!(kind, scope, "payouts are held until a rule pack is assigned");
                    AssignedPack::Missing(Missing::TakenOut)
                }
            };
            assigned.insert(place, pack);
        }
        Ok(Assignments::of(generation, &assigned, self.on_failure))
    }

    async fn assigned(
        &self,
        (name, version): (String, String),
    ) -> Result<AssignedPack, PackStoreError> {
        let found = sql::get_version(self.db.pool(), (&name, &version)).await?;
        let opened = match found {
            Some(found) => self.pack(&found.digest).await,
            None => Err(PackStoreError::Missing(format!("{name} {version}"))),
        };
        match opened {
            Ok(pack) => Ok(AssignedPack::Pack(pack)),
            Err(why) if why.passes() => Err(why),
            Err(why) => {
                tracing::error!(name, version, %why, "a rule pack that is assigned is missing");
                let why = format!("{name} {version} is missing: {why}");
                Ok(AssignedPack::Missing(Missing::Lost(why)))
            }
        }
    }

    /// Takes the assignments over if they changed; answers whether that was so.
    ///
    /// # Errors
    /// As for [`Self::assignments`]; the assignments stay as they were.
    pub async fn refresh(&self, packs: &Packs) -> Result<bool, PackStoreError> {
        if sql::generation(self.db.pool()).await? == packs.now().generation {
            return Ok(false);
        }
        packs.replace(self.assignments().await?);
        Ok(true)
    }

    /// The fee pack that decides where none is assigned: that of the modules folder, or else the
    /// built-in one.
    #[must_use]
    pub fn default_fees(&self) -> Option<&Arc<Pack>> {
        let mut supplied = self.supplied.iter().map(|supplied| &supplied.pack);
        supplied.rfind(|pack| pack.about.kind == PackKind::Fees)
    }
}
