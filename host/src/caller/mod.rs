//! Who is asking, and whether they may: the gates before every call.
//!
//! A request with a valid key spends that key's budget. One without spends the budget of its
//! address; when that is gone, it hears 429 instead of 401. Whoever has a valid key is let in all
//! the same: a stranger cannot lock out others at its address, and no key is short enough to be
//! guessed.

mod actor;
pub mod repeat;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use subtle::ConstantTimeEq as _;

pub use actor::{Actor, Done, Myself, OPERATOR, Operator};

use crate::app::App;
use crate::audit::{self, Refused};
use crate::auth::key::{TooWide, is_secret};
use crate::auth::{ApiKey, Capability, Merchant, Permission};
use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::body::StillAdmitted;
use crate::http::limiter::{Standing, Tier};
use crate::http::metrics::verb;
use crate::http::peer;
use crate::http::problem::refusal;
use crate::http::request_log::{self, Entry};
use crate::http::server::Crowded;
use crate::id::{MerchantId, RequestId};
use crate::ledger::Command;
use crate::team::session::TOKEN_PREFIX;
use crate::team::sql::SESSIONS_SEEN;
use crate::team::{Session, SignedIn};

/// A merchant's request: its key and who is behind it.
#[derive(Clone)]
pub struct Caller {
    /// The API key that the request was made with.
    pub key: Arc<ApiKey>,
    /// Whose it is.
    pub merchant: Arc<Merchant>,
    /// Where the request comes from.
    pub address: IpAddr,
}

impl Caller {
    /// Merchant and environment: what every query is confined to.
    #[must_use]
    pub fn owner(&self) -> (&MerchantId, Env) {
        (&self.merchant.id, self.key.env)
    }

    /// Whether the request that these headers came with would still be let in: its key may have
    /// been revoked since.
    pub async fn is_still_admitted(&self, app: &App, headers: &HeaderMap) -> bool {
        identify(app, bearer(headers).map(str::to_owned), self.address).await.is_ok()
    }

    /// Refuses a key that batches cannot be made with: one without the capability, or one that may
    /// be used from anywhere, or nearly so.
    ///
    /// # Errors
    /// `bulk_disabled_for_key` or `bulk_requires_ip_allowlist`.
    pub fn require_bulk(&self) -> Result<(), Problem> {
        let list = &self.key.ip_allowlist;
        match self.key.can(Capability::Bulk) {
            false => {
                let missing = json!({ "missing": ["bulk"] });
                Err(Problem::new(ErrorCode::BulkDisabledForKey).detail(missing))
            }
            true if list.is_empty() || TooWide::of(list).is_some() => {
                Err(Problem::new(ErrorCode::BulkRequiresIpAllowlist))
            }
            true => Ok(()),
        }
    }

    /// Refuses a key whose owner lacks this permission.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn require_permission(&self, permission: Permission) -> Result<(), Problem> {
        match self.key.may(permission) {
            true => Ok(()),
            false => Err(permission.missing()),
        }
    }

    /// Refuses a key without this capability.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn require(&self, capability: Capability) -> Result<(), Problem> {
        match self.key.can(capability) {
            true => Ok(()),
            false => Err(capability.missing()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(ErrorCode::Unauthorized))
    }
}

/// The gate before every path: `/v1` wants a key, `/admin/v1` the token of an operator or of a
/// session. Where all places
/// are taken, only questions after the host's health get through.
pub async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if request.extensions().get::<Crowded>().is_some() && !matches!(path, "/healthz" | "/readyz") {
        return Problem::new(ErrorCode::ServiceOverloaded).retry_after(1).into_response();
    }
    if path == "/v1" || path.starts_with("/v1/") {
        merchant_gate(app, request, next).await
    } else if path == "/admin/v1" || path.starts_with("/admin/v1/") {
        actor_gate(app, request, next).await
    } else if path.starts_with("/notices/") {
        let address = address(&app, &request);
        let response = next.run(request).await;
        // Whoever guesses at a network's token does so on the budget of its address.
        match refusal(&response) {
            Some(code @ (ErrorCode::Unauthorized | ErrorCode::NotFound)) => {
                turn_away(&app, address, Problem::new(code))
            }
            _ => response,
        }
    } else {
        next.run(request).await
    }
}

