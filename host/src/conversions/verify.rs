//! Proving the conversions against the ledger, and what is counted of them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::TryStreamExt as _;
use serde_json::Value;
use sqlx::{AnyConnection, Row as _};

use crate::clock::Moment;
use crate::db::Engine;
use crate::fx::{Exchange, Rate, position};
use crate::ledger::verify::{
    Check, Faults, Fresh, StoredJournal, These, Walk, read_journals, same_journals,
};

use super::sql::{COLUMNS, Conversion, conversion};

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-conversion",
        means: "is in the ledger and no conversion",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN conversions c ON c.id = j.ref_id \
                WHERE j.ref_type = 'Conversion' AND c.id IS NULL AND {fresh journals j}",
    },
    Check {
        name: "conversion-wallets",
        means: "is between wallets of somebody else, or of other currencies",
        finds: "SELECT c.id FROM conversions c LEFT JOIN wallets f ON f.id = c.from_wallet_id \
                AND f.merchant_id = c.merchant_id AND f.env = c.env \
                AND f.currency = c.from_currency LEFT JOIN wallets t ON t.id = c.to_wallet_id \
                AND t.merchant_id = c.merchant_id AND t.env = c.env \
                AND t.currency = c.to_currency WHERE (f.id IS NULL OR t.id IS NULL) \
                AND {fresh conversions c}",
    },
    Check {
        name: "conversion-position",
        means: "moves an account of positions, and is about no conversion",
        finds: "SELECT id FROM journals WHERE lines LIKE '%[\"fx_position\"%' \
                AND ref_type <> 'Conversion' AND {fresh journals journals}",
    },
    Check {
        name: "conversion-untold",
        means: "was told to nobody",
        finds: "SELECT c.id FROM conversions c LEFT JOIN events v ON v.object_id = c.id \
                AND v.type IN ('conversion.completed', \
                'wallet_auto_converted') WHERE v.id IS NULL AND {fresh conversions c} \
                AND c.created_at > \
                COALESCE((SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'swept/all_events'), 0)",
    },
];

/// Conversions that are proven at a time.
const PAGE: usize = 1_000;
/// How far the clocks of hosts may be apart.
const SAME_TIME: Duration = Duration::from_secs(60);

/// Proves every conversion.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    (engine, fresh): (Engine, &Fresh),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, fresh, faults).await?;
    }
    let rates = RatesSet::read(db).await?;
    let mut counted = Counted::default();
    let touched = "SELECT c.id FROM conversions c WHERE {fresh conversions c}";
    let mut walk = Walk::begin(db, (engine, fresh), ("conversions", touched), PAGE).await?;
    while let Some(these) = walk.next(db).await? {
        let mut booked = journals(db, &these).await?;
        let sql = format!("SELECT {COLUMNS} FROM conversions WHERE {{these id}} ORDER BY id");
        for row in these.query(&sql).fetch_all(&mut *db).await? {
            let found = conversion(&row)?;
            let booked = booked.remove(found.id.as_str()).unwrap_or_default();
            check(&found, (&booked, &rates), faults);
            counted.add(&found.exchange);
        }
    }
    if fresh.is_all() {
        counted.compare(db, faults).await?;
    }
    Ok(())
}

/// The journals about conversions.
async fn journals(
    db: &mut AnyConnection,
    these: &These,
) -> Result<HashMap<String, Vec<StoredJournal>>, sqlx::Error> {
    let mut booked: HashMap<String, Vec<StoredJournal>> = HashMap::new();
    let about = format!("{} AND j.ref_type = 'Conversion'", these.named_by("j.ref_id"));
    let each = |journal: StoredJournal| {
        booked.entry(journal.ref_id.clone()).or_default().push(journal);
    };
    read_journals(db, (&about, these.parameters()), each).await?;
    Ok(booked)
}

/// A conversion is what its rate makes of it, is in the books just so, and its rate was set.
fn check(found: &Conversion, (booked, rates): (&[StoredJournal], &RatesSet), faults: &mut Faults) {
    let (id, exchange) = (&found.id, &found.exchange);
    let is_right = match found.is_target_basis {
        false => exchange.rate.bought(exchange.sold, found.shift) == Ok(exchange.bought),
        true => exchange.rate.sold(exchange.bought, found.shift) == Ok(exchange.sold),
    };
    if !is_right {
        let what = format!("conversion {id} is not what its rate makes of it");
        faults.add("conversion-rate", what);
    }
    let wallets = (&found.from_wallet, &found.to_wallet);
    let expected = exchange.journals(wallets, id.as_str());
    if !expected.is_ok_and(|expected| same_journals(&expected, booked)) {
        let what = format!("conversion {id} is not in the books as it says");
        faults.add("conversion-journals", what);
    }
    if !rates.had(found) {
        let what = format!("conversion {id} is at a rate that nobody had set");
        faults.add("conversion-rate-set", what);
    }
}

