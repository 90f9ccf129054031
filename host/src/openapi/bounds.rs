//! What a request has to look like, as far as its names tell: every bound that a handler holds and
//! its type does not say.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use crate::cases::CaseKind;
use crate::config::limits;
use crate::conversions;
use crate::events::CATALOGUE;
use crate::http::texts;
use crate::ledger::Source;
use crate::payouts::model::Status;
use crate::rails::Rail;
use crate::rails::directory;
use crate::simulator::scenario::SCENARIOS;
use crate::transfers::files::table::FileState;
use crate::webhooks::model::Status as DeliveryStatus;

use super::recipient_schema;

/// Properties without which a request of this schema is refused.
const REQUIRED: &[(&str, &[&str])] = &[
    ("BacktestRequest", &["from"]),
    ("CancelRequest", &["reason"]),
    ("ConversionRequest", &["from_currency", "to_currency"]),
    ("CreateBatch", &["currency", "items"]),
    ("CreateKey", &["env", "label"]),
    ("CreateMerchant", &["name", "country"]),
    ("CreatePayout", &["currency"]),
    ("CreateRoute", &["name", "env", "rail", "currency"]),
    ("CreateWebhookEndpoint", &["url", "events"]),
    ("FileRequest", &["reason"]),
    ("FundRequest", &["currency", "amount_minor"]),
    ("MoveRequest", &["amount_minor", "reason"]),
    ("NameEnquiry", &["currency", "account_number", "bank_code"]),
    ("QuoteRequest", &["currency"]),
    ("ReleaseRequest", &["reason"]),
    ("ResolveRequest", &["resolution", "evidence"]),
];

