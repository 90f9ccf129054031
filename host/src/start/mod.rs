//! From configuration to a running host.

use std::net::SocketAddr;
use std::sync::Arc;

use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Metrics, Parts};
use crate::audit::Refusals;
use crate::auth::Directory;
use crate::calendar::Calendars;
use crate::clock::Clock;
use crate::config::{Config, limits};
use crate::db::{Db, Engine};
use crate::events::outbox;
use crate::fx::{Providers, RateLists, RateSource};
use crate::http::limiter::Limiter;
use crate::http::places::LongAnswers;
use crate::http::request_log::RequestLog;
use crate::id::IdGenerator;
use crate::keyring::Keyring;
use crate::ledger::wallets::WalletIds;
use crate::ledger::{OutboxHook, Writer, WriterParts};
use crate::listeners::Listeners;
use crate::lookup::requests;
use crate::outbound::OutboundClient;
use crate::outbound::post::Post;
use crate::rails::{Registry, Routes, Sandbox, Versions};
use crate::recipients::{IdentityKey, RecipientDirectory};
use crate::retention::months;
use crate::routes::Door;
use crate::rules::store::{Loader, PackStore, SuppliedPack};
use crate::rules::{Packs, comparing};
use crate::simulator::{OwnMessage, Simulator};
use crate::team::Access;
use crate::transfers::intents::IntentJournal;
use crate::transfers::{Quarantine, Transfers};
use crate::{notifications, transfers, webhooks, worker};

mod components;
mod registered;
mod secrets;
mod settings;

pub use components::{Components, add_calendars_of_rails, load, networks};
use components::{components, keep_versions};
use registered::registered;
pub use secrets::{keyring, shown};
use settings::{refuse_odd_settings, tls};

/// Why a host does not start: a sentence for the operator.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;

/// What a host is started with, besides its configuration.
pub struct Sources {
    /// The clock that everything reads.
    pub clock: Clock,
    /// Ids and randomness.
    pub ids: IdGenerator,
}

impl Sources {
    /// The machine's own.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub fn system() -> Result<Self, StartError> {
        let clock = Clock::System;
        Ok(Self { ids: IdGenerator::new(clock.clone())?, clock })
    }
}