async fn merchant_gate(app: App, mut request: Request, next: Next) -> Response {
    let address = address(&app, &request);
    // What would be turned away in the end is turned away before it costs anything.
    if tier(&request) != Tier::Read
        && let Err(problem) = app.writer.admit()
    {
        return problem.into_response();
    }
    // Owned, because a request's body cannot be shared across a wait.
    let secret = bearer(request.headers()).map(str::to_owned);
    match identify(&app, secret, address).await {
        Ok(caller) => {
            let budget = (caller.key.id.to_string(), tier(&request));
            let record = Record::begin(&app, &caller, &request);
            let gate = Gate::Merchants(caller.merchant.updated_at);
            let again = still_admitted(&app, (&request, address), gate);
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(again);
            let response = spend(&app, budget, request, next).await;
            if let Some(record) = record {
                record.end(&response);
            }
            response
        }
        Err(_) if is_open(request.uri().path()) => {
            spend(&app, (peer::household(address), Tier::Anonymous), request, next).await
        }
        Err(problem) => turn_away(&app, address, problem),
    }
}

async fn actor_gate(app: App, mut request: Request, next: Next) -> Response {
    let address = address(&app, &request);
    if is_for_strangers(request.method(), request.uri().path()) {
        // Whoever guesses does so on the budget of their address, whatever else they have.
        request.extensions_mut().insert(Stranger { address });
        return spend(&app, (peer::household(address), Tier::Anonymous), request, next).await;
    }
    let token = bearer(request.headers()).map(str::to_owned);
    match recognise(&app, token, address).await {
        Ok(actor) => {
            let tier = if actor.session.is_some() { tier(&request) } else { Tier::Admin };
            let budget = (format!("actor {}", actor.name), tier);
            let told = actor.session.is_some().then(|| actor.clone());
            let path = audit::shortened(request.uri().path());
            let again = still_admitted(&app, (&request, address), Gate::Actors);
            request.extensions_mut().insert(actor);
            request.extensions_mut().insert(again);
            let response = spend(&app, budget, request, next).await;
            if let Some(member) = told {
                write_down_denied(&app, &member, &path, &response);
            }
            response
        }
        Err(problem) => {
            if problem.code() == ErrorCode::InvalidApiKey {
                write_down(&app, address);
            }
            turn_away(&app, address, problem)
        }
    }
}

/// What whoever is not signed in may do: sign in, and take up an invitation.
#[must_use]
pub fn is_for_strangers(method: &Method, path: &str) -> bool {
    method == Method::POST && matches!(path, "/admin/v1/sessions" | "/admin/v1/invitations/accept")
}

/// Somebody who wants to be signed in, or to set their first password.
#[derive(Clone, Copy, Debug)]
pub struct Stranger {
    /// Where the request comes from.
    pub address: IpAddr,
}

impl<S: Send + Sync> FromRequestParts<S> for Stranger {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let stranger = parts.extensions.get::<Self>().copied();
        stranger.ok_or_else(|| Problem::new(ErrorCode::Unauthorized))
    }
}

/// Whose token this is: an operator's, or that of a session.
async fn recognise(
    app: &App,
    token: Result<String, Problem>,
    address: IpAddr,
) -> Result<Actor, Problem> {
    let token = token?;
    if let Some(name) = operator_name(app, &token) {
        return Ok(Actor { name, address, session: None });
    }
    if !token.starts_with(TOKEN_PREFIX) {
        let message = "This is no token of an operator, nor of a member who has signed in.";
        return Err(Problem::because(ErrorCode::InvalidApiKey, message));
    }
    let known = app.team.sessions.find(&token).await?;
    let known = known.ok_or_else(|| Problem::new(ErrorCode::InvalidApiKey))?;
    if !known.session.is_good(&known.member, app.now()) {
        return Err(Problem::new(ErrorCode::SessionExpired));
    }
    let merchant = app.directory.merchant(&known.member.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::new(ErrorCode::InvalidApiKey))?;
    merchant.status.refuse_inactive()?;
    keep_alive(app, &known);
    Ok(Actor { name: known.member.id.to_string(), address, session: Some(known) })
}

/// Writes down, once a minute, that a session is used.
fn keep_alive(app: &App, known: &Arc<SignedIn>) {
    let now = app.now();
    if now < known.session.seen_at.after(limits::SESSION_SEEN_EVERY) {
        return;
    }
    let row = SESSIONS_SEEN.change(&Session { seen_at: now, ..known.session.clone() });
    let writing = app.clone();
    app.tasks.spawn(async move {
        match writing.writer.work(Command::rows(vec![row])).await {
            Ok(_) => writing.team.sessions.forget(),
            Err(problem) => tracing::warn!(?problem, "a session that is used ends before its time"),
        }
    });
}

