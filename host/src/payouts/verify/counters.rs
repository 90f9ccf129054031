//! Counters against what they count: limits of the day, cool-downs, references.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::tz::TimeZone;
use sqlx::{AnyConnection, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::ledger::verify::Faults;

use super::super::model::{LedgerEffect, Payout, Status};
use super::super::usage::{Usage, recent};
use super::replay::Dated;

/// What must have been counted.
#[derive(Default)]
pub(super) struct Counted {
    now: Moment,
    /// Time zones of merchants that never changed it.
    timezones: HashMap<String, TimeZone>,
    /// Sums of a day, and of a recipient and a day.
    sums: BTreeMap<String, i64>,
    /// Payouts made to a recipient on a day.
    counts: BTreeMap<String, i64>,
    /// Payouts that a recipient's counter may name.
    named: HashMap<String, String>,
    /// Those that were just made, and whether it must still name them.
    recent: BTreeMap<String, Vec<(String, bool)>>,
    references: BTreeMap<String, String>,
}

impl Counted {
    pub(super) async fn of(db: &mut AnyConnection, now: Moment) -> Result<Self, sqlx::Error> {
        let sql = "SELECT subject_id, before, after FROM audit WHERE action = 'merchant.update'";
        let mut moved: HashSet<String> = HashSet::new();
        for row in sqlx::query(sql).fetch_all(&mut *db).await? {
            let timezone = |column: usize| {
                let text: Option<String> = row.try_get(column).ok()?;
                let state: serde_json::Value = serde_json::from_str(&text?).ok()?;
                Some(state["timezone"].as_str()?.to_owned())
            };
            if timezone(1) != timezone(2) {
                moved.insert(row.try_get(0)?);
            }
        }
        let mut timezones = HashMap::new();
        let sql = "SELECT id, timezone FROM merchants";
        for row in sqlx::query(sql).fetch_all(&mut *db).await? {
            let (id, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            if let Ok(timezone) = TimeZone::get(&name)
                && !moved.contains(&id)
            {
                timezones.insert(id, timezone);
            }
        }
        Ok(Self { now, timezones, ..Self::default() })
    }

    /// Adds a payout, with what the ledger did for it.
    pub(super) fn add(&mut self, payout: &Payout, effects: &[Dated]) {
        let Some(timezone) = self.timezones.get(payout.merchant_id.as_str()).cloned() else {
            return;
        };
        let usage = |at: Moment| Usage::of(payout, &timezone, at);
        // Older counters may have expired already.
        let yesterday = self.now.before(std::time::Duration::from_secs(24 * 3600));
        let is_kept = |at: Moment| at.day_in(&timezone) >= yesterday.day_in(&timezone);
        let made = usage(payout.created_at);
        if is_kept(payout.created_at) {
            *self.counts.entry(made.recipient.clone()).or_default() += 1;
        }
        if payout.created_at.after(2 * limits::COOL_DOWN) >= yesterday {
            self.named.insert(payout.id.to_string(), made.recipient.clone());
        }
        let is_unpaid = matches!(
            payout.status,
            Status::Failed | Status::FailedManual | Status::Cancelled | Status::Reversed
        );
        // One that failed first and was paid later sets its recipient free.
        let is_remembered = !is_unpaid && payout.round == 1;
        if payout.created_at.after(limits::COOL_DOWN) > self.now {
            let just_made = self.recent.entry(made.recipient).or_default();
            just_made.push((payout.id.to_string(), is_remembered));
        }
        if let Some(reference) = made.reference
            && payout.created_at.after(limits::MERCHANT_REFERENCE_WINDOW) > self.now
        {
            self.references.insert(reference, payout.id.to_string());
        }
        let amount = payout.costs.amount.units();
        let queued_at = payout.queued_at.unwrap_or(payout.created_at);
        let mut is_bought = false;
        for (effect, at) in effects {
            let (at, change) = match effect {
                LedgerEffect::Debit => (queued_at, amount),
                LedgerEffect::DebitSettled | LedgerEffect::DebitSuspended => (*at, amount),
                LedgerEffect::GiveBack => (queued_at, -amount),
                _ => continue,
            };
            let was_bought = std::mem::replace(&mut is_bought, true);
            if is_kept(at) {
                let on = usage(at);
                for key in [on.day, on.recipient] {
                    *self.sums.entry(key).or_default() += change;
                }
                // Something is bought with the first debit, and stays bought.
                if let Some((day, sold)) = on.spent.filter(|_| !was_bought) {
                    *self.sums.entry(day).or_default() += sold.units();
                }
            }
        }
    }

    /// Compares with the counters that are there.
    pub(super) async fn compare(
        mut self,
        db: &mut AnyConnection,
        faults: &mut Faults,
    ) -> Result<(), sqlx::Error> {
        let sql = "SELECT key, holder, count, sum_minor, expires_at FROM counters";
        let mut odd = |key: &str, what: &str| {
            faults.add("counter", format!("counter {key} {what}"));
        };
        for row in sqlx::query(sql).fetch_all(db).await? {
            let (key, holder): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let (count, sum): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
            let is_expired = row.try_get::<i64, _>(4)? <= self.now.micros();
            let kind = key.split('/').next().unwrap_or_default();
            match kind {
                "day" | "paid" => {
                    if self.sums.remove(&key).is_some_and(|expected| expected.max(0) != sum) {
                        odd(&key, "holds another sum than its payouts come to");
                    }
                    if self.counts.remove(&key).is_some_and(|expected| expected != count) {
                        odd(&key, "counts another number of payouts than there were");
                    }
                    let named: Vec<String> =
                        recent(&holder).into_iter().map(|(id, _)| id).collect();
                    for id in &named {
                        if self.named.get(id).is_some_and(|known| *known != key) {
                            odd(&key, "names a payout of somebody else");
                        }
                    }
                    let known = self.recent.remove(&key).unwrap_or_default();
                    // Of many, only the last ones are remembered.
                    let is_forgotten = known.len() <= limits::COOL_DOWN_REMEMBERED
                        && known.iter().any(|(id, must)| *must && !named.contains(id));
                    if is_forgotten {
                        odd(&key, "has forgotten a payout that was just made");
                    }
                }
                "reference" => match self.references.remove(&key) {
                    Some(id) if id != holder => odd(&key, "names another payout"),
                    None if !is_expired && self.is_complete(&key) => {
                        odd(&key, "names a payout that never was");
                    }
                    _ => {}
                },
                "velocity" if !is_velocity(&holder, (count, sum)) => {
                    odd(&key, "holds something else than its buckets do");
                }
                _ => {}
            }
        }
        let missing = self.sums.iter().filter(|(_, sum)| **sum > 0).map(|(key, _)| key);
        for key in missing.chain(self.counts.keys()).chain(self.references.keys()) {
            odd(key, "is gone");
        }
        Ok(())
    }

    /// Whether all payouts that a reference may belong to were looked at.
    fn is_complete(&self, key: &str) -> bool {
        key.split('/').nth(1).is_some_and(|merchant| self.timezones.contains_key(merchant))
    }
}

/// Whether each window of a velocity's counter says what its buckets come to, and the counter what
/// the longest of them says.
fn is_velocity(holder: &str, counted: (i64, i64)) -> bool {
    let triple = |text: &str| {
        let mut numbers = text.split(':').map(|number| number.parse::<i64>().ok());
        let mut next = || numbers.next()?;
        Some((next()?, (next()?, next()?)))
    };
    let window = |text: &str| {
        let (head, buckets) = text.split_once(' ')?;
        let mut all = (0_i64, 0_i64);
        for bucket in buckets.split(' ') {
            let (_, (count, sum)) = triple(bucket)?;
            all = (all.0 + count, all.1.saturating_add(sum));
        }
        triple(head).filter(|(_, said)| *said == all)
    };
    let windows: Option<Vec<_>> = holder.split('|').map(window).collect();
    let longest = windows.into_iter().flatten().max_by_key(|(seconds, _)| *seconds);
    longest.is_some_and(|(_, said)| said == counted)
}
