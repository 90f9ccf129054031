//! Signing in and out.

use std::net::IpAddr;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit::{self, Refused};
use crate::caller::{Actor, Done, Myself, Stranger, tell_refusal};
use crate::clock::Moment;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::http::peer::household;
use crate::http::{Body, Page};
use crate::id::{MerchantId, SessionId};
use crate::ledger::Command;
use crate::team::log_ins::LogIns;
use crate::team::password::refuse_weak;
use crate::team::session::new_token;
use crate::team::sql::{self, MEMBER_CHANGES, SESSIONS, SESSIONS_CONFIRMED, SESSIONS_ENDED};
use crate::team::sql::{Stored, StoredSession};
use crate::team::{Member, Session, SignedIn};

use super::super::{invalid, required, write};
use super::invitations::changed;
use super::members::{MemberView, version};
use super::one_time_codes::{self, stored};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "sign_in",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::InvalidCredentials,
            ErrorCode::OtpRequired,
            ErrorCode::InvalidOtp,
            ErrorCode::StateConflict,
            ErrorCode::ServiceOverloaded,
        ],
    ),
    ("list_sessions", &[]),
    ("retrieve_session", &[ErrorCode::NotFound]),
    ("sign_out", &[ErrorCode::NotFound]),
    (
        "confirm_session",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidCredentials,
            ErrorCode::OtpRequired,
            ErrorCode::InvalidOtp,
            ErrorCode::StateConflict,
            ErrorCode::ServiceOverloaded,
        ],
    ),
    (
        "change_password",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::InvalidCredentials,
            ErrorCode::StateConflict,
            ErrorCode::ServiceOverloaded,
        ],
    ),
];

/// Memberships of one address that a sign-in looks at.
const MEMBERSHIPS_MAX: i64 = 5;
/// Sessions of a member that are looked through for where they are known, and shown.
const SESSIONS_SHOWN: i64 = 100;

/// A session, without its token.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionView {
    /// Always `session`.
    #[schema(example = "session")]
    pub object: &'static str,
    /// The session's id, which is no secret.
    #[schema(example = "ses_0q8zj3vkw1d7c5m2x9s4b6ne")]
    pub id: String,
    /// Whose it is.
    pub member_id: String,
    /// Whether it is the one that this call was made with.
    pub is_current: bool,
    /// Where it was begun.
    pub address: String,
    /// Whether a one-time code was given.
    pub has_otp: bool,
    /// When it was begun.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it was last used, to the minute.
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Moment,
    /// When a password or a code was last given.
    #[schema(value_type = String, format = DateTime)]
    pub confirmed_at: Moment,
    /// When it ends, if nobody uses it.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Moment,
}

/// A session as it is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewSession {
    /// The token; shown now and never again.
    pub token: String,
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// Whose it is.
    pub member: MemberView,
}

/// A session, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// Whose it is.
    pub member: MemberView,
}

impl SessionView {
    fn of(session: &Session, current: Option<&SessionId>) -> Self {
        Self {
            object: "session",
            id: session.id.to_string(),
            member_id: session.member_id.to_string(),
            is_current: current == Some(&session.id),
            address: session.address.to_string(),
            has_otp: session.has_otp,
            created_at: session.created_at,
            seen_at: session.seen_at,
            confirmed_at: session.confirmed_at,
            expires_at: session.expires_at(),
        }
    }
}

/// Who signs in, and what proves it.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// The member's address. Required.
    #[schema(example = "ada@acme.example")]
    pub email: Option<String>,
    /// Their password. Required.
    pub password: Option<String>,
    /// A one-time code, for whoever has set them up; or one for whoever has lost theirs.
    pub otp: Option<String>,
    /// Of which merchant's team, for whoever is in several with the same password.
    pub merchant_id: Option<String>,
}

