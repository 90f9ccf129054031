//! Who holds an account: asked of the routes in order, until one knows.

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::Currency;
use crate::rails::ReadyRoute;
use crate::rails::granted::scenario_header;
use crate::rails::{Rail, RecipientFields, Routes};
use crate::wasm::rail::{Broken, Enquiry, Resolution, Verdict};

use super::names;

/// An answer, and the route that gave it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What the network said.
    pub resolution: Resolution,
    /// The route's name; opaque to merchants.
    pub route: String,
}

/// A name enquiry: about which account, and for whom.
pub struct Question<'a> {
    /// For whom it is asked.
    pub merchant: &'a MerchantId,
    /// Test or live.
    pub env: Env,
    /// In what the account is held.
    pub currency: Currency,
    /// How it would be paid.
    pub method: &'a str,
    /// The recipient in canonical form.
    pub account: &'a RecipientFields,
    /// A number of its own, for the enquiry's reference.
    pub number: i64,
    /// The sandbox scenario.
    pub scenario: Option<&'a str>,
}

/// Asks the routes that may take a payout to this account, in order. A network that answers
/// "no such account" does not end the search: another may know it.
///
/// # Errors
/// `recipient_unresolvable` where every network that answered refused, `name_mismatch` where one
/// says that somebody else holds it, `provider_error` where none gave a usable answer,
/// `service_overloaded` where too many ask already, and the refusals of [`Routes::candidates`].
pub async fn resolve(
    routes: &Routes,
    now: Moment,
    question: &Question<'_>,
) -> Result<Resolved, Problem> {
    let wanted = (question.currency, question.method, question.env);
    let candidates = routes.candidates(wanted, question.merchant).await?;
    let mut refused = None;
    let mut unavailable = None;
    let mut full = None;
    // What one network says of an account is nothing to another.
    let asked = candidates.iter().filter(|route| routes.is_at_home(route));
    for route in asked.filter(|route| route.rail.code.resolves_names()) {
        let verdict = match ask(route, now, question).await {
            Ok(verdict) => verdict,
            Err(why) => {
                tracing::warn!(route.name = route.route.name, why, "a name enquiry waits in vain");
                full = Some(why);
                continue;
            }
        };
        match judged(&route.rail, question.account, verdict) {
            Ok(resolution) => {
                return Ok(Resolved { resolution, route: route.route.name.clone() });
            }
            Err(Ended::Here(problem)) => return Err(problem),
            Err(Ended::Refused(why)) => refused = Some(why),
            Err(Ended::Unavailable(why)) => unavailable = Some(why),
        }
    }
    match (refused, unavailable, full) {
        // Nobody was asked: it is this host that has no time.
        (_, _, Some(why)) => {
            let busy = Problem::new(ErrorCode::ServiceOverloaded).caused_by(why);
            Err(busy.retry_after(limits::THROTTLE_ENQUIRY_WAIT_MAX.as_secs()))
        }
        (_, Some(why), None) => Err(Problem::new(ErrorCode::ProviderError).caused_by(why)),
        (Some(why), None, None) => Err(unresolvable(&why)),
        (None, None, None) => Err(Problem::new(ErrorCode::RoutingFailed)),
    }
}

/// Why a route gave no name.
#[derive(Debug)]
enum Ended {
    /// Nobody else need be asked.
    Here(Problem),
    /// It knows no such account; another may.
    Refused(String),
    /// It could not say.
    Unavailable(String),
}

/// What a verdict comes to. Where a name is only compared it must be the one that was given, or
/// as nearly as the rail declares; and who compares names and knows no such account has answered.
fn judged(rail: &Rail, account: &RecipientFields, verdict: Verdict) -> Result<Resolution, Ended> {
    let is_told = rail.overwrites_names();
    let least = rail.declaration.names.as_ref().map_or(0, |names| names.alike_at_least);
    let given = account.get(&rail.declaration.recipient.name);
    match verdict {
        Verdict::Matches(resolution) => Ok(resolution),
        Verdict::Named(resolution) if is_told => Ok(resolution),
        Verdict::Named(resolution) | Verdict::Close(resolution)
            if names::score(given, &resolution.name).unwrap_or(0) >= least =>
        {
            Ok(resolution)
        }
        Verdict::Named(other) | Verdict::Close(other) => {
            Err(Ended::Here(mismatch(Some(&other.name))))
        }
        Verdict::Differs(_) => Err(Ended::Here(mismatch(None))),
        Verdict::Refused(refusal) if is_told => Err(Ended::Refused(refusal.message)),
        Verdict::Refused(refusal) => Err(Ended::Here(unresolvable(&refusal.message))),
        Verdict::Unavailable(why) => Err(Ended::Unavailable(why)),
    }
}

fn unresolvable(why: &str) -> Problem {
    let message = format!("The bank does not know this account: {why}.");
    Problem::because(ErrorCode::RecipientUnresolvable, message)
}

/// The name that was given is not the one on record, which some networks tell.
fn mismatch(on_record: Option<&str>) -> Problem {
    let message = match on_record {
        Some(name) => format!(
            "The name is not the one on the account, which is {name}. Please ask the recipient."
        ),
        None => "The bank says that this is not the name on the account. Please ask the recipient."
            .to_owned(),
    };
    Problem::because(ErrorCode::NameMismatch, message).field("recipient.name")
}

/// What the network says; why it was not asked, otherwise.
async fn ask(route: &ReadyRoute, now: Moment, question: &Question<'_>) -> Result<Verdict, String> {
    let grant = route.enquiry_grant(now, scenario_header(question.scenario));
    let enquiry = Enquiry {
        serial: u64::try_from(question.number).unwrap_or(0),
        begun_at_ms: now.millis(),
        method: question.method.to_owned(),
        currency: question.currency.as_str().to_owned(),
        account: question.account.to_guest(),
    };
    let _place = route.enquiries.enter(question.merchant).await?;
    let called = route.rail.code.resolve(&grant, &enquiry).await;
    let is_crowded = called.exchanges.iter().any(|exchange| exchange.is_crowded);
    match called.result {
        Ok(Verdict::Unavailable(why)) if is_crowded => Err(why),
        Ok(verdict) => Ok(verdict),
        // Nobody was asked.
        Err(broken @ Broken::Crowded) => Err(broken.to_string()),
        Err(broken) => {
            tracing::warn!(rail.name = route.route.rail, %broken, "a name enquiry failed");
            Ok(Verdict::Unavailable(broken.to_string()))
        }
    }
}
