//! Configuration.
//!
//! Settings come from `railhead.toml`, then from the environment: `RAILHEAD_SECTION__KEY`
//! overrides `section.key`. `DATABASE_URL` and `RAILHEAD_OPERATOR_TOKEN` have names of their
//! own because deployments expect them.

mod approvals;
mod bounds;
pub mod limits;
mod notifications;
mod rate_sources;
mod read;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use secrecy::SecretString;
use serde::Deserialize;

pub use approvals::{ApprovalAct, ApprovalTier, Approvals};
pub use notifications::{Alerts, Anchors, Email};
pub use rate_sources::{RateSource, RateSources};
use read::listed;

/// Everything that can be configured.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `sqlite:path` or `postgres://…`; unset means SQLite in the data folder.
    pub database_url: Option<SecretString>,
    /// Bearer token of the operator; unset means that `serve` makes one and prints it once.
    pub operator_token: Option<SecretString>,
    /// A merchant's key, for the developer's commands: `listen`, `trigger` and `logs`.
    pub api_key: Option<SecretString>,
    /// The HTTP server.
    pub server: Server,
    /// Where the host keeps files.
    pub data: Data,
    /// Encryption at rest.
    pub encryption: Encryption,
    /// Rate limits.
    pub limits: RateLimits,
    /// The operator's API.
    pub admin: Admin,
    /// The writer of the ledger.
    pub writer: Writer,
    /// Background work.
    pub worker: Worker,
    /// The bank simulator.
    pub simulator: Simulator,
    /// Folders with further components.
    pub modules: Modules,
    /// Egress of rails.
    pub egress: Egress,
    /// Files of payments that this host carries itself.
    pub files: Files,
    /// Rule packs.
    pub rules: Rules,
    /// What takes more than one operator.
    pub approvals: Approvals,
    /// Where rates come from by themselves.
    pub rate_sources: RateSources,
    /// Webhooks to merchants.
    pub webhooks: Webhooks,
    /// How e-mail leaves.
    pub email: Email,
    /// Who hears of what an operator has to look at.
    pub alerts: Alerts,
    /// What the books were, kept outside the database.
    pub anchors: Anchors,
    /// How long things are kept that are not the books.
    pub retention: Retention,
    /// Configuration of live routes, by route name, then setting or secret. Those of the sandbox
    /// have none: nothing of a bank's is ever near a test key.
    pub routes: BTreeMap<String, BTreeMap<String, String>>,
    /// Logs.
    pub log: Log,
    /// The program that compiles uploaded components: this very one if unset. No setting; a host
    /// inside a program of another kind, such as a test, names `railhead` here.
    #[serde(skip)]
    pub compiler: Option<PathBuf>,
    /// Calls of rails at once. No setting: a test sets it to one, to see what becomes of a second, and
    /// all tests to few, so that many hosts have their pools in one process's address space.
    #[serde(skip)]
    pub rail_guests: Option<u32>,
}

/// The HTTP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address to listen on.
    pub address: SocketAddr,
    /// The address that callers use, for links in answers; derived from `address` if unset.
    pub public_url: Option<String>,
    /// Networks whose `X-Forwarded-For` is believed.
    #[serde(deserialize_with = "listed")]
    pub trusted_proxies: Vec<IpNet>,
    /// Connections at once; beyond them one that has no request at hand gives way.
    pub connections_max: usize,
    /// Certificate chain as PEM; with `tls_key_file`, connections are encrypted by this host.
    pub tls_certificate_file: Option<PathBuf>,
    /// Its private key as PEM.
    pub tls_key_file: Option<PathBuf>,
    /// Seconds after which a request is answered whether or not it is finished.
    pub timeout_s: u64,
    /// Connections to the database for reads, claims and sweeps: the writer has its own.
    pub database_connections: u32,
}

/// Where the host keeps files.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// Folder of the embedded database, the key file and compiled code.
    pub dir: PathBuf,
}

/// Encryption at rest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Encryption {
    /// Master keys of 64 hexadecimal digits, the current one first, separated by commas in
    /// the environment. Unset: a file in the data folder.
    #[serde(deserialize_with = "listed")]
    pub keys: Vec<String>,
}

/// Requests per minute and key, by tier; anonymous ones per address.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateLimits {
    /// GET.
    pub read_per_minute: u32,
    /// POST, PATCH, DELETE.
    pub write_per_minute: u32,
    /// Creating batches.
    pub bulk_per_minute: u32,
    /// Without a valid key, per address.
    pub anonymous_per_minute: u32,
}

