//! Proving deliveries against events and endpoints, and endpoints against the audit log: everybody
//! is told what they asked for, and nobody else is.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::TryStreamExt as _;
use serde_json::{Value, json};
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::events::{DISABLED, canonical};
use crate::id::{DeliveryId, EndpointId, EventId, Id as _, MerchantId};
use crate::ledger::verify::{Check, Faults, Fresh};
use crate::payouts::verify::Looked;

use super::bodies::{EVENT, UNTOLD};
use super::deliver::LEFT_ALONE;

/// What is asked of all deliveries: by the event that each names, if it names one.
/// `{kept delivery}` is an id: deliveries from it on are of events that were not swept, for an event
/// is older than its delivery by no more than [`EVENT_BEFORE_DELIVERY`]. By id and not by
/// `created_at`, which whoever changes a row can change as well.
const OF_ALL: Check = Check {
    name: "delivery-event",
    means: "is a delivery of an event of another merchant or environment, or of none",
    finds: "SELECT d.id FROM webhook_deliveries d LEFT JOIN events v ON v.id = d.event_id \
            WHERE d.is_test = 0 AND (d.event_id IS NOT NULL \
            OR d.replayed_from_id IS NULL) AND ((v.id IS NULL AND d.replayed_from_id IS NULL \
            AND d.id >= '{kept delivery}') OR (v.id IS NOT NULL AND v.body IS NULL) \
            OR v.merchant_id || '/' || v.env <> d.owner \
            OR REPLACE(v.type, '.', '_') <> REPLACE(d.event_type, '.', '_'))",
};

/// What is asked of fresh deliveries (`{its event}` is [`EVENT`]): their events are found among those of whoever owns the
/// endpoint. `{kept}` is the first event that was not swept: of a replay only the event's own id
/// says how old it is.
const OF_DELIVERIES: Check = Check {
    name: OF_ALL.name,
    means: OF_ALL.means,
    finds: "SELECT d.id FROM {deliveries} LEFT JOIN webhook_endpoints e ON e.id = d.endpoint_id \
            {its event} WHERE d.is_test = 0 AND ((v.id IS NULL AND (d.event_id >= '{kept}' \
            OR (d.replayed_from_id IS NULL AND d.id >= '{kept delivery}'))) \
            OR REPLACE(v.type, '.', '_') <> REPLACE(d.event_type, '.', '_'))",
};

/// How long before its delivery an event may have been made: while it waited for the writer.
const EVENT_BEFORE_DELIVERY: Duration = Duration::from_secs(3600);

/// How long before an anchor deliveries were written that are looked at all the same: as long as
/// one is under way whose receiver neither asks for patience nor is switched off.
fn under_way() -> Duration {
    limits::WEBHOOK_DELAYS.iter().sum::<Duration>() + Duration::from_secs(3600)
}