/// A host that runs.
pub struct Host {
    /// Everything that requests and jobs work with.
    pub app: App,
    /// The address it listens on.
    pub address: SocketAddr,
    /// The operator's token, if a start made it and nobody was shown it yet.
    pub unshown_token: Option<SecretString>,
    broken: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

/// Starts a host: looks at its settings, listens, opens and migrates the database, loads the
/// components.
///
/// # Errors
/// Whatever stands in the way, in words for the operator.
pub async fn start(mut config: Config, sources: Sources) -> Result<Host, StartError> {
    refuse_odd_settings(&config)?;
    let listeners = Listeners::open(&mut config).await?;
    let (address, config) = (config.server.address, Arc::new(config));
    let (clock, ids) = (sources.clock, Arc::new(sources.ids));
    let storage = open(&config, &clock, &ids).await?;
    let Storage { db, keyring, recipients, operator_token, unshown_token } = storage;
    let (Components { rails, packs, sources }, loader) = components(&config, &keyring)?;
    let rails = registered(rails, &db, (&ids, &clock)).await?;
    let versions = keep_versions((&db, &keyring), &loader, &config, (&rails, &clock)).await?;
    let (pack_store, packs) = open_packs(&db, loader, &config, packs, &clock).await?;

    let broken = CancellationToken::new();
    let ((handover, handed), (comparing, compared)) = (outbox::handover(), comparing());
    let told = (outbox::hook(handover.clone()), &broken);
    let writer = start_writer(&config, &db, (&clock, &ids), told).await?;
    let (gate, intents) = gate((&db, &writer), &config, (&clock, &ids)).await?;
    let (sandbox, messages) = sandbox((&db, &clock), &rails, &keyring);
    let (tasks, stopping) = (TaskTracker::new(), CancellationToken::new());
    let (with, providers, post) = outside(&config, sources, (&rails, versions))?;
    let inside = (sandbox.clone(), Arc::clone(&keyring));
    let routes = Routes::new(db.clone(), Arc::clone(&rails), Arc::clone(&config), inside, with);
    let transfers = Transfers::new(transfers::Parts {
        db: db.clone(),
        writer: writer.clone(),
        routes: routes.clone(),
        clock: clock.clone(),
        ids: Arc::clone(&ids),
        keyring: Arc::clone(&keyring),
        intents,
        quarantine: gate,
        tasks: tasks.clone(),
        stopping: stopping.clone(),
        places: config.worker.dispatch_concurrency,
    });
    let app = App::new(Parts {
        routes,
        transfers,
        metrics: Metrics::default(),
        recipients,
        directory: Directory::new(db.clone(), Arc::clone(&keyring)),
        wallets: WalletIds::new(db.clone()),
        rates: RateLists::new(db.clone()),
        providers,
        sandbox,
        limiter: Limiter::default(),
        long_answers: LongAnswers::new(&config.server),
        requests: RequestLog::default(),
        team: Access::new(db.clone(), Arc::clone(&keyring), &ids)?,
        refusals: Refusals::default(),
        outbound: OutboundClient::new(&config.webhooks)?,
        post,
        handover,
        tasks,
        stopping,
        config: Arc::clone(&config),
        db,
        clock,
        ids,
        keyring,
        writer,
        rails,
        packs,
        pack_store,
        comparing,
        operator_token,
    });
    let service = crate::routes::service(&app, Door::Public);
    worker::start(&app, (handed, compared), (service, messages), &broken);

    Ok(Host { serving: listeners.serve(&app), app, address, unshown_token, broken })
}

/// The database, and what opens its secrets.
struct Storage {
    db: Db,
    keyring: Arc<Keyring>,
    recipients: RecipientDirectory,
    operator_token: SecretString,
    unshown_token: Option<SecretString>,
}

/// Opens the database. A host with other keys than it was set up with changes nothing of it.
async fn open(config: &Config, clock: &Clock, ids: &IdGenerator) -> Result<Storage, StartError> {
    let db = Db::open(&config.database_url(), config.server.database_connections).await?;
    let keyring = Arc::new(keyring(config, ids)?);
    secrets::refuse_other_keys(&db, &keyring).await?;
    db.migrate().await?;
    secrets::remember_keyring(&db, &keyring).await?;
    months::make_room(&db, clock.now()).await?;
    release_leases(&db).await?;
    let parts = (&db, &*keyring, ids);
    let (operator_token, unshown_token) = secrets::operator_token(config, parts).await?;
    let secret = secrets::kept(parts, "identities", &ids.secret()).await?;
    let recipients = RecipientDirectory::new(&db, Arc::clone(&keyring), IdentityKey::new(&secret));
    Ok(Storage { db, keyring, recipients, operator_token, unshown_token })
}

async fn start_writer(
    config: &Config,
    db: &Db,
    (clock, ids): (&Clock, &Arc<IdGenerator>),
    (hook, broken): (OutboxHook, &CancellationToken),
) -> Result<Writer, StartError> {
    let parts = WriterParts {
        db: db.clone(),
        clock: clock.clone(),
        ids: Arc::clone(ids),
        hook: Some(Arc::new(hook)),
        batch_max: config.writer.batch_max,
        broken: broken.clone(),
    };
    Ok(Writer::start(parts).await?)
}

/// The other side of the sandbox's routes, with a token that follows from the host's keys, and what
/// its networks send by themselves.
fn sandbox(
    (db, clock): (&Db, &Clock),
    rails: &Registry,
    keyring: &Keyring,
) -> (Sandbox, mpsc::UnboundedReceiver<OwnMessage>) {
    let (simulator, messages) = Simulator::new(Some(db.clone()), clock.clone(), rails.networks());
    let token = keyring.settings_tags("what the sandbox's networks present").next();
    (Sandbox { simulator, token: token.unwrap_or_default().into() }, messages)
}

/// The gate before everything live, shut where something is suspicious, and the journal of what
/// leaves.
async fn gate(
    (db, writer): (&Db, &Writer),
    config: &Config,
    sources: (&Clock, &Arc<IdGenerator>),
) -> Result<(Quarantine, IntentJournal), StartError> {
    let (gate, folder) = Quarantine::of(db, &config.data.dir, sources).await?;
    gate.attend(writer).await?;
    let intents = IntentJournal::open(&folder, sources.0.now())
        .map_err(|cause| format!("the intent journal {}: {cause}", folder.display()))?;
    Ok((gate, intents))
}

/// A host that has its file to itself knows that whoever held a lease is gone.
async fn release_leases(db: &Db) -> Result<(), StartError> {
    if db.engine() == Engine::Sqlite {
        transfers::work::release_leases(db).await?;
        webhooks::sql::release_leases(db).await?;
        notifications::sql::release_leases(db).await?;
    }
    Ok(())
}

/// Lists the packs that came with the host, and lets those decide that the database says.
async fn open_packs(
    db: &Db,
    loader: Loader,
    config: &Config,
    supplied: Vec<SuppliedPack>,
    clock: &Clock,
) -> Result<(PackStore, Packs), StartError> {
    let pack_store = PackStore::new(db.clone(), loader, config.rules.on_failure, supplied);
    pack_store.list_supplied(clock.now()).await?;
    pack_store.assign_fees(clock.now()).await?;
    let packs = Packs::new(pack_store.assignments().await?);
    Ok((pack_store, packs))
}

impl Host {
    /// Runs until it is told to stop, then lets running requests and dispatches end.
    ///
    /// # Errors
    /// The storage broke, a background job did, or the server.
    pub async fn run(self, told_to_stop: impl Future<Output = ()>) -> Result<(), StartError> {
        tokio::select! {
            () = told_to_stop => tracing::info!("stopping"),
            () = self.broken.cancelled() => {
                // Nothing that this process believes is worth saving: the database knows better.
                return Err("this host cannot go on; see the log".into());
            }
        }
        self.stop().await
    }

