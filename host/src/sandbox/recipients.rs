//! `GET /v1/sandbox/recipients`: whom to pay, to see what can happen.

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::http::Page;
use crate::rails::Declaration;
use crate::rails::methods::MethodTerms;
use crate::simulator::scenario::what_happens;

use super::http::require_test;

/// What the call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] =
    &[("list_sandbox_recipients", &[ErrorCode::SandboxOnly])];

/// A recipient, and what the sandbox plays when it is paid.
#[derive(Debug, Serialize, ToSchema)]
pub struct SandboxRecipient {
    /// Always `sandbox_recipient`.
    #[schema(example = "sandbox_recipient")]
    pub object: &'static str,
    /// What it is paid in.
    #[schema(example = "NGN")]
    pub currency: String,
    /// How it is paid.
    #[schema(example = "nip")]
    pub method: String,
    /// The block to send as `recipient`.
    #[schema(value_type = Object)]
    pub recipient: Map<String, Value>,
    /// The scenario, as `X-Sandbox-Scenario` names it.
    #[schema(example = "failed")]
    pub scenario: String,
    /// What happens.
    pub description: String,
}

/// List the sandbox's recipients
///
/// Recipients that choose a scenario by themselves, from the declarations of the loaded rails.
#[utoipa::path(
    get, path = "/v1/sandbox/recipients", operation_id = "list_sandbox_recipients", tag = "Sandbox",
    responses((status = 200, description = "By currency", body = inline(Page<SandboxRecipient>))),
)]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
) -> Result<Page<SandboxRecipient>, Problem> {
    require_test(&caller)?;
    let mut found = Vec::new();
    for rail in app.rails.all() {
        let rail = &rail.declaration;
        found.extend(rail.methods.iter().flat_map(|terms| of_method(rail, terms)));
    }
    Ok(Page::whole(found))
}

/// The example of a rail, which is paid, and those that choose another scenario.
fn of_method(rail: &Declaration, terms: &MethodTerms) -> Vec<SandboxRecipient> {
    let example = rail.recipient.example(terms.select.as_ref());
    let own = |scenario: &str| rail.scenarios.as_ref()?.own.get(scenario).map(String::as_str);
    let shown = |recipient, scenario: &str| SandboxRecipient {
        object: "sandbox_recipient",
        currency: terms.currency.to_string(),
        method: terms.name.clone(),
        recipient,
        scenario: scenario.to_owned(),
        description: own(scenario)
            .or_else(|| what_happens(scenario))
            .unwrap_or_default()
            .to_owned(),
    };
    let mut found = vec![shown(example.clone(), "paid")];
    if let Some(scenarios) = &rail.scenarios {
        found.extend(scenarios.values.iter().map(|(value, scenario)| {
            let mut recipient = example.clone();
            recipient.insert(scenarios.field.clone(), json!(value));
            shown(recipient, scenario)
        }));
    }
    found
}
