//! What a request has to look like, as far as its names tell: every bound that a handler holds and
//! its type does not say.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use crate::config::limits;
use crate::events::CATALOGUE;
use crate::http::texts;
use crate::payouts::model::Status;
use crate::rails::Rail;
use crate::simulator::scenario::SCENARIOS;

/// Properties without which a request of this schema is refused.
const REQUIRED: &[(&str, &[&str])] = &[
    ("CancelRequest", &["reason"]),
    ("CreateKey", &["env", "label"]),
    ("CreateMerchant", &["name", "country"]),
    ("CreatePayout", &["currency"]),
    ("CreateRoute", &["name", "env", "rail", "currency"]),
    ("CreateWebhookEndpoint", &["url", "events"]),
    ("FundRequest", &["currency", "amount_minor"]),
    ("MoveRequest", &["amount_minor", "reason"]),
    ("NameEnquiry", &["currency", "account_number", "bank_code"]),
    ("QuoteRequest", &["currency"]),
    ("ReleaseRequest", &["reason"]),
    ("ResolveRequest", &["resolution", "evidence"]),
];

/// Writes the bounds of all parameters and properties into the document.
pub(super) fn add(document: &mut Value, rails: &[std::sync::Arc<Rail>]) {
    let bounds = Bounds::of(rails);
    let schemas = document["components"]["schemas"].as_object_mut();
    for (name, schema) in schemas.into_iter().flatten() {
        bounds.bind_schema(name, schema);
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in items {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                bounds.bind_parameter(path, parameter);
            }
            if operation["operationId"] == "upsert_beneficiary" {
                operation["requestBody"]["content"]["application/json"]["schema"] = bounds.saved();
            }
        }
    }
}

/// What is known of the rails.
struct Bounds {
    /// Currencies that a payment may be made in.
    currencies: Vec<String>,
    /// Methods by which.
    methods: Vec<String>,
}

impl Bounds {
    fn of(rails: &[std::sync::Arc<Rail>]) -> Self {
        let terms = || rails.iter().flat_map(|rail| &rail.declaration.currencies);
        let sorted = |names: BTreeSet<String>| names.into_iter().collect();
        Self {
            currencies: sorted(terms().map(|terms| terms.code.to_string()).collect()),
            methods: sorted(terms().flat_map(|terms| terms.methods.clone()).collect()),
        }
    }

    /// A recipient to be saved: its fields are the rail's.
    fn saved(&self) -> Value {
        json!({
            "type": "object",
            "required": ["currency", "name"],
            "properties": {
                "currency": { "type": "string", "enum": self.currencies },
                "name": { "type": "string", "minLength": 1, "maxLength": texts::NAME.most },
                "email": { "type": ["string", "null"], "format": "email", "maxLength": texts::EMAIL.most },
                "phone": { "type": ["string", "null"], "maxLength": texts::PHONE.most },
                "external_reference": {
                    "type": ["string", "null"],
                    "maxLength": texts::REFERENCE.most,
                },
            },
            "allOf": [{ "$ref": "#/components/schemas/PayoutRecipient" }],
        })
    }

