//! Every call of a rail about a payout, masked: what the timeline shows as evidence.

use serde::{Deserialize, Serialize};
use sqlx::{AnyPool, Row as _};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{RowChange, Table};
use crate::id::{AttemptId, AuditId, IdGenerator, PayoutId};
use crate::rails::{Rail, RecipientFields};
use crate::wasm::egress::{Exchange, Failure};
use crate::wasm::rail::Called;

const ROWS: Table = Table {
    name: "rail_calls",
    columns: &[
        ("id", Text),
        ("payout_id", Text),
        ("attempt_id", Text),
        ("operation", Text),
        ("rail", Text),
        ("result", Text),
        ("exchanges", Text),
        ("duration_us", Int),
        ("created_at", Int),
    ],
    on_conflict: None,
};

/// A message to the network and what came back, masked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Method and path.
    #[schema(example = "POST /nip/fundtransfersingleitem_dc")]
    pub to: String,
    /// The request's body, masked.
    pub request: String,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// What came back.
    pub response: Option<String>,
    /// Why nothing came back, and whether anything had left.
    pub failure: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// A call of a rail.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// `submit`, `query`, `resolve`, `receive`.
    pub operation: String,
    /// The rail's name.
    pub rail: String,
    /// What it came to.
    pub result: String,
    /// The messages of the call, masked.
    pub messages: Vec<Message>,
    /// When the call was recorded.
    pub created_at: Moment,
}

/// About whom and what a call was.
pub(super) struct About<'a> {
    /// The payout that the call was for.
    pub payout: &'a PayoutId,
    /// The attempt, if there was one.
    pub attempt: Option<&'a AttemptId>,
    /// The recipient, whose sensitive values are masked wherever they stand.
    pub recipient: &'a RecipientFields,
    /// What was called.
    pub operation: &'static str,
}

/// A call as a row for the writer. `result` is what it came to, in a few words.
#[must_use]
pub(super) fn record<T>(
    ids: &IdGenerator,
    now: Moment,
    (rail, about): (&Rail, &About<'_>),
    (called, result): (&Called<T>, &str),
) -> RowChange {
    let messages: Vec<Message> =
        called.exchanges.iter().map(|exchange| message(rail, about.recipient, exchange)).collect();
    RowChange::Insert(
        &ROWS,
        vec![
            ids.id::<AuditId>().as_str().into(),
            about.payout.as_str().into(),
            about.attempt.map(ToString::to_string).into(),
            about.operation.into(),
            rail.declaration.rail.name.as_str().into(),
            rail.redactor.text(result, about.recipient).into(),
            serde_json::to_string(&messages).unwrap_or_default().into(),
            i64::try_from(called.took.as_micros()).unwrap_or(i64::MAX).into(),
            now.micros().into(),
        ],
    )
}

fn message(rail: &Rail, recipient: &RecipientFields, exchange: &Exchange) -> Message {
    let masked = |bytes: &[u8]| rail.redactor.text(&String::from_utf8_lossy(bytes), recipient);
    let (status, response, failure) = match &exchange.result {
        Ok(answer) => (Some(answer.status), Some(masked(&answer.body)), None),
        Err(Failure::NotSent(why)) => (None, None, Some(format!("not sent: {why}"))),
        Err(Failure::NoAnswer(why)) => (None, None, Some(format!("no answer: {why}"))),
    };
    Message {
        to: format!("{} {}", exchange.method, exchange.path),
        request: masked(&exchange.request),
        status,
        response,
        failure,
        duration_ms: u64::try_from(exchange.took.as_millis()).unwrap_or(u64::MAX),
    }
}

/// A payout's calls, oldest first.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn list_calls(
    pool: &AnyPool,
    payout: &PayoutId,
) -> Result<Vec<Call>, sqlx::Error> {
    let sql = "SELECT operation, rail, result, exchanges, created_at FROM rail_calls \
               WHERE payout_id = $1 ORDER BY id";
    let rows = sqlx::query(sql).bind(payout.as_str()).fetch_all(pool).await?;
    rows.iter()
        .map(|row| {
            let messages: String = row.try_get("exchanges")?;
            Ok(Call {
                operation: row.try_get("operation")?,
                rail: row.try_get("rail")?,
                result: row.try_get("result")?,
                messages: serde_json::from_str(&messages).unwrap_or_default(),
                created_at: Moment::from_micros(row.try_get("created_at")?),
            })
        })
        .collect()
}
