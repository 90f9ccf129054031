//! Limits, cool-down and references: what a payout uses up, and what it finds used.
//!
//! All of it is counted in the writer's transaction, under the locks of wallets and counters, so
//! that payouts created at once cannot slip under a limit together.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::json;

use crate::auth::{Merchant, merchant::Limits};
use crate::clock::Moment;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::ledger::{CounterChange, LockedState};
use crate::money::{Currency, Minor, Overflow};
use crate::rails::Declaration;
use crate::recipients::account_hash;

use super::model::Payout;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The counters of one payout.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    pub(super) reference: Option<String>,
    pub(super) day: String,
    pub(super) recipient: String,
    recipient_yesterday: String,
    /// What is bought for it spends the day of another wallet: its counter, and how much.
    pub(super) spent: Option<(String, Minor)>,
}

/// What the operator allows, and what the request waives.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// The merchant's limits in this currency.
    pub limits: Limits,
    /// Its limits in the currency that pays, where that is another one.
    pub spending: Option<Limits>,
    /// Whether the cool-down is waived.
    pub allow_duplicate: bool,
}

impl Allowance {
    /// What a merchant may do with a payout that is there: it is no repetition of itself.
    #[must_use]
    pub(super) fn of(merchant: &Merchant, payout: &Payout) -> Self {
        let limits = |currency| merchant.settings.limits(currency);
        let spending = payout.funding.as_ref().map(|funding| limits(funding.currency));
        Self { limits: limits(payout.currency), spending, allow_duplicate: true }
    }
}

impl Usage {
    /// The counters that a payout touches when it is made, or debited, at `now`.
    #[must_use]
    pub(super) fn of(payout: &Payout, timezone: &TimeZone, now: Moment) -> Self {
        let (wallet, paid) = (&payout.wallet_id, account_hash(&payout.recipient_identity));
        let reference = payout.merchant_reference.as_ref();
        let on = |at: Moment| at.day_in(timezone);
        Self {
            reference: reference.map(|reference| {
                format!("reference/{}/{}/{reference}", payout.merchant_id, payout.env)
            }),
            day: format!("day/{wallet}/{}", on(now)),
            recipient: format!("paid/{wallet}/{paid}/{}", on(now)),
            recipient_yesterday: format!(
                "paid/{wallet}/{paid}/{}",
                on(now.before(limits::COOL_DOWN))
            ),
            spent: payout.funding.as_ref().zip(payout.funded.as_ref()).map(|(funding, funded)| {
                (format!("day/{}/{}", funding.wallet_id, on(now)), funded.sold)
            }),
        }
    }