    /// A request's schema: what it must have may not be null either.
    fn bind_schema(&self, name: &str, schema: &mut Value) {
        let required = REQUIRED.iter().find(|(known, _)| *known == name);
        let required = required.map_or(&[][..], |(_, fields)| *fields);
        let is_request = !required.is_empty() || name.starts_with("Update") || name == "Settings";
        if !is_request {
            return;
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if matches!(name, "CreatePayout" | "QuoteRequest") {
            schema["oneOf"] = one_amount();
        }
        let properties = schema["properties"].as_object_mut();
        for (field, of) in properties.into_iter().flatten() {
            if required.contains(&field.as_str()) {
                never_null(of);
            }
            if let Some(bounds) = self.of_name(field) {
                extend(of, bounds);
            }
        }
    }

    fn bind_parameter(&self, path: &str, parameter: &mut Value) {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        if parameter["in"] == "path" {
            parameter["schema"]["minLength"] = json!(1);
            return;
        }
        never_null(&mut parameter["schema"]);
        let bounds = match (path, name.as_str()) {
            ("/v1/banks", "currency") => Some(json!({ "enum": ["NGN"] })),
            ("/v1/payouts", "status") => {
                let all: Vec<&str> = Status::iter().map(Status::as_str).collect();
                Some(json!({ "enum": all }))
            }
            _ => self.of_name(&name),
        };
        if let Some(bounds) = bounds {
            extend(&mut parameter["schema"], bounds);
        }
        if parameter["required"] == true {
            parameter["schema"]["minLength"] = json!(1);
        }
    }

    /// What a name stands for, wherever it occurs.
    fn of_name(&self, name: &str) -> Option<Value> {
        Some(match name {
            "limit" => {
                json!({ "minimum": 1, "maximum": limits::PAGE_MAX, "default": limits::PAGE_DEFAULT })
            }
            "starting_after" => json!({ "pattern": "^[a-z0-9_]{1,64}$" }),
            "currency" | "funding_currency" => json!({ "enum": self.currencies }),
            "method" => json!({ "enum": self.methods }),
            "email" => json!({ "format": "email", "maxLength": texts::EMAIL.most }),
            "X-Sandbox-Scenario" => {
                let all: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
                json!({ "enum": all })
            }
            "env" => json!({ "enum": ["test", "live"] }),
            "direction" => json!({ "enum": ["credit", "debit"] }),
            "created_after" | "created_before" | "expires_at" => json!({ "format": "date-time" }),
            "country" => json!({ "pattern": "^[A-Z]{2}$" }),
            "url" => json!({ "format": "uri", "pattern": "^https://", "maxLength": 2048 }),
            "events" => {
                // Either spelling is taken.
                let names = CATALOGUE.iter().flat_map(|name| {
                    [(*name).to_owned(), name.replace('.', "_"), name.replacen('_', ".", 1)]
                });
                let all: BTreeSet<String> = names.chain(["*".to_owned()]).collect();
                json!({ "minItems": 1, "items": { "type": "string", "enum": all } })
            }
            "Idempotency-Key" => json!({
                "pattern": "^([!-~]([ -~]*[!-~])?)?$",
                "maxLength": limits::IDEMPOTENCY_KEY_BYTES_MAX,
            }),
            _ if name.ends_with("amount_minor") || name.ends_with("_debit_minor") => {
                json!({ "pattern": "^0*[1-9][0-9]{0,17}$" })
            }
            _ => return None,
        })
    }
}

/// What the recipient gets, or what it may cost, and never both.
fn one_amount() -> Value {
    let only = |one: &str, other: &str| {
        json!({
            "required": [one],
            "properties": { one: { "type": "string" }, other: { "type": "null" } },
        })
    };
    json!([
        only("amount_minor", "funding_amount_minor"),
        only("funding_amount_minor", "amount_minor"),
    ])
}

/// Adds bounds to a schema, past the null that it may allow.
fn extend(schema: &mut Value, bounds: Value) {
    let is_nullable = schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    let Value::Object(bounds) = bounds else { return };
    let Some(schema) = schema.as_object_mut() else { return };
    for (name, mut value) in bounds {
        if let (true, "enum", Some(values)) = (is_nullable, name.as_str(), value.as_array_mut()) {
            values.push(Value::Null);
        }
        schema.insert(name, value);
    }
}

/// Takes null, and a default of null, away from what is allowed.
fn never_null(schema: &mut Value) {
    let Some(schema): Option<&mut Map<String, Value>> = schema.as_object_mut() else { return };
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(types) = schema.get_mut("type").filter(|types| types.is_array()) {
        let first = types.as_array().into_iter().flatten().find(|one| **one != "null").cloned();
        if let Some(first) = first {
            *types = first;
        }
    }
}
