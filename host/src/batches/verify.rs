//! Proving batches against their payouts, and what was told of them.

use std::collections::HashMap;
use std::time::Duration;

use futures::TryStreamExt as _;
use serde_json::Value;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::ledger::verify::{Check, Faults, Fresh, These};
use crate::payouts::model::Status;
use crate::payouts::verify::Looked;

use super::model::{Batch, Change, Counts, Stage};
use super::sql;
use super::view::BatchView;

/// How far the clocks of hosts may be apart.
const SAME_TIME: Duration = Duration::from_secs(60);

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "batch-payouts",
        means: "is a batch whose payouts come to another number or sum than it says",
        finds: "SELECT b.id FROM batches b LEFT JOIN payouts p ON p.in_batch = b.id \
                WHERE {these b.id} GROUP BY b.id, b.total_count, b.total_amount_minor \
                HAVING COUNT(p.id) <> b.total_count \
                OR COALESCE(SUM(p.amount_minor), 0) <> b.total_amount_minor",
    },
    Check {
        name: "payout-batch",
        means: "is in a batch of another merchant, environment, wallet or maker",
        finds: "SELECT p.id FROM payouts p LEFT JOIN batches b ON b.id = p.in_batch \
                WHERE p.in_batch IS NOT NULL AND {these p.in_batch} AND (b.id IS NULL \
                OR b.merchant_id <> p.merchant_id OR b.env <> p.env \
                OR b.wallet_id <> p.wallet_id OR b.maker <> p.maker)",
    },
    Check {
        name: "batch-stage",
        means: "is a batch with payouts on their way that nobody let go, or with drafts that \
                nobody has to look at any more",
        finds: "SELECT DISTINCT b.id FROM batches b JOIN payouts p ON p.in_batch = b.id \
                WHERE {these b.id} AND ((b.stage IN ('awaiting_approval', 'flagged_held', \
                'rejected') AND p.status IN ('queued', 'processing', 'paid', 'failed')) OR \
                (b.stage NOT IN ('awaiting_approval', 'flagged_held') AND p.status = 'draft'))",
    },
    Check {
        name: "batch-approved",
        means: "is a batch that was let go without being approved, or the other way round",
        // Nobody has cancelled one that lapsed.
        finds: "SELECT b.id FROM batches b WHERE {these b.id} AND (b.approved_at IS NULL) \
                <> (b.stage IN ('awaiting_approval', 'flagged_held', 'rejected') \
                OR (b.stage = 'cancelled' AND NOT EXISTS (SELECT 1 FROM audit a \
                WHERE a.subject_id = b.id AND a.action = 'batch.cancel')))",
    },
    Check {
        name: "batch-complete",
        means: "is a batch that counts as complete while payouts of it are under way",
        finds: "SELECT DISTINCT b.id FROM batches b JOIN payouts p ON p.in_batch = b.id \
                WHERE {these b.id} AND b.completed_at IS NOT NULL AND p.status IN \
                ('draft', 'awaiting_admin_review', 'queued', 'processing')",
    },
    Check {
        name: "batch-told",
        means: "is a batch whose end was told otherwise than it is known",
        finds: "SELECT b.id FROM batches b LEFT JOIN events v ON v.object_id = b.id \
                AND v.type = 'batch.completed' WHERE {these b.id} \
                AND (b.completed_at IS NULL) <> (v.id IS NULL) \
                AND b.created_at > COALESCE((SELECT CAST(value AS BIGINT) FROM meta \
                WHERE key = 'swept/all_events'), 0)",
    },
    Check {
        name: "batch-events",
        means: "is a batch with another number of changes than were told",
        finds: "SELECT b.id FROM batches b LEFT JOIN events v ON v.object_id = b.id \
                AND v.object_type = 'batch' AND v.merchant_id = b.merchant_id AND v.env = b.env \
                WHERE {these b.id} AND b.created_at > COALESCE((SELECT CAST(value AS BIGINT) \
                FROM meta WHERE key = 'swept/all_events'), 0) GROUP BY b.id, b.version \
                HAVING COUNT(v.id) <> b.version OR MAX(v.sequence) <> b.version",
    },
];

const STRAYS: Check = Check {
    name: "event-without-batch",
    means: "has events and is no batch",
    finds: "SELECT DISTINCT e.object_id FROM events e LEFT JOIN batches b \
            ON b.id = e.object_id WHERE e.object_type = 'batch' AND b.id IS NULL \
            AND {fresh events e}",
};