/// Control characters, in a class of a regular expression.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// Writes the bounds of all parameters and properties into the document.
pub(super) fn add(document: &mut Value, rails: &[std::sync::Arc<Rail>]) {
    let bounds = Bounds::of(rails);
    let schemas = document["components"]["schemas"].as_object_mut();
    if let Some(schemas) = schemas {
        for (name, schema) in &mut *schemas {
            bounds.bind_schema(name, schema);
        }
        bind_enquiry(schemas, rails);
    }
    let items = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in items {
        for (_, operation) in item.as_object_mut().into_iter().flatten() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                bounds.bind_parameter(path, parameter);
            }
            let body = operation.pointer_mut("/requestBody/content/application~1json/schema");
            if let Some(body) = body {
                sent_or_not(body);
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
    /// Of every network's sandbox, and of some only.
    scenarios: Vec<String>,
    /// Methods by which.
    methods: Vec<String>,
    /// For each rail the schema of its recipients, its currencies and its methods.
    rails: Vec<(String, Vec<String>, Vec<String>)>,
    /// Currencies whose banks are listed.
    with_banks: Vec<String>,
    /// Currencies whose mobile money operators are listed.
    with_operators: Vec<String>,
}

impl Bounds {
    fn of(rails: &[std::sync::Arc<Rail>]) -> Self {
        let terms = || rails.iter().flat_map(|rail| &rail.declaration.methods);
        let sorted = |names: BTreeSet<String>| names.into_iter().collect();
        Self {
            scenarios: sorted(
                SCENARIOS
                    .iter()
                    .map(|(name, _)| (*name).to_owned())
                    .chain(rails.iter().flat_map(|rail| rail.declaration.scenario_names()).cloned())
                    .collect(),
            ),
            currencies: sorted(terms().map(|terms| terms.currency.to_string()).collect()),
            methods: sorted(terms().map(|terms| terms.name.clone()).collect()),
            rails: rails.iter().map(|rail| served(rail)).collect(),
            with_banks: sorted(
                rails
                    .iter()
                    .filter(|rail| rail.tables.contains_key(directory::TABLE))
                    .flat_map(|rail| rail.declaration.currencies())
                    .map(|currency| currency.to_string())
                    .collect(),
            ),
            with_operators: sorted(
                rails
                    .iter()
                    .flat_map(|rail| &rail.declaration.operators)
                    .map(|operator| operator.currency.to_string())
                    .collect(),
            ),
        }
    }

    /// A recipient to be saved: its fields are the rail's.
    fn saved(&self) -> Value {
        let mut schema = json!({
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
            // Several rails of a currency may know one and the same recipient.
            "anyOf": self.rails.iter().map(|(recipient, currencies, _)| json!({
                "allOf": [{ "$ref": format!("#/components/schemas/Saved{recipient}") }],
                "properties": { "currency": { "enum": currencies } },
            })).collect::<Vec<_>>(),
        });
        for text in ["name", "phone", "external_reference"] {
            plain(&mut schema["properties"][text]);
        }
        schema
    }

    /// What belongs together in a payout or a quote: a currency, its methods and its recipients.
    fn each_rail(&self, name: &str) -> Vec<Value> {
        let of_one = |(recipient, currencies, methods): &(String, Vec<String>, Vec<String>)| {
            let methods: Vec<Value> =
                methods.iter().map(|method| json!(method)).chain([Value::Null]).collect();
            let mut properties = json!({
                "currency": { "enum": currencies },
                "method": { "enum": methods },
            });
            if name == "CreatePayout" {
                let recipient = json!({ "$ref": format!("#/components/schemas/{recipient}") });
                properties["recipient"] = json!({ "anyOf": [{ "type": "null" }, recipient] });
            }
            json!({ "properties": properties })
        };
        self.rails.iter().map(of_one).collect()
    }

    /// A request's schema: what it must have may not be null either.
    fn bind_schema(&self, name: &str, schema: &mut Value) {
        if matches!(name, "Settings" | "Terms") {
            settings(schema);
        }
        let texts = schema.get_mut("properties").and_then(Value::as_object_mut);
        let texts = texts.into_iter().flatten();
        texts.map(|(_, text)| text).filter(|text| text.get("maxLength").is_some()).for_each(plain);
        let required = REQUIRED.iter().find(|(known, _)| *known == name);
        let required = required.map_or(&[][..], |(_, fields)| *fields);
        let is_request = !required.is_empty()
            || name.starts_with("Update")
            || ["Settings", "Sender"].contains(&name);
        if !is_request {
            return;
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if matches!(name, "CreatePayout" | "QuoteRequest") {
            schema["oneOf"] = one_amount(&schema["properties"]);
            schema["allOf"] = json!([{ "anyOf": self.each_rail(name) }]);
        }
        if name == "ConversionRequest" {
            schema["oneOf"] = one_side();
            schema["not"] = json!({ "anyOf": self.between_the_same() });
        }
        if name == "CreatePayout" {
            schema["anyOf"] = json!([
                { "required": ["recipient"], "properties": { "recipient": { "type": "object" } } },
                {
                    "required": ["beneficiary_id"],
                    "properties": { "beneficiary_id": { "type": "string" } },
                },
            ]);
        }
        let properties = schema["properties"].as_object_mut();
        for (field, of) in properties.into_iter().flatten() {
            if required.contains(&field.as_str()) {
                never_null(of);
            }
            if let Some(bounds) = of_field(name, field).or_else(|| self.of_name(field)) {
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
        if matches!(path, "/v1/banks" | "/v1/momo_operators") && name == "currency" {
            parameter["required"] = json!(true);
        }
        let bounds = match (path, name.as_str()) {
            ("/v1/banks", "currency") => Some(json!({ "enum": self.with_banks })),
            ("/v1/momo_operators", "currency") => Some(json!({ "enum": self.with_operators })),
            ("/v1/payouts", "status") => Some(one_of(Status::iter().map(Status::as_str))),
            ("/admin/v1/cases", "kind") => Some(one_of(CaseKind::iter().map(CaseKind::as_str))),
            ("/admin/v1/files", "state") => Some(one_of(FileState::iter().map(FileState::as_str))),
            ("/v1/webhook_deliveries", "status") => {
                let all = DeliveryStatus::iter().map(DeliveryStatus::as_str);
                Some(one_of(all))
            }
            ("/v1/wallets/{id}/transactions", "source") => {
                let all = Source::iter().map(Source::as_str);
                Some(one_of(all))
            }
            ("/v1/rates", "from" | "to") => {
                Some(or_nothing(self.currencies.iter().map(String::as_str)))
            }
            ("/v1/conversions" | "/v1/conversions/quote", "X-Sandbox-Scenario") => {
                Some(or_nothing(conversions::PLAYED.into_iter()))
            }
            (_, "event_type") | ("/v1/events" | "/v1/events/stream", "type") => {
                Some(one_of(events()))
            }
            _ => self.of_name(&name),
        };
        if let Some(bounds) = bounds {
            extend(&mut parameter["schema"], bounds);
        }
        if parameter["required"] == true {
            parameter["schema"]["minLength"] = json!(1);
        }
        if parameter["in"] == "query" && parameter["schema"]["type"] == "string" {
            let most = json!(texts::FILTER.most);
            let schema = &mut parameter["schema"];
            if ["enum", "pattern", "format"].iter().all(|bound| schema.get(bound).is_none()) {
                schema["maxLength"] = most;
            }
            plain(schema);
        }
    }

    /// What no conversion is: from a currency into the same one.
    fn between_the_same(&self) -> Vec<Value> {
        let twice = |code: &String| {
            let only = json!({ "const": code });
            json!({ "properties": { "from_currency": only, "to_currency": only } })
        };
        self.currencies.iter().map(twice).collect()
    }

    /// What a name stands for, wherever it occurs.
    fn of_name(&self, name: &str) -> Option<Value> {
        Some(match name {
            "limit" => {
                json!({ "minimum": 1, "maximum": limits::PAGE_MAX, "default": limits::PAGE_DEFAULT })
            }
            "starting_after" => json!({ "pattern": "^[a-z0-9_]{1,64}$" }),
            "currency" | "funding_currency" | "from_currency" | "to_currency" => {
                json!({ "enum": self.currencies })
            }
            "method" => json!({ "enum": self.methods }),
            "email" => json!({ "format": "email", "maxLength": texts::EMAIL.most }),
            "X-Sandbox-Scenario" => or_nothing(self.scenarios.iter().map(String::as_str)),
            "env" => json!({ "enum": ["test", "live"] }),
            "direction" => json!({ "enum": ["credit", "debit"] }),
            "created_after" | "created_before" | "expires_at" => json!({ "format": "date-time" }),
            "country" => json!({ "pattern": "^[A-Z]{2}$" }),
            "url" => json!({ "format": "uri", "pattern": "^https://", "maxLength": 2048 }),
            "events" => {
                let all: Vec<String> = events().chain(["*".to_owned()]).collect();
                let items = json!({ "type": "string", "enum": all });
                json!({ "minItems": 1, "maxItems": CATALOGUE.len(), "items": items })
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

/// The schema of a rail's recipients, its currencies and its methods.
fn served(rail: &Rail) -> (String, Vec<String>, Vec<String>) {
    let currencies = rail.declaration.currencies().iter().map(ToString::to_string).collect();
    let methods = rail.declaration.methods.iter().map(|terms| terms.name.clone()).collect();
    (recipient_schema(rail), currencies, methods)
}

/// A name enquiry: where one rail alone answers any, its fields are that rail's.
fn bind_enquiry(schemas: &mut Map<String, Value>, rails: &[std::sync::Arc<Rail>]) {
    let asked: Vec<_> = rails.iter().filter(|rail| rail.overwrites_names()).collect();
    let [rail] = asked[..] else { return };
    let fields = schemas.get(&recipient_schema(rail)).map(|schema| schema["properties"].clone());
    let enquiry = schemas.get_mut("NameEnquiry").map(|schema| &mut schema["properties"]);
    let (Some(fields), Some(enquiry)) = (fields, enquiry) else { return };
    enquiry["currency"]["enum"] = json!(served(rail).1);
    for field in ["account_number", "bank_code"] {
        for bound in ["pattern", "minLength", "maxLength"] {
            if let Some(value) = fields[field].get(bound) {
                enquiry[field][bound] = value.clone();
            }
        }
    }
}

/// A merchant's settings, which are sent alone and shown among the merchant's other fields; null
/// takes one back, or one currency of it.
fn settings(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove("additionalProperties");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, of) in properties.into_iter().flatten() {
        if let Some(by_currency) = of.get_mut("additionalProperties").filter(|of| of.is_object()) {
            or_null(by_currency);
        }
        or_null(of);
    }
}

fn or_null(schema: &mut Value) {
    let nothing = json!({ "type": "null" });
    let types = schema.get("type").and_then(Value::as_array);
    let forms = schema.get("oneOf").and_then(Value::as_array);
    let is_nullable = types.is_some_and(|types| types.contains(&json!("null")))
        || forms.is_some_and(|forms| forms.contains(&nothing));
    if !is_nullable {
        *schema = json!({ "oneOf": [schema.take(), nothing] });
    }
}

/// A body that may be left out is none then, and not null.
fn sent_or_not(body: &mut Value) {
    let forms = body.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    if let [form] = forms.filter(|form| form["type"] != "null").collect::<Vec<_>>()[..] {
        *body = form.clone();
    }
}

/// One of these.
fn one_of<T: Into<Value>>(values: impl Iterator<Item = T>) -> Value {
    json!({ "enum": values.map(Into::into).collect::<Vec<Value>>() })
}

/// One of these, or an empty text, which is as good as none.
fn or_nothing<T: Into<Value>>(values: impl Iterator<Item = T>) -> Value {
    one_of(values.map(Into::into).chain([json!("")]))
}

/// Names of events, in either spelling.
fn events() -> impl Iterator<Item = String> {
    let names = CATALOGUE
        .iter()
        .flat_map(|name| [(*name).to_owned(), name.replace('.', "_"), name.replacen('_', ".", 1)]);
    names.collect::<BTreeSet<String>>().into_iter()
}

/// What a name stands for in this schema only.
fn of_field(schema: &str, field: &str) -> Option<Value> {
    Some(match (schema, field) {
        // Counted without the white space around it.
        ("CancelRequest" | "FileRequest", "reason") => json!({
            "pattern": format!(r"^\s*[^\s{CONTROL}][^{CONTROL}]+[^\s{CONTROL}]\s*$"),
            "maxLength": 500,
        }),
        ("UpdateBeneficiary", "name") => json!({ "minLength": 1 }),
        ("FundRequest" | "MoveRequest", "amount_minor") => {
            json!({ "pattern": format!("^0*([1-9][0-9]{{0,14}}|{})$", limits::MOVEMENT_MINOR_MAX) })
        }
        // An empty text is as good as none there.
        ("Sender", "country") => json!({ "pattern": "^([A-Z]{2})?$" }),
        ("Sender" | "UpdateBeneficiary", "email") => {
            json!({ "pattern": r"^([A-Za-z0-9]+([._+-][A-Za-z0-9]+)*@[A-Za-z0-9]+(\.[A-Za-z0-9]+)+)?$" })
        }
        _ => return None,
    })
}

/// What the recipient gets, or what it may cost, and never both; nor what belongs to the other.
fn one_amount(known: &Value) -> Value {
    let form = |required: &[&str], basis: &[Option<&str>], never: &[&str]| {
        let string = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
        let null = |name: &&str| ((*name).to_owned(), json!({ "type": "null" }));
        let mut properties: Map<String, Value> = required.iter().map(string).collect();
        let known = never.iter().filter(|name| known.get(**name).is_some());
        properties.extend(known.map(null));
        properties.insert("amount_basis".to_owned(), json!({ "enum": basis }));
        json!({ "required": required, "properties": properties })
    };
    let of_source = ["funding_amount_minor", "fee_inclusive", "min_receive_minor"];
    let of_other = [&of_source[..], &["funding_currency", "max_debit_minor"]].concat();
    json!([
        form(&["amount_minor"], &[None], &of_other),
        form(&["amount_minor", "funding_currency"], &[Some("destination"), None], &of_source),
        form(
            &["funding_amount_minor", "funding_currency"],
            &[Some("source"), None],
            &["amount_minor", "max_debit_minor"],
        ),
    ])
}

/// What is sold, or what is bought, and never both.
fn one_side() -> Value {
    let form = |sent: &str, other: &str| {
        json!({
            "required": [sent],
            "properties": { sent: { "type": "string" }, other: { "type": "null" } },
        })
    };
    let (sold, bought) = ("from_amount_minor", "to_amount_minor");
    json!([form(sold, bought), form(bought, sold)])
}

/// No control characters, where nothing else is said of a text's form.
fn plain(schema: &mut Value) {
    if ["enum", "pattern", "format"].iter().all(|bound| schema.get(bound).is_none()) {
        schema["pattern"] = json!(format!("^[^{CONTROL}]*$"));
    }
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
