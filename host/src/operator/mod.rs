//! The API of operators and of merchants' teams: `/admin/v1`. Every change leaves a line in the
//! audit log, in the transaction that makes it.

pub mod alerts;
pub mod approval_requests;
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
pub mod settlement;
pub mod team;
pub mod under_way;
mod unique;
pub mod verify;
pub mod waiting;
pub mod wallets;

use crate::app::App;
use crate::caller::{Actor, Done};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::filter;
use crate::ledger::Command;

/// What each call may refuse, besides what every call may.
#[must_use]
pub fn errors() -> Vec<(&'static str, &'static [ErrorCode])> {
    let mut errors = team::errors();
    let others = [
        alerts::ERRORS,
        approval_requests::ERRORS,
        merchants::ERRORS,
        keys::ERRORS,
        wallets::ERRORS,
        payouts::ERRORS,
        waiting::ERRORS,
        under_way::ERRORS,
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
        settlement::ERRORS,
        assignments::ERRORS,
        decisions::ERRORS,
        files::ERRORS,
    ];
    errors.extend(others.concat());
    errors
}

/// Carries out what somebody does, with its line in the audit log.
async fn write(
    app: &App,
    actor: &Actor,
    done: Done<'_>,
    command: Command<()>,
) -> Result<(), Problem> {
    let line = actor.did(done).row(&app.ids, app.now());
    app.writer.work(command.and_rows(vec![line])).await?;
    app.directory.forget();
    app.team.sessions.forget();
    app.routes.forget();
    app.recipients.forget();
    Ok(())
}

/// Characters of a text that an operator writes; merchants read some of them.
const TEXT_MAX: usize = 2_000;

/// The environment that a list is about: the live one if nothing is said.
fn listed_env(env: Option<String>) -> Result<Env, Problem> {
    let env = filter("env", env, Env::ALL.map(Env::as_str))?;
    Ok(Env::parse(&env).unwrap_or(Env::Live))
}

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