/// Every batch of which something is fresh, or that is under way.
const TOUCHED: &str = "SELECT b.id FROM batches b WHERE {fresh batches b} \
    UNION SELECT b.id FROM batches b WHERE b.completed_at IS NULL \
    UNION SELECT e.object_id FROM events e WHERE e.object_type = 'batch' AND {fresh events e} \
    UNION SELECT p.in_batch FROM payouts p WHERE p.in_batch IS NOT NULL AND {fresh payouts p} \
    UNION SELECT p.in_batch FROM events e JOIN payouts p ON p.id = e.object_id \
    WHERE p.in_batch IS NOT NULL AND e.object_type = 'payout' AND {fresh events e} ORDER BY 1";

/// Batches that are looked at together.
const PORTION: usize = 500;

/// Proves every batch that is looked at.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    looked: Looked<'_>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    STRAYS.run(db, looked.fresh, faults).await?;
    let replies = replies(db, looked.fresh).await?;
    if looked.fresh.is_all() {
        return verify_these(db, (looked, &These::all(looked.engine)), &replies, faults).await;
    }
    let sql = AssertSqlSafe(looked.fresh.filled_in(TOUCHED));
    let touched: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut *db).await?;
    for some in touched.chunks(PORTION) {
        let these = These::some(looked.engine, some.iter().map(String::as_str));
        verify_these(db, (looked, &these), &replies, faults).await?;
    }
    Ok(())
}

/// What was answered to requests that made batches.
struct Reply {
    key: String,
    status: Option<i64>,
    response: Option<String>,
}

/// By batch.
async fn replies(
    db: &mut AnyConnection,
    fresh: &Fresh,
) -> Result<HashMap<String, Reply>, sqlx::Error> {
    let sql = "SELECT k.resource_id, k.key, k.status, k.response FROM idempotency_keys k \
               CROSS JOIN batches b WHERE b.id = k.resource_id AND {fresh idempotency_keys k}";
    let rows = sqlx::query(AssertSqlSafe(fresh.filled_in(sql))).fetch_all(db).await?;
    let each = rows.iter().map(|row| {
        let (key, status, response) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        Ok((row.try_get(0)?, Reply { key, status, response }))
    });
    each.collect()
}

async fn verify_these(
    db: &mut AnyConnection,
    (looked, these): (Looked<'_>, &These),
    replies: &HashMap<String, Reply>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run_as(&mut *db, (these.filled_in(check.finds), these.parameters()), faults).await?;
    }
    let histories = Histories::read(db, these).await?;
    let mut rows = these.query("SELECT * FROM batches WHERE {these id}").fetch(db);
    while let Some(row) = rows.try_next().await? {
        let batch = sql::batch(&row)?;
        let may_be_swept =
            |table: &str| looked.swept.get(table).is_some_and(|before| batch.created_at < *before);
        let is_proven = histories.are_whole(&batch) || !may_be_swept("all_events");
        if is_proven && !histories.tell(&batch) {
            let what = format!("batch {} is not what its history makes of it", batch.id);
            faults.add("batch-history", what);
        }
        let reply = replies.get(batch.id.as_str());
        // What was made before the anchor has its key from then.
        if !looked.fresh.contains(row.try_get("batch_id")?) {
            continue;
        }
        let owner = format!("{}/{}/", batch.merchant_id, batch.env);
        let is_right = reply.is_some_and(|reply| {
            let answers = first_answers(&batch);
            let is_one = |response: &String| answers.contains(response);
            reply.key.starts_with(&owner)
                && reply.status == Some(201)
                && reply.response.as_ref().is_some_and(is_one)
        });
        if !is_right {
            let what = format!(
                "a repeat of the request is not answered with batch {} as it was",
                batch.id
            );
            faults.add("batch-reply", what);
        }
    }
    Ok(())
}

/// What was told of batches, and why somebody decided about them.
struct Histories {
    /// By batch: the last thing that people decided, when it was approved, and with what end.
    told: HashMap<String, Told>,
    /// By batch and action.
    reasons: HashMap<(String, String), Option<String>>,
}

