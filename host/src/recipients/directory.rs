//! Looking recipients up: by their fields, or by the id of a saved one.

use std::sync::Arc;

use moka::future::Cache;
use tokio::sync::Mutex;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Db, Rounds, Shared};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{BeneficiaryId, MerchantId};
use crate::keyring::Keyring;
use crate::money::Currency;
use crate::rails::{Block, Rail, RecipientFields};
use crate::wasm::rail::Resolution;

use super::beneficiary::Beneficiary;
use super::identity::{IdentityKey, account_hash};
use super::known::{Known, RecipientKey, Remembered, SavedKey};
use super::sql;

/// Saved recipients and blacklists, cached for a second.
#[derive(Clone)]
pub struct RecipientDirectory {
    saved_rounds: Rounds<SavedKey, Shared<Option<Beneficiary>>>,
    known_rounds: Rounds<RecipientKey, Shared<Arc<Known>>>,
    identities: IdentityKey,
    known: Remembered<RecipientKey, Arc<Known>>,
    checked: Cache<(String, String), Arc<Checked>>,
    paid: Remembered<BeneficiaryId, ()>,
    turns: Cache<RecipientKey, Arc<Mutex<()>>>,
    named: Cache<RecipientKey, Resolution>,
    db: Db,
    last_block: Cache<(), Option<Moment>>,
}

/// A recipient that its rail has checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The rail's fields in canonical form.
    pub fields: RecipientFields,
    /// What makes it the same as another one, as [`IdentityKey`] writes it.
    pub identity: String,
}

impl RecipientDirectory {
    /// A directory over this database.
    #[must_use]
    pub fn new(db: &Db, keyring: Arc<Keyring>, identities: IdentityKey) -> Self {
        let (pool, engine) = (db.pool().clone(), db.engine());
        let by_id = (pool.clone(), Arc::clone(&keyring));
        Self {
            saved_rounds: Rounds::new(move |wanted| {
                let (pool, keyring) = by_id.clone();
                async move { sql::list_saved((&pool, engine), &keyring, &wanted).await }
            }),
            known_rounds: Rounds::new(move |wanted| {
                let (pool, keyring) = (pool.clone(), Arc::clone(&keyring));
                async move { sql::list_known((&pool, engine), &keyring, &wanted).await }
            }),
            identities,
            known: Remembered::new(),
            paid: Remembered::new(),
            checked: Cache::new(limits::CACHE_ENTRIES_MAX / 10),
            turns: Cache::builder()
                .max_capacity(limits::CACHE_ENTRIES_MAX / 10)
                .time_to_idle(limits::RAIL_WALL_MAX)
                .build(),
            named: Cache::builder()
                .max_capacity(limits::CACHE_ENTRIES_MAX / 10)
                .time_to_live(limits::NAME_REMEMBERED)
                .build(),
            db: db.clone(),
            last_block: Cache::builder().time_to_live(limits::CACHE_FRESH).build(),
        }
    }

    /// Checks a recipient block: shape by the declaration, then the component's algorithms.
    /// A recipient that passed passes again, as long as its rail and tables are the same.
    ///
    /// # Errors
    /// The first field's refusal; the caller puts the block's name before the field.
    pub async fn check(
        &self,
        rail: &Rail,
        (method, currency, block): (&str, Currency, Block),
        sent: impl Fn(&str) -> Option<String>,
    ) -> Result<Arc<Checked>, Problem> {
        let fields = rail.take_recipient(block, sent)?;
        let key = (rail.digest.clone(), format!("{method}\n{currency}\n{}", fields.to_json()));
        if let Some(checked) = self.checked.get(&key).await {
            return Ok(checked);
        }
        let which = (method, currency.as_str());
        let called = rail.code.check(&rail.pure_grant(0), which, &fields.to_guest()).await;
        let fields = rail.canonical(called.result?, block)?;
        let identity = self.identities.hide(&rail.account_fields(&fields), rail.shape());
        let checked = Arc::new(Checked { fields, identity });
        self.checked.insert(key, Arc::clone(&checked)).await;
        Ok(checked)
    }

    /// Whether the fields of a saved recipient are those of the account that it is known by: money
    /// goes by the fields, and limits, velocities and blocks by the account.
    #[must_use]
    pub fn has_its_account(&self, rail: &Rail, saved: &Beneficiary) -> bool {
        let of_fields = self.identities.hide(&rail.account_fields(&saved.recipient), None);
        account_hash(&saved.identity) == of_fields
    }

