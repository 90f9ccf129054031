//! Where a bank contradicts the books: the case that is opened for a person to decide.

use serde_json::json;

use crate::app::App;
use crate::cases::sql::StoredCase;
use crate::cases::{self, Case, CaseKind, Resolution};
use crate::db::bulk::RowChange;
use crate::error::Problem;
use crate::ledger::Guard;
use crate::money::Minor;
use crate::rails::Choice;
use crate::transfers::Fixed;
use crate::transfers::attempt::{Attempt, AttemptState, list_attempts};

use super::change::Accompanying;
use super::model::{Change, Payout, apply};

/// The case about what a bank says, as far as it is known from the change.
pub(super) fn case(app: &App, payout: &Payout, kind: CaseKind, with: &Accompanying) -> Case {
    let attempt = with.attempt.as_ref();
    let reference = attempt.map_or("-", |attempt| attempt.reference.as_str());
    let route = attempt.map(|attempt| attempt.route.clone()).or_else(|| payout.route.clone());
    let amount = with.part.unwrap_or(payout.costs.amount);
    let bank = route.as_deref().unwrap_or("the bank");
    // The bank's words as they are kept: without what the recipient's account would give away.
    let said = with.failure.as_ref().map(|why| {
        let message = match app.rails.serving(payout.currency, Choice::of(Some(&payout.method))) {
            Ok((rail, _)) => rail.redactor.text(&why.message, &payout.recipient),
            Err(_) => why.message.clone(),
        };
        format!("{}: {message}", why.code)
    });
    let told = said.clone().unwrap_or_default();
    // By its own name, where the network has one for it.
    let own = with.failure.as_ref().and_then(|why| why.id.clone());
    let named = own.map_or_else(|| told.clone(), |own| format!("as {own}"));
    let (name, status) = (payout.id.reference(), payout.status);
    let summary = match kind {
        CaseKind::PaidAfterFailure => {
            format!("{name} is {status} and given back, and {bank} says that it paid {reference}.")
        }
        CaseKind::PaidTwice => {
            format!("{name} is {status}, and {bank} says that it paid {reference} as well.")
        }
        CaseKind::RefusedAfterPayment => {
            format!("{name} is {status}, and {bank} says that it refused {reference} ({told}).")
        }
        _ => format!("{amount} of {} came back of {name} ({told}).", payout.costs.amount),
    };
    Case {
        id: app.ids.id(),
        kind,
        fingerprint: fingerprint(payout, kind, (reference, &named, amount), with.times),
        env: payout.env,
        merchant_id: Some(payout.merchant_id.to_string()),
        subject_type: "payout",
        subject_id: payout.id.to_string(),
        route,
        amount: Some((payout.currency, amount)),
        summary,
        evidence: json!({
            "reference": reference,
            "status": payout.status.as_str(),
            "said": said,
            "amount_minor": amount,
        }),
        opened_at: app.now(),
    }
}

/// Which of the cases about the same this is, counted from 0, and what must be as it is while that is
/// relied on. What was decided so that the books were right all along can be contradicted again: a
/// bank that takes its word back and gives it once more has moved money once more. What is no news
/// belongs to the last case.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn before(
    app: &App,
    payout: &Payout,
    change: Change,
    attempt: Option<&Fixed>,
) -> Result<(usize, Option<Guard>), Problem> {
    let kind = apply(Some(payout.status), change).ok().and_then(|transition| transition.case);
    let kind = kind.filter(|kind| *kind != CaseKind::PartialReturn);
    let (Some(kind), Some(Fixed { reference, .. })) = (kind, attempt) else {
        return Ok((0, None));
    };
    let first = fingerprint(payout, kind, (reference, "", Minor::ZERO), 0);
    let times = |known: &StoredCase| {
        let rest = known.case.fingerprint.strip_prefix(&first)?;
        if rest.is_empty() { Some(0) } else { rest.strip_prefix('/')?.parse::<usize>().ok() }
    };
    let known = cases::sql::list_about(app.db.pool(), payout.id.as_str()).await?;
    let numbered = known.iter().filter_map(|known| Some((times(known)?, known)));
    let Some((times, last)) = numbered.max_by_key(|(times, _)| *times) else {
        return Ok((0, None));
    };
    let is_news = attempts(app, payout).await?.is_news(change, reference);
    Ok((times + usize::from(is_news && was_right(last)), Some(as_it_is(last))))
}

/// What is to be written, and must be as it is, where a network says otherwise of an attempt than it
/// has before, and a case about it is open: whoever decides it, or has asked for a decision, has not
/// heard of that.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn heard(
    app: &App,
    payout: &Payout,
    change: Change,
    attempt: Option<&Fixed>,
) -> Result<(Vec<RowChange>, Vec<Guard>), Problem> {
    let Some(Fixed { reference, .. }) = attempt else { return Ok(Default::default()) };
    let mut open = cases::sql::list_about(app.db.pool(), payout.id.as_str()).await?;
    open.retain(|known| known.status == "open" && known.case.reference() == Some(reference));
    if open.is_empty() || !attempts(app, payout).await?.is_news(change, reference) {
        return Ok(Default::default());
    }
    let news = |known: &StoredCase| {
        let (id, version) = (known.case.id.clone(), known.version + 1);
        cases::sql::CASE_NEWS.change(&cases::sql::News { id, version })
    };
    Ok((open.iter().map(news).collect(), open.iter().map(as_it_is).collect()))
}

