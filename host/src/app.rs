//! Everything that a request or a job works with.

use std::sync::Arc;

use moka::future::Cache;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit::Refusals;
use crate::auth::Directory;
use crate::clock::{Clock, Moment};
use crate::config::{Config, limits};
use crate::db::Db;
use crate::events::DeliveryMetrics;
use crate::events::outbox::Handover;
use crate::fx::{Providers, RateLists};
use crate::http::limiter::Limiter;
use crate::http::metrics::RequestMetrics;
use crate::http::places::LongAnswers;
use crate::http::request_log::RequestLog;
use crate::id::IdGenerator;
use crate::keyring::Keyring;
use crate::ledger::Writer;
use crate::ledger::wallets::WalletIds;
use crate::outbound::OutboundClient;
use crate::outbound::post::Post;
use crate::rails::{Registry, Routes, Sandbox};
use crate::recipients::RecipientDirectory;
use crate::rules::store::PackStore;
use crate::rules::{Comparing, Packs};
use crate::team::Access;
use crate::transfers::Transfers;

/// What this process counts by itself.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Of requests.
    pub requests: RequestMetrics,
    /// Of attempts to deliver webhooks.
    pub deliveries: DeliveryMetrics,
    /// Everything, as it was told last.
    pub told: Cache<(), String>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: RequestMetrics::default(),
            deliveries: DeliveryMetrics::default(),
            told: Cache::builder().time_to_live(limits::CACHE_FRESH).build(),
        }
    }
}

/// The application's parts, shared by all requests and jobs.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// See [`App`].
pub struct Parts {
    /// The configuration as it was read at the start.
    pub config: Arc<Config>,
    /// The database, for reads.
    pub db: Db,
    /// The clock that everything reads; fixed in tests.
    pub clock: Clock,
    /// Ids and randomness.
    pub ids: Arc<IdGenerator>,
    /// Keys of the host.
    pub keyring: Arc<Keyring>,
    /// The one task of this process that changes the ledger.
    pub writer: Writer,
    /// Merchants and API keys.
    pub directory: Directory,
    /// Which wallet serves whom.
    pub wallets: WalletIds,
    /// The rates of merchants.
    pub rates: RateLists,
    /// Where rates come from by themselves.
    pub providers: Providers,
    /// Loaded rails.
    pub rails: Arc<Registry>,
    /// Routes over them.
    pub routes: Routes,
    /// Rule packs that decide.
    pub packs: Packs,
    /// Where rule packs are found, and who decides.
    pub pack_store: PackStore,
    /// The way to this process's comparisons with packs in shadow.
    pub comparing: Comparing,
    /// Saved recipients and blacklists, cached.
    pub recipients: RecipientDirectory,
    /// Rate limits.
    pub limiter: Limiter,
    /// Streams and reports that are being sent.
    pub long_answers: LongAnswers,
    /// Recent requests of merchants.
    pub requests: RequestLog,
    /// How members of teams get in.
    pub team: Access,
    /// What was refused, in the present minute.
    pub refusals: Refusals,
    /// What this process counts.
    pub metrics: Metrics,
    /// The client for requests to addresses that merchants gave.
    pub outbound: OutboundClient,
    /// How people are reached.
    pub post: Post,
    /// The way to this process's deliverer of webhooks.
    pub handover: Handover,
    /// The operator's token.
    pub operator_token: SecretString,
    /// The other side of the sandbox's routes.
    pub sandbox: Sandbox,
    /// The engine that carries money out.
    pub transfers: Transfers,
    /// Work that must not be cut off when its caller goes away.
    pub tasks: TaskTracker,
    /// Cancelled when this host shall stop.
    pub stopping: CancellationToken,
}

impl App {
    /// Puts the parts together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The present instant.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
