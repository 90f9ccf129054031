//! What was answered to the requests that made payouts, against the payouts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::ledger::verify::{Faults, Fresh};
use crate::payouts::event_body;
use crate::payouts::model::{Payout, Status};
use crate::payouts::reply;
use crate::payouts::view::PayoutView;

use super::replay::StoredEvent;

/// The idempotency keys of a range of payouts, and what they were answered. Whoever goes through
/// all payouts holds one range after the other: there is no bound to how many there are.
pub(super) struct Replies {
    /// How many payouts make a range, at least.
    at_once: usize,
    /// The last payout of the range.
    to: String,
    by_payout: HashMap<String, Answered>,
    /// Merchants and environments: most are met again.
    owners: HashSet<Arc<str>>,
}

/// What a key was answered.
pub(super) struct Answered {
    owner: Arc<str>,
    status: Option<i64>,
    reply: Reply,
}

enum Reply {
    /// Nothing.
    Missing,
    /// What is rendered from the payout, which began like this.
    From(Status),
    /// What has this digest.
    Whole([u8; 32]),
}

impl Reply {
    fn of(kept: Option<&str>) -> Self {
        let Some(kept) = kept else { return Self::Missing };
        let whole = || Self::Whole(Sha256::digest(kept).into());
        reply::began_as(kept).map_or_else(whole, Self::From)
    }
}

impl Replies {
    /// None yet; later those of so many payouts at once.
    pub(super) fn of_so_many(at_once: usize) -> Self {
        let (to, by_payout, owners) = (String::new(), HashMap::new(), HashSet::new());
        Self { at_once, to, by_payout, owners }
    }

    /// Holds the keys of all payouts from one to another one, and of so many after them. Payouts come
    /// in the order of their ids.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn load(
        &mut self,
        db: &mut AnyConnection,
        fresh: &Fresh,
        (first, last): (&str, &str),
    ) -> Result<(), sqlx::Error> {
        if last <= self.to.as_str() {
            return Ok(());
        }
        let sql = format!(
            "SELECT MAX(id) FROM (SELECT id FROM payouts WHERE id >= $1 ORDER BY id LIMIT {}) p",
            self.at_once
        );
        let end: Option<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(first).fetch_one(&mut *db).await?;
        self.to = end.unwrap_or_default().max(last.to_owned());
        self.by_payout.clear();
        let sql = "SELECT k.resource_id, k.key, k.status, k.response FROM idempotency_keys k \
                   WHERE k.resource_id >= $1 AND k.resource_id <= $2 \
                   AND {fresh idempotency_keys k}";
        let query = sqlx::query(AssertSqlSafe(fresh.filled_in(sql))).bind(first).bind(&self.to);
        let mut rows = query.fetch(db);
        while let Some(row) = rows.try_next().await? {
            let (id, key): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let answered = Answered {
                owner: owner(&mut self.owners, &key),
                status: row.try_get(2)?,
                reply: Reply::of(row.try_get::<Option<String>, _>(3)?.as_deref()),
            };
            self.by_payout.insert(id, answered);
        }
        Ok(())
    }

    /// A payout that is in no batch has the key of a request of its merchant, however old it is;
    /// answers what that request was told.
    pub(super) fn check_key(&self, payout: &Payout, faults: &mut Faults) -> Option<&Answered> {
        let id = &payout.id;
        let answered = self.by_payout.get(id.as_str());
        match answered {
            Some(_) if payout.batch_id.is_some() => {
                faults.add("reply", format!("payout {id} is in a batch, and has a key of its own"));
                return None;
            }
            Some(Answered { owner, .. })
                if **owner != format!("{}/{}", payout.merchant_id, payout.env) =>
            {
                let what = format!("payout {id} was made with the idempotency key of {owner}");
                faults.add("reply", what);
            }
            None if payout.batch_id.is_none() => {
                faults.add("reply", format!("payout {id} was made without an idempotency key"));
            }
            _ => {}
        }
        answered
    }
}