/// Has the audit log tell what a member tried and may not do.
fn write_down_denied(app: &App, actor: &Actor, path: &str, response: &Response) {
    if refusal(response) == Some(ErrorCode::PermissionDenied) {
        let done =
            Done { action: "member.denied", subject: ("path", path), before: None, after: None };
        let holder = format!("{} {}", actor.name, audit::without_ids(path));
        let of = Refused { merchant: actor.merchant().cloned(), holder };
        tell_refusal(app, of, actor.did(done));
    }
}

/// Has the audit log tell of a wrong token.
fn write_down(app: &App, address: IpAddr) {
    let done = Done {
        action: "operator.log_in_failed",
        subject: ("operator", "unknown"),
        before: None,
        after: None,
    };
    let stranger = Actor { name: "unknown".to_owned(), address, session: None };
    let of = Refused { merchant: None, holder: peer::household(address) };
    tell_refusal(app, of, stranger.did(done));
}

/// Has the audit log tell of a refusal, without the answer waiting for it.
pub fn tell_refusal(app: &App, of: Refused, line: audit::Change) {
    let Some(line) = app.refusals.count(of, line, app.now()) else { return };
    let (row, writing) = (line.row(&app.ids, app.now()), app.clone());
    app.tasks.spawn(async move {
        if let Err(problem) = writing.writer.work(Command::rows(vec![row])).await {
            tracing::warn!(?problem, ?line, "a refusal is not in the audit log");
        }
    });
}

/// Whose token this is. Every token is compared, whichever it is.
fn operator_name(app: &App, token: &str) -> Option<String> {
    let is =
        |known: &SecretString| bool::from(token.as_bytes().ct_eq(known.expose_secret().as_bytes()));
    let named = app.config.admin.operators.iter();
    let named = named.fold(None, |found, (name, known)| if is(known) { Some(name) } else { found });
    let first = is(&app.operator_token).then(|| OPERATOR.to_owned());
    first.or_else(|| named.cloned())
}

/// Error pages are public: they explain refusals, the one for a bad key included.
fn is_open(path: &str) -> bool {
    path.starts_with("/v1/errors/")
}

async fn identify(
    app: &App,
    secret: Result<String, Problem>,
    address: IpAddr,
) -> Result<Caller, Problem> {
    let secret = secret?;
    // What no key looks like is not looked for.
    if !is_secret(&secret) {
        let message = "This is no API key: one begins sk_test_ or sk_live_.";
        return Err(Problem::because(ErrorCode::InvalidApiKey, message));
    }
    let key = app.directory.key(&secret).await?;
    let key = key.ok_or_else(|| Problem::new(ErrorCode::InvalidApiKey))?;
    key.admits(app.now(), address).map_err(Problem::new)?;
    let merchant = app.directory.merchant(&key.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::new(ErrorCode::InvalidApiKey))?;
    merchant.status.refuse_inactive()?;
    Ok(Caller { key, merchant, address })
}

/// Who let a request in.
#[derive(Clone, Copy)]
enum Gate {
    /// For a merchant who was last changed then.
    Merchants(Moment),
    Actors,
}

/// How to look once more at whoever sends a request, when its body has arrived.
fn still_admitted(app: &App, (request, address): (&Request, IpAddr), gate: Gate) -> StillAdmitted {
    let (app, header) = (app.clone(), request.headers().get(AUTHORIZATION).cloned());
    StillAdmitted(Arc::new(move || {
        let (app, header) = (app.clone(), header.clone());
        Box::pin(async move {
            let token = token(header.as_ref()).map(str::to_owned);
            match gate {
                Gate::Merchants(changed_at) => {
                    let caller = identify(&app, token, address).await?;
                    match caller.merchant.updated_at == changed_at {
                        true => Ok(()),
                        // What was read of it with the head, limits among it, counts no more.
                        false => Err(Problem::new(ErrorCode::ServiceUnavailable).retry_after(1)),
                    }
                }
                Gate::Actors => recognise(&app, token, address).await.map(drop),
            }
        })
    }))
}

/// The token of the `Authorization` header.
///
/// # Errors
/// `missing_api_key`, or `invalid_api_key` for another scheme.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    token(headers.get(AUTHORIZATION))
}

fn token(header: Option<&HeaderValue>) -> Result<&str, Problem> {
    let header = header.ok_or_else(|| Problem::new(ErrorCode::MissingApiKey))?;
    let (scheme, token) = header.to_str().ok().and_then(|value| value.split_once(' ')).unzip();
    match (scheme, token.map(str::trim)) {
        (Some(scheme), Some(token))
            if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() =>
        {
            Ok(token)
        }
        _ => Err(Problem::because(
            ErrorCode::InvalidApiKey,
            "The Authorization header must be Bearer followed by a secret key.",
        )),
    }
}

