//! Routes: which rail serves a currency, method and environment, in which order, with which
//! configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use moka::future::Cache;
use rustls::ClientConfig;
use secrecy::SecretString;

use crate::calendar::Calendars;
use crate::clock::Moment;
use crate::config::{Config, limits};
use crate::db::{self, Db};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{MerchantId, RouteId};
use crate::keyring::Keyring;
use crate::money::Currency;
use crate::simulator::Simulator;
use crate::wasm::egress::{Call, Network, Scheme, Target, Throttle};
use crate::wasm::identity;
use crate::wasm::keys::Key;
use crate::wasm::rail::{Access, Door};

use super::bounds::Bounds;
use super::configuration::{Configured, RouteConfiguration};
use super::declaration::{Declaration, EndpointTerms, SettingTerms};
use super::enquiries::Enquiries;
use super::file_transport::{FileTransport, PREFIX};
use super::files::Timetable;
use super::granted::{
    Leads, call_to, certificates, configured_key, loopback, settings, simulated_key, token_source,
    warn_of_unread,
};
use super::hours::Hours;
use super::methods::Via;
use super::own_settings::{door_tokens, speaks_from, throttle};
use super::ready::ReadyRoute;
use super::registry::{Rail, Registry};
use super::sql;
use super::versions::Versions;

/// What a route is called that a start makes by itself.
#[must_use]
pub fn seeded_name(currency: &str, method: &str) -> String {
    format!("{}_{method}", currency.to_lowercase()).replace('-', "_")
}

/// A route as the operator set it.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The route's id.
    pub id: RouteId,
    /// A word, unique in its environment; names its section of the configuration.
    pub name: String,
    /// Test or live.
    pub env: Env,
    /// The currency that it pays in.
    pub currency: Currency,
    /// The payment method that it serves.
    pub method: String,
    /// The rail that serves it.
    pub rail: String,
    /// Routes of the same currency and method are tried in this order.
    pub position: i64,
    /// Whether it takes no new payouts.
    pub is_paused: bool,
    /// Merchants that may use it; empty means all.
    pub merchants: Vec<MerchantId>,
    /// Settings, and addresses as `endpoint.<name>`. Secrets stand in the configuration only.
    pub settings: BTreeMap<String, String>,
    /// When it was created.
    pub created_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
}

/// All routes, read from the database once a second at most.
#[derive(Clone)]
pub struct Routes {
    db: Db,
    pub(super) rails: Arc<Registry>,
    config: Arc<Config>,
    sandbox: Sandbox,
    keyring: Arc<Keyring>,
    tls: Arc<ClientConfig>,
    calendars: Arc<Calendars>,
    versions: Versions,
    snapshot: Cache<(), Arc<Vec<Arc<ReadyRoute>>>>,
    /// Kept while a route does not change, so that its connections are.
    ready: Arc<Mutex<HashMap<RouteId, Arc<ReadyRoute>>>>,
    /// The same with versions of their rails that are not loaded any more, by digest.
    older: Arc<Mutex<Older>>,
}

type Older = HashMap<(RouteId, String), Arc<ReadyRoute>>;

/// Routes with older versions of their rails that are kept ready.
const OLDER_MAX: usize = 64;

/// What rails present to the simulator, which moves no money.
pub const SIMULATOR_SECRET: &str = "simulator";

/// How long a caller in the sandbox waits for what a network says by itself.
const SETTLE_WAIT: Duration = Duration::from_secs(5);

/// The other side of the sandbox's routes.
#[derive(Clone)]
pub struct Sandbox {
    /// Every network, in this process.
    pub simulator: Simulator,
    /// What these networks present where they send messages by themselves. Nobody else knows it.
    pub token: SecretString,
}

impl Sandbox {
    /// Waits until what its networks say by themselves about a payment has been taken in, or for
    /// a while; whether there was anything.
    pub async fn settled(&self, reference: &str) -> bool {
        let underway = self.simulator.underway();
        let arrived = underway.arrived(reference);
        tokio::time::timeout(SETTLE_WAIT, arrived).await.unwrap_or(true)
    }
}

/// What calls over a route reach.
#[derive(Default)]
struct Reached {
    calls: HashMap<String, Arc<Call>>,
    /// Where each endpoint leads, as text.
    addresses: BTreeMap<String, String>,
    /// What is missing of it.
    missing: Vec<String>,
}

