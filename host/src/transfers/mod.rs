//! The engine that carries money out: attempts, leases, lanes, sending, asking, evidence, and
//! what networks say by themselves. It knows nothing of payouts: a [`Feature`] hands it what to
//! send, and gets back what became of it with the rows to commit in the same transaction.
//!
//! | step | durable afterwards | if the host dies here |
//! |---|---|---|
//! | claim the work (lease, fence) | who may act, until when | the lease runs out, another takes over |
//! | fix the reference, commit the attempt | that a byte may leave, and under which reference | the rail is asked, never sent to |
//! | write the intent to the journal (live) | the same, outside the database | the rail is asked |
//! | call the rail | nothing | the rail is asked |
//! | commit the outcome, or the next route's attempt with it | the end, or when to ask again | done, or asked again |
//!
//! Two outcomes are definite: the rail says paid, or the rail refuses. Everything else is
//! unknown, and unknown is asked about. Only "never received", said by the gateway that it was
//! sent to, permits sending again, with the same reference: at once where this host knows that
//! no byte left, otherwise after several such answers and some time.
//!
//! | file | holds |
//! |---|---|
//! | `order` | what the engine and a feature say to each other |
//! | `work`, `attempt`, `evidence` | the tables |
//! | `serials` | the numbers that references are made from |
//! | `lanes` | each route's places, and its breaker |
//! | `calls`, `finding`, `sealed` | calling a rail, and what is known afterwards |
//! | `begin`, `carry`, `conclude` | one object on its way: a route and a reference for it, all that follows, its end |
//! | `recall` | asking back what was paid |
//! | `late` | what is learnt when somebody else has the object, or nobody any more |
//! | `files` | payments that are collected and sent together |
//! | `dispatch`, `parked` | the loop that claims what is due, and what it passes over |
//! | `standing`, `backlog` | what each payment under way waits for, and how much there is |
//! | `stuck` | what becomes of work that this host fails at |
//! | `door`, `unverified`, `inbox` | who speaks, and what was said: stored first, then taken in |
//! | `notice`, `strangers` | what news does, about payments that are known here and others |
//! | `intents`, `newest`, `epoch`, `quarantine` | noticing that the database has forgotten something |
//! | `metrics` | figures |

pub mod attempt;
pub mod backlog;
mod begin;
mod calls;
mod carry;
mod conclude;
mod dispatch;
mod door;
pub mod evidence;
pub mod files;
mod finding;
mod inbox;
pub mod intents;
pub mod lanes;
mod late;
mod metrics;
mod newest;
mod notice;
mod order;
mod parked;
mod quarantine;
pub mod recall;
mod sealed;
mod serials;
pub mod standing;
mod strangers;
mod stuck;
mod unverified;
pub mod work;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Moment};
use crate::config::limits;
use crate::db::Db;
use crate::error::Problem;
use crate::id::IdGenerator;
use crate::keyring::Keyring;
use crate::ledger::Writer;
use crate::rails::Routes;

pub use carry::is_blocked;
pub use door::{Answer, Arrived, Door};
pub use metrics::TransferMetrics;
pub use order::{Correction, Failure, Feature, Fixed, Order, OrderStage, Step, Writes};
pub use quarantine::{Quarantine, QuarantineError, QuarantineState};
pub use serials::{nth_of, serial_of};
pub use work::{Claim, Claimed};

use intents::IntentJournal;
use lanes::Lanes;
use parked::Parked;
use serials::Serials;
use stuck::Failures;
use unverified::Unverified;

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Transfers(Arc<Inner>);

/// What the engine works with.
pub struct Parts {
    /// The database, for reads and for claims.
    pub db: Db,
    /// The writer of the ledger.
    pub writer: Writer,
    /// Routes and their rails.
    pub routes: Routes,
    /// The clock that everything reads.
    pub clock: Clock,
    /// Ids and randomness.
    pub ids: Arc<IdGenerator>,
    /// Seals what is known of recipients.
    pub keyring: Arc<Keyring>,
    /// Where intents are written.
    pub intents: IntentJournal,
    /// Whether anything may be sent.
    pub quarantine: Quarantine,
    /// Work that must not be cut off when its caller goes away.
    pub tasks: TaskTracker,
    /// Cancelled when this host shall stop.
    pub stopping: CancellationToken,
    /// Payments that are sent at once over each route, until their answer has come.
    pub places: usize,
}

/// See [`Transfers`].
pub struct Inner {
    parts: Parts,
    /// Each route's places and breaker.
    pub lanes: Lanes,
    /// Figures for `/metrics`.
    pub metrics: TransferMetrics,
    serials: Serials,
    wake: Notify,
    /// Whose turn is next in each lane, so that merchants share it.
    turns: Mutex<HashMap<String, String>>,
    parked: Parked,
    failures: Failures,
    unverified: Unverified,
    /// What was paid and is asked back this moment.
    recalls: Mutex<HashSet<String>>,
}

impl Transfers {
    /// Puts the engine together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            lanes: Lanes::new(parts.places),
            metrics: TransferMetrics::default(),
            serials: Serials::new(parts.db.clone()),
            wake: Notify::new(),
            turns: Mutex::default(),
            parked: Parked::default(),
            failures: Failures::default(),
            unverified: Unverified::default(),
            recalls: Mutex::default(),
            parts,
        }))
    }

    /// The number that the references of a new object are made from.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn serial(&self) -> Result<i64, Problem> {
        Ok(self.serials.next().await?)
    }

    /// The number that the reference of a name enquiry is made from.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn enquiry_number(&self) -> Result<i64, Problem> {
        Ok(serials::of_enquiry(self.serials.next().await?))
    }

    /// Wakes this process's dispatcher: there is something to do.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Claims the work for one object, due or not, unless somebody holds it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn claim(&self, id: &str) -> Result<Claimed, Problem> {
        Ok(work::claim_one(&self.db, id, limits::LEASE).await?)
    }

    /// Gives a claim back of which nothing came.
    pub async fn give_back(&self, claim: &Claim) {
        if let Err(cause) = work::give_back(&self.db, claim).await {
            // It runs out by itself.
            tracing::warn!(%cause, transfer.id = claim.id, "giving work back");
        }
    }

    /// Claims the work for one object and does it now, unless somebody is at it.
    ///
    /// # Errors
    /// The database failed.
    pub async fn work_now<F: Feature>(&self, feature: &F, id: &str) -> Result<(), Problem> {
        match self.claim(id).await? {
            Claimed::Yes(claim) => self.work(feature, claim).await,
            Claimed::Busy | Claimed::NoWork => Ok(()),
        }
    }

    /// Whether there is news about an object that nobody has asked about since.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn has_news(&self, id: &str) -> Result<bool, Problem> {
        Ok(work::has_news(self.db.pool(), id).await?)
    }

    /// Leaves word that there is news about an object: whoever is at it asks again.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn nudge(&self, id: &str) -> Result<(), Problem> {
        Ok(work::nudge(&self.db, id, self.now()).await?)
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }
}

impl std::ops::Deref for Transfers {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl std::ops::Deref for Inner {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}