/// Sign in
///
/// Needs no token in the header. The session's token goes there in every other call, and the session
/// ends after twelve hours, or half an hour in which nobody uses it.
#[utoipa::path(
    post, path = "/admin/v1/sessions", operation_id = "sign_in", tag = "Team",
    request_body = SignIn,
    responses((status = 201, description = "With its token, once", body = NewSession)),
)]
pub async fn create(
    State(app): State<App>,
    stranger: Stranger,
    body: Body<SignIn>,
) -> Result<Response, Problem> {
    let SignIn { email, password, otp, merchant_id } = body.value;
    let email = required("email", email)?.to_lowercase();
    let password = password_of("password", password)?;
    let known = memberships(&app, &email, merchant_id).await?;
    let tries = take_tries(&app, known, (&email, stranger.address)).await?;
    let stored = match proved(&app, tries, password).await {
        Err(problem) if problem.code() == ErrorCode::InvalidCredentials => {
            tell_failure(&app, &email, stranger.address);
            return Err(problem);
        }
        stored => stored?,
    };
    let merchant = app.directory.merchant(&stored.member.merchant_id).await?;
    let merchant = merchant.ok_or_else(|| Problem::new(ErrorCode::InvalidCredentials))?;
    merchant.status.refuse_inactive()?;
    let (mut rows, mut guards) = (Vec::new(), vec![version(&stored.member)]);
    if stored.member.has_otp {
        let spent = one_time_codes::check(&app, (&stored, stranger.address), otp)?;
        rows.extend(spent.rows);
        guards.extend(spent.guards);
    }
    let (token, now) = (new_token(&app.ids), app.now());
    let session = Session {
        id: app.ids.id(),
        member_id: stored.member.id.clone(),
        generation: stored.member.generation,
        address: stranger.address,
        has_otp: stored.member.has_otp,
        created_at: now,
        seen_at: now,
        confirmed_at: now,
        ended_at: None,
    };
    let hash = app.keyring.hash_api_key(&token);
    rows.push(SESSIONS.insert(&StoredSession { session: session.clone(), hash }));
    let name = stored.member.id.to_string();
    let actor = Actor { name, address: stranger.address, session: None };
    let done = Done {
        action: "session.begin",
        subject: ("session", session.id.as_str()),
        before: None,
        after: Some(json!({ "has_otp": session.has_otp })),
    };
    write(&app, &actor, done, Command::rows(rows).guards(guards)).await?;
    let view = SessionView::of(&session, Some(&session.id));
    let member = MemberView::of(&stored.member);
    Ok((StatusCode::CREATED, Json(NewSession { token, session: view, member })).into_response())
}

/// A password of a body: it is what it is, white space included.
fn password_of(field: &'static str, sent: Option<String>) -> Result<String, Problem> {
    let sent = sent.filter(|password| !password.is_empty());
    let missing =
        || Problem::because(ErrorCode::MissingField, format!("{field} is required.")).field(field);
    let password = sent.ok_or_else(missing)?;
    match password.chars().count() <= limits::PASSWORD_CHARACTERS_MAX {
        true => Ok(password),
        // Nobody has such a one.
        false => Err(Problem::new(ErrorCode::InvalidCredentials)),
    }
}

/// Those with this address who may sign in.
async fn memberships(
    app: &App,
    email: &str,
    merchant: Option<String>,
) -> Result<Vec<Stored>, Problem> {
    let merchant = match merchant {
        None => None,
        Some(id) => {
            let odd = || invalid("merchant_id", "is not the id of a merchant");
            Some(MerchantId::parse(&id).ok_or_else(odd)?)
        }
    };
    let wanted = (email, merchant.as_ref());
    Ok(sql::find_by_email(app.db.pool(), wanted, MEMBERSHIPS_MAX).await?)
}

/// A member whose password a try may be, and for whom it counts.
struct Try {
    stored: Stored,
    holders: Vec<String>,
}

/// Counts a try for each of these members, and leaves out those of whom there were too many: what one
/// of them gets right says nothing of the others, who may be somebody else with the same address.
/// Where there is no member it counts for the address, so that nobody learns whether there is one.
///
/// # Errors
/// `rate_limit_exceeded` where nobody is left.
async fn take_tries(
    app: &App,
    known: Vec<Stored>,
    (email, address): (&str, IpAddr),
) -> Result<Vec<Try>, Problem> {
    let place = household(address);
    if known.is_empty() {
        let holders = [format!("log-in/{email}/{place}"), format!("log-in/{email}")];
        count_try(app, &app.team.strangers, &holders)?;
    }
    let since = app.now().before(limits::LOG_IN_PLACE_KNOWN);
    let (mut tries, mut refused) = (Vec::new(), None);
    for stored in known {
        let id = &stored.member.id;
        let mut holders = vec![format!("log-in/{id}/{place}")];
        let sessions = sql::list_sessions(app.db.pool(), (id, since), SESSIONS_SHOWN).await?;
        if !sessions.iter().any(|session| household(session.address) == place) {
            holders.push(format!("log-in/{id}"));
        }
        match take_try(app, &holders) {
            Ok(()) => tries.push(Try { stored, holders }),
            Err(problem) => refused = Some(problem),
        }
    }
    match refused {
        Some(problem) if tries.is_empty() => Err(problem),
        _ => Ok(tries),
    }
}

/// Counts a try.
///
/// # Errors
/// `rate_limit_exceeded` where there were too many.
pub(super) fn take_try(app: &App, holders: &[String]) -> Result<(), Problem> {
    count_try(app, &app.team.log_ins, holders)
}