/// Each query answers with ids; none is right. For `{deliveries}` stand all, or those that were
/// written since, or are to be made, as `d`.
const CHECKS: &[Check] = &[
    Check {
        name: "delivery-endpoint",
        means: "is a delivery to an endpoint of another merchant or environment, or to none",
        finds: "SELECT d.id FROM {deliveries} LEFT JOIN webhook_endpoints e \
                ON e.id = d.endpoint_id WHERE e.id IS NULL OR e.owner <> d.owner",
    },
    Check {
        name: "delivery-body",
        means: "is a delivery that says something else than its event",
        finds: "SELECT d.id FROM {deliveries} WHERE d.body IS NOT NULL AND d.is_test = 0 \
                AND d.replayed_from_id IS NULL",
    },
    Check {
        name: "delivery-replay",
        means: "is a replay of itself, of nothing, of another event, or to another endpoint",
        // Originals from `{kept original}` on were not swept, but with their endpoint.
        finds: "SELECT d.id FROM {deliveries} LEFT JOIN webhook_deliveries o \
                ON o.id = d.replayed_from_id WHERE d.replayed_from_id IS NOT NULL \
                AND ((o.id IS NOT NULL AND (o.id = d.id OR o.owner <> d.owner \
                OR o.endpoint_id <> d.endpoint_id \
                OR COALESCE(o.event_id, '') <> COALESCE(d.event_id, ''))) \
                OR (o.id IS NULL AND d.replayed_from_id >= '{kept original}' \
                AND NOT EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.id = d.endpoint_id \
                AND e.deleted_at IS NOT NULL)))",
    },
    Check {
        name: "delivery-status",
        means: "is a delivery whose status is not what became of it",
        finds: "SELECT d.id FROM {deliveries} LEFT JOIN webhook_queue q \
                ON q.delivery_id = d.id WHERE \
                (d.status = 'delivered' AND (d.delivered_at IS NULL OR d.attempts = 0 \
                OR d.response_status IS NULL OR d.response_status NOT BETWEEN 200 AND 299)) \
                OR (d.status <> 'delivered' AND d.delivered_at IS NOT NULL) \
                OR (d.status = 'pending' AND (d.attempts > 0 OR d.response_status IS NOT NULL)) \
                OR (d.status IN ('failed', 'giving_up') AND d.attempts = 0) \
                OR (d.status IN ('pending', 'failed') \
                AND (d.is_test = 0 OR d.replayed_from_id IS NOT NULL) AND q.delivery_id IS NULL \
                AND NOT EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.id = d.endpoint_id \
                AND e.deleted_at IS NOT NULL)) \
                OR (d.status IN ('delivered', 'giving_up') AND q.delivery_id IS NOT NULL)",
    },
    Check {
        name: "queue-without-delivery",
        means: "is to be delivered and is no delivery",
        finds: "SELECT q.delivery_id FROM webhook_queue q LEFT JOIN webhook_deliveries d \
                ON d.id = q.delivery_id AND d.endpoint_id = q.endpoint_id WHERE d.id IS NULL",
    },
    Check {
        name: "endpoint-owner",
        means: "is an endpoint of another merchant than its owner's",
        finds: "SELECT e.id FROM webhook_endpoints e LEFT JOIN merchants m \
                ON m.id = e.merchant_id WHERE m.id IS NULL \
                OR e.owner <> e.merchant_id || '/' || e.env",
    },
    Check {
        name: "endpoint-secret",
        means: "is an endpoint whose secret is not sealed",
        finds: "SELECT id FROM webhook_endpoints WHERE secret NOT LIKE 's1.%' \
                OR (old_secrets IS NOT NULL AND old_secrets NOT LIKE '[{\"secret\":\"s1.%') \
                OR REPLACE(old_secrets, '\"secret\":\"s1.', '') LIKE '%\"secret\":%'",
    },
    Check {
        name: "endpoint-disabled",
        means: "is an endpoint that was switched off, or on again, by nobody",
        finds: "SELECT e.id FROM webhook_endpoints e LEFT JOIN events v ON v.object_id = e.id \
                GROUP BY e.id, e.times_disabled, e.is_active, e.disabled_reason, e.created_at \
                HAVING COUNT(v.id) > e.times_disabled OR (COUNT(v.id) < e.times_disabled \
                AND e.created_at > COALESCE((SELECT CAST(value AS BIGINT) FROM meta \
                WHERE key = 'swept/all_events'), 0)) \
                OR (e.disabled_reason IS NOT NULL AND e.times_disabled = 0)",
    },
];

