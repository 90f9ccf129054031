//! The OpenAPI document: what the handlers say of themselves, completed with what they cannot
//! know: the recipients that the loaded rails declare, and the errors of every call.

mod bounds;
mod links;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;
use utoipa::openapi::OpenApi;

use crate::batches::{BULK_NAMES, CURRENCY as BATCH_CURRENCY};
use crate::caller::is_for_strangers;
use crate::error::{ErrorCode, Kind};
use crate::rails::declaration::{FieldTerms, RequiredWhen};
use crate::rails::shown::ShownTerms;
use crate::rails::{Block, Rail, anchored};

/// Refusals that every call with a key may meet.
const COMMON: &[ErrorCode] = &[
    ErrorCode::MissingApiKey,
    ErrorCode::InvalidApiKey,
    ErrorCode::KeyExpired,
    ErrorCode::GraceExpired,
    ErrorCode::MerchantSuspended,
    ErrorCode::MerchantClosed,
    ErrorCode::IpNotAllowed,
    ErrorCode::RateLimitExceeded,
    ErrorCode::ApiError,
    ErrorCode::RequestTimeout,
    ErrorCode::ServiceUnavailable,
];

/// Refusals that every call of an operator or a member may meet.
const COMMON_ADMIN: &[ErrorCode] = &[
    ErrorCode::MissingApiKey,
    ErrorCode::InvalidApiKey,
    ErrorCode::SessionExpired,
    ErrorCode::PermissionDenied,
    ErrorCode::MerchantSuspended,
    ErrorCode::MerchantClosed,
    ErrorCode::RateLimitExceeded,
    ErrorCode::ApiError,
    ErrorCode::RequestTimeout,
    ErrorCode::ServiceUnavailable,
];

/// Refusals that every call of whoever has no token yet may meet.
const COMMON_STRANGER: &[ErrorCode] = &[
    ErrorCode::MerchantSuspended,
    ErrorCode::MerchantClosed,
    ErrorCode::RateLimitExceeded,
    ErrorCode::ApiError,
    ErrorCode::RequestTimeout,
    ErrorCode::ServiceUnavailable,
];

/// Refusals that every call with a body may meet.
const COMMON_BODY: &[ErrorCode] = &[
    ErrorCode::InvalidJson,
    ErrorCode::InvalidBody,
    ErrorCode::BodyTooLarge,
    ErrorCode::InvalidField,
    ErrorCode::UnsupportedMediaType,
];

/// Refusals that every call with a query string may meet.
const COMMON_QUERY: &[ErrorCode] = &[ErrorCode::InvalidFilter];

/// What each call may refuse, by operation id.
pub type Refusals = Vec<(&'static str, &'static [ErrorCode])>;

/// Completes the document.
#[must_use]
pub fn complete(document: &OpenApi, refusals: &Refusals, rails: &[Arc<Rail>]) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    document["info"] = json!({
        "title": "Railhead",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Payouts, wallets and collections over sandboxed rails. Amounts are \
            strings of minor units; lists are newest first and paged by cursor; every response \
            carries X-Request-Id and the rate-limit headers.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["servers"] = json!([{ "url": "/" }]);
    document["security"] = json!([{ "key": [] }]);
    let schemas = &mut document["components"]["schemas"];
    schemas["Error"] = error_schema();
    schemas["ErrorCode"] = code_schema();
    recipients(schemas, rails);
    document["components"]["securitySchemes"] = json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A secret key: sk_test_… for the sandbox, sk_live_… for real money",
        },
        "operator": {
            "type": "http",
            "scheme": "bearer",
            "description": "An operator's token, or that of a session of a team's member",
        },
    });
    let errors: BTreeMap<&str, &[ErrorCode]> = refusals.iter().copied().collect();
    let paths = document["paths"].as_object_mut();
    for (path, item) in paths.into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let own = errors.get(id).copied().unwrap_or_default();
            let common = commonly((method, path), operation);
            add_errors(operation, &[own, &common].concat());
        }
    }
    bounds::add(&mut document, rails);
    batch_items(&mut document["components"]["schemas"]);
    let statement = &mut document["paths"]["/v1/reports/bank_statement"]["get"]["parameters"];
    for parameter in statement.as_array_mut().into_iter().flatten() {
        // A statement is of one wallet.
        if parameter["name"] == "currency" {
            parameter["required"] = json!(true);
        }
    }
    links::add(&mut document);
    document
}

