//! Statements about webhooks.

use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Removal, Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::db::{Db, Engine};
use crate::env::Env;
use crate::events::outbox::owner;
use crate::id::{DeliveryId, EndpointId, EventId, Id as _, MerchantId};

use super::bodies::{self, Source};
use super::model::{Delivery, Endpoint, OldSecret, Status};

/// How long it is from one look at what others have under way to the next: at first, and at most.
const OTHERS_EVERY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));

/// New endpoints.
pub(super) static ENDPOINTS: Table<Endpoint> = Table {
    name: "webhook_endpoints",
    fixed: &[
        text("id", |endpoint| endpoint.id.as_str().into()),
        text("owner", |endpoint| owner(&endpoint.merchant_id, endpoint.env).into()),
        int("owner_number", |endpoint| endpoint.merchant_id.owner_number(endpoint.env).into()),
        text("merchant_id", |endpoint| endpoint.merchant_id.as_str().into()),
        text("env", |endpoint| endpoint.env.as_str().into()),
        int("is_ordered", |endpoint| endpoint.is_ordered.into()),
        int("created_at", |endpoint| endpoint.created_at.into()),
    ],
    changing: &[
        text("url", |endpoint| (&endpoint.url).into()),
        text("events", |endpoint| names(&endpoint.events).into()),
        int("is_active", |endpoint| endpoint.is_active.into()),
        text("secret", |endpoint| (&endpoint.secret).into()),
        int("consecutive_failures", |_| 0.into()),
        int("times_disabled", |_| 0.into()),
        int("updated_at", |endpoint| endpoint.updated_at.into()),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// What an owner changes.
pub(super) static ENDPOINT_CHANGES: Update<Endpoint> = Update {
    name: "webhook_endpoints",
    key: text("id", |endpoint| endpoint.id.as_str().into()),
    columns: &[
        text("url", |endpoint| (&endpoint.url).into()),
        text("events", |endpoint| names(&endpoint.events).into()),
        int("is_active", |endpoint| endpoint.is_active.into()),
        text("disabled_reason", |endpoint| (&endpoint.disabled_reason).into()),
        int("updated_at", |endpoint| endpoint.updated_at.into()),
    ],
    only_where: None,
};

/// A new secret beside the old one.
pub(super) static ENDPOINT_SECRETS: Update<Endpoint> = Update {
    name: "webhook_endpoints",
    key: text("id", |endpoint| endpoint.id.as_str().into()),
    columns: &[
        text("secret", |endpoint| (&endpoint.secret).into()),
        text("old_secrets", |endpoint| {
            serde_json::to_string(&endpoint.old_secrets).unwrap_or_default().into()
        }),
        int("updated_at", |endpoint| endpoint.updated_at.into()),
    ],
    only_where: None,
};

/// How an endpoint fared.
pub(super) struct Health {
    pub id: EndpointId,
    pub at: Moment,
    pub failures: i64,
}

/// A delivery arrived.
pub(super) static ENDPOINT_SUCCESSES: Update<Health> = Update {
    name: "webhook_endpoints",
    key: text("id", |health| health.id.as_str().into()),
    columns: &[
        int("last_success_at", |health| health.at.into()),
        int("consecutive_failures", |health| health.failures.into()),
    ],
    only_where: None,
};

/// A delivery did not arrive.
pub(super) static ENDPOINT_FAILURES: Update<Health> = Update {
    name: "webhook_endpoints",
    key: text("id", |health| health.id.as_str().into()),
    columns: &[
        int("last_failure_at", |health| health.at.into()),
        int("consecutive_failures", |health| health.failures.into()),
    ],
    only_where: None,
};

/// Nobody is there: the endpoint, and how often it was switched off by now.
pub(super) static ENDPOINT_DISABLED: Update<(Endpoint, i64)> = Update {
    name: "webhook_endpoints",
    key: text("id", |(endpoint, _)| endpoint.id.as_str().into()),
    columns: &[
        int("is_active", |_| false.into()),
        text("disabled_reason", |(endpoint, _)| (&endpoint.disabled_reason).into()),
        int("times_disabled", |(_, times)| (*times).into()),
        int("updated_at", |(endpoint, _)| endpoint.updated_at.into()),
    ],
    only_where: None,
};

/// Its owner takes it away. What was or would be delivered to it is swept away in portions.
pub(super) static ENDPOINT_DELETED: Update<Endpoint> = Update {
    name: "webhook_endpoints",
    key: text("id", |endpoint| endpoint.id.as_str().into()),
    columns: &[
        int("is_active", |_| false.into()),
        int("deleted_at", |endpoint| endpoint.updated_at.into()),
        int("updated_at", |endpoint| endpoint.updated_at.into()),
    ],
    only_where: None,
};

/// An endpoint under lock: its version first.
pub(super) static ENDPOINT_VERSIONS: Lookup = Lookup {
    name: "webhook_endpoints",
    key: "id",
    columns: &[
        ("updated_at", Int),
        ("is_active", Int),
        ("times_disabled", Int),
        ("deleted_at", Int),
    ],
    lock: true,
};

/// A delivery after an attempt.
pub(super) struct Attempted {
    pub id: DeliveryId,
    pub status: &'static str,
    pub attempts: i64,
    pub response_status: Option<i64>,
    pub response_body: Option<String>,
    pub error: Option<String>,
    pub again_at: Option<Moment>,
    pub delivered_at: Option<Moment>,
}

/// What came of an attempt.
pub(super) static RESULTS: Update<Attempted> = Update {
    name: "webhook_deliveries",
    key: text("id", |made| made.id.as_str().into()),
    columns: &[
        text("status", |made| made.status.into()),
        int("attempts", |made| made.attempts.into()),
        int("response_status", |made| made.response_status.into()),
        text("response_body", |made| (&made.response_body).into()),
        text("error_message", |made| (&made.error).into()),
        int("next_attempt_at", |made| made.again_at.into()),
        int("delivered_at", |made| made.delivered_at.into()),
    ],
    only_where: None,
};

/// A delivery that is put off.
pub(super) struct Delay {
    pub id: DeliveryId,
    pub due_at: Moment,
    pub fence: i64,
}

/// When a delivery is due again.
pub(super) static QUEUE_DELAYS: Update<Delay> = Update {
    name: "webhook_queue",
    key: text("delivery_id", |delay| delay.id.as_str().into()),
    columns: &[
        int("due_at", |delay| delay.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |delay| delay.fence.into()),
    ],
    only_where: None,
};

/// Deliveries that are over.
pub(super) static QUEUE_DONE: Removal = Removal { name: "webhook_queue", key: "delivery_id" };

/// The fence of the present claim.
pub(super) static QUEUE_FENCES: Lookup =
    Lookup { name: "webhook_queue", key: "delivery_id", columns: &[("fence", Int)], lock: true };

const ENDPOINT_COLUMNS: &str = "id, merchant_id, env, url, events, is_ordered, is_active, \
    disabled_reason, secret, old_secrets, last_success_at, last_failure_at, \
    consecutive_failures, created_at, updated_at";

/// Names of events as the table holds them.
pub(super) fn names(events: &[String]) -> String {
    serde_json::to_string(events).unwrap_or_default()
}

/// An endpoint of an owner.
pub(super) async fn find_endpoint(
    pool: &AnyPool,
    owner: &str,
    id: &str,
) -> Result<Option<Endpoint>, sqlx::Error> {
    let sql = format!(
        "SELECT {ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE owner = $1 AND id = $2 \
         AND deleted_at IS NULL"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(owner).bind(id);
    query.fetch_optional(pool).await?.as_ref().map(endpoint).transpose()
}

/// An endpoint, whoever owns it.
pub(super) async fn get_endpoint(
    pool: &AnyPool,
    id: &EndpointId,
) -> Result<Option<Endpoint>, sqlx::Error> {
    let sql = format!("SELECT {ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE id = $1");
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id.as_str());
    query.fetch_optional(pool).await?.as_ref().map(endpoint).transpose()
}

/// A page of an owner's endpoints, newest first.
pub(super) async fn list_endpoints(
    pool: &AnyPool,
    owner: &str,
    (before, limit): (&str, i64),
) -> Result<Vec<Endpoint>, sqlx::Error> {
    let sql = format!(
        "SELECT {ENDPOINT_COLUMNS} FROM webhook_endpoints WHERE owner = $1 AND id < $2 \
         AND deleted_at IS NULL ORDER BY id DESC LIMIT $3"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(owner).bind(before).bind(limit + 1);
    query.fetch_all(pool).await?.iter().map(endpoint).collect()
}

/// How many endpoints an owner has.
pub(super) async fn count_endpoints(pool: &AnyPool, owner: &str) -> Result<i64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM webhook_endpoints WHERE owner = $1 AND deleted_at IS NULL";
    sqlx::query_scalar(sql).bind(owner).fetch_one(pool).await
}

fn endpoint(row: &AnyRow) -> Result<Endpoint, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let int = |column| row.try_get::<i64, _>(column);
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    let env = text("env")?;
    Ok(Endpoint {
        id: EndpointId::from_text(text("id")?),
        merchant_id: MerchantId::from_text(text("merchant_id")?),
        env: Env::parse(&env).ok_or_else(|| sqlx::Error::Decode(env.into()))?,
        url: text("url")?,
        events: serde_json::from_str(&text("events")?).unwrap_or_default(),
        is_ordered: int("is_ordered")? != 0,
        is_active: int("is_active")? != 0,
        disabled_reason: row.try_get("disabled_reason")?,
        secret: text("secret")?,
        old_secrets: old_secrets(row.try_get("old_secrets")?)?,
        last_success_at: moment("last_success_at")?,
        last_failure_at: moment("last_failure_at")?,
        consecutive_failures: int("consecutive_failures")?,
        created_at: Moment::from_micros(int("created_at")?),
        updated_at: Moment::from_micros(int("updated_at")?),
    })
}

fn old_secrets(kept: Option<String>) -> Result<Vec<OldSecret>, sqlx::Error> {
    let read = kept.map(|text| serde_json::from_str(&text)).transpose();
    read.map(Option::unwrap_or_default).map_err(|cause| sqlx::Error::Decode(Box::new(cause)))
}

/// Which deliveries are wanted; an empty text stands for any.
#[derive(Default)]
pub(super) struct Filter {
    pub endpoint_id: String,
    pub status: String,
    /// In the spelling without dots.
    pub event_type: String,
    /// Before this one.
    pub before: Option<DeliveryId>,
    pub limit: i64,
}

const DELIVERY_COLUMNS: &str = "d.id, d.endpoint_id, d.event_id, d.event_type, d.is_test, \
    d.replayed_from_id, d.status, d.attempts, d.response_status, d.response_body, \
    d.error_message, d.next_attempt_at, d.delivered_at, d.created_at";

/// Deliveries whose endpoint is gone are gone as well, even while their rows are being deleted.
const DELIVERIES: &str = "FROM webhook_deliveries d JOIN webhook_endpoints e \
    ON e.id = d.endpoint_id AND e.deleted_at IS NULL WHERE";

/// Those that are still to be made. SQLite reads the tables in this order.
const WAITING: &str = "FROM webhook_endpoints e CROSS JOIN webhook_queue q \
    CROSS JOIN webhook_deliveries d WHERE e.deleted_at IS NULL AND q.endpoint_id = e.id \
    AND d.id = q.delivery_id AND";

/// A page of an owner's deliveries, newest first.
pub(super) async fn list_deliveries(
    pool: &AnyPool,
    (merchant, env): (&MerchantId, Env),
    filter: &Filter,
) -> Result<Vec<Delivery>, sqlx::Error> {
    let is_in = |status: Status| filter.status == status.as_str();
    // By whatever leads to the fewest.
    let (which, found_by) = if is_in(Status::Pending) || is_in(Status::Failed) {
        let of_owner = "e.owner_number = $7 AND e.owner = $1";
        let which = format!("{WAITING} {of_owner} AND ($3 = '' OR e.id = $3)");
        (which, merchant.owner_number(env))
    } else if filter.endpoint_id.is_empty() {
        let of_owner = "d.owner_number = $7 AND d.owner = $1";
        (format!("{DELIVERIES} {of_owner} AND $3 = ''"), merchant.owner_number(env))
    } else {
        let of_endpoint = "d.endpoint_number = $7 AND d.endpoint_id = $3";
        (
            format!("{DELIVERIES} {of_endpoint} AND e.owner = $1"),
            EndpointId::number_of(&filter.endpoint_id),
        )
    };
    let sql = format!(
        "SELECT {DELIVERY_COLUMNS} {which} AND d.id_number <= $8 AND d.id < $2 \
         AND ($4 = '' OR d.status = $4) AND ($5 = '' OR REPLACE(d.event_type, '.', '_') = $5) \
         ORDER BY d.id_number DESC, d.id DESC LIMIT $6"
    );
    let before = filter.before.as_ref();
    let query = sqlx::query::<sqlx::Any>(sqlx::AssertSqlSafe(sql))
        // Planned each time, for these values: a plan for any would read what others have, too.
        .persistent(false)
        .bind(owner(merchant, env))
        .bind(before.map_or("~", DeliveryId::as_str))
        .bind(filter.endpoint_id.as_str())
        .bind(filter.status.as_str())
        .bind(filter.event_type.as_str())
        .bind(filter.limit + 1)
        .bind(found_by)
        .bind(before.map_or(i64::MAX, DeliveryId::number));
    query.fetch_all(pool).await?.iter().map(delivery).collect()
}

/// A delivery of an owner.
pub(super) async fn find_delivery(
    pool: &AnyPool,
    owner: &str,
    id: &str,
) -> Result<Option<Delivery>, sqlx::Error> {
    let sql = format!("SELECT {DELIVERY_COLUMNS} {DELIVERIES} d.owner = $1 AND d.id = $2");
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(owner).bind(id);
    query.fetch_optional(pool).await?.as_ref().map(delivery).transpose()
}

/// What a delivery of an owner carries; none where it or its event is not there.
pub(super) async fn find_body(
    db: &Db,
    owner: &str,
    id: &str,
) -> Result<Option<String>, sqlx::Error> {
    let sql = format!(
        "SELECT {} FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id \
         {} WHERE d.owner = $1 AND d.id = $2",
        bodies::COLUMNS,
        bodies::EVENT
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(owner).bind(id);
    let Some(row) = query.fetch_optional(db.pool()).await? else { return Ok(None) };
    Ok(bodies::bodies(db, vec![Source::of(&row)]).await?.pop().flatten())
}

fn delivery(row: &AnyRow) -> Result<Delivery, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let int = |column| row.try_get::<i64, _>(column);
    let moment =
        |column| row.try_get::<Option<i64>, _>(column).map(|at| at.map(Moment::from_micros));
    Ok(Delivery {
        id: DeliveryId::from_text(text("id")?),
        endpoint_id: EndpointId::from_text(text("endpoint_id")?),
        event_id: row.try_get::<Option<String>, _>("event_id")?.map(EventId::from_text),
        event_type: text("event_type")?,
        is_test: int("is_test")? != 0,
        replayed_from_id: row.try_get("replayed_from_id")?,
        status: text("status")?,
        attempts: int("attempts")?,
        response_status: row.try_get("response_status")?,
        response_body: row.try_get("response_body")?,
        error_message: row.try_get("error_message")?,
        next_attempt_at: moment("next_attempt_at")?,
        delivered_at: moment("delivered_at")?,
        created_at: Moment::from_micros(int("created_at")?),
    })
}

/// Active endpoints with something due that nobody holds. The walk over the index touches each
/// endpoint once, however long its queue is.
pub(super) async fn find_due_endpoints(
    db: &Db,
    now: Moment,
) -> Result<Vec<EndpointId>, sqlx::Error> {
    let sql = "WITH RECURSIVE waiting(endpoint_id) AS (\
               SELECT MIN(endpoint_id) FROM webhook_queue \
               UNION ALL SELECT (SELECT MIN(q.endpoint_id) FROM webhook_queue q \
               WHERE q.endpoint_id > w.endpoint_id) FROM waiting w WHERE w.endpoint_id IS NOT NULL) \
               SELECT e.id FROM waiting w JOIN webhook_endpoints e ON e.id = w.endpoint_id \
               WHERE e.is_active = 1 AND 1 = (SELECT COUNT(*) FROM (SELECT 1 AS one \
               FROM webhook_queue q WHERE q.endpoint_id = w.endpoint_id AND q.due_at <= $1 \
               AND q.lease_until < $2 LIMIT 1) found)";
    let database_now = db.now().await?.micros();
    let query = sqlx::query_scalar::<_, String>(sql).bind(now.micros()).bind(database_now);
    let found = query.fetch_all(db.pool()).await?;
    Ok(found.into_iter().map(EndpointId::from_text).collect())
}

/// Gives back every lease, so that deliveries need not wait for them to run out. Only for a
/// host that nobody shares the database with.
///
/// # Errors
/// The database cannot be written.
pub async fn release_leases(db: &Db) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE webhook_queue SET lease_until = 0, fence = fence + 1 WHERE lease_until > 0";
    sqlx::query(sql).execute(tx.conn()).await?;
    tx.commit().await
}

/// Waits until every transaction has ended that was under way, of whichever host: one of them may
/// have read the endpoints as they were before a change that is committed by now. Answers whether
/// all have, for none is waited for longer than a batch may take. On SQLite there is nobody to wait
/// for: one writes after the other.
///
/// Whatever makes an event locks a row before it reads the endpoints, and has its number (xid) with
/// that. A snapshot would not do: its `xmax` is one past what has ended, and not past what has
/// begun.
pub(super) async fn wait_for_others(db: &Db) -> Result<bool, sqlx::Error> {
    if db.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let sql = "SELECT CAST(backend_xid AS TEXT) FROM pg_stat_activity \
               WHERE datname = current_database() AND backend_xid IS NOT NULL";
    let mut others: Vec<String> = sqlx::query_scalar(sql).fetch_all(db.pool()).await?;
    let begun = tokio::time::Instant::now();
    let (mut pause, longest) = OTHERS_EVERY;
    while !others.is_empty() && begun.elapsed() < limits::BATCH_DEADLINE {
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(longest);
        let still: Vec<String> = sqlx::query_scalar(sql).fetch_all(db.pool()).await?;
        others.retain(|other| still.contains(other));
    }
    Ok(others.is_empty())
}