/// Checks every delivery and endpoint.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    looked: Looked<'_>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let (fresh, now) = (looked.fresh, looked.now);
    let deliveries = match fresh.is_all() {
        true => "webhook_deliveries d".to_owned(),
        false => {
            let from = fresh.since().unwrap_or_default().before(under_way());
            format!(
                "(SELECT n.* FROM webhook_deliveries n WHERE n.id IN (SELECT l.id \
                 FROM webhook_deliveries l WHERE l.id >= '{}' \
                 UNION SELECT q.delivery_id FROM webhook_queue q)) d",
                DeliveryId::first_at(from)
            )
        }
    };
    let swept = looked.swept.get("events").copied().unwrap_or_default();
    let of_event = if fresh.is_all() { &OF_ALL } else { &OF_DELIVERIES };
    let sql = of_event.finds.replace("{deliveries}", &deliveries);
    let sql = sql.replace("{its event}", EVENT);
    let sql = sql.replace("{kept}", EventId::first_at(swept).as_str());
    let kept_delivery = DeliveryId::first_at(swept.after(EVENT_BEFORE_DELIVERY));
    let sql = sql.replace("{kept delivery}", kept_delivery.as_str());
    of_event.run_as(&mut *db, (sql, &[]), faults).await?;
    // Less than deliveries are kept, for clocks that differ.
    let days = u64::from(limits::DELIVERIES_KEPT_DAYS_LEAST - 1);
    let kept = now.before(Duration::from_secs(days * 24 * 3600));
    let kept_original = DeliveryId::first_at(kept);
    for check in CHECKS {
        let sql = check.finds.replace("{deliveries}", &deliveries);
        let sql = sql.replace("{kept original}", kept_original.as_str());
        check.run_as(&mut *db, (sql, &[]), faults).await?;
    }
    given_up_early(db, &deliveries, faults).await?;
    numbers(db, &deliveries, faults).await?;
    missing_deliveries(db, (fresh, kept), faults).await?;
    endpoints(db, faults).await
}

/// What the lines of the audit log about an endpoint come to, in whichever order the clocks of
/// several hosts have put them: every change is one of what was there, so that all changes together
/// leave how it is now.
#[derive(Default)]
struct Told {
    /// Addresses with events: how often each was set, less how often something else took its place.
    states: BTreeMap<String, i64>,
    /// How often it was switched on, less how often its owner switched it off.
    active: i64,
}

/// What decides what is sent where.
fn state(url: &Value, events: &Value, is_ordered: &Value) -> String {
    json!([url, events, is_ordered]).to_string()
}

/// Every endpoint is as its owner left it; only a host switches it off besides, and counts that.
async fn endpoints(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    let told = list_told(&mut *db).await?;
    let nothing = Told::default();
    let sql = "SELECT id, url, events, is_ordered, is_active, times_disabled, owner, owner_number \
               FROM webhook_endpoints WHERE deleted_at IS NULL";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let (owner, number): (String, i64) = (row.try_get(6)?, row.try_get(7)?);
        if number != owner_number(&owner) {
            let id: String = row.try_get(0)?;
            faults.add("endpoint-owner", format!("{id} is an endpoint of no owner's number"));
        }
        let (id, url): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let events: Value = serde_json::from_str(&row.try_get::<String, _>(2)?).unwrap_or_default();
        let (is_ordered, is_active): (i64, i64) = (row.try_get(3)?, row.try_get(4)?);
        let off: i64 = row.try_get(5)?;
        let told = told.get(&id).unwrap_or(&nothing);
        let state = state(&json!(url), &events, &json!(is_ordered != 0));
        let left = told.states.iter().filter(|(_, count)| **count != 0);
        if !left.eq([(&state, &1_i64)]) || told.active - off != is_active {
            faults.add("endpoint-settings", format!("endpoint {id} was changed by nobody"));
        }
    }
    Ok(())
}

/// What the audit log says of endpoints. A new secret changes nothing of it.
async fn list_told(db: &mut AnyConnection) -> Result<HashMap<String, Told>, sqlx::Error> {
    let sql = "SELECT subject_id, before, after FROM audit WHERE action IN \
               ('webhook_endpoint.create', 'webhook_endpoint.update', 'webhook_endpoint.delete')";
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut lines = sqlx::query(sql).fetch(db);
    while let Some(line) = lines.try_next().await? {
        let of_it = told.entry(line.try_get(0)?).or_default();
        for (column, step) in [("before", -1_i64), ("after", 1)] {
            let side: Option<String> = line.try_get(column)?;
            let side = side.and_then(|text| serde_json::from_str::<Value>(&text).ok());
            let Some(side) = side else { continue };
            let state = state(&side["url"], &side["events"], &side["ordered"]);
            *of_it.states.entry(state).or_default() += step;
            if side["is_active"] == json!(true) {
                of_it.active += step;
            }
        }
    }
    Ok(told)
}

