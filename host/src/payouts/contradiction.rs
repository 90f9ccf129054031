//! Where a bank contradicts the books: the case that is opened for a person to decide.

use serde_json::json;

use crate::app::App;
use crate::cases::{self, Case, CaseKind};
use crate::error::Problem;
use crate::ledger::Guard;
use crate::money::Minor;
use crate::rails::Choice;

use crate::transfers::attempt::{AttemptState, list_attempts};

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

/// Whether another attempt of a payout was paid than the one that counts.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_paid_besides(app: &App, payout: &Payout) -> Result<bool, Problem> {
    let attempts = list_attempts(app.db.pool(), payout.id.as_str()).await?;
    let counts = payout.rail_reference.as_deref();
    let mut paid = attempts.iter().filter(|known| known.state == AttemptState::Paid);
    Ok(paid.any(|known| Some(known.rail_reference.as_str()) != counts))
}

/// Whether the bank says no more that it paid what a case is about: it came back, or was refused.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn is_taken_back(app: &App, case: &Case) -> Result<bool, Problem> {
    let attempts = list_attempts(app.db.pool(), &case.subject_id).await?;
    let about = case.evidence.get("reference").and_then(|it| it.as_str());
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