    /// The keys that a decision about this payout reads.
    #[must_use]
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys =
            vec![self.day.clone(), self.recipient.clone(), self.recipient_yesterday.clone()];
        keys.extend(self.reference.clone());
        keys.extend(self.spent.iter().map(|(day, _)| day.clone()));
        keys
    }

    /// Refuses a new payout whose reference was used, or whose recipient was just paid.
    ///
    /// # Errors
    /// `merchant_reference_duplicate` or `beneficiary_cooldown`.
    pub(super) fn refuse_repeats(
        &self,
        locked: &LockedState<'_>,
        allowance: &Allowance,
    ) -> Result<(), Problem> {
        if let Some(reference) = &self.reference {
            let holder = &locked.counter(reference).holder;
            if !holder.is_empty() {
                let problem = Problem::new(ErrorCode::MerchantReferenceDuplicate);
                return Err(problem
                    .field("merchant_reference")
                    .detail(json!({ "payout_id": holder })));
            }
        }
        if allowance.allow_duplicate {
            return Ok(());
        }
        let now = locked.now();
        let keys = [&self.recipient, &self.recipient_yesterday];
        let recent = keys.iter().flat_map(|key| recent(&locked.counter(key).holder));
        let until = recent.map(|(_, paid_at)| paid_at.after(limits::COOL_DOWN)).max();
        match until.filter(|until| *until > now) {
            Some(until) => {
                let seconds = u64::try_from(until.seconds() - now.seconds()).unwrap_or(0).max(1);
                let detail = json!({ "retry_after_seconds": seconds, "until": until });
                let problem = Problem::new(ErrorCode::BeneficiaryCooldown);
                Err(problem.detail(detail).retry_after(seconds))
            }
            None => Ok(()),
        }
    }

    /// Refuses a debit that would exceed a limit of the day.
    ///
    /// # Errors
    /// `limit_violation`.
    pub(super) fn refuse_excess(
        &self,
        locked: &LockedState<'_>,
        allowance: &Allowance,
        amount: Minor,
    ) -> Result<(), Problem> {
        let limits = &allowance.limits;
        for (kind, limit, key) in [
            ("daily", limits.daily_minor, &self.day),
            ("per_beneficiary", limits.per_beneficiary_minor, &self.recipient),
        ] {
            let used = locked.counter(key).sum;
            if let Some(limit) = limit.map(|limit| limit.0)
                && used.plus(amount)? > limit
            {
                return Err(violation(kind, limit, used, amount));
            }
        }
        Ok(())
    }

    /// Refuses to buy what would exceed the day's limit of the currency that pays.
    ///
    /// # Errors
    /// `limit_violation`.
    pub(super) fn refuse_overspending(
        &self,
        locked: &LockedState<'_>,
        allowance: &Allowance,
    ) -> Result<(), Problem> {
        let daily = allowance.spending.as_ref().and_then(|limits| limits.daily_minor);
        let (Some((day, sold)), Some(limit)) = (&self.spent, daily) else { return Ok(()) };
        let used = locked.counter(day).sum;
        match used.plus(*sold)? > limit.0 {
            true => Err(violation("daily", limit.0, used, *sold)),
            false => Ok(()),
        }
    }

    /// Adds what is bought to the sum of the day of the wallet that pays. Nothing takes it off
    /// again: what was bought stays, whatever becomes of the payout.
    ///
    /// # Errors
    /// The sum does not fit.
    pub(super) fn spend(
        &self,
        locked: &LockedState<'_>,
        changes: &mut Vec<CounterChange>,
    ) -> Result<(), Overflow> {
        match &self.spent {
            Some((day, sold)) => add(locked, day, *sold, changes),
            None => Ok(()),
        }
    }

    /// Takes the reference and the recipient for a new payout.
    pub(super) fn take(
        &self,
        locked: &LockedState<'_>,
        payout: &Payout,
        changes: &mut Vec<CounterChange>,
    ) {
        if let Some(reference) = &self.reference {
            changes.push(CounterChange {
                key: reference.clone(),
                holder: payout.id.to_string(),
                count: 1,
                sum: payout.costs.amount,
                expires_at: locked.now().after(limits::MERCHANT_REFERENCE_WINDOW).micros(),
            });
        }
        let counter = locked.counter(&self.recipient);
        let mut recent = recent(&counter.holder);
        recent.retain(|(_, paid_at)| paid_at.after(limits::COOL_DOWN) > locked.now());
        let skipped = recent.len().saturating_sub(limits::COOL_DOWN_REMEMBERED - 1);
        recent.drain(..skipped);
        recent.push((payout.id.to_string(), locked.now()));
        changes.push(CounterChange {
            key: self.recipient.clone(),
            holder: written(&recent),
            count: counter.count + 1,
            sum: counter.sum,
            expires_at: counter.kept(locked.now(), 2 * DAY),
        });
    }

    /// Adds a debit to the sums of the day, or takes it off again. `changes` may hold an
    /// earlier change of the same counters.
    ///
    /// # Errors
    /// A sum does not fit.
    pub(super) fn add(
        &self,
        locked: &LockedState<'_>,
        amount: Minor,
        changes: &mut Vec<CounterChange>,
    ) -> Result<(), Overflow> {
        add(locked, &self.day, amount, changes)?;
        add(locked, &self.recipient, amount, changes)
    }

    /// Lets the recipient be paid again at once, as far as this payout stood in the way.
    pub(super) fn forget_recipient(
        &self,
        locked: &LockedState<'_>,
        payout: &Payout,
        changes: &mut Vec<CounterChange>,
    ) {
        for key in [&self.recipient, &self.recipient_yesterday] {
            let counter = locked.counter(key);
            let mut recent = recent(&counter.holder);
            let before = recent.len();
            recent.retain(|(id, _)| id != payout.id.as_str());
            if recent.len() == before {
                continue;
            }
            let holder = written(&recent);
            match changes.iter_mut().find(|change| change.key == *key) {
                Some(change) => change.holder = holder,
                None => {
                    changes.push(CounterChange {
                        key: key.clone(),
                        holder,
                        count: counter.count,
                        sum: counter.sum,
                        expires_at: counter.expires_at,
                    });
                }
            }
        }
    }
}