/// The operator's API.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// An address of its own for `/admin/v1` and `/metrics`, which `server.address` then does not
    /// serve.
    pub address: Option<SocketAddr>,
    /// Requests per minute of each operator.
    pub requests_per_minute: u32,
    /// Tokens of further operators, by name; the audit log tells them apart.
    pub operators: BTreeMap<String, SecretString>,
}

/// The writer of the ledger.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Writer {
    /// Commands per transaction at most; 1 is the mode to compare against.
    pub batch_max: usize,
}

/// Background work.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Worker {
    /// Whether this host dispatches queued payouts.
    pub dispatch: bool,
    /// Payouts that this host sends at once over each route.
    pub dispatch_concurrency: usize,
}

/// The bank simulator.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Simulator {
    /// Where live routes without an endpoint of their own send to; loopback only.
    pub url: Option<String>,
    /// What its networks present where they send messages about live payments by themselves; unset
    /// means that such messages are refused.
    pub token: Option<SecretString>,
    /// Address on which `railhead simulator` listens.
    pub address: SocketAddr,
    /// Where `railhead simulator` sends the messages that a network sends by itself.
    pub notify_url: Option<String>,
}

/// Folders with further components.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Modules {
    /// Folder with `.wasm` rails and rule packs, and `tables/<rail>/<table>.csv`.
    pub dir: Option<PathBuf>,
    /// Versions of rails that must not run any more, by the SHA-256 of their files in hex.
    #[serde(deserialize_with = "listed")]
    pub barred: Vec<String>,
}

/// Egress of rails.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Certificates to trust besides the system's, as PEM.
    pub extra_ca_file: Option<PathBuf>,
    /// Private networks that rails may reach, such as a bank's VPN.
    #[serde(deserialize_with = "listed")]
    pub allow_private_networks: Vec<IpNet>,
}

/// Files of payments that this host carries itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Folders on this machine in which a route may have its files put and fetched; none unless
    /// set. Absolute.
    #[serde(deserialize_with = "listed")]
    pub folders: Vec<PathBuf>,
}

/// Rule packs.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// What becomes of a payout about which the active fraud pack cannot decide.
    pub on_failure: OnFailure,
    /// What takes the place of a fraud pack that is taken out because it keeps failing.
    pub after_failures: AfterFailures,
    /// Days that decisions are kept.
    pub decisions_kept_days: u32,
}

/// What becomes of a payout about which the active fraud pack cannot decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It is held for review.
    Closed,
    /// The payout is accepted.
    Open,
}

/// What takes the place of a fraud pack that is taken out because it keeps failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterFailures {
    /// Nothing: every payout is held until an operator assigns a pack.
    Hold,
    /// The version that decided before it.
    Previous,
}

/// Webhooks to merchants.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Whether this host delivers.
    pub deliver: bool,
    /// Deliveries that are begun at once; receivers that are slow or fail share a quarter of them.
    /// One that takes longer than a second makes room for another.
    pub concurrency: usize,
    /// Networks that are not public and may be delivered to all the same, on any port.
    #[serde(deserialize_with = "listed")]
    pub allow_private_networks: Vec<IpNet>,
    /// Ports that may be delivered to on the public internet, besides 443 and 8443.
    #[serde(deserialize_with = "listed")]
    pub extra_ports: Vec<u16>,
    /// Certificates to trust besides the system's, as PEM.
    pub extra_ca_file: Option<PathBuf>,
}

/// How long things are kept that are not the books: payouts, the ledger and the audit log stay for
/// ever. What is swept away is older than this; `verify` says no more about it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Days for which a repeat of a request is recognised: 30 at least. Where money may have been
    /// moved it always is.
    pub idempotency_days: u32,
    /// Days that the events of a payout are kept: as long as webhook deliveries and decisions at
    /// least.
    pub events_days: u32,
    /// Days that the messages to and from networks about a payout are kept: 90 at least.
    pub evidence_days: u32,
    /// Days that webhook deliveries which have ended are kept: 30 at least.
    pub deliveries_days: u32,
    /// Days that the log of merchants' requests is kept.
    pub request_log_days: u32,
}