/// Every rate that was ever set, by its id, as the audit log tells them.
struct RatesSet(HashMap<String, Vec<WasSet>>);

/// A rate from some instant on.
struct WasSet {
    at: Moment,
    /// What merchants got, and as of when in milliseconds; nothing where it was taken away.
    effective: Option<(Rate, u64)>,
}

impl RatesSet {
    async fn read(db: &mut AnyConnection) -> Result<Self, sqlx::Error> {
        let sql = "SELECT subject_id, after, created_at FROM audit WHERE action = 'rate.set' \
                   ORDER BY created_at, id";
        let mut rows = sqlx::query(sql).fetch(db);
        let mut sets: HashMap<String, Vec<WasSet>> = HashMap::new();
        while let Some(row) = rows.try_next().await? {
            let (id, after): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            let at = Moment::from_micros(row.try_get(2)?);
            let state: Value =
                after.and_then(|after| serde_json::from_str(&after).ok()).unwrap_or_default();
            sets.entry(id).or_default().push(WasSet { at, effective: effective(&state) });
        }
        Ok(Self(sets))
    }

    /// Whether the rate of a conversion was one that its merchant could have at its instant: its
    /// own, or the platform's where it had none.
    fn had(&self, found: &Conversion) -> bool {
        let pair = found.exchange.pair;
        let wanted = Some((found.exchange.rate, found.rate_as_of.millis()));
        let own = self.in_force(&pair.rate_id(Some(&found.merchant_id)), found.created_at);
        let had_none = own.is_empty() || own.contains(&None);
        own.contains(&wanted)
            || had_none && self.in_force(&pair.rate_id(None), found.created_at).contains(&wanted)
    }

    /// What a rate may have been at an instant, as far as clocks can tell; nothing where it was
    /// never set before.
    fn in_force(&self, id: &str, at: Moment) -> Vec<Option<(Rate, u64)>> {
        let sets = self.0.get(id).map(Vec::as_slice).unwrap_or_default();
        let end = sets.partition_point(|set| set.at <= at.after(SAME_TIME));
        let begun = sets.partition_point(|set| set.at <= at.before(SAME_TIME));
        let mut found: Vec<_> =
            sets[begun.saturating_sub(1)..end].iter().map(|set| set.effective).collect();
        if begun == 0 && !found.is_empty() {
            found.push(None);
        }
        found
    }
}

/// What a line of the audit log says that merchants got.
fn effective(state: &Value) -> Option<(Rate, u64)> {
    let rate = Rate::parse(state["rate"].as_str()?)?;
    let as_of = Moment::parse(state["as_of"].as_str()?)?;
    Some((rate.less(state["spread_bps"].as_i64()?)?, as_of.millis()))
}

/// What must have been counted.
#[derive(Default)]
struct Counted(BTreeMap<String, (i64, i128)>);

impl Counted {
    fn add(&mut self, exchange: &Exchange) {
        let Exchange { pair, sold, bought, .. } = exchange;
        let [of_sold, of_bought] = position::exchanged(*pair);
        for (key, change) in [
            (position::held(pair.env, pair.from), i128::from(sold.units())),
            (position::held(pair.env, pair.to), -i128::from(bought.units())),
            (of_sold, i128::from(sold.units())),
            (of_bought, i128::from(bought.units())),
        ] {
            let (count, sum) = self.0.entry(key).or_default();
            (*count, *sum) = (*count + 1, *sum + change);
        }
    }

    /// What is counted is what there was.
    async fn compare(self, db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
        let Self(mut counted) = self;
        let sql = "SELECT key, count, sum_minor, expires_at FROM counters WHERE key LIKE 'fx/%'";
        for row in sqlx::query(sql).fetch_all(db).await? {
            let (key, count): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            let (sum, expires_at): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
            let there_was = counted.remove(&key);
            let there_was = there_was.map(|(count, sum)| (count, position::stored_sum(&key, sum)));
            if there_was != Some((count, sum)) || expires_at != position::FOR_EVER {
                faults.add("conversion-counted", format!("{key} is not what was converted"));
            }
        }
        for key in counted.into_keys() {
            faults.add("conversion-counted", format!("{key} is not counted"));
        }
        Ok(())
    }
}