    /// Remembers that the operator's token was printed, so that later starts keep it to themselves.
    ///
    /// # Errors
    /// The database cannot be written; the token is printed once more then.
    pub async fn remember_shown_token(&self) -> Result<(), StartError> {
        secrets::remember_shown_token(&self.app.db).await
    }

    /// Stops in order.
    ///
    /// # Errors
    /// The server failed.
    pub async fn stop(self) -> Result<(), StartError> {
        self.app.stopping.cancel();
        self.app.tasks.close();
        let mut serving = self.serving;
        let ending = async {
            // A caller that takes its time does not decide how this ends.
            if tokio::time::timeout(limits::DRAIN_CALLERS, &mut serving).await.is_err() {
                tracing::warn!("some callers took too long to send or to read, and are cut off");
                serving.abort();
            }
            self.app.tasks.wait().await;
            if let Err(problem) = requests::keep::flush(&self.app).await {
                tracing::warn!(?problem, "the last requests are not in their log");
            }
            self.app.writer.stop().await;
        };
        let ended = tokio::time::timeout(limits::DRAIN, ending).await;
        self.app.db.close().await;
        match ended {
            Ok(()) => Ok(()),
            Err(_) => Err("some requests did not end in time; they go on after a restart".into()),
        }
    }
}

/// Whom to trust, on which days anybody works, and every version of the rails.
type Outside = (Arc<rustls::ClientConfig>, Arc<Calendars>, Versions);

/// What routes lead out with, who is asked for rates, and how people are reached.
fn outside(
    config: &Config,
    sources: Vec<RateSource>,
    (rails, versions): (&Registry, Versions),
) -> Result<(Outside, Providers, Post), StartError> {
    let tls = tls(config)?;
    let serves = |currency| rails.exponent(currency).is_some();
    let providers = Providers::open(config, sources, (&tls, serves))?;
    let calendars = Arc::new(Calendars::load(config.modules.dir.as_deref())?);
    let post = Post::open(config, &tls)?;
    Ok(((tls, calendars, versions), providers, post))
}
