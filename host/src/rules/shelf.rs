//! Where packs are found: in the binary, in the modules folder, in the database; and the seats
//! that the database hands out.

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
use crate::wasm::module::repack;
use crate::wasm::section::Luggage;
use crate::wasm::{CodeCache, Engines};

use super::pack::{OpenError, Pack, PackKind};
use super::seat::{Occupant, Packs, Role, Scope, Seating, Seats};
use super::sql;

/// A pack that came with the binary or lies in the modules folder.
pub struct Stocked {
    /// The pack.
    pub pack: Arc<Pack>,
    /// Its file.
    pub component: Vec<u8>,
    /// Whether it travels in the binary.
    pub is_built_in: bool,
}

/// Every pack within reach.
pub struct Shelf {
    db: Db,
    engines: Engines,
    cache: CodeCache,
    on_failure: OnFailure,
    stock: Vec<Stocked>,
    opened: Cache<String, Arc<Pack>>,
    /// Opening somebody's pack takes a processor for a while: one at a time.
    opening: Mutex<()>,
}

/// Why the seats cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
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
}

impl Shelf {
    /// Over this database, with packs that need not be looked up there.
    #[must_use]
    pub fn new(
        db: Db,
        (engines, cache): (Engines, CodeCache),
        on_failure: OnFailure,
        stock: Vec<Stocked>,
    ) -> Self {
        let opened = Cache::new(limits::PACKS_OPENED_MAX);
        Self { db, engines, cache, on_failure, stock, opened, opening: Mutex::new(()) }
    }

    /// Opens a component that somebody pushes. It is not seated, nor kept.
    ///
    /// # Errors
    /// The component or its rules are refused.
    pub async fn open(&self, component: Vec<u8>) -> Result<Arc<Pack>, ShelfError> {
        let _turn = self.opening.lock().await;
        let (engines, cache) = (self.engines.clone(), self.cache.clone());
        let opening = tokio::task::spawn_blocking(move || Pack::load(&engines, &cache, &component));
        let opened = opening.await.map_err(|_| ShelfError::CutOff)?;
        opened.map(Arc::new).map_err(|why| ShelfError::Refused("the component".into(), why))
    }

    /// The component that rules of text stand for: the stock pack of their kind with these rules
    /// in it.
    ///
    /// # Errors
    /// The text says nothing of a pack.
    pub fn of_text(&self, text: String) -> Result<Vec<u8>, ShelfError> {
        let refused = |why| ShelfError::Refused("rules.toml".into(), why);
        let kind = PackKind::of_text(&text).map_err(refused)?;
        let mut stock = self.stock.iter().filter(|stocked| stocked.is_built_in);
        let stocked = stock.find(|stocked| stocked.pack.about.kind == kind);
        let stocked = stocked.ok_or_else(|| ShelfError::Missing(kind.as_str().to_owned()))?;
        let luggage = Luggage { declaration: text, ..Luggage::default() };
        let packed = repack(&stocked.component, &luggage);
        packed.map_err(|why| refused(OpenError::Refused(why.into())))
    }

    /// The pack with this digest, wherever it is.
    ///
    /// # Errors
    /// It is nowhere, or cannot be used any more.
    pub async fn pack(&self, digest: &str) -> Result<Arc<Pack>, ShelfError> {
        let mut stock = self.stock.iter().map(|stocked| &stocked.pack);
        if let Some(pack) = stock.find(|pack| pack.digest == digest) {
            return Ok(Arc::clone(pack));
        }
        if let Some(pack) = self.opened.get(digest).await {
            return Ok(pack);
        }
        let missing = || ShelfError::Missing(digest.to_owned());
        let text = sql::find_component(self.db.pool(), digest).await?.ok_or_else(missing)?;
        let component = BASE64_STANDARD.decode(text).map_err(|_| missing())?;
        let pack = self.open(component).await?;
        if pack.digest != digest {
            return Err(ShelfError::Changed(digest.to_owned()));
        }
        self.opened.insert(digest.to_owned(), Arc::clone(&pack)).await;
        Ok(pack)
    }

    /// The row that makes sure that a pack from the binary is still there after an upgrade.
    #[must_use]
    pub fn keep(&self, version: &sql::Version) -> Option<RowChange> {
        let stocked = self.stock.iter().find(|s| s.pack.digest == version.digest)?;
        let id = sql::version_id(&version.name, &version.version);
        let component = BASE64_STANDARD.encode(&stocked.component);
        Some(RowChange::Update(&sql::PACK_COMPONENTS, vec![id.into(), component.into()]))
    }