impl Routes {
    /// Routes over this database. Those of the sandbox lead into `sandbox` and nowhere else.
    #[must_use]
    pub fn new(
        db: Db,
        rails: Arc<Registry>,
        config: Arc<Config>,
        (sandbox, keyring): (Sandbox, Arc<Keyring>),
        (tls, calendars, versions): (Arc<ClientConfig>, Arc<Calendars>, Versions),
    ) -> Self {
        let snapshot = Cache::builder().time_to_live(limits::CACHE_FRESH).build();
        let (ready, older) = (Arc::default(), Arc::default());
        Self {
            db,
            rails,
            config,
            sandbox,
            keyring,
            tls,
            calendars,
            versions,
            snapshot,
            ready,
            older,
        }
    }

    /// Every route whose rail is loaded, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn all(&self) -> Result<Arc<Vec<Arc<ReadyRoute>>>, Problem> {
        Ok(self.snapshot.try_get_with((), self.read()).await?)
    }

    /// Forgets the snapshot, after a change on this host.
    pub fn forget(&self) {
        self.snapshot.invalidate_all();
    }

    /// The route of this id.
    ///
    /// # Errors
    /// `rail_not_configured` if it is gone.
    pub async fn get(&self, id: &RouteId) -> Result<Arc<ReadyRoute>, Problem> {
        let routes = self.all().await?;
        let found = routes.iter().find(|ready| ready.route.id == *id);
        found.cloned().ok_or_else(|| Problem::new(ErrorCode::RailNotConfigured))
    }

    /// The route as what was sent over it is asked about: by the version of its rail that sent it,
    /// if that was kept and is still configured.
    ///
    /// # Errors
    /// `rail_not_configured` if the route is gone; the database cannot be read.
    pub async fn as_sent(&self, sent: &RouteConfiguration) -> Result<Arc<ReadyRoute>, Problem> {
        let RouteConfiguration { route_id: id, rail_digest: digest, .. } = sent;
        let now = self.get(id).await?;
        if now.rail.digest == *digest {
            return Ok(now);
        }
        let rail = self.versions.get(digest).await?;
        let is_its = |rail: &Arc<Rail>| rail.declaration.rail.name == now.route.rail;
        let Some(rail) = rail.filter(is_its) else { return Ok(now) };
        let key = (id.clone(), digest.clone());
        let mut older = self.older.lock().unwrap_or_else(PoisonError::into_inner);
        // Few are in use; what is not is ready again in a moment.
        if older.len() >= OLDER_MAX && !older.contains_key(&key) {
            older.clear();
        }
        let known = older.get(&key).filter(|known| known.route == now.route).cloned();
        let then = known.unwrap_or_else(|| {
            Arc::new(self.prepare(now.route.clone(), rail, now.throttle.clone()))
        });
        older.insert(key, Arc::clone(&then));
        // What the operator has configured may be for the new one only.
        match (then.missing(), now.missing()) {
            (Some(_), None) => Ok(now),
            _ => Ok(then),
        }
    }

    /// The rails that are loaded.
    #[must_use]
    pub fn rails(&self) -> &Registry {
        &self.rails
    }

    async fn read(&self) -> Result<Arc<Vec<Arc<ReadyRoute>>>, sqlx::Error> {
        let routes = db::in_time(sql::list_routes(self.db.pool())).await?;
        let mut known = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            let is_live =
                |name: &String| routes.iter().any(|it| it.env == Env::Live && it.name == *name);
            for name in self.config.routes.keys().filter(|name| !is_live(name)) {
                tracing::warn!("routes.{name} is configured, and no live route has that name");
            }
        }
        let mut ready = Vec::new();
        for route in routes {
            let Some(rail) = self.rails.get(&route.rail) else { continue };
            let same = known
                .get(&route.id)
                .filter(|known| known.route == route && known.rail.digest == rail.digest);
            let route = match same {
                Some(known) => Arc::clone(known),
                None => {
                    let throttle = match route.env {
                        Env::Live => throttle(rail.declaration.throttle.as_ref(), &route.settings),
                        Env::Test => None,
                    };
                    Arc::new(self.prepare(route, rail, throttle))
                }
            };
            known.insert(route.route.id.clone(), Arc::clone(&route));
            ready.push(route);
        }
        Ok(Arc::new(ready))
    }

    fn prepare(
        &self,
        route: Route,
        rail: Arc<Rail>,
        throttle: Option<Arc<Throttle>>,
    ) -> ReadyRoute {
        // What is configured is a bank's, and never within a test key's reach.
        let configured = match route.env {
            Env::Live => self.config.routes.get(&route.name).cloned().unwrap_or_default(),
            Env::Test => BTreeMap::new(),
        };
        let transport =
            FileTransport::of((&route, &rail.declaration), (&configured, &self.config), &self.tls);
        warn_of_unread(&route, &rail.declaration, &configured);
        let Reached { calls, addresses, missing: unaddressed } =
            self.calls((&route, &rail), &configured, (&transport, throttle.as_ref()));
        let certificates = certificates(&rail.declaration, &configured);
        let (secrets, secretless) = self.secrets((&route, &rail), &configured, &transport);
        let is_simulated = self.is_simulated(&route);
        let (keys, keyless) = self.keys((&route, &rail.declaration), &configured);
        let given = |name: &str, terms: &SettingTerms| {
            let value = configured.get(name).or_else(|| route.settings.get(name));
            let sandbox = terms.sandbox.as_ref().filter(|_| is_simulated);
            value.or(sandbox).or(terms.default.as_ref()).cloned()
        };
        let (settings, unset) = settings(&route.name, &rail.declaration, given);
        let mut missing = [unaddressed, secretless, keyless, unset].concat();
        missing.extend(transport.missing());
        let unserved = without_method(&route, &rail.declaration);
        missing.extend(self.unreachable(&route, &rail.declaration).into_iter().chain(unserved));
        let speaks_from = speaks_from(&route.settings);
        let unheard = speaks_from.as_ref().err();
        missing.extend(unheard.map(|why| format!("routes.{}: {why}", route.name)));
        let (name, tables) = (rail.declaration.rail.name.clone(), rail.tables.clone());
        let (own, all) = (settings.clone(), tables.clone());
        let pure = Access { rail: name.clone(), settings: own, tables: all, ..Access::default() };
        let timetable = self.timetable((&route, &rail), &settings);
        // Without what is missing already, neither can be made.
        missing.extend(timetable.as_ref().err().filter(|_| missing.is_empty()).cloned());
        let hours = self.hours((&route, &rail), &settings);
        missing.extend(hours.as_ref().err().filter(|_| missing.is_empty()).cloned());
        let sources = rail.declaration.tokens.iter().map(|(name, terms)| {
            token_source(terms, &calls, &secrets).map(|source| (name.clone(), source))
        });
        let tokens = sources.flatten().collect();
        let door_tokens = door_tokens(&self.keyring, &route.id, &route.settings);
        let door = self.door(&route.id, &rail.declaration, &door_tokens[0]);
        let access = Access {
            rail: name,
            calls,
            settings,
            secrets,
            sealed_with: rail.declaration.sealed_with(),
            keys,
            tokens,
            door,
            tables,
        };
        ReadyRoute {
            simulated_token: is_simulated.then(|| self.presented(route.env)),
            speaks_from: speaks_from.unwrap_or_default(),
            enquiries: Enquiries::at(throttle.as_deref()),
            bounds: Bounds::of(&route.settings),
            route,
            rail,
            access: Arc::new(access),
            pure: Arc::new(pure),
            certificates,
            addresses,
            fingerprints: OnceLock::new(),
            configured: Configured::default(),
            door_tokens,
            timetable: timetable.unwrap_or_default(),
            hours: hours.unwrap_or_default(),
            transport,
            throttle,
            missing: (!missing.is_empty()).then(|| missing.join("; ")),
        }
    }

    /// The declared calls of a route, each to where it leads.
    fn calls(
        &self,
        (route, rail): (&Route, &Rail),
        configured: &BTreeMap<String, String>,
        (transport, throttle): (&FileTransport, Option<&Arc<Throttle>>),
    ) -> Reached {
        let mut reached = Reached { addresses: transport.addresses(), ..Reached::default() };
        for (name, terms) in &rail.declaration.endpoints {
            match self.target((route, rail), (name, terms), configured) {
                Ok(target) => {
                    reached.addresses.insert(name.clone(), target.address());
                    let target = Arc::new(target);
                    let makes_files = rail.declaration.files.is_some();
                    let each = terms.calls.iter();
                    let each =
                        each.filter_map(|terms| call_to(terms, &target, (throttle, makes_files)));
                    reached.calls.extend(each.map(|call| (call.name.clone(), Arc::new(call))));
                }
                Err(_) if transport.leaves_nothing_to(rail) => {}
                Err(why) => reached.missing.push(why),
            }
        }
        reached
    }

    /// When files are made for a route, where its method goes by file.
    fn timetable(
        &self,
        (route, rail): (&Route, &Rail),
        settings: &BTreeMap<String, String>,
    ) -> Result<Option<Timetable>, String> {
        let method = rail.declaration.method(route.currency, &route.method);
        let by_file = method.is_some_and(|terms| terms.via == Via::Files);
        let terms = rail.declaration.files.as_ref();
        let Some(terms) = terms.filter(|_| by_file) else { return Ok(None) };
        let calendar = self.calendars.for_rail(&terms.calendar, &rail.calendars);
        Timetable::new(terms, calendar, |name| settings.get(name).cloned()).map(Some)
    }

    /// When the network of a route takes payments.
    fn hours(
        &self,
        (route, rail): (&Route, &Rail),
        settings: &BTreeMap<String, String>,
    ) -> Result<Option<Hours>, String> {
        let method = rail.declaration.method(route.currency, &route.method);
        let Some(terms) = method.and_then(|terms| terms.hours.as_ref()) else { return Ok(None) };
        let calendar = self.calendars.for_rail(&terms.calendar, &rail.calendars);
        Hours::new(terms, calendar, |name| settings.get(name).cloned()).map(Some)
    }

    /// The declared secrets of a route, and what is missing of them.
    fn secrets(
        &self,
        (route, rail): (&Route, &Rail),
        configured: &BTreeMap<String, String>,
        transport: &FileTransport,
    ) -> (BTreeMap<String, SecretString>, Vec<String>) {
        let (mut secrets, mut missing) = (BTreeMap::new(), Vec::new());
        let (declaration, carries_all) = (&rail.declaration, transport.leaves_nothing_to(rail));
        // A certificate is shown in the handshake: no request has it.
        let in_requests = |name: &&String| !declaration.is_client_certificate(name);
        for name in declaration.secrets.keys().filter(in_requests) {
            let at = format!("routes.{}.{name}", route.name);
            let is_presented = declaration.is_presented(name);
            match configured.get(name).filter(|value| !value.is_empty()) {
                Some(value) if is_presented && value.len() < limits::TOKEN_BYTES_MIN => {
                    let least = limits::TOKEN_BYTES_MIN;
                    missing.push(format!("{at} must have {least} characters at least"));
                }
                Some(value) => {
                    secrets.insert(name.clone(), SecretString::from(value.clone()));
                }
                None if self.is_simulated(route) => {
                    let secret = self.simulated_secret(route, declaration, name);
                    secrets.extend(secret.map(|secret| (name.clone(), secret)));
                }
                // What the rail would present where it asks for nothing.
                None if carries_all && !is_presented => {}
                None => missing.push(format!("{at} is not configured")),
            }
        }
        (secrets, missing)
    }

    /// The declared keys of a route, and what is missing of them.
    fn keys(
        &self,
        (route, declaration): (&Route, &Declaration),
        configured: &BTreeMap<String, String>,
    ) -> (BTreeMap<String, Arc<Key>>, Vec<String>) {
        let (mut keys, mut missing) = (BTreeMap::new(), Vec::new());
        for (name, terms) in &declaration.keys {
            let key = match configured.get(name).filter(|pem| !pem.is_empty()) {
                Some(pem) => configured_key(terms, pem, self.leads(route)),
                None if self.is_simulated(route) => simulated_key(terms),
                None => Err("it is not configured".to_owned()),
            };
            match key {
                Ok(key) => {
                    keys.insert(name.clone(), Arc::new(key));
                }
                Err(why) => missing.push(format!("routes.{}.{name}: {why}", route.name)),
            }
        }
        (keys, missing)
    }

    /// What is wrong with the address that a real network would be given.
    fn unreachable(&self, route: &Route, declaration: &Declaration) -> Option<String> {
        let is_given = declaration.notices.iter().any(|notice| notice.auth.path_token);
        let is_real = is_given && !self.is_simulated(route);
        let is_good = self.config.public_url().starts_with("https://");
        (is_real && !is_good)
            .then(|| "server.public_url must be an https address that the network reaches".into())
    }

    /// Where the network of a route may be told to speak to this host.
    fn door(&self, id: &RouteId, declaration: &Declaration, token: &str) -> Option<Door> {
        let open = declaration.notices.iter().filter(|notice| notice.auth.path_token);
        let paths: Vec<String> = open.map(|notice| notice.path.clone()).collect();
        let address = format!("{}/notices/{id}/", self.config.public_url());
        (!paths.is_empty()).then(|| Door { address, token: SecretString::from(token), paths })
    }

    /// Whether a route leads to the simulator, in this process or on its own port.
    fn is_simulated(&self, route: &Route) -> bool {
        let is_address = |key: &str| key.starts_with("endpoint.") || key.starts_with(PREFIX);
        let configured = route.settings.keys().any(|key| is_address(key));
        route.env == Env::Test || (!configured && self.config.simulator.url.is_some())
    }

    fn leads(&self, route: &Route) -> Leads {
        if self.is_simulated(route) { Leads::ToTheSimulator } else { Leads::ToANetwork }
    }

    /// What stands in for a secret of a simulated route. Whatever lets somebody speak to this host
    /// is known to the simulator only, and for live payments there is none unless it is configured.
    fn simulated_secret(
        &self,
        route: &Route,
        declaration: &Declaration,
        name: &str,
    ) -> Option<SecretString> {
        match declaration.is_presented(name) {
            false => Some(SecretString::from(SIMULATOR_SECRET)),
            true => self.presented(route.env),
        }
    }

    /// What simulated networks present where they speak by themselves.
    fn presented(&self, env: Env) -> Option<SecretString> {
        match env {
            Env::Test => Some(self.sandbox.token.clone()),
            Env::Live => self.config.simulator.token.clone(),
        }
    }

    fn target(
        &self,
        (route, rail): (&Route, &Rail),
        (endpoint, terms): (&str, &EndpointTerms),
        configured: &BTreeMap<String, String>,
    ) -> Result<Target, String> {
        let name = &rail.declaration.rail.name;
        // A test key cannot reach the outside by construction: there is no other arm for it.
        if route.env == Env::Test {
            return match &rail.network {
                Some(_) => Ok(Target::InProcess(self.sandbox.simulator.network(name))),
                None => Err(format!("the rail {name} brings no simulator")),
            };
        }
        let allowed = &self.config.egress.allow_private_networks;
        match (route.settings.get(&format!("endpoint.{endpoint}")), &self.config.simulator.url) {
            (Some(url), _) => {
                let tls = self.tls(&route.name, terms, configured)?;
                network(url, (allowed.clone(), tls), Scheme::Https)
            }
            // There every network is below its rail's name.
            (None, Some(url)) => {
                let url = format!("{}/{name}", url.trim_end_matches('/'));
                network(&url, (loopback(), Arc::clone(&self.tls)), Scheme::Http)
            }
            (None, None) => Err(format!(
                "route {} has no endpoint.{endpoint}, and simulator.url is not set",
                route.name
            )),
        }
    }

    /// How an endpoint of a real network is connected to: with a certificate, if it wants to see
    /// one.
    fn tls(
        &self,
        route: &str,
        terms: &EndpointTerms,
        configured: &BTreeMap<String, String>,
    ) -> Result<Arc<ClientConfig>, String> {
        let Some(name) = &terms.client_certificate else { return Ok(Arc::clone(&self.tls)) };
        let at = format!("routes.{route}.{name}");
        let pem = configured.get(name).filter(|pem| !pem.is_empty());
        let pem = pem.ok_or_else(|| format!("{at} is not configured"))?;
        let presenting = identity::presenting(&self.tls, pem);
        presenting.map(Arc::new).map_err(|why| format!("{at}: {why}"))
    }
}

/// A server under an address. `least` is the weakest scheme that is acceptable: plain HTTP only to
/// the simulator.
fn network(
    url: &str,
    (allowed, tls): (Vec<IpNet>, Arc<ClientConfig>),
    least: Scheme,
) -> Result<Target, String> {
    let uri: http::Uri = url.parse().map_err(|_| format!("{url} is not an address"))?;
    let scheme = match uri.scheme_str() {
        Some("https") => Scheme::Https,
        Some("http") if least == Scheme::Http => Scheme::Http,
        _ => return Err(format!("{url} must begin with https://")),
    };
    let host = uri.host().ok_or_else(|| format!("{url} names no host"))?.to_owned();
    let port = uri.port_u16().unwrap_or(if scheme == Scheme::Https { 443 } else { 80 });
    let base = uri.path().trim_end_matches('/').to_owned();
    Ok(Target::Network(Network::new((scheme, host, port), base, tls, allowed)))
}

/// What is missing where the loaded version of its rail has no such method.
fn without_method(route: &Route, declaration: &Declaration) -> Option<String> {
    let Route { currency, method, rail, .. } = route;
    let is_known = declaration.method(*currency, method).is_some();
    (!is_known).then(|| format!("the rail {rail} has no method {method} in {currency}"))
}
