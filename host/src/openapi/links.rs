//! Where an answer leads: what a call made is what other calls are about.

use serde_json::{Value, json};

/// The call that makes or lists an object, where its id stands in the answer, and the paths that
/// begin with it.
const LINKS: &[(&str, &str, &str)] = &[
    ("create_payout", "$response.body#/id", "/v1/payouts/{id}"),
    ("create_payout", "$response.body#/id", "/v1/sandbox/payouts/{id}"),
    ("create_payout", "$response.body#/wallet_id", "/v1/wallets/{id}"),
    ("upsert_beneficiary", "$response.body#/id", "/v1/beneficiaries/{id}"),
    ("create_webhook_endpoint", "$response.body#/id", "/v1/webhook_endpoints/{id}"),
    ("list_webhook_deliveries", "$response.body#/data/0/id", "/v1/webhook_deliveries/{id}"),
    ("create_merchant", "$response.body#/id", "/admin/v1/merchants/{id}"),
    ("create_key", "$response.body#/id", "/admin/v1/keys/{id}"),
    ("create_route", "$response.body#/id", "/admin/v1/routes/{id}"),
    ("create_block", "$response.body#/id", "/admin/v1/blacklist/{id}"),
    ("create_payout", "$response.body#/id", "/admin/v1/payouts/{id}"),
    ("list_cases", "$response.body#/data/0/id", "/admin/v1/cases/{id}"),
    ("list_files", "$response.body#/data/0/id", "/admin/v1/files/{id}"),
    ("list_windows", "$response.body#/data/0/id", "/admin/v1/windows/{id}"),
];

/// Writes the links into the document.
pub(super) fn add(document: &mut Value) {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for operation in item.as_object().into_iter().flatten().map(|(_, operation)| operation) {
            let target = operation["operationId"].as_str().unwrap_or_default().to_owned();
            let to = |prefix: &str| path == prefix || path.starts_with(&format!("{prefix}/"));
            let leading = LINKS.iter().filter(|(_, _, prefix)| to(prefix));
            found.extend(leading.map(|(from, id, _)| (*from, *id, target.clone())));
        }
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    for operation in items.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten()) {
        let operation = operation.1;
        let from = operation["operationId"].as_str().unwrap_or_default().to_owned();
        for (_, id, target) in found.iter().filter(|(known, ..)| *known == from) {
            let responses = operation["responses"].as_object_mut().into_iter().flatten();
            for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
                response["links"][target] =
                    json!({ "operationId": target, "parameters": { "id": id } });
            }
        }
    }
}
