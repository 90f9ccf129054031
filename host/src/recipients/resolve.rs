//! Who holds an account: asked of the routes in order, until one knows.

use crate::clock::Moment;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::Currency;
use crate::rails::granted::scenario_header;
use crate::rails::route::ReadyRoute;
use crate::rails::{RecipientFields, Routes};
use crate::wasm::rail::{Enquiry, Money, Resolution, Verdict};

/// An answer, and the route that gave it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What the network said.
    pub resolution: Resolution,
    /// How it compares with the name that was given.
    pub fit: NameFit,
    /// The route's name; opaque to merchants.
    pub route: String,
}

/// How a name on record compares with the one that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFit {
    /// The network told the name and compared nothing.
    NotCompared,
    /// The network says that it is the same.
    Same,
    /// The network says that it is nearly the same.
    Close,
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
/// says that somebody else holds it, `provider_error` where none gave a usable answer, and the
/// refusals of [`Routes::candidates`].
pub async fn resolve(
    routes: &Routes,
    now: Moment,
    question: &Question<'_>,
) -> Result<Resolved, Problem> {
    let wanted = (question.currency, question.method, question.env);
    let candidates = routes.candidates(wanted, question.merchant).await?;
    let mut refused = None;
    let mut unavailable = None;
    for route in candidates.iter().filter(|route| route.rail.code.resolves_names()) {
        let (resolution, fit) = match ask(route, now, question).await {
            Verdict::Named(resolution) => (resolution, NameFit::NotCompared),
            Verdict::Matches(resolution) => (resolution, NameFit::Same),
            Verdict::Close(resolution) => (resolution, NameFit::Close),
            Verdict::Differs(_) => return Err(mismatch(None)),
            // Whoever compares names and knows no such account has answered.
            Verdict::Refused(refusal) if !route.rail.overwrites_names() => {
                return Err(unresolvable(&refusal.message));
            }
            Verdict::Refused(refusal) => {
                refused = Some(refusal);
                continue;
            }
            Verdict::Unavailable(why) => {
                unavailable = Some(why);
                continue;
            }
        };
        return Ok(Resolved { resolution, fit, route: route.route.name.clone() });
    }
    match (refused, unavailable) {
        (_, Some(why)) => Err(Problem::new(ErrorCode::ProviderError).caused_by(why)),
        (Some(refusal), None) => Err(unresolvable(&refusal.message)),
        (None, None) => Err(Problem::new(ErrorCode::RoutingFailed)),
    }
}

fn unresolvable(why: &str) -> Problem {
    let message = format!("The bank does not know this account: {why}.");
    Problem::because(ErrorCode::RecipientUnresolvable, message)
}

/// The name that was given is not the one on record, which some networks tell.
#[must_use]
pub fn mismatch(on_record: Option<&str>) -> Problem {
    let message = match on_record {
        Some(name) => format!(
            "The name is not the one on the account, which is {name}. Please ask the recipient."
        ),
        None => "The bank says that this is not the name on the account. Please ask the recipient."
            .to_owned(),
    };
    Problem::because(ErrorCode::NameMismatch, message).field("recipient.name")
}

async fn ask(route: &ReadyRoute, now: Moment, question: &Question<'_>) -> Verdict {
    let grant = route.grant(now, scenario_header(question.scenario), Money::Stays);
    let enquiry = Enquiry {
        serial: u64::try_from(question.number).unwrap_or(0),
        begun_at_ms: now.millis(),
        account: question.account.to_guest(),
    };
    let called = route.rail.code.resolve(&grant, &enquiry).await;
    called.result.unwrap_or_else(|broken| {
        tracing::warn!(rail.name = route.route.rail, %broken, "a name enquiry failed");
        Verdict::Unavailable(broken.to_string())
    })
}