fn count_try(app: &App, log_ins: &LogIns, holders: &[String]) -> Result<(), Problem> {
    log_ins.take(holders, app.now()).map_err(|seconds| {
        let message = "Too many failures: wait before you try again.";
        let detail = json!({
            "tier": "log_in",
            "limit": limits::LOG_IN_FAILURES_FREE,
            "retry_after_seconds": seconds,
        });
        let problem = Problem::because(ErrorCode::RateLimitExceeded, message);
        problem.detail(detail).retry_after(seconds)
    })
}

/// The one whose password this is.
async fn proved(app: &App, tries: Vec<Try>, password: String) -> Result<Stored, Problem> {
    let mut proved = Vec::new();
    if tries.is_empty() {
        app.team.passwords.is_right(None, password.clone()).await?;
    }
    for Try { stored, holders } in tries {
        if app.team.passwords.is_right(stored.password.as_deref(), password.clone()).await? {
            app.team.log_ins.succeed(&holders);
            proved.push(stored);
        }
    }
    let Some(first) = proved.pop() else {
        return Err(Problem::new(ErrorCode::InvalidCredentials));
    };
    if proved.is_empty() {
        return Ok(first);
    }
    let ids: Vec<&str> =
        proved.iter().chain([&first]).map(|stored| stored.member.merchant_id.as_str()).collect();
    let message = "You are in several teams with this password: say in which one you sign in.";
    let problem = Problem::because(ErrorCode::InvalidField, message).field("merchant_id");
    Err(problem.detail(json!({ "merchant_ids": ids })))
}

/// Has the audit log tell of a log-in that failed; of the address, no more than who may read it
/// needs.
fn tell_failure(app: &App, email: &str, address: IpAddr) {
    let shown = audit::masked(email);
    let done = Done {
        action: "member.log_in_failed",
        subject: ("member", &shown),
        before: None,
        after: None,
    };
    let stranger = Actor { name: "unknown".to_owned(), address, session: None };
    let holder = format!("{email} {}", household(address));
    tell_refusal(app, Refused { merchant: None, holder }, stranger.did(done));
}

/// List your sessions
#[utoipa::path(
    get, path = "/admin/v1/sessions", operation_id = "list_sessions", tag = "Team",
    responses((status = 200, description = "Those that are open, newest first", body = inline(Page<SessionView>))),
)]
pub async fn list(State(app): State<App>, myself: Myself) -> Result<Page<SessionView>, Problem> {
    let SignedIn { session: current, member } = &*myself.signed_in;
    let since = app.now().before(limits::SESSION_MAX);
    let sessions = sql::list_sessions(app.db.pool(), (&member.id, since), SESSIONS_SHOWN).await?;
    let good = sessions.iter().filter(|session| session.is_good(member, app.now()));
    let views = good.map(|session| SessionView::of(session, Some(&current.id))).collect();
    Ok(Page::of(views, SESSIONS_SHOWN))
}

/// Show one of your sessions
#[utoipa::path(
    get, path = "/admin/v1/sessions/{id}", operation_id = "retrieve_session", tag = "Team",
    params(("id" = String, Path, description = "The session, or `current`")),
    responses((status = 200, description = "The session, and whose it is", body = OwnSession)),
)]
pub async fn retrieve(
    State(app): State<App>,
    myself: Myself,
    Path(id): Path<String>,
) -> Result<Json<OwnSession>, Problem> {
    let SignedIn { session: current, member } = &*myself.signed_in;
    let session = find(&app, &myself.signed_in, &id).await?;
    let view = SessionView::of(&session, Some(&current.id));
    Ok(Json(OwnSession { session: view, member: MemberView::of(member) }))
}

/// One of a member's own sessions, open or not.
async fn find(app: &App, signed_in: &SignedIn, id: &str) -> Result<Session, Problem> {
    let SignedIn { session: current, member } = signed_in;
    if id == "current" {
        return Ok(current.clone());
    }
    let since = app.now().before(limits::SESSION_MAX);
    let sessions = sql::list_sessions(app.db.pool(), (&member.id, since), SESSIONS_SHOWN).await?;
    let found = sessions.into_iter().find(|known| known.id.as_str() == id);
    found.ok_or_else(|| Problem::because(ErrorCode::NotFound, "No such session."))
}

/// A session that has ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndedSession {
    /// Always `session`.
    #[schema(example = "session")]
    pub object: &'static str,
    /// The session's id.
    pub id: String,
    /// Always true.
    pub ended: bool,
}

/// Sign out
///
/// Ends one of your sessions.
#[utoipa::path(
    delete, path = "/admin/v1/sessions/{id}", operation_id = "sign_out", tag = "Team",
    params(("id" = String, Path, description = "The session, or `current`")),
    responses((status = 200, description = "It has ended", body = EndedSession)),
)]
pub async fn end(
    State(app): State<App>,
    myself: Myself,
    Path(id): Path<String>,
) -> Result<Json<EndedSession>, Problem> {
    let session = find(&app, &myself.signed_in, &id).await?;
    let ended = Session { ended_at: Some(app.now()), ..session };
    let done = Done {
        action: "session.end",
        subject: ("session", ended.id.as_str()),
        before: None,
        after: None,
    };
    let rows = vec![SESSIONS_ENDED.change(&ended)];
    write(&app, &myself.actor, done, Command::rows(rows)).await?;
    Ok(Json(EndedSession { object: "session", id: ended.id.to_string(), ended: true }))
}

