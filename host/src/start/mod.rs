//! From configuration to a running host.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Metrics, Parts};
use crate::audit::Refusals;
use crate::auth::Directory;
use crate::calendar::Calendars;
use crate::caller::OPERATOR;
use crate::clock::Clock;
use crate::config::{Config, limits};
use crate::db::bulk::Write;
use crate::db::{Db, Engine};
use crate::env::Env;
use crate::events::outbox;
use crate::fx::{Providers, RateLists, RateSource};
use crate::http::limiter::Limiter;
use crate::http::places::LongAnswers;
use crate::http::request_log::RequestLog;
use crate::id::{Id as _, IdGenerator, MemberId};
use crate::keyring::Keyring;
use crate::ledger::wallets::WalletIds;
use crate::ledger::{OutboxHook, Writer, WriterParts};
use crate::listeners::Listeners;
use crate::lookup::requests;
use crate::outbound::OutboundClient;
use crate::outbound::post::Post;
use crate::rails::methods::MethodTerms;
use crate::rails::{Rail, Registry, Route, Routes, Sandbox, Versions, sql};
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

pub use components::{Components, add_calendars_of_rails, load, networks};
use components::{components, keep_versions};

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
    /// The operator's token, if it was made just now.
    pub new_operator_token: Option<SecretString>,
    broken: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

/// Starts a host: opens and migrates the database, loads the components, listens.
///
/// # Errors
/// Whatever stands in the way, in words for the operator.
pub async fn start(mut config: Config, sources: Sources) -> Result<Host, StartError> {
    let listeners = Listeners::open(&mut config).await?;
    let (address, config) = (config.server.address, Arc::new(config));
    let (clock, ids) = (sources.clock, Arc::new(sources.ids));
    let storage = open(&config, &clock, &ids).await?;
    let Storage { db, keyring, recipients, operator_token, new_token } = storage;
    let (Components { rails, packs, sources }, loader) = components(&config, &keyring)?;
    let rails = Arc::new(Registry::of(rails)?);
    let versions = keep_versions((&db, &keyring), &loader, &config, (&rails, &clock)).await?;
    let (pack_store, packs) = open_packs(&db, loader, &config, packs, &clock).await?;
    seed_routes(&db, &rails, &ids, &clock).await?;

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
        long_answers: LongAnswers::new(config.server.database_connections),
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
    worker::start(&app, (handed, compared), (service, messages));

    Ok(Host { serving: listeners.serve(&app), app, address, new_operator_token: new_token, broken })
}

/// The database, and what opens its secrets.
struct Storage {
    db: Db,
    keyring: Arc<Keyring>,
    recipients: RecipientDirectory,
    operator_token: SecretString,
    new_token: Option<SecretString>,
}