/// What events say of a batch.
#[derive(Default)]
struct Told {
    changes: i64,
    decided: Option<Change>,
    approved_at: Option<Moment>,
    completed_at: Option<String>,
}

impl Histories {
    async fn read(db: &mut AnyConnection, these: &These) -> Result<Self, sqlx::Error> {
        let sql = "SELECT object_id, type, created_at, body FROM events WHERE {these object_id} \
                   AND object_type = 'batch' ORDER BY object_id, sequence";
        let mut told: HashMap<String, Told> = HashMap::new();
        let mut rows = these.query(sql).fetch(&mut *db);
        while let Some(row) = rows.try_next().await? {
            let told = told.entry(row.try_get(0)?).or_default();
            told.changes += 1;
            let name: String = row.try_get(1)?;
            let change = Change::ALL.into_iter().find(|change| change.event() == name);
            match change {
                Some(Change::Complete) => {
                    let body: Option<String> = row.try_get(3)?;
                    let body: Value =
                        serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default();
                    told.completed_at = body["completed_at"].as_str().map(str::to_owned);
                }
                Some(change) => {
                    told.decided = Some(change);
                    if change == Change::Approve {
                        told.approved_at = Some(Moment::from_micros(row.try_get(2)?));
                    }
                }
                None => {}
            }
        }
        drop(rows);
        let mut reasons = HashMap::new();
        let sql = "SELECT subject_id, action, after FROM audit WHERE {these subject_id} \
                   AND subject_type = 'batch'";
        let mut rows = these.query(sql).fetch(db);
        while let Some(row) = rows.try_next().await? {
            let after: Option<String> = row.try_get(2)?;
            let after: Value = serde_json::from_str(&after.unwrap_or_default()).unwrap_or_default();
            let reason = after["reason"].as_str().map(str::to_owned);
            reasons.insert((row.try_get(0)?, row.try_get(1)?), reason);
        }
        Ok(Self { told, reasons })
    }

    /// Whether every change of a batch is there.
    fn are_whole(&self, batch: &Batch) -> bool {
        self.told.get(batch.id.as_str()).is_some_and(|told| told.changes == batch.version)
    }

    /// Whether a batch is as it was told.
    fn tell(&self, batch: &Batch) -> bool {
        let Some(told) = self.told.get(batch.id.as_str()) else { return false };
        let is_stage = match told.decided {
            None => matches!(batch.stage, Stage::AwaitingApproval | Stage::Approved),
            Some(Change::Approve) => batch.stage == Stage::Approved,
            Some(Change::Reject) => batch.stage == Stage::Rejected,
            Some(Change::Hold) => batch.stage == Stage::Held,
            Some(Change::Cancel | Change::Lapse) => batch.stage == Stage::Cancelled,
            Some(Change::Complete) => false,
        };
        let is_approved = match (batch.stage, told.approved_at) {
            (Stage::Approved | Stage::Cancelled, Some(at)) => batch
                .approved_at
                .is_some_and(|known| known.after(SAME_TIME) >= at && at.after(SAME_TIME) >= known),
            (Stage::Cancelled, None) if told.decided == Some(Change::Lapse) => {
                batch.approved_at.is_none()
            }
            (Stage::Approved | Stage::Cancelled, None) => {
                batch.approved_at == Some(batch.created_at)
            }
            _ => batch.approved_at.is_none(),
        };
        let action = match told.decided {
            Some(Change::Reject) => Some("batch.reject"),
            Some(Change::Hold) => Some("batch.hold"),
            Some(Change::Cancel) => Some("batch.cancel"),
            _ => None,
        };
        let reason = action.and_then(|action| {
            self.reasons.get(&(batch.id.to_string(), action.to_owned())).cloned().flatten()
        });
        let completed_at = batch.completed_at.map(|at| at.to_string());
        is_stage && is_approved && batch.reason == reason && completed_at == told.completed_at
    }
}

/// What may have been answered when a batch was made: it was let go at once, or had to wait.
fn first_answers(batch: &Batch) -> [String; 2] {
    [
        (Stage::Approved, Some(batch.created_at), Status::Queued),
        (Stage::AwaitingApproval, None, Status::Draft),
    ]
    .map(|(stage, approved_at, status)| {
        let made = Batch { stage, approved_at, reason: None, completed_at: None, ..batch.clone() };
        BatchView::of(&made, &Counts::all(status, batch.total_count)).json()
    })
}