/// Who may call an operation; answers what calls of its kind may refuse.
fn commonly((method, path): (&str, &str), operation: &mut Value) -> Vec<ErrorCode> {
    let is_admin = path.starts_with("/admin/");
    let asked = Method::from_bytes(method.to_uppercase().as_bytes());
    let is_for_strangers = asked.is_ok_and(|method| is_for_strangers(&method, path));
    let mut codes = match (is_for_strangers, is_admin) {
        (true, _) => {
            operation["security"] = json!([]);
            COMMON_STRANGER.to_vec()
        }
        (false, true) => {
            operation["security"] = json!([{ "operator": [] }]);
            COMMON_ADMIN.to_vec()
        }
        (false, false) => COMMON.to_vec(),
    };
    if !is_admin && method != "get" {
        codes.push(ErrorCode::ServiceOverloaded);
    }
    if operation.get("requestBody").is_some() {
        codes.extend(COMMON_BODY);
    }
    // What is no text at all is nobody's id.
    if path.contains('{') {
        codes.push(ErrorCode::NotFound);
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    if parameters.into_iter().any(|parameter| parameter["in"] == "query") {
        codes.extend(COMMON_QUERY);
    }
    codes
}

/// One response per status, naming the codes that come with it.
fn add_errors(operation: &mut Value, codes: &[ErrorCode]) {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        let entry = code.entry();
        let same = by_status.entry(entry.status).or_default();
        if !same.contains(&entry.code) {
            same.push(entry.code);
        }
    }
    for (status, codes) in by_status {
        operation["responses"][status.to_string()] = json!({
            "description": codes.join(", "),
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
            "x-error-codes": codes,
        });
    }
}

fn error_schema() -> Value {
    let kinds: Vec<&str> = Kind::iter().map(Kind::literal).collect();
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["type", "code", "message", "docs_url"],
            "properties": {
                "type": { "type": "string", "enum": kinds },
                "code": { "$ref": "#/components/schemas/ErrorCode" },
                "message": { "type": "string", "description": "For people; may change" },
                "field": { "type": "string", "description": "The offending field, as it was sent" },
                "detail": { "type": "object", "description": "Particulars, by code" },
                "violations": found_in_rows("sender_info_required, unknown_bank_code, \
                    limit_violation and fraud_rule_blocked", json!({
                    "missing": { "type": "array", "items": { "type": "string" } },
                    "field": { "type": ["string", "null"] },
                    "input": { "type": ["string", "null"] },
                    "kind": { "type": "string" },
                    "action": { "type": "string", "enum": ["hold", "block"] },
                    "rule_labels": { "type": "array", "items": { "type": "string" } },
                    "message": { "type": "string" },
                })),
                "unresolved": found_in_rows("recipient_unresolvable", json!({
                    "code": { "$ref": "#/components/schemas/ErrorCode" },
                    "message": { "type": "string" },
                })),
                "docs_url": { "type": "string", "format": "uri" },
            },
        } },
    })
}

/// What is told of a batch's rows, one by one.
fn found_in_rows(codes: &str, mut members: Value) -> Value {
    members["row_index"] = json!({ "type": "integer", "minimum": 0 });
    json!({
        "type": "array",
        "description": format!("Of batches, with {codes}: every row that is refused for it"),
        "items": { "type": "object", "required": ["row_index"], "properties": members },
    })
}

/// A row of a batch is a payout of which the batch says the currency, and some fields may be named
/// as in files of payments.
fn batch_items(schemas: &mut Value) {
    let payout = schemas["CreatePayout"]["properties"].as_object().cloned().unwrap_or_default();
    let is_a_rows = |name: &str| !name.starts_with("funding_");
    let own = payout.into_iter().filter(|(name, _)| is_a_rows(name));
    let mut properties: Map<String, Value> = own.collect();
    for (bulk, block, name) in BULK_NAMES {
        let written = match *name {
            "id_expiry" | "date_of_birth" => ", written DDMMYYYY",
            _ => "",
        };
        let said = format!("The same as {block}.{name}{written}.");
        let schema = json!({ "type": ["string", "null"], "description": said });
        properties.insert((*bulk).to_owned(), schema);
    }
    let item = &mut schemas["BatchItem"];
    let description = item["description"].clone();
    *item = json!({
        "type": "object",
        "description": description,
        "required": ["amount_minor"],
        "properties": properties,
    });
    schemas["CreateBatch"]["properties"]["currency"]["enum"] = json!([BATCH_CURRENCY]);
}