async fn open(config: &Config, clock: &Clock, ids: &IdGenerator) -> Result<Storage, StartError> {
    refuse_odd_settings(config)?;
    let db = Db::open(&config.database_url(), config.server.database_connections).await?;
    db.migrate().await?;
    months::make_room(&db, clock.now()).await?;
    release_leases(&db).await?;
    let keyring = Arc::new(keyring(config, ids)?);
    remember_keyring(&db, &keyring).await?;
    let parts = (&db, &*keyring, ids);
    let (operator_token, new_token) = operator_token(config, parts).await?;
    let (secret, _) = kept_secret(parts, "identities", &ids.secret()).await?;
    let recipients = RecipientDirectory::new(&db, Arc::clone(&keyring), IdentityKey::new(&secret));
    Ok(Storage { db, keyring, recipients, operator_token, new_token })
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
        batch_max: config.writer.batch_max.min(limits::BATCH_MAX),
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
    let (gate, folder, suspicion) = Quarantine::look(db, &config.data.dir, sources).await?;
    let intents = IntentJournal::open(&folder, sources.0.now())
        .map_err(|cause| format!("the intent journal {}: {cause}", folder.display()))?;
    if let Some(suspicion) = suspicion {
        gate.enter(writer, suspicion).await?;
    }
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

/// Refuses settings that each make sense, and together do harm.
fn refuse_odd_settings(config: &Config) -> Result<(), StartError> {
    config.check_tokens()?;
    config.alerts.check(&config.email)?;
    config.anchors.check()?;
    refuse_odd_operators(config)?;
    refuse_distant_simulator(config)
}

/// Operators are told apart by name and token; the audit log's own actors are taken.
fn refuse_odd_operators(config: &Config) -> Result<(), StartError> {
    let mut tokens: Vec<&str> =
        config.operator_token.iter().map(ExposeSecret::expose_secret).collect();
    for (name, token) in &config.admin.operators {
        let token = token.expose_secret();
        if matches!(name.as_str(), "host" | OPERATOR | "unknown")
            || name.starts_with(MemberId::PREFIX)
        {
            return Err(format!("admin.operators.{name}: this name is taken").into());
        }
        if tokens.contains(&token) {
            let why = "a token belongs to one operator";
            return Err(format!("admin.operators.{name}: {why}").into());
        }
        tokens.push(token);
    }
    // The one whose token has no name is one of them.
    config.approvals.check(config.admin.operators.len() + 1)?;
    Ok(())
}

/// The simulator moves no money, and takes credentials that are no secret, over plain HTTP.
fn refuse_distant_simulator(config: &Config) -> Result<(), StartError> {
    let Some(url) = &config.simulator.url else { return Ok(()) };
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    match literal.map_or(host == "localhost", |ip| ip.is_loopback()) {
        true => Ok(()),
        false => Err(format!("simulator.url {url}: the simulator is on this machine only").into()),
    }
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
    /// The storage broke, or the server did.
    pub async fn run(self, told_to_stop: impl Future<Output = ()>) -> Result<(), StartError> {
        tokio::select! {
            () = told_to_stop => tracing::info!("stopping"),
            () = self.broken.cancelled() => {
                // Nothing that this process believes about the storage is worth saving.
                return Err("the storage fails; see the log".into());
            }
        }
        self.stop().await
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

/// The host's keys: configured, or kept in a file beside the data.
///
/// # Errors
/// They are malformed, or the file cannot be used.
pub fn keyring(config: &Config, ids: &IdGenerator) -> Result<Keyring, StartError> {
    match config.encryption.keys.as_slice() {
        [] => Ok(Keyring::from_file(&config.data.dir.join("master.key"), ids)?),
        keys => Ok(Keyring::from_hex(keys)?),
    }
}

/// The database knows under which key it was set up; a host with other keys must not write.
async fn remember_keyring(db: &Db, keyring: &Keyring) -> Result<(), StartError> {
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ('keyring', $1) ON CONFLICT (key) DO NOTHING";
    sqlx::query(sql).bind(keyring.fingerprint()).execute(tx.conn()).await?;
    let sql = "SELECT value FROM meta WHERE key = 'keyring'";
    let known: String = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
    if !keyring.holds(&known) {
        return Err(format!(
            "this database was set up with master key {known}, and this host has {}: give all \
             hosts the same encryption.keys, or share the file master.key in the data folder",
            keyring.fingerprint()
        )
        .into());
    }
    let sql = "UPDATE meta SET value = $1 WHERE key = 'keyring'";
    sqlx::query(sql).bind(keyring.fingerprint()).execute(tx.conn()).await?;
    tx.commit().await?;
    Ok(())
}

/// The operator's token: configured, or made on the first start and kept sealed.
async fn operator_token(
    config: &Config,
    parts: (&Db, &Keyring, &IdGenerator),
) -> Result<(SecretString, Option<SecretString>), StartError> {
    if let Some(token) = &config.operator_token {
        return Ok((token.clone(), None));
    }
    let fresh = format!("op_{}", parts.2.secret());
    let (token, is_new) = kept_secret(parts, "operator_token", &fresh).await?;
    Ok((token.clone().into(), is_new.then(|| token.into())))
}

/// The secret that the database keeps sealed under this name, and whether it is `fresh`: the first
/// host that starts gives it.
async fn kept_secret(
    (db, keyring, ids): (&Db, &Keyring, &IdGenerator),
    name: &str,
    fresh: &str,
) -> Result<(String, bool), StartError> {
    let place = format!("meta/{name}");
    let sealed = keyring.seal(ids, &place, fresh.as_bytes())?;
    let mut tx = db.write().await?;
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
    let made = sqlx::query(sql).bind(name).bind(sealed).execute(tx.conn()).await?;
    let sql = "SELECT value FROM meta WHERE key = $1";
    let sealed: String = sqlx::query_scalar(sql).bind(name).fetch_one(tx.conn()).await?;
    let secret = String::from_utf8(keyring.open(&place, &sealed)?)?;
    if !keyring.is_current(&sealed) {
        let sealed = keyring.seal(ids, &place, secret.as_bytes())?;
        let sql = "UPDATE meta SET value = $2 WHERE key = $1";
        sqlx::query(sql).bind(name).bind(sealed).execute(tx.conn()).await?;
    }
    tx.commit().await?;
    Ok((secret, made.rows_affected() == 1))
}

/// A rail that this database sees for the first time gets a route per currency, method and
/// environment. What an operator deletes later stays deleted.
async fn seed_routes(
    db: &Db,
    rails: &Registry,
    ids: &IdGenerator,
    clock: &Clock,
) -> Result<(), StartError> {
    let known = sql::list_routes(db.pool()).await?;
    let sql = "SELECT key FROM meta WHERE key LIKE 'routes_of/%'";
    let seen: Vec<String> = sqlx::query_scalar(sql).fetch_all(db.pool()).await?;
    let mark = |rail: &Rail| format!("routes_of/{}", rail.declaration.rail.name);
    let mut rows = Vec::new();
    for rail in rails.all() {
        let name = &rail.declaration.rail.name;
        if seen.contains(&mark(&rail)) || known.iter().any(|route| route.rail == *name) {
            continue;
        }
        for terms in &rail.declaration.methods {
            for env in [Env::Test, Env::Live] {
                let MethodTerms { name: method, currency, .. } = terms;
                let word = format!("{}_{method}", currency.as_str().to_lowercase());
                let now = clock.now();
                rows.push(sql::ROUTES.row(&Route {
                    id: ids.id(),
                    name: word.replace('-', "_"),
                    env,
                    currency: *currency,
                    method: method.clone(),
                    rail: name.clone(),
                    position: 0,
                    is_paused: false,
                    merchants: Vec::new(),
                    settings: BTreeMap::new(),
                    created_at: now,
                    updated_at: now,
                }));
            }
        }
    }
    let turn = db.turn().await;
    let mut native = db.native().await?;
    // All of them or none: a rail that has one route is not given another.
    native.begin().await?;
    native.write(&[Write::Rows(&sql::ROUTES, &rows)]).await?;
    native.commit().await?;
    native.close().await;
    drop(turn);
    // Only now: a start that was cut off before makes them again, and none of them twice.
    let mut tx = db.write().await?;
    for rail in rails.all() {
        let sql = "INSERT INTO meta (key, value) VALUES ($1, 'made') ON CONFLICT (key) DO NOTHING";
        sqlx::query(sql).bind(mark(&rail)).execute(tx.conn()).await?;
    }
    tx.commit().await?;
    Ok(())
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

/// Certificates that rails trust: the system's, and the operator's own.
fn tls(config: &Config) -> Result<Arc<rustls::ClientConfig>, StartError> {
    let extra = config.egress.extra_ca_file.as_deref();
    let mut roots = rustls::RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // One that cannot be read is one less to trust.
        let _ = roots.add(certificate);
    }
    if let Some(path) = extra {
        use rustls::pki_types::pem::PemObject as _;
        let read = rustls::pki_types::CertificateDer::pem_file_iter(path);
        let read = read.map_err(|cause| format!("egress.extra_ca_file: {cause}"))?;
        for certificate in read {
            roots.add(certificate.map_err(|cause| format!("egress.extra_ca_file: {cause}"))?)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The operator's token as text, for the one who prints it.
#[must_use]
pub fn shown(token: &SecretString) -> &str {
    token.expose_secret()
}
