//! Where a bank contradicts the books: the case that is opened for a person to decide.

use serde_json::json;

use crate::app::App;
use crate::cases::sql::StoredCase;
use crate::cases::{self, Case, CaseKind, Resolution};
use crate::error::Problem;
use crate::ledger::Guard;
use crate::money::Minor;
use crate::rails::Choice;

use crate::transfers::attempt::{Attempt, AttemptState, list_attempts};

use super::change::Accompanying;
use super::model::Payout;

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
        fingerprint: fingerprint(payout, kind, (reference, &named, amount)),
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

/// Whether another attempt of a payout was paid than this one, and its money was not recovered.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_paid_besides(
    app: &App,
    payout: &Payout,
    reference: &str,
) -> Result<bool, Problem> {
    let (pool, id) = (app.db.pool(), payout.id.as_str());
    let mut others = list_attempts(pool, id).await?;
    others.retain(|it| it.state == AttemptState::Paid && it.rail_reference != reference);
    if others.is_empty() {
        return Ok(false);
    }
    let cases = cases::sql::list_about(pool, id).await?;
    let is_back = |it: &Attempt| cases.iter().any(|case| is_recovered(case, &it.rail_reference));
    Ok(!others.iter().all(is_back))
}

/// Whether an attempt is in the books, or was written off, because it was paid where nobody expected
/// it.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn was_in_question(
    app: &App,
    payout: &Payout,
    reference: &str,
) -> Result<bool, Problem> {
    let cases = cases::sql::list_about(app.db.pool(), payout.id.as_str()).await?;
    let is_of_it = |known: &&StoredCase| is_of_payment(&known.case, reference);
    Ok(cases.iter().filter(is_of_it).any(|known| !is_recovered(known, reference)))
}

/// Whether an operator has the money of such a payment back.
fn is_recovered(known: &StoredCase, reference: &str) -> bool {
    is_of_payment(&known.case, reference)
        && known.status == "resolved"
        && known.resolution.as_deref() == Some(Resolution::Recovered.as_str())
}

/// Whether a case is about a payment that was made besides, or after all.
fn is_of_payment(case: &Case, reference: &str) -> bool {
    matches!(case.kind, CaseKind::PaidTwice | CaseKind::PaidAfterFailure)
        && case.reference() == Some(reference)
}

/// Whether the bank says no more that it paid what a case is about: it came back, or was refused.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_taken_back(app: &App, case: &Case) -> Result<bool, Problem> {
    let attempts = list_attempts(app.db.pool(), &case.subject_id).await?;
    let about = case.reference();
    let mut it = attempts.iter().filter(|known| Some(known.rail_reference.as_str()) == about);
    Ok(it.any(|it| matches!(it.state, AttemptState::Refused | AttemptState::Returned)))
}

/// A contradiction is the same one as long as the payout's round is; a part that comes back is
/// the same where it is told by the same name or, without one, in the same words.
fn fingerprint(
    payout: &Payout,
    kind: CaseKind,
    (reference, told, amount): (&str, &str, Minor),
) -> String {
    let (kind, id) = (kind.as_str(), &payout.id);
    match kind {
        "partial_return" => format!("{kind}/{id}/{reference}/{amount}/{told}"),
        _ => format!("{kind}/{id}/{reference}/{}", payout.round),
    }
}