/// A case as it was read.
fn as_it_is(known: &StoredCase) -> Guard {
    let id = known.case.id.to_string();
    Guard { on: &cases::sql::CASE_VERSIONS, id, version: known.version }
}

/// Whether it was decided that the books were right before the bank contradicted them.
fn was_right(known: &StoredCase) -> bool {
    let upheld = [Resolution::Recovered, Resolution::Uphold].map(|it| Some(it.as_str()));
    known.status == "resolved" && upheld.contains(&known.resolution.as_deref())
}

/// How much of a payout came back and was credited to its wallet, with what must be as it is while
/// that is relied on: whoever credits another part changes one of these cases.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn credited(app: &App, payout: &Payout) -> Result<(Minor, Vec<Guard>), Problem> {
    let (pool, id) = (app.db.pool(), payout.id.as_str());
    // First what may still be credited: what is meanwhile is noticed by its guard.
    let open = cases::sql::list_open_parts(pool, id).await?;
    let guard = |(id, version)| Guard { on: &cases::sql::CASE_VERSIONS, id, version };
    let guards = open.into_iter().map(guard).collect();
    Ok((cases::sql::credited(pool, id).await?, guards))
}

/// What is known of a payout's attempts.
pub(super) struct Attempts(Vec<Attempt>);

/// The attempts of a payout.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn attempts(app: &App, payout: &Payout) -> Result<Attempts, Problem> {
    Ok(Attempts(list_attempts(app.db.pool(), payout.id.as_str()).await?))
}

impl Attempts {
    /// Whether another one was paid than the one of this reference.
    pub(super) fn is_paid_besides(&self, reference: &str) -> bool {
        let mut paid = self.0.iter().filter(|known| known.state == AttemptState::Paid);
        paid.any(|known| known.rail_reference != reference)
    }

    /// The one of this reference, as a change of the payout is told of it.
    pub(super) fn fixed(&self, reference: Option<&str>) -> Option<Fixed> {
        let mut known = self.0.iter();
        let known = known.find(|known| Some(known.rail_reference.as_str()) == reference);
        known.map(Attempt::fixed)
    }

    /// Whether a network says otherwise of the one of this reference than it has before.
    fn is_news(&self, change: Change, reference: &str) -> bool {
        use AttemptState as S;
        let state = self.state(Some(reference));
        match change {
            Change::Confirm | Change::ConfirmOther => state != Some(S::Paid),
            Change::Refuse => !matches!(state, Some(S::Refused | S::Returned)),
            Change::Return => state != Some(S::Returned),
            _ => false,
        }
    }

    /// How the one of this reference stands.
    pub(super) fn state(&self, reference: Option<&str>) -> Option<AttemptState> {
        let mut known = self.0.iter();
        let known = known.find(|known| Some(known.rail_reference.as_str()) == reference);
        known.map(|known| known.state)
    }
}

/// The cases about an attempt that was paid besides the one that counts, or after all.
pub(super) struct InQuestion(Vec<StoredCase>);

/// What was in question about an attempt.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn in_question(
    app: &App,
    payout: &Payout,
    reference: &str,
) -> Result<InQuestion, Problem> {
    let mut cases = cases::sql::list_about(app.db.pool(), payout.id.as_str()).await?;
    cases.retain(|known| {
        matches!(known.case.kind, CaseKind::PaidTwice | CaseKind::PaidAfterFailure)
            && known.case.reference() == Some(reference)
    });
    Ok(InQuestion(cases))
}

impl InQuestion {
    /// Whether its money is in suspense, was written off or charged.
    pub(super) fn is_money(&self) -> bool {
        self.0.iter().any(|known| !is_recovered(known))
    }

    /// Whether its money is said to be back.
    pub(super) fn is_recovered(&self) -> bool {
        !self.0.is_empty() && !self.is_money()
    }

    /// Whether it was paid besides the one that counts.
    pub(super) fn is_excess(&self) -> bool {
        self.0.iter().any(|known| known.case.kind == CaseKind::PaidTwice)
    }
}

fn is_recovered(known: &StoredCase) -> bool {
    known.status == "resolved"
        && known.resolution.as_deref() == Some(Resolution::Recovered.as_str())
}

/// A contradiction is the same one as long as the payout's round is, and it was not decided (see
/// [`before`]); a part that comes back is the same where it is told by the same name or, without one,
/// in the same words.
fn fingerprint(
    payout: &Payout,
    kind: CaseKind,
    (reference, told, amount): (&str, &str, Minor),
    times: usize,
) -> String {
    let (kind, id) = (kind.as_str(), &payout.id);
    match kind {
        "partial_return" => format!("{kind}/{id}/{reference}/{amount}/{told}"),
        _ if times > 0 => format!("{kind}/{id}/{reference}/{}/{times}", payout.round),
        _ => format!("{kind}/{id}/{reference}/{}", payout.round),
    }
}
