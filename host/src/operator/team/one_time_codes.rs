//! One-time codes: set up, given up, and spent.

use std::net::IpAddr;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit::Refused;
use crate::caller::{Actor, Done, Myself, tell_refusal};
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::http::peer::household;
use crate::ledger::{Command, Guard};
use crate::team::Member;
use crate::team::one_time::{OneTimeCodes, recovery_codes, used};
use crate::team::sql::{MEMBER_CHANGES, OTP_STEPS, OTP_STEPS_USED, Stored, UsedStep, get_member};

use super::super::{required, write};
use super::members::{MemberView, version};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("begin_otp", &[ErrorCode::StateConflict, ErrorCode::RecentLoginRequired]),
    (
        "confirm_otp",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::InvalidOtp,
            ErrorCode::StateConflict,
            ErrorCode::RecentLoginRequired,
        ],
    ),
    (
        "remove_otp",
        &[
            ErrorCode::InvalidField,
            ErrorCode::OtpRequired,
            ErrorCode::InvalidOtp,
            ErrorCode::StateConflict,
            ErrorCode::RecentLoginRequired,
        ],
    ),
];

/// A secret for an authenticator, shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewOtp {
    /// Always `one_time_codes`.
    #[schema(example = "one_time_codes")]
    pub object: &'static str,
    /// The secret in base 32, to be typed.
    pub secret: String,
    /// The same as authenticators scan it, in a QR code.
    #[schema(example = "otpauth://totp/Railhead:ada%40acme.example?secret=…&issuer=Railhead")]
    pub uri: String,
}

/// Begin to set up one-time codes
///
/// They count once a code of them was given.
#[utoipa::path(
    post, path = "/admin/v1/members/current/otp", operation_id = "begin_otp", tag = "Team",
    responses((status = 200, description = "The secret, once", body = NewOtp)),
)]
pub async fn begin(State(app): State<App>, myself: Myself) -> Result<Json<NewOtp>, Problem> {
    myself.actor.require_recent(app.now())?;
    let before = stored(&app, &myself.signed_in.member).await?;
    if before.otp_secret.is_some() {
        let message = "You have one-time codes already: remove them first.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let codes = OneTimeCodes::new(&app.ids, &before.member.email)?;
    let sealed = app.keyring.seal(&app.ids, &before.place(), codes.secret());
    let after = Stored {
        member: next(&app, &before.member),
        otp_pending: Some(sealed.map_err(Problem::internal)?),
        ..before.clone()
    };
    let done = Done {
        action: "member.otp_begin",
        subject: ("member", before.member.id.as_str()),
        before: None,
        after: None,
    };
    let command = Command::rows(vec![MEMBER_CHANGES.change(&after)]);
    write(&app, &myself.actor, done, command.guards([version(&before.member)])).await?;
    Ok(Json(NewOtp { object: "one_time_codes", secret: codes.written(), uri: codes.uri()? }))
}

/// A one-time code.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtpRequest {
    /// The code that the authenticator shows, or one for whoever has lost theirs. Required.
    #[schema(example = "287082")]
    pub otp: Option<String>,
}

/// Codes for whoever has lost theirs, shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecoveryCodes {
    /// Always `recovery_codes`.
    #[schema(example = "recovery_codes")]
    pub object: &'static str,
    /// Each counts once, in the place of a code of the authenticator. Keep them where it is not.
    pub recovery_codes: Vec<String>,
}

/// Set up one-time codes
#[utoipa::path(
    post, path = "/admin/v1/members/current/otp/confirm", operation_id = "confirm_otp", tag = "Team",
    request_body = OtpRequest,
    responses((status = 200, description = "They count from now on", body = RecoveryCodes)),
)]
pub async fn confirm(
    State(app): State<App>,
    myself: Myself,
    body: Body<OtpRequest>,
) -> Result<Json<RecoveryCodes>, Problem> {
    myself.actor.require_recent(app.now())?;
    let otp = required("otp", body.value.otp)?;
    let before = stored(&app, &myself.signed_in.member).await?;
    let Some(pending) = before.otp_pending.clone() else {
        let message = "There is nothing to confirm: POST /admin/v1/members/current/otp first.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    };
    let step = step(&app, (&before, &pending, myself.actor.address), &otp)?;
    let (codes, recovery) = recovery_codes(&app.ids);
    let after = Stored {
        member: Member { has_otp: true, ..next(&app, &before.member) },
        otp_secret: Some(pending),
        otp_pending: None,
        otp_step: step,
        recovery,
        ..before.clone()
    };
    let done = Done {
        action: "member.otp_set",
        subject: ("member", before.member.id.as_str()),
        before: Some(json!({ "has_otp": false })),
        after: Some(json!({ "has_otp": true })),
    };
    let command = Command::rows(vec![MEMBER_CHANGES.change(&after)]);
    write(&app, &myself.actor, done, command.guards([version(&before.member)])).await?;
    Ok(Json(RecoveryCodes { object: "recovery_codes", recovery_codes: codes }))
}

/// Remove one-time codes
#[utoipa::path(
    delete, path = "/admin/v1/members/current/otp", operation_id = "remove_otp", tag = "Team",
    request_body = OtpRequest,
    responses((status = 200, description = "They count no more", body = MemberView)),
)]
pub async fn remove(
    State(app): State<App>,
    myself: Myself,
    body: Body<OtpRequest>,
) -> Result<Json<MemberView>, Problem> {
    myself.actor.require_recent(app.now())?;
    let before = stored(&app, &myself.signed_in.member).await?;
    let spent = check(&app, (&before, myself.actor.address), body.value.otp)?;
    let after = Stored {
        member: Member { has_otp: false, ..next(&app, &before.member) },
        otp_secret: None,
        recovery: Vec::new(),
        ..before.clone()
    };
    let done = Done {
        action: "member.otp_remove",
        subject: ("member", before.member.id.as_str()),
        before: Some(json!({ "has_otp": true })),
        after: Some(json!({ "has_otp": false })),
    };
    let guards = spent.guards;
    let command = Command::rows(vec![MEMBER_CHANGES.change(&after)]).guards(guards);
    write(&app, &myself.actor, done, command.guards([version(&before.member)])).await?;
    Ok(Json(MemberView::of(&after.member)))
}