/// The merchant and the environment of a key.
fn owner(known: &mut HashSet<Arc<str>>, key: &str) -> Arc<str> {
    let owner = key.match_indices('/').nth(1).map_or(key, |(end, _)| &key[..end]);
    if let Some(owner) = known.get(owner) {
        return Arc::clone(owner);
    }
    let owner: Arc<str> = owner.into();
    known.insert(Arc::clone(&owner));
    owner
}

impl Answered {
    /// A repeat of the request is answered with what the payout was at some time.
    pub(super) fn check(&self, payout: &Payout, told: &[StoredEvent], faults: &mut Faults) {
        let first = told.first().and_then(StoredEvent::status);
        let is_right = match self.reply {
            Reply::Missing => return,
            Reply::From(began_as) => first == Some(began_as),
            Reply::Whole(digest) => was_so(payout, (told, first), digest),
        };
        if self.status != Some(201) || !is_right {
            let id = &payout.id;
            let what =
                format!("a repeat of the request is not answered with payout {id} as it was");
            faults.add("reply", what);
        }
    }
}

/// Whether a payout was ever shown so.
fn was_so(
    payout: &Payout,
    (told, first): (&[StoredEvent], Option<Status>),
    digest: [u8; 32],
) -> bool {
    let is = |text: &str| Sha256::digest(text).as_slice() == digest;
    let as_made = first.map(|status| PayoutView::json(&payout.as_made(status)));
    let bodies = told.iter().filter_map(|told| told.body.as_deref());
    let was_told = bodies.filter_map(|kept| event_body::json(payout, kept)).any(|it| is(&it));
    // Merchants are told of some once the network has taken it on.
    let was_sent = told.iter().any(|told| told.name == "payout.dispatched");
    let as_sent = was_sent.then(|| PayoutView::json(&payout.as_sent()));
    was_told || as_made.as_deref().is_some_and(is) || as_sent.as_deref().is_some_and(is)
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, Executor as _};

    use super::*;

    /// Payouts `p0` to `p9`, each with a key.
    async fn ten_payouts() -> AnyConnection {
        sqlx::any::install_default_drivers();
        let mut db = AnyConnection::connect("sqlite::memory:").await.expect("a database");
        let sql = "CREATE TABLE payouts (id TEXT); \
             CREATE TABLE idempotency_keys (resource_id TEXT, key TEXT, status BIGINT, \
                 response TEXT); \
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9) \
             INSERT INTO payouts SELECT 'p' || i FROM n; \
             INSERT INTO idempotency_keys SELECT id, 'm/live/po/' || id, 201, \
                 '@1 queued' FROM payouts";
        db.execute(sql).await.expect("payouts");
        db
    }

    #[tokio::test]
    async fn no_more_keys_are_held_than_a_range_of_payouts_has() {
        let mut db = ten_payouts().await;
        let mut replies = Replies::of_so_many(4);
        let mut held = Vec::new();
        for portion in [("p0", "p1"), ("p2", "p3"), ("p4", "p5"), ("p6", "p7"), ("p8", "p9")] {
            let fresh = Fresh::default();
            replies.load(&mut db, &fresh, portion).await.expect("keys");
            assert!(replies.by_payout.contains_key(portion.0), "{portion:?}");
            assert!(replies.by_payout.contains_key(portion.1), "{portion:?}");
            held.push((replies.by_payout.len(), replies.to.clone()));
        }
        let of = |count: usize, to: &str| (count, to.to_owned());
        assert_eq!(held, [of(4, "p3"), of(4, "p3"), of(4, "p7"), of(4, "p7"), of(2, "p9")]);
        assert_eq!(replies.owners.len(), 1);
    }

    #[tokio::test]
    async fn a_portion_that_spans_more_than_a_range_is_held_whole() {
        let mut db = ten_payouts().await;
        let mut replies = Replies::of_so_many(4);
        let (fresh, portion) = (Fresh::default(), ("p1", "p8"));
        replies.load(&mut db, &fresh, portion).await.expect("keys");
        assert_eq!((replies.by_payout.len(), replies.to.as_str()), (8, "p8"));
    }
}
