//! Every call of a rail about a payment, masked: what the timeline shows as evidence. Of what a
//! network sends, however much that is, the beginning is kept.

use serde::Serialize;
use serde_tuple::{Deserialize_tuple, Serialize_tuple};
use sqlx::{AnyPool, Row as _};
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{RowChange, Shape, Table, int, text};
use crate::id::{AuditId, IdGenerator};
use crate::rails::{Rail, RecipientFields};
use crate::wasm::egress::{Exchange, Failure};
use crate::wasm::rail::Called;

/// A call as it is written down.
struct CallRow {
    id: AuditId,
    transfer_id: String,
    attempt_id: Option<String>,
    operation: &'static str,
    rail: String,
    result: String,
    exchanges: String,
    duration_us: i64,
    created_at: Moment,
}

static CALLS: Table<CallRow> = Table {
    name: "rail_calls",
    fixed: &[
        text("id", |call| call.id.as_str().into()),
        text("transfer_id", |call| (&call.transfer_id).into()),
        text("attempt_id", |call| (&call.attempt_id).into()),
        text("operation", |call| call.operation.into()),
        text("rail", |call| (&call.rail).into()),
        text("result", |call| (&call.result).into()),
        text("exchanges", |call| (&call.exchanges).into()),
        int("duration_us", |call| call.duration_us.into()),
        int("created_at", |call| call.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

/// The table of calls, for proving that nothing of it was changed.
#[must_use]
pub fn sealed() -> &'static dyn Shape {
    &CALLS
}

/// A message to the network and what came back, masked.
#[derive(Clone, Debug, Serialize, ToSchema)]
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

/// A message as it is kept: an array, in this order for ever.
#[derive(Serialize_tuple, Deserialize_tuple)]
struct Kept {
    to: String,
    request: String,
    status: Option<u16>,
    response: Option<String>,
    failure: Option<String>,
    duration_ms: u64,
}

impl From<Kept> for Message {
    fn from(kept: Kept) -> Self {
        let Kept { to, request, status, response, failure, duration_ms } = kept;
        Self { to, request, status, response, failure, duration_ms }
    }
}

/// A call of a rail.
#[derive(Clone, Debug)]
pub struct Call {
    /// `submit`, `query` or `receive`.
    pub operation: String,
    /// The attempt that it was about, if there was one.
    pub attempt_id: Option<String>,
    /// The rail's name.
    pub rail: String,
    /// What it came to.
    pub result: String,
    /// The messages of the call, masked.
    pub messages: Vec<Message>,
    /// When the call was recorded.
    pub created_at: Moment,
}

/// What a call was about.
pub(super) struct About<'a> {
    /// The object that is paid out.
    pub transfer: &'a str,
    /// The attempt, if there was one.
    pub attempt: Option<&'a str>,
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
    let messages: Vec<Kept> =
        called.exchanges.iter().map(|exchange| kept(rail, about.recipient, exchange)).collect();
    CALLS.insert(&CallRow {
        id: ids.id(),
        transfer_id: about.transfer.to_owned(),
        attempt_id: about.attempt.map(str::to_owned),
        operation: about.operation,
        rail: rail.declaration.rail.name.clone(),
        result: rail.redactor.text(result, about.recipient),
        exchanges: serde_json::to_string(&messages).unwrap_or_default(),
        duration_us: i64::try_from(called.took.as_micros()).unwrap_or(i64::MAX),
        created_at: now,
    })
}

fn kept(rail: &Rail, recipient: &RecipientFields, exchange: &Exchange) -> Kept {
    let shown =
        |bytes: &[u8]| rail.redactor.beginning(bytes, limits::EVIDENCE_BYTES_MAX, recipient);
    let failed = |how: &str, why: &str| Some(format!("{how}: {}", shown(why.as_bytes())));
    let (status, response, failure) = match &exchange.result {
        Ok(answer) => (Some(answer.status), Some(shown(&answer.body)), None),
        Err(Failure::NotSent(why)) => (None, None, failed("not sent", why)),
        Err(Failure::NoAnswer(why)) => (None, None, failed("no answer", why)),
    };
    Kept {
        to: format!("{} {}", exchange.method, shown(exchange.path.as_bytes())),
        request: shown(&exchange.request),
        status,
        response,
        failure,
        duration_ms: u64::try_from(exchange.took.as_millis()).unwrap_or(u64::MAX),
    }
}

/// An object's calls, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_calls(pool: &AnyPool, transfer: &str) -> Result<Vec<Call>, sqlx::Error> {
    let sql = "SELECT operation, attempt_id, rail, result, exchanges, created_at FROM rail_calls \
               WHERE transfer_id = $1 ORDER BY id";
    let rows = sqlx::query(sql).bind(transfer).fetch_all(pool).await?;
    rows.iter()
        .map(|row| {
            let kept: String = row.try_get("exchanges")?;
            let kept: Vec<Kept> = serde_json::from_str(&kept).unwrap_or_default();
            Ok(Call {
                operation: row.try_get("operation")?,
                attempt_id: row.try_get("attempt_id")?,
                rail: row.try_get("rail")?,
                result: row.try_get("result")?,
                messages: kept.into_iter().map(Message::from).collect(),
                created_at: Moment::from_micros(row.try_get("created_at")?),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_stored_as_it_always_was() {
        let stored = r#"[["POST /x","{}",200,"ok",null,12],["POST /y","{}",null,null,"why",0]]"#;
        let kept: Vec<Kept> = serde_json::from_str(stored).expect("messages");
        assert_eq!(serde_json::to_string(&kept).expect("JSON"), stored);
        let shown: Vec<Message> = kept.into_iter().map(Message::from).collect();
        assert_eq!((shown[0].status, shown[0].response.as_deref()), (Some(200), Some("ok")));
        assert_eq!((shown[1].failure.as_deref(), shown[0].duration_ms), (Some("why"), 12));
    }
}