fn code_schema() -> Value {
    let mut codes: Vec<&str> = ErrorCode::iter().map(|code| code.entry().code).collect();
    codes.sort_unstable();
    codes.dedup();
    json!({ "type": "string", "description": "Branch on this", "enum": codes })
}

/// The name of the schema of a rail's recipients.
fn recipient_schema(rail: &Rail) -> String {
    format!("Recipient_{}", rail.declaration.rail.name.replace('-', "_"))
}

/// A schema per currency and rail, from the rails' declarations alone.
fn recipients(schemas: &mut Value, rails: &[Arc<Rail>]) {
    let mut choices = Vec::new();
    for rail in rails {
        let name = recipient_schema(rail);
        let currencies: Vec<String> =
            rail.declaration.currencies().iter().map(ToString::to_string).collect();
        let mut inline = recipient_body(rail, Block::Inline);
        inline["title"] =
            json!(format!("{} ({})", rail.declaration.rail.title, currencies.join(", ")));
        inline["x-currencies"] = json!(currencies);
        schemas[&name] = inline;
        schemas[format!("Saved{name}")] = recipient_body(rail, Block::Saved);
        choices.push(json!({ "$ref": format!("#/components/schemas/{name}") }));
    }
    schemas["PayoutRecipient"] = json!({ "anyOf": choices });
    for rail in rails {
        for terms in &rail.declaration.shown {
            shown_member(&mut schemas["Payout"]["properties"], (rail, terms));
        }
    }
}

/// What a rail has merchants told of a payment, as a member of payouts.
fn shown_member(properties: &mut Value, (rail, terms): (&Rail, &ShownTerms)) {
    let title = &rail.declaration.rail.title;
    let mut schema =
        json!({ "type": "string", "description": format!("{title}: {}", terms.title) });
    if let Some(example) = &terms.example {
        schema["example"] = json!(example);
    }
    match terms.name.split_once('.') {
        None => properties[&terms.name] = schema,
        Some((outer, inner)) => {
            if properties[outer].is_null() {
                properties[outer] = json!({ "type": "object", "properties": {} });
            }
            properties[outer]["properties"][inner] = schema;
        }
    }
}

/// A rail's recipient as it is given: some of its fields are in blocks of their own.
fn recipient_body(rail: &Rail, block: Block) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in &rail.declaration.recipient.fields {
        let (schema, is_required) = (field_schema(field, block), field.is_required(block));
        let Some((outer, name)) = field.place(block).split_once('.') else {
            properties.insert(field.name.clone(), schema);
            required.extend(is_required.then(|| field.name.clone()));
            continue;
        };
        let inside = properties.entry(outer).or_insert_with(
            || json!({ "type": ["object", "null"], "required": [], "properties": {} }),
        );
        inside["properties"][name] = schema;
        if is_required {
            inside["type"] = json!("object");
            if let Some(names) = inside["required"].as_array_mut() {
                names.push(json!(name));
            }
            if !required.iter().any(|known| known == outer) {
                required.push(outer.to_owned());
            }
        }
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

fn field_schema(field: &FieldTerms, block: Block) -> Value {
    let kind = if field.is_required(block) { json!("string") } else { json!(["string", "null"]) };
    let when = field.required_when.as_ref();
    let title = match when {
        Some(RequiredWhen { field: other, values }) => {
            format!("{}; required where {other} is {}", field.title, values.join(" or "))
        }
        None => field.title.clone(),
    };
    let mut schema = json!({ "type": kind, "description": title });
    if let Some(pattern) = &field.pattern {
        schema["pattern"] = json!(anchored(pattern));
    }
    if let Some(most) = field.max_length {
        schema["maxLength"] = json!(most);
    }
    if let Some(example) = &field.example {
        schema["example"] = json!(example);
    }
    schema
}