impl Retention {
    /// The tables of which old rows are swept away, and for how many days each keeps them at least:
    /// whoever proves the books believes no more.
    /// Of events, those of payouts go in any way, and all of them only with their month.
    pub const SWEPT: &[(&str, u32)] = &[
        ("decisions", 0),
        ("expiring_keys", 30),
        ("events", 90),
        ("all_events", 90),
        ("rail_calls", 90),
    ];

    /// What stands against these settings, for the operator.
    ///
    /// # Errors
    /// The setting, and what it must be.
    pub fn check(&self, rules: &Rules) -> Result<(), String> {
        let least = |table: &str| {
            let known = Self::SWEPT.iter().find(|(swept, _)| *swept == table);
            known.map_or(0, |(_, days)| *days)
        };
        // Deliveries are compared with their events, and so are decisions.
        let events = self.deliveries_days.max(rules.decisions_kept_days).max(least("events"));
        for (name, days, least) in [
            ("idempotency_days", self.idempotency_days, least("expiring_keys")),
            ("events_days", self.events_days, events),
            ("evidence_days", self.evidence_days, least("rail_calls")),
            ("deliveries_days", self.deliveries_days, limits::DELIVERIES_KEPT_DAYS_LEAST),
        ] {
            if days < least {
                return Err(format!("retention.{name} is {days}, and must be {least} at least"));
            }
        }
        Ok(())
    }
}

/// Logs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// One JSON object per line instead of text.
    pub json: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            database_url: None,
            operator_token: None,
            api_key: None,
            server: Server::default(),
            data: Data { dir: PathBuf::from("data") },
            encryption: Encryption::default(),
            limits: RateLimits::default(),
            admin: Admin { address: None, requests_per_minute: 6000, operators: BTreeMap::new() },
            writer: Writer { batch_max: limits::BATCH_MAX },
            worker: Worker { dispatch: true, dispatch_concurrency: 192 },
            simulator: Simulator::default(),
            modules: Modules::default(),
            egress: Egress::default(),
            files: Files::default(),
            rules: Rules::default(),
            approvals: Approvals::default(),
            rate_sources: RateSources::default(),
            webhooks: Webhooks::default(),
            email: Email::default(),
            alerts: Alerts::default(),
            anchors: Anchors::default(),
            retention: Retention::default(),
            routes: BTreeMap::new(),
            log: Log::default(),
            compiler: None,
            rail_guests: None,
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            trusted_proxies: Vec::new(),
            connections_max: 1024,
            tls_certificate_file: None,
            tls_key_file: None,
            timeout_s: 30,
            database_connections: 8,
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Config::default().data
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            read_per_minute: 120,
            write_per_minute: 30,
            bulk_per_minute: 10,
            anonymous_per_minute: 10,
        }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Config::default().admin
    }
}

impl Default for Writer {
    fn default() -> Self {
        Config::default().writer
    }
}

impl Default for Worker {
    fn default() -> Self {
        Config::default().worker
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            on_failure: OnFailure::Closed,
            after_failures: AfterFailures::Hold,
            decisions_kept_days: 400,
        }
    }
}

impl Default for Retention {
    /// Messages for as long as payments may be asked about by law in most places.
    fn default() -> Self {
        let messages = 2557;
        Self {
            idempotency_days: 90,
            events_days: messages,
            evidence_days: messages,
            deliveries_days: 90,
            request_log_days: 400,
        }
    }
}

impl Default for Webhooks {
    fn default() -> Self {
        Self {
            deliver: true,
            concurrency: 128,
            allow_private_networks: Vec::new(),
            extra_ports: Vec::new(),
            extra_ca_file: None,
        }
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self {
            url: None,
            token: None,
            address: SocketAddr::from(([127, 0, 0, 1], 8090)),
            notify_url: None,
        }
    }
}

impl Config {
    /// The database's address: as configured, or SQLite in the data folder.
    #[must_use]
    pub fn database_url(&self) -> SecretString {
        self.database_url.clone().unwrap_or_else(|| {
            format!("sqlite:{}", self.data.dir.join("railhead.db").display()).into()
        })
    }

    /// The address that callers use.
    #[must_use]
    pub fn public_url(&self) -> String {
        let url = self.server.public_url.clone();
        url.unwrap_or_else(|| self.url_of(self.server.address))
    }

    /// The address that operators use.
    #[must_use]
    pub fn operators_url(&self) -> String {
        self.admin.address.map_or_else(|| self.public_url(), |address| self.url_of(address))
    }

    fn url_of(&self, address: SocketAddr) -> String {
        let scheme = if self.server.tls_certificate_file.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}