/// What proves once more who somebody is.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Confirm {
    /// Their password.
    pub password: Option<String>,
    /// Or a one-time code.
    pub otp: Option<String>,
}

/// Confirm who you are
///
/// With your password or a one-time code: what is dangerous wants one of them within a quarter of an
/// hour.
#[utoipa::path(
    post, path = "/admin/v1/sessions/current/confirm", operation_id = "confirm_session",
    tag = "Team", request_body = Confirm,
    responses((status = 200, description = "Confirmed", body = SessionView)),
)]
pub async fn confirm(
    State(app): State<App>,
    myself: Myself,
    body: Body<Confirm>,
) -> Result<Json<SessionView>, Problem> {
    let SignedIn { session, member } = &*myself.signed_in;
    let known = stored(&app, member).await?;
    let (mut rows, mut guards) = (Vec::new(), vec![version(&known.member)]);
    let mut has_otp = session.has_otp;
    match (body.value.password, body.value.otp) {
        (Some(password), _) => {
            let password = password_of("password", Some(password))?;
            prove(&app, (&known, myself.actor.address), password).await?;
        }
        (None, otp @ Some(_)) => {
            let from = (&known, myself.actor.address);
            let spent = one_time_codes::check(&app, from, otp)?;
            rows.extend(spent.rows);
            guards.extend(spent.guards);
            has_otp = true;
        }
        (None, None) => {
            let message = "password or otp is required.";
            return Err(Problem::because(ErrorCode::MissingField, message).field("password"));
        }
    }
    let confirmed = Session { confirmed_at: app.now(), has_otp, ..session.clone() };
    rows.push(SESSIONS_CONFIRMED.change(&confirmed));
    let done = Done {
        action: "session.confirm",
        subject: ("session", session.id.as_str()),
        before: None,
        after: Some(json!({ "has_otp": has_otp })),
    };
    write(&app, &myself.actor, done, Command::rows(rows).guards(guards)).await?;
    Ok(Json(SessionView::of(&confirmed, Some(&session.id))))
}

/// Refuses whoever does not know their own password. Wrong ones are counted.
async fn prove(
    app: &App,
    (known, address): (&Stored, IpAddr),
    password: String,
) -> Result<(), Problem> {
    let holders = [format!("confirm/{}", known.member.id)];
    take_try(app, &holders)?;
    match app.team.passwords.is_right(known.password.as_deref(), password).await? {
        true => {
            app.team.log_ins.succeed(&holders);
            Ok(())
        }
        false => {
            one_time_codes::tell_failure(app, "member.confirm_failed", (known, address));
            Err(Problem::new(ErrorCode::InvalidCredentials))
        }
    }
}

/// A password in the place of another one.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChangePassword {
    /// The one that counts now. Required.
    pub current_password: Option<String>,
    /// The one that is to count, of 12 to 128 characters. Required.
    #[schema(min_length = 12, max_length = 128)]
    pub password: Option<String>,
}

/// Change your password
///
/// Ends all your sessions: sign in with the new one.
#[utoipa::path(
    post, path = "/admin/v1/members/current/password", operation_id = "change_password",
    tag = "Team", request_body = ChangePassword,
    responses((status = 200, description = "Changed; every session has ended", body = MemberView)),
)]
pub async fn change_password(
    State(app): State<App>,
    myself: Myself,
    body: Body<ChangePassword>,
) -> Result<Json<MemberView>, Problem> {
    let current = password_of("current_password", body.value.current_password)?;
    let password = body.value.password.filter(|password| !password.is_empty());
    let missing =
        || Problem::because(ErrorCode::MissingField, "password is required.").field("password");
    let password = password.ok_or_else(missing)?;
    let before = stored(&app, &myself.signed_in.member).await?;
    refuse_weak(&password, &before.member.email)?;
    prove(&app, (&before, myself.actor.address), current).await?;
    let member: Member = changed(&app, &before.member);
    let hash = app.team.passwords.hash(&app.ids, password).await?;
    let after = Stored { member, password: Some(hash), ..before.clone() };
    let done = Done {
        action: "member.password",
        subject: ("member", before.member.id.as_str()),
        before: None,
        after: None,
    };
    let command = Command::rows(vec![MEMBER_CHANGES.change(&after)]);
    write(&app, &myself.actor, done, command.guards([version(&before.member)])).await?;
    Ok(Json(MemberView::of(&after.member)))
}