/// Every event reaches every endpoint that listens for it. Those within [`LEFT_ALONE`] of the
/// endpoint's last change are not checked: a change bears the instant at which it was asked for and
/// is committed later, and batches beside it still see the endpoint as it was.
async fn missing_deliveries(
    db: &mut AnyConnection,
    (fresh, since): (&Fresh, Moment),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = "SELECT v.id, v.type, e.id, e.events FROM events v JOIN webhook_endpoints e \
               ON e.owner = v.merchant_id || '/' || v.env AND e.is_active = 1 \
               AND e.deleted_at IS NULL AND v.created_at > e.updated_at + $1 \
               LEFT JOIN webhook_deliveries d ON d.event_number = v.id_number \
               AND d.event_id = v.id AND d.endpoint_id = e.id \
               WHERE v.body IS NOT NULL AND v.created_at > $2 AND d.id IS NULL \
               AND {fresh events v}";
    let left_alone = i64::try_from(LEFT_ALONE.as_micros()).unwrap_or_default();
    let query = sqlx::query(AssertSqlSafe(fresh.filled_in(sql)));
    for row in query.bind(left_alone).bind(since.micros()).fetch_all(db).await? {
        let (event, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (endpoint, wanted): (String, String) = (row.try_get(2)?, row.try_get(3)?);
        let wanted: Vec<String> = serde_json::from_str(&wanted).unwrap_or_default();
        let is_wanted = wanted
            .iter()
            .any(|wanted| wanted == "*" || canonical(wanted).is_some_and(|known| known == name));
        if is_wanted && name != DISABLED {
            let what = format!("endpoint {endpoint} was never told of event {event}");
            faults.add("delivery-missing", what);
        }
    }
    Ok(())
}

/// The number of merchant and environment in one.
fn owner_number(owner: &str) -> i64 {
    let (merchant, env) = owner.split_once('/').unwrap_or_default();
    let merchant = MerchantId::from_text(merchant.to_owned());
    merchant.owner_number(Env::parse(env).unwrap_or(Env::Test))
}

/// Deliveries are listed by numbers that follow from what they name.
async fn numbers(
    db: &mut AnyConnection,
    deliveries: &str,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SELECT d.id, d.owner, d.endpoint_id, d.event_id, d.id_number, d.owner_number, \
         d.endpoint_number, d.event_number FROM {deliveries}"
    );
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let (id, owner): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (endpoint, event): (String, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        let stated: [i64; 3] = [row.try_get(4)?, row.try_get(5)?, row.try_get(6)?];
        let follows =
            [DeliveryId::number_of(&id), owner_number(&owner), EndpointId::number_of(&endpoint)];
        let event = event.as_deref().map(EventId::number_of);
        if stated != follows || row.try_get::<Option<i64>, _>(7)? != event {
            let what = format!("{id} is a delivery that lists do not find");
            faults.add("delivery-numbers", what);
        }
    }
    Ok(())
}

/// A receiver is tried as often as the schedule says, unless it answers that it is gone, or there is
/// nothing to tell it.
async fn given_up_early(
    db: &mut AnyConnection,
    deliveries: &str,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let all = i64::try_from(limits::WEBHOOK_DELAYS.len()).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT d.id, d.attempts FROM {deliveries} WHERE d.status = 'giving_up' \
         AND (d.is_test = 0 OR d.replayed_from_id IS NOT NULL) AND d.attempts < $1 \
         AND (d.response_status IS NULL OR d.response_status <> 410) \
         AND COALESCE(d.error_message, '') <> '{UNTOLD}'"
    );
    for row in sqlx::query(AssertSqlSafe(sql)).bind(all).fetch_all(db).await? {
        let (id, attempts): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let what = format!("{id} is a delivery that was given up after {attempts} attempts");
        faults.add("delivery-status", what);
    }
    Ok(())
}