    /// What is known of the recipient of this identity.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn known(
        &self,
        (merchant, env): (&MerchantId, Env),
        (currency, identity): (Currency, &str),
    ) -> Result<Arc<Known>, Problem> {
        let (merchant, identity) = (merchant.clone(), identity.to_owned());
        let key = RecipientKey { merchant, env, currency, identity };
        let since = match self.known.get(&key, self.db.moves()).await {
            Ok(known) => return Ok(known),
            Err(since) => since,
        };
        let known = self.known_rounds.ask(key.clone()).await??;
        // A recipient that is not saved yet is about to be: not worth remembering.
        if known.beneficiary.is_some() {
            self.known.insert(key, (since, Arc::clone(&known))).await;
        }
        Ok(known)
    }

    /// Refuses a recipient who was not blocked at this instant and is now.
    ///
    /// # Errors
    /// `beneficiary_globally_blocked`, `beneficiary_blacklisted`, or the database cannot be read.
    pub async fn refuse_blocked_since(
        &self,
        at: Moment,
        owner: (&MerchantId, Env),
        which: (Currency, &str),
    ) -> Result<(), Problem> {
        let last = self.last_block.try_get_with((), sql::last_block(self.db.pool())).await;
        let last = last.map_err(Problem::internal)?;
        // Most of the time nobody has blocked anybody.
        if last.is_none_or(|last| last < at.before(limits::CLOCKS_APART)) {
            return Ok(());
        }
        self.known(owner, which).await?.refuse_blocked()
    }

    /// What whoever saves this recipient holds meanwhile, so that those who do it at once on this host
    /// do not get into each other's way. Truth is the row's version.
    pub async fn turn(
        &self,
        (merchant, env): (&MerchantId, Env),
        (currency, identity): (Currency, &str),
    ) -> Arc<Mutex<()>> {
        let (merchant, identity) = (merchant.clone(), identity.to_owned());
        self.turns
            .get_with(RecipientKey { merchant, env, currency, identity }, async { Arc::default() })
            .await
    }

    /// What a network said of an account a moment ago, for a merchant who has not saved it since: a
    /// batch that is refused, or not ready in time, does not ask for all names again.
    pub async fn named(
        &self,
        (merchant, env): (&MerchantId, Env),
        (currency, identity): (Currency, &str),
    ) -> Option<Resolution> {
        let (merchant, identity) = (merchant.clone(), identity.to_owned());
        self.named.get(&RecipientKey { merchant, env, currency, identity }).await
    }

    /// Remembers what a network said of an account.
    pub async fn remember(
        &self,
        (merchant, env): (&MerchantId, Env),
        (currency, identity): (Currency, &str),
        resolution: &Resolution,
    ) {
        let (merchant, identity) = (merchant.clone(), identity.to_owned());
        let key = RecipientKey { merchant, env, currency, identity };
        self.named.insert(key, resolution.clone()).await;
    }

    /// Whether a saved recipient was paid, if need be by asking. Only that it was is remembered.
    ///
    /// # Errors
    /// Whatever stops the answer.
    pub async fn was_paid(
        &self,
        id: &BeneficiaryId,
        ask: impl Future<Output = Result<bool, sqlx::Error>>,
    ) -> Result<bool, sqlx::Error> {
        let since = match self.paid.get(id, self.db.moves()).await {
            Ok(()) => return Ok(true),
            Err(since) => since,
        };
        let was_paid = ask.await?;
        if was_paid {
            self.paid.insert(id.clone(), (since, ())).await;
        }
        Ok(was_paid)
    }

    /// The merchant's beneficiary of this id that is not deleted.
    ///
    /// # Errors
    /// `beneficiary_not_found`.
    pub async fn beneficiary(
        &self,
        (merchant, env): (&MerchantId, Env),
        id: &str,
    ) -> Result<Beneficiary, Problem> {
        let missing = || Problem::new(ErrorCode::BeneficiaryNotFound);
        let id = BeneficiaryId::parse(id).ok_or_else(missing)?;
        let found =
            self.saved_rounds.ask(SavedKey { merchant: merchant.clone(), env, id }).await??;
        found.filter(|saved| saved.deleted_at.is_none()).ok_or_else(missing)
    }

    /// Forgets what is remembered, after a change on this host.
    pub fn forget(&self) {
        self.known.forget();
        self.paid.forget();
        self.last_block.invalidate_all();
    }
}
