//! The sandbox's scenarios: one name, whatever the rail.

use std::collections::BTreeSet;

use http::HeaderMap;

use crate::env::Env;
use crate::error::{ErrorCode, Problem};

/// The header that asks for one.
pub const HEADER: &str = "X-Sandbox-Scenario";

/// The scenario in which a rate is too old.
pub const RATE_STALE: &str = "rate_stale";

/// Every scenario, and what happens in it.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("paid", "Accepted and settled."),
    (
        "processing",
        "Accepted; settles or fails when POST /v1/sandbox/payouts/{id}/settle or /fail says so.",
    ),
    ("failed", "The rail refuses it with a reason code of its own; the wallet has the money back."),
    ("returned", "Paid, then returned: it ends reversed."),
    ("timeout_then_paid", "No answer in time; asked again, the rail says that it is paid."),
    ("timeout_then_failed", "No answer in time; asked again, the rail says that it failed."),
    ("timeout_then_unknown", "No answer in time; asked again, the rail does not know either."),
    (
        "never_received",
        "Nothing reaches the rail at first, and it says so; sent once more, it is paid.",
    ),
    ("duplicate_callback", "The rail confirms it twice and out of order; it is paid once."),
    ("unresolvable", "The name enquiry finds nobody: 422 recipient_unresolvable."),
    ("provider_down", "The rail cannot be reached: 502 provider_error."),
    ("autodeposit", "Interac: it settles by itself."),
    ("claim", "Interac: it waits until its recipient claims it."),
    ("fraud_hold", "Held for review, whatever the rule pack says."),
    ("fraud_block", "Refused with 422 fraud_rule_blocked, whatever the rule pack says."),
    ("name_mismatch", "The name is not the one on record: 422 name_mismatch."),
    ("kyc_rejected", "A customer is refused: 422 validation_failed."),
    (RATE_STALE, "The exchange rate is being refreshed: 422 fx_rate_stale."),
];

/// The scenario that a request's header asks for, one of these or of the loaded rails' own, which
/// are looked up for whoever asks for one; nothing with a live key, whatever it says.
///
/// # Errors
/// `invalid_field` for a scenario that there is not: it would be played as another one.
pub fn asked_for(
    env: Env,
    headers: &HeaderMap,
    own: impl FnOnce() -> BTreeSet<String>,
) -> Result<Option<String>, Problem> {
    let Some(header) = headers.get(HEADER).filter(|_| env == Env::Test) else { return Ok(None) };
    let name = header.to_str().unwrap_or("?").trim();
    if name.is_empty() || what_happens(name).is_some() || own().contains(name) {
        return Ok(Some(name.to_owned()).filter(|name| !name.is_empty()));
    }
    let known: Vec<&str> = SCENARIOS.iter().map(|(known, _)| *known).collect();
    let message = format!(
        "{HEADER} must be one of {}, or one of GET /v1/sandbox/recipients.",
        known.join(", ")
    );
    Err(Problem::because(ErrorCode::InvalidField, message).field(HEADER))
}

/// What happens in a scenario.
#[must_use]
pub fn what_happens(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, happens)| *happens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_a_scenario_or_is_refused() {
        let ask = |env, value: &str| {
            let value = http::HeaderValue::from_str(value).expect("a value");
            asked_for(
                env,
                &[(http::HeaderName::from_static("x-sandbox-scenario"), value)]
                    .into_iter()
                    .collect(),
                || BTreeSet::from(["queue_timeout".to_owned()]),
            )
        };
        assert_eq!(ask(Env::Test, "failed").expect("known").as_deref(), Some("failed"));
        assert_eq!(
            ask(Env::Test, "queue_timeout").expect("a rail's").as_deref(),
            Some("queue_timeout")
        );
        assert_eq!(ask(Env::Test, " ").expect("nothing"), None);
        assert_eq!(ask(Env::Live, "fialed").expect("ignored"), None);
        let refused = ask(Env::Test, "fialed").expect_err("a refusal");
        assert!(refused.message().contains("timeout_then_paid"), "{refused}");
    }
}
