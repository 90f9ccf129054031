//! Statements about what waits for more people.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{Column, Removal, Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::id::{ApprovalId, Id as _, MerchantId};

use super::Request;

/// New requests. Where somebody has asked in the same place a moment ago, the batch begins again and
/// finds his, and whoever came second is told `state_conflict`.
pub(super) static REQUESTS: Table<Request> = Table {
    name: "approval_requests",
    fixed: &[PLACE],
    changing: &REQUEST_VALUES,
    on_conflict: None,
    is_sealed: false,
};

/// A request that takes the place of the one before, or has one more vote.
pub(super) static REQUEST_CHANGES: Update<Request> =
    Update { name: "approval_requests", key: PLACE, columns: &REQUEST_VALUES, only_where: None };

const PLACE: Column<Request> = text("place", |request| (&request.place).into());

static REQUEST_VALUES: [Column<Request>; 11] = [
    int("version", |request| request.version.into()),
    text("id", |request| request.id.as_str().into()),
    text("act", |request| (&request.act).into()),
    text("action", |request| (&request.action).into()),
    text("subject_id", |request| (&request.subject_id).into()),
    text("merchant_id", |request| request.merchant_id.as_ref().map(MerchantId::as_str).into()),
    text("wanted", |request| (&request.wanted).into()),
    int("people", |request| i64::from(request.people).into()),
    text("asked", |request| serde_json::to_string(&request.votes).unwrap_or_default().into()),
    int("created_at", |request| request.created_at.into()),
    int("expires_at", |request| request.expires_at.into()),
];

/// Requests that are met, or refused.
pub(super) static TAKEN_AWAY: Removal = Removal { name: "approval_requests", key: "place" };

/// Whether a request is as it was read.
pub(super) static VERSIONS: Lookup =
    Lookup { name: "approval_requests", key: "place", columns: &[("version", Int)], lock: true };

/// What is asked for in one place.
pub(super) async fn get(pool: &AnyPool, place: &str) -> Result<Option<Request>, sqlx::Error> {
    let sql = "SELECT * FROM approval_requests WHERE place = $1";
    let row = sqlx::query(sql).bind(place).fetch_optional(pool).await?;
    row.map(|row| request(&row)).transpose()
}

/// A request that may still be agreed to.
///
/// # Errors
/// The database cannot be read.
pub async fn find(
    pool: &AnyPool,
    (id, now): (&ApprovalId, Moment),
) -> Result<Option<Request>, sqlx::Error> {
    let sql = "SELECT * FROM approval_requests WHERE id = $1 AND expires_at > $2";
    let row = sqlx::query(sql).bind(id.as_str()).bind(now.micros()).fetch_optional(pool).await?;
    row.map(|row| request(&row)).transpose()
}

/// A page of those that may still be agreed to, made before `before`, newest first: of all, or of
/// those that one merchant's people see. One more than the page holds at most.
///
/// # Errors
/// The database cannot be read.
pub async fn list(
    pool: &AnyPool,
    (merchant, now): (Option<&MerchantId>, Moment),
    (before, limit): (Option<ApprovalId>, i64),
) -> Result<Vec<Request>, sqlx::Error> {
    let sql = match merchant {
        None => {
            "SELECT * FROM approval_requests WHERE expires_at > $1 AND $2 = '' \
             AND id < $3 ORDER BY id DESC LIMIT $4"
        }
        Some(_) => {
            "SELECT * FROM approval_requests WHERE expires_at > $1 AND merchant_id = $2 \
             AND id < $3 ORDER BY id DESC LIMIT $4"
        }
    };
    let query = sqlx::query(sql).bind(now.micros()).bind(merchant.map_or("", MerchantId::as_str));
    let query = query.bind(before.as_ref().map_or("~", ApprovalId::as_str)).bind(limit + 1);
    let rows = query.fetch_all(pool).await?;
    rows.iter().map(request).collect()
}

fn request(row: &AnyRow) -> Result<Request, sqlx::Error> {
    let merchant: Option<String> = row.try_get("merchant_id")?;
    let asked = serde_json::from_str(&row.try_get::<String, _>("asked")?);
    Ok(Request {
        place: row.try_get("place")?,
        version: row.try_get("version")?,
        id: ApprovalId::from_text(row.try_get("id")?),
        act: row.try_get("act")?,
        action: row.try_get("action")?,
        subject_id: row.try_get("subject_id")?,
        merchant_id: merchant.map(MerchantId::from_text),
        wanted: row.try_get("wanted")?,
        people: u32::try_from(row.try_get::<i64, _>("people")?).unwrap_or(u32::MAX),
        votes: asked.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
        expires_at: Moment::from_micros(row.try_get("expires_at")?),
    })
}
