//! The operator's API: `/admin/v1`. Every change leaves a line in the audit log, in the
//! transaction that makes it.

pub mod approvals;
pub mod assignments;
pub mod audit_log;
pub mod batches;
pub mod blacklist;
pub mod cases;
pub mod decisions;
pub mod files;
pub mod fx_limits;
pub mod keys;
pub mod merchants;
pub mod modules;
pub mod payouts;
pub mod quarantine;
pub mod rate_sources;
pub mod rates;
pub mod routes;
pub mod rule_packs;
pub mod verify;
pub mod wallets;

use axum::response::Response;
use serde_json::Value;

use crate::app::App;
use crate::audit::Change;
use crate::caller::Operator;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey, Replied, replied};
use crate::ledger::{Command, Reply, Reservation};

/// What each call may refuse, besides what every call may.
#[must_use]
pub fn errors() -> Vec<(&'static str, &'static [ErrorCode])> {
    [
        approvals::ERRORS,
        merchants::ERRORS,
        keys::ERRORS,
        wallets::ERRORS,
        payouts::ERRORS,
        batches::ERRORS,
        cases::ERRORS,
        quarantine::ERRORS,
        rates::ERRORS,
        rate_sources::ERRORS,
        fx_limits::ERRORS,
        routes::ERRORS,
        blacklist::ERRORS,
        audit_log::ERRORS,
        modules::ERRORS,
        rule_packs::ERRORS,
        assignments::ERRORS,
        decisions::ERRORS,
        files::ERRORS,
    ]
    .concat()
}

/// What was done, for the audit log.
struct Done<'a> {
    action: &'static str,
    subject: (&'static str, &'a str),
    before: Option<Value>,
    after: Option<Value>,
}

/// Carries out what an operator does, with its line in the audit log.
async fn write(
    app: &App,
    operator: &Operator,
    done: Done<'_>,
    command: Command<()>,
) -> Result<(), Problem> {
    let line = change(operator, done).row(&app.ids, app.now());
    app.writer.work(command.and_rows(vec![line])).await?;
    app.directory.forget();
    app.routes.forget();
    app.recipients.forget();
    Ok(())
}

fn change(operator: &Operator, done: Done<'_>) -> Change {
    let (subject_type, subject_id) = done.subject;
    Change {
        actor: operator.name.clone(),
        address: operator.address.to_string(),
        action: done.action,
        subject_type,
        subject_id: subject_id.to_owned(),
        before: done.before,
        after: done.after,
    }
}

/// The idempotency key of a call that moves money, if it has one: it counts for this operator and
/// this path only.
fn once<T>(
    operator: &Operator,
    key: Option<IdempotencyKey>,
    path: &str,
    body: &Body<T>,
) -> Option<Reservation> {
    key.map(|key| Reservation {
        key: format!("admin/{}{path}/{}", operator.name, key.as_str()),
        fingerprint: body.fingerprint(path),
        subject: String::new(),
        resource_id: String::new(),
    })
}

/// What a call that may be repeated is answered.
///
/// # Errors
/// The first request with this key is still under way, and has no reply yet.
fn answer<T>(
    done: crate::ledger::Done<T>,
    reply: impl Fn(&T) -> Reply,
) -> Result<Response, Problem> {
    use crate::ledger::Done;
    let (reply, is_replay) = match done {
        Done::Now(result) => (reply(&result), false),
        Done::Before { reply: Some(reply), .. } => (reply, true),
        Done::Before { reply: None, .. } => return Err(Problem::new(ErrorCode::StateConflict)),
    };
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}

/// Characters of a text that an operator writes; merchants read some of them.
const TEXT_MAX: usize = 2_000;

/// A required text of a body.
fn required(name: &'static str, value: Option<String>) -> Result<String, Problem> {
    let value = optional(name, value)?;
    value.ok_or_else(|| {
        Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
    })
}

/// A text of a body that may be left out.
fn optional(name: &'static str, value: Option<String>) -> Result<Option<String>, Problem> {
    let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    match value.as_ref().is_some_and(|value| value.chars().count() > TEXT_MAX) {
        true => Err(invalid(name, &format!("must have {TEXT_MAX} characters at most"))),
        false => Ok(value),
    }
}

/// A field whose value cannot be used.
fn invalid(name: &str, why: &str) -> Problem {
    Problem::because(ErrorCode::InvalidField, format!("{name} {why}.")).field(name)
}