/// A member after a change that ends nothing.
fn next(app: &App, before: &Member) -> Member {
    Member { version: before.version + 1, updated_at: app.now(), ..before.clone() }
}

/// What goes with a code that is right: it counts once.
pub(super) struct Spent {
    pub(super) rows: Vec<RowChange>,
    pub(super) guards: Vec<Guard>,
}

/// Refuses whoever gives no code of theirs, or a wrong one. What it answers has to be written for
/// the code to be spent. Wrong ones are counted, and told in the audit log.
pub(super) fn check(
    app: &App,
    (stored, address): (&Stored, IpAddr),
    otp: Option<String>,
) -> Result<Spent, Problem> {
    let Some(secret) = &stored.otp_secret else {
        return Err(Problem::new(ErrorCode::OtpRequired).field("otp"));
    };
    let otp = otp.map(|otp| otp.trim().to_owned()).filter(|otp| !otp.is_empty());
    let otp = otp.ok_or_else(|| Problem::new(ErrorCode::OtpRequired).field("otp"))?;
    if let Some(left) = used(&stored.recovery, &otp) {
        let member = next(app, &stored.member);
        let after = Stored { member, recovery: left, ..stored.clone() };
        let guards = vec![version(&stored.member)];
        return Ok(Spent { rows: vec![MEMBER_CHANGES.change(&after)], guards });
    }
    let step = step(app, (stored, secret, address), &otp)?;
    let used = UsedStep { id: stored.member.id.clone(), step };
    let id = stored.member.id.to_string();
    let guard = Guard { on: &OTP_STEPS, id, version: stored.otp_step };
    Ok(Spent { rows: vec![OTP_STEPS_USED.change(&used)], guards: vec![guard] })
}

/// The step of a code, if it is right and was not used.
fn step(
    app: &App,
    (stored, secret, address): (&Stored, &str, IpAddr),
    otp: &str,
) -> Result<i64, Problem> {
    let holders = [format!("otp/{}", stored.member.id)];
    super::sessions::take_try(app, &holders)?;
    let secret = app.keyring.open(&stored.place(), secret).map_err(Problem::internal)?;
    let codes = OneTimeCodes::of(&secret, &stored.member.email)?;
    let step = codes.step(otp, app.now()).filter(|step| *step > stored.otp_step);
    let Some(step) = step else {
        tell_failure(app, "member.otp_failed", (stored, address));
        return Err(Problem::new(ErrorCode::InvalidOtp).field("otp"));
    };
    app.team.log_ins.succeed(&holders);
    Ok(step)
}

/// Has the audit log tell that somebody gave what was not this member's, by which they would have been
/// taken for them.
pub(super) fn tell_failure(app: &App, action: &'static str, (of, from): (&Stored, IpAddr)) {
    let id = of.member.id.as_str();
    let done = Done { action, subject: ("member", id), before: None, after: None };
    let stranger = Actor { name: "unknown".to_owned(), address: from, session: None };
    let merchant = Some(of.member.merchant_id.clone());
    let holder = format!("{id} {}", household(from));
    tell_refusal(app, Refused { merchant, holder }, stranger.did(done));
}

/// Spends a member's code, whatever comes of what they want to do.
///
/// # Errors
/// `otp_required` and `invalid_otp`.
pub async fn spend(
    app: &App,
    (member, address): (&Member, IpAddr),
    otp: Option<String>,
) -> Result<(), Problem> {
    let spent = check(app, (&stored(app, member).await?, address), otp)?;
    let written = app.writer.work(Command::rows(spent.rows).guards(spent.guards)).await;
    // Of one code that comes twice at once, one is too late.
    written.map(drop).map_err(|problem| match problem.code() {
        ErrorCode::StateConflict => Problem::new(ErrorCode::InvalidOtp).field("otp"),
        _ => problem,
    })
}

/// A member as they are kept, secrets included.
pub(super) async fn stored(app: &App, member: &Member) -> Result<Stored, Problem> {
    let found = get_member(app.db.pool(), &member.id).await?;
    found.ok_or_else(|| Problem::new(ErrorCode::SessionExpired))
}