fn tier(request: &Request) -> Tier {
    match request.method() {
        &Method::GET | &Method::HEAD => Tier::Read,
        &Method::POST if request.uri().path() == "/v1/batches" => Tier::Bulk,
        _ => Tier::Write,
    }
}

fn limit(app: &App, tier: Tier) -> u32 {
    let limits = &app.config.limits;
    match tier {
        Tier::Read => limits.read_per_minute,
        Tier::Write => limits.write_per_minute,
        Tier::Bulk => limits.bulk_per_minute,
        Tier::Anonymous => limits.anonymous_per_minute,
        Tier::Admin => app.config.admin.requests_per_minute,
    }
}

/// Runs a request on a budget. What went wrong on this side or behind it gives its place back, and so
/// does what comes too soon; as often as a budget has places, so that nobody asks for it for ever.
async fn spend(app: &App, budget: (String, Tier), request: Request, next: Next) -> Response {
    let (holder, tier) = budget;
    let now = app.now();
    let mut standing = app.limiter.take(&holder, tier, limit(app, tier), now);
    if !standing.admitted {
        return too_many(tier, standing, standing.retry_after_s(now));
    }
    let mut response = next.run(request).await;
    if !counts(&response) {
        app.limiter.give_back(&holder, tier, &mut standing);
    }
    standing.write(response.headers_mut());
    response
}

/// Whether an answer counts on a budget: neither 5xx nor 429 do.
fn counts(response: &Response) -> bool {
    let status = response.status();
    !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS
}

/// A request on its way into the log of recent ones. It is written down however it ends: one
/// that is dropped was cut off by its caller or by its deadline, and has no answer.
struct Record {
    app: App,
    owner: String,
    begun: Instant,
    entry: Option<Entry>,
}

impl Record {
    /// Begins, unless the request reads the log itself, which would soon hold nothing else.
    fn begin(app: &App, caller: &Caller, request: &Request) -> Option<Self> {
        let path = request.uri().path();
        let id = request.extensions().get::<RequestId>()?.clone();
        let (merchant, env) = caller.owner();
        (path != request_log::PATH).then(|| Self {
            app: app.clone(),
            owner: format!("{merchant}/{env}"),
            begun: Instant::now(),
            entry: Some(Entry {
                object: "request_log",
                id,
                // Whoever calls may have made it up, of any length.
                method: verb(request.method()).to_owned(),
                path: audit::shortened(path),
                status: None,
                duration_ms: 0,
                key_prefix: caller.key.prefix.clone(),
                error_code: None,
                created_at: app.now(),
            }),
        })
    }

    fn end(mut self, response: &Response) {
        if let Some(entry) = &mut self.entry {
            entry.status = Some(response.status().as_u16());
            entry.error_code = refusal(response).map(|code| code.entry().code.into());
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.app.requests.add(std::mem::take(&mut self.owner), entry);
        }
    }
}

/// Refuses a request that nobody answers for, on the budget of its address.
fn turn_away(app: &App, address: IpAddr, problem: Problem) -> Response {
    let now = app.now();
    let holder = peer::household(address);
    let mut standing = app.limiter.take(&holder, Tier::Anonymous, limit(app, Tier::Anonymous), now);
    if !standing.admitted {
        return too_many(Tier::Anonymous, standing, standing.retry_after_s(now));
    }
    let mut response = problem.into_response();
    if !counts(&response) {
        app.limiter.give_back(&holder, Tier::Anonymous, &mut standing);
    }
    standing.write(response.headers_mut());
    response
}

fn too_many(tier: Tier, standing: Standing, retry_after_s: u64) -> Response {
    let detail = json!({
        "tier": tier.as_str(),
        "limit": standing.limit,
        "retry_after_seconds": retry_after_s,
    });
    let problem = Problem::new(ErrorCode::RateLimitExceeded);
    let mut response = problem.detail(detail).retry_after(retry_after_s).into_response();
    standing.write(response.headers_mut());
    response
}

/// Where a request comes from.
pub fn address(app: &App, request: &Request) -> IpAddr {
    let connected = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let connected = connected.map_or(IpAddr::from([0, 0, 0, 0]), |info| info.0.ip());
    peer::address(connected, request.headers(), &app.config.server.trusted_proxies)
}
