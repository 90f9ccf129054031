//! The operator's API: `/admin/v1`. Every change leaves a line in the audit log, in the
//! transaction that makes it.

pub mod assignments;
pub mod audit_log;
pub mod blacklist;
pub mod decisions;
pub mod keys;
pub mod merchants;
pub mod modules;
pub mod payouts;
pub mod routes;
pub mod rule_packs;
pub mod wallets;

use serde_json::Value;

use crate::app::App;
use crate::audit::Change;
use crate::caller::Operator;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{Command, Effects, Guard};

/// What each call may refuse, besides what every call may.
#[must_use]
pub fn errors() -> Vec<(&'static str, &'static [ErrorCode])> {
    [
        merchants::ERRORS,
        keys::ERRORS,
        wallets::ERRORS,
        payouts::ERRORS,
        routes::ERRORS,
        blacklist::ERRORS,
        audit_log::ERRORS,
        modules::ERRORS,
        rule_packs::ERRORS,
        assignments::ERRORS,
        decisions::ERRORS,
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

/// Writes rows and their line in the audit log, if what they rely on is unchanged.
async fn write(
    app: &App,
    operator: &Operator,
    done: Done<'_>,
    (guards, mut rows): (Vec<Guard>, Vec<RowChange>),
) -> Result<(), Problem> {
    rows.push(change(operator, done).row(&app.ids, app.now()));
    let command = Command {
        wallets: Vec::new(),
        guards,
        counters: Vec::new(),
        reservation: None,
        decide: Box::new(move |_| Ok(Effects { rows: rows.clone(), ..Effects::default() })),
    };
    app.writer.submit(command).await?;
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

/// A required text of a body.
fn required(name: &'static str, value: Option<String>) -> Result<String, Problem> {
    let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    value.ok_or_else(|| {
        Problem::because(ErrorCode::MissingField, format!("{name} is required.")).field(name)
    })
}

/// A field whose value cannot be used.
fn invalid(name: &str, why: &str) -> Problem {
    Problem::because(ErrorCode::InvalidField, format!("{name} {why}.")).field(name)
}