    /// Puts the stock into the list of versions. A version that another binary brought, and
    /// that was used, stays; this binary's is listed beside it with its digest's beginning.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn list_stock(&self, now: Moment) -> Result<(), sqlx::Error> {
        let mut tx = self.db.write().await?;
        for stocked in &self.stock {
            let pack = &stocked.pack;
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
    pub async fn seat_fees(&self, now: Moment) -> Result<(), sqlx::Error> {
        let mut fees = self.stock.iter().filter(|s| s.pack.about.kind == PackKind::Fees);
        let Some(stocked) = fees.next_back() else { return Ok(()) };
        let about = &stocked.pack.about;
        let mut tx = self.db.write().await?;
        let first = "UPDATE rule_generation SET generation = 1 WHERE generation = 0";
        if sqlx::query(first).execute(tx.conn()).await?.rows_affected() == 0 {
            return Ok(());
        }
        let seat = "INSERT INTO rule_seatings \
            (generation, kind, scope, role, name, version, actor, created_at) \
            VALUES (1, 'fees', 'platform', 'active', $1, $2, 'host', $3)";
        let seat = sqlx::query(seat).bind(&about.name).bind(&about.version).bind(now.micros());
        seat.execute(tx.conn()).await?;
        let keep = "UPDATE rule_packs SET component = $1 WHERE id = $2 AND component IS NULL";
        sqlx::query(keep)
            .bind(BASE64_STANDARD.encode(&stocked.component))
            .bind(sql::version_id(&about.name, &about.version))
            .execute(tx.conn())
            .await?;
        tx.commit().await
    }

    /// The seats as the database hands them out now. A pack that this host cannot open leaves
    /// its seat to the setting for failures, rather than this host without any seats.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn seats(&self) -> Result<Seats, ShelfError> {
        // Read first: seats that are given meanwhile are found at the next look.
        let generation = sql::generation(self.db.pool()).await?;
        let mut newest: HashMap<(PackKind, Scope, Role), Option<(String, String)>> = HashMap::new();
        for seating in sql::list_seatings(self.db.pool()).await? {
            newest.insert((seating.kind, seating.scope, seating.role), seating.pack);
        }
        let place = (PackKind::Fees, Scope::Platform, Role::Active);
        let default = self.default_fees().map(|pack| (place, Occupant::Pack(Arc::clone(pack))));
        let mut seating: Seating = default.into_iter().collect();
        for (place, seated) in newest {
            let Some(name) = seated else { continue };
            seating.insert(place, self.occupant(name).await?);
        }
        Ok(Seats::of(generation, &seating, self.on_failure))
    }

    async fn occupant(&self, (name, version): (String, String)) -> Result<Occupant, ShelfError> {
        let found = sql::get_version(self.db.pool(), (&name, &version)).await?;
        let opened = match found {
            Some(found) => self.pack(&found.digest).await,
            None => Err(ShelfError::Missing(format!("{name} {version}"))),
        };
        match opened {
            Ok(pack) => Ok(Occupant::Pack(pack)),
            Err(why @ (ShelfError::Database(_) | ShelfError::CutOff)) => Err(why),
            Err(why) => {
                tracing::error!(name, version, %why, "a rule pack that has a seat is missing");
                Ok(Occupant::Missing(format!("{name} {version} is missing: {why}")))
            }
        }
    }

    /// Fills the seats anew if they were handed out anew; answers whether that was so.
    ///
    /// # Errors
    /// As for [`Self::seats`]; the seats stay as they were.
    pub async fn refresh(&self, packs: &Packs) -> Result<bool, ShelfError> {
        if sql::generation(self.db.pool()).await? == packs.now().generation {
            return Ok(false);
        }
        packs.replace(self.seats().await?);
        Ok(true)
    }

    /// The fee pack that decides where none has a seat: that of the modules folder, or else the
    /// stock one.
    #[must_use]
    pub fn default_fees(&self) -> Option<&Arc<Pack>> {
        let mut stock = self.stock.iter().map(|stocked| &stocked.pack);
        stock.rfind(|pack| pack.about.kind == PackKind::Fees)
    }
}
