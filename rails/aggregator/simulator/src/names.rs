//! In whose name a wallet is. This aggregator tells it where a scenario is about names, and says
//! otherwise that it cannot.

use railhead_simulator::answers::{malformed, unavailable};
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Request};
use serde::Deserialize;
use serde_json::json;

use crate::requests::object;
use crate::{as_json, problem, wallets};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    operator: String,
    account: String,
    currency: String,
}

/// Who holds a wallet.
#[must_use]
pub fn of(request: &Request) -> Answer {
    let read = object(request).and_then(|body| {
        serde_json::from_slice::<Question>(body).map_err(|cause| cause.to_string())
    });
    let is_asked_of = |it: &Question| {
        let held = wallets::currency(&it.operator);
        held == Some(it.currency.as_str()) && wallets::is_wallet(&it.operator, &it.account)
    };
    let Question { operator, account, .. } = match read {
        Ok(question) if is_asked_of(&question) => question,
        read => {
            malformed("question for a name", &read.err().unwrap_or_else(|| "account".to_owned()));
            return problem(400, "INVALID_REQUEST", ("account", ""));
        }
    };
    match host::scenario(&account).as_str() {
        "provider_down" => unavailable(),
        "unresolvable" => problem(404, "ACCOUNT_NOT_FOUND", ("account", &account)),
        "name_mismatch" => {
            as_json(200, &json!({ "operator": operator, "account": account, "name": "Sand Box" }))
        }
        _ => problem(501, "OPERATOR_UNAVAILABLE", ("account", &account)),
    }
}