/// Adds to the sum of a counter, or takes off it. `changes` may hold an earlier change of it.
fn add(
    locked: &LockedState<'_>,
    key: &str,
    amount: Minor,
    changes: &mut Vec<CounterChange>,
) -> Result<(), Overflow> {
    if let Some(change) = changes.iter_mut().find(|change| change.key == key) {
        change.sum = change.sum.plus(amount)?;
        return Ok(());
    }
    let counter = locked.counter(key);
    changes.push(CounterChange {
        key: key.to_owned(),
        count: counter.count,
        sum: counter.sum.plus(amount)?.max(Minor::ZERO),
        expires_at: counter.kept(locked.now(), 2 * DAY),
        holder: counter.holder.clone(),
    });
    Ok(())
}

/// The last payouts to a recipient, oldest first: each its id and its instant.
pub(super) fn recent(holder: &str) -> Vec<(String, Moment)> {
    let entries = holder.split(',').filter_map(|entry| {
        let (id, at) = entry.split_once(' ')?;
        Some((id.to_owned(), Moment::from_micros(at.parse().ok()?)))
    });
    entries.collect()
}

fn written(recent: &[(String, Moment)]) -> String {
    let entries: Vec<_> = recent.iter().map(|(id, at)| format!("{id} {}", at.micros())).collect();
    entries.join(",")
}

/// Refuses an amount that no single payout may have: less or more than the rail takes, or more
/// than the merchant may pay at once.
///
/// # Errors
/// `limit_violation`.
pub(super) fn refuse_amount(
    merchant: &Merchant,
    (rail, method): (&Declaration, &str),
    (currency, amount, field): (Currency, Minor, &str),
) -> Result<(), Problem> {
    let refuse = |kind, limit| Err(violation(kind, limit, Minor::ZERO, amount).field(field));
    let terms = rail.method(currency, method);
    let least = terms.map(|terms| Minor::new(terms.amount_minor_min));
    if let Some(least) = least.filter(|least| amount < *least) {
        return refuse("below_minimum", least);
    }
    if let Some(terms) = terms.filter(|terms| amount.units() % terms.step != 0) {
        return refuse("step", Minor::new(terms.step));
    }
    let most = terms.map(|terms| Minor::new(terms.amount_minor_max));
    let allowed = merchant.settings.limits(currency).per_transaction_minor.map(|limit| limit.0);
    match most.into_iter().chain(allowed).min() {
        Some(most) if amount > most => refuse("per_transaction", most),
        _ => Ok(()),
    }
}

pub(super) fn violation(kind: &str, limit: Minor, used: Minor, requested: Minor) -> Problem {
    let message = match kind {
        "below_minimum" => format!("This rail takes {limit} minor units at least."),
        "step" => format!("This rail takes multiples of {limit} minor units only."),
        _ => format!("The limit of {limit} minor units ({kind}) would be exceeded."),
    };
    Problem::because(ErrorCode::LimitViolation, message).detail(json!({
        "kind": kind,
        "limit_minor": limit,
        "used_minor": used,
        "requested_minor": requested,
    }))
}
