//! The simulated MTN, as whoever pays over it sees it.

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Event, Obstacle, Place, Request};
use serde_json::{Value, json};

use crate::{BEARER, handle, tell};

const REFERENCE: &str = "7b4d6378-46e1-48db-ab9f-ade2c925e0de";
const ADDRESS: &str = "https://host.example/notices/route/token/transfers/x";

fn install(scenario: &str) {
    double::install(Host { scenario: scenario.to_owned(), ..Host::default() });
}

fn request(method: &str, path: &str, body: &str) -> Request {
    let headers = [
        ("authorization", format!("Bearer {BEARER}")),
        ("ocp-apim-subscription-key", "simulator".to_owned()),
        ("x-target-environment", "mtnghana".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("x-reference-id", REFERENCE.to_owned()),
        ("x-callback-url", ADDRESS.to_owned()),
    ];
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        body: body.as_bytes().to_vec(),
    }
}

fn order() -> Value {
    json!({
        "amount": "1250.50",
        "currency": "GHS",
        "externalId": REFERENCE,
        "payee": { "partyIdType": "MSISDN", "partyId": "233241234567" },
        "payerMessage": "po 1",
        "payeeNote": "Invoice 17",
    })
}

fn with_header(mut request: Request, name: &str, value: &str) -> Request {
    request.headers.retain(|(known, _)| known != name);
    request.headers.push((name.to_owned(), value.to_owned()));
    request
}

fn transfer(order: &Value) -> Request {
    request("POST", "/disbursement/v1_0/transfer", &order.to_string())
}

fn question() -> Request {
    request("GET", &format!("/disbursement/v1_0/transfer/{REFERENCE}"), "")
}

/// The status of an answer, and the JSON in it; zero where there is none.
fn heard(request: &Request) -> (u16, Value) {
    match handle(request) {
        Answer::Response(it) => (it.status, serde_json::from_slice(&it.body).unwrap_or_default()),
        Answer::NotReceived | Answer::Silence => (0, Value::Null),
    }
}

fn told() -> Vec<Value> {
    double::with(|host| {
        let body = |body: &[u8]| serde_json::from_slice(body).expect("JSON");
        assert!(host.sent.iter().all(|it| it.to == Place::Url(ADDRESS.to_owned())));
        host.sent.iter().map(|it| body(&it.body)).collect()
    })
}

fn executed() -> u32 {
    double::with(|host| host.book.values().map(|transfer| transfer.executed).sum())
}

#[test]
fn a_transfer_is_made_once_and_told_where_it_said() {
    install("paid");
    assert_eq!(heard(&transfer(&order())), (202, Value::Null));
    let (status, body) = heard(&transfer(&order()));
    assert_eq!((status, &body["code"]), (409, &json!("RESOURCE_ALREADY_EXIST")));
    assert_eq!(executed(), 1);
    let (status, standing) = heard(&question());
    assert_eq!(status, 200);
    for (member, value) in
        [("status", "SUCCESSFUL"), ("amount", "1250.50"), ("externalId", REFERENCE)]
    {
        assert_eq!(standing[member], value);
    }
    assert_eq!(told(), [standing]);
    assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(tell("another", Event::Settle), Err(Obstacle::Unknown));
}

#[test]
fn scenarios() {
    // What is answered, what the next question says, how often it is told and paid.
    for (scenario, answered, stands, times, paid) in [
        ("paid", 202, "SUCCESSFUL", 1, 1),
        ("processing", 202, "PENDING", 0, 0),
        ("failed", 202, "FAILED", 1, 0),
        ("timeout_then_paid", 0, "SUCCESSFUL", 0, 1),
        ("timeout_then_failed", 0, "FAILED", 0, 0),
        ("timeout_then_unknown", 0, "INTERNAL_PROCESSING_ERROR", 0, 0),
        ("never_received", 0, "RESOURCE_NOT_FOUND", 0, 0),
        ("duplicate_callback", 202, "SUCCESSFUL", 2, 1),
        ("provider_down", 503, "RESOURCE_NOT_FOUND", 0, 0),
        ("already_exists", 409, "SUCCESSFUL", 0, 1),
        ("callback_first", 0, "SUCCESSFUL", 1, 1),
        ("callback_lost", 202, "SUCCESSFUL", 0, 1),
        ("delayed", 202, "PENDING", 0, 1),
        ("no_clear_reason", 202, "FAILED", 1, 0),
        ("out_of_float", 202, "FAILED", 1, 0),
        ("wallet_full", 202, "FAILED", 1, 0),
    ] {
        install(scenario);
        assert_eq!(heard(&transfer(&order())).0, answered, "{scenario}");
        let (_, standing) = heard(&question());
        let says = standing.get("status").or(standing.get("code"));
        assert_eq!(says, Some(&json!(stands)), "{scenario}");
        assert_eq!((told().len(), executed()), (times, paid), "{scenario}");
    }
    install("never_received");
    heard(&transfer(&order()));
    assert_eq!((heard(&transfer(&order())).0, executed()), (202, 1));
    install("delayed");
    heard(&transfer(&order()));
    heard(&question());
    assert_eq!(heard(&question()).1["status"], "SUCCESSFUL");
    assert_eq!(executed(), 1);
}

#[test]
fn reasons_as_words_and_as_objects() {
    for (scenario, reason) in [
        ("failed", json!("PAYEE_NOT_FOUND")),
        ("out_of_float", json!("NOT_ENOUGH_FUNDS")),
        ("wallet_full", json!({ "code": "PAYEE_LIMIT_REACHED", "message": "as the code says" })),
    ] {
        install(scenario);
        heard(&transfer(&order()));
        assert_eq!(heard(&question()).1["reason"], reason);
    }
}

#[test]
fn what_waits_is_decided_from_outside() {
    for (event, stands) in [(Event::Settle, "SUCCESSFUL"), (Event::Fail, "FAILED")] {
        install("processing");
        heard(&transfer(&order()));
        tell(REFERENCE, event).expect("it waits");
        assert_eq!(told()[0]["status"], stands);
        assert_eq!(tell(REFERENCE, event), Err(Obstacle::Impossible));
    }
}

#[test]
fn what_mtn_would_not_have_is_refused_loudly() {
    let change = |member: &str, value: Value| {
        let mut order = order();
        order[member] = value;
        transfer(&order)
    };
    let long = "x".repeat(129);
    let faults = [
        change("amount", json!(1250.5)),
        change("amount", json!("1250.505")),
        change("amount", json!("0.00")),
        change("amount", json!("-1")),
        change("amount", json!("1,250")),
        change("currency", json!("EUR")),
        change("currency", Value::Null),
        change("externalId", json!("with a space")),
        change("payee", json!({ "partyIdType": "EMAIL", "partyId": "233241234567" })),
        change("payee", json!({ "partyIdType": "MSISDN", "partyId": "0241234567" })),
        change("payee", json!({ "partyIdType": "MSISDN", "partyId": "46733123450" })),
        change("payeeNote", json!("Ama's")),
        change("payeeNote", json!(long)),
        change("payerMessage", json!("")),
        change("unknown", json!("x")),
        request("POST", "/disbursement/v1_0/transfer", "{"),
        with_header(transfer(&order()), "x-reference-id", "7b4d6378-46e1-18db-ab9f-ade2c925e0de"),
        with_header(transfer(&order()), "x-reference-id", ""),
        with_header(transfer(&order()), "x-target-environment", "sandbox"),
        with_header(transfer(&order()), "x-callback-url", "nowhere"),
        with_header(transfer(&order()), "content-type", "text/plain"),
    ];
    for fault in &faults {
        install("paid");
        let (status, body) = heard(fault);
        assert!([400, 500].contains(&status), "{status} {body}");
        double::with(|host| {
            assert_eq!((host.errors.len(), host.book.len()), (1, 0), "{body}");
        });
    }
}

#[test]
fn strangers_and_tokens() {
    install("paid");
    let key = |request| with_header(request, "ocp-apim-subscription-key", "another");
    let (status, body) = heard(&key(transfer(&order())));
    assert_eq!((status, &body["statusCode"]), (401, &json!(401)));
    assert_eq!(heard(&with_header(transfer(&order()), "authorization", "Bearer x")).0, 401);
    assert_eq!(heard(&request("GET", "/disbursement/v1_0/other", "")).0, 404);
    let token = |body: &str| request("POST", "/disbursement/token/", body);
    assert_eq!(heard(&token("")).0, 401);
    let basic = "Basic c2ltdWxhdG9yOnNpbXVsYXRvcg==";
    let (status, body) = heard(&with_header(token(""), "authorization", basic));
    assert_eq!((status, &body["access_token"]), (200, &json!(BEARER)));
    assert_eq!(heard(&with_header(token("{}"), "authorization", basic)).0, 400);
    assert_eq!(executed(), 0);
}

#[test]
fn names_are_told_where_a_scenario_is_about_them() {
    let asked = || {
        let path = "/disbursement/v1_0/accountholder/msisdn/233241234567/basicuserinfo";
        heard(&request("GET", path, ""))
    };
    for (scenario, status, member, value) in [
        ("name_mismatch", 200, "family_name", "Box"),
        ("unresolvable", 404, "code", "RESOURCE_NOT_FOUND"),
        ("paid", 500, "code", "NOT_ALLOWED"),
    ] {
        install(scenario);
        let (found, body) = asked();
        assert_eq!((found, &body[member]), (status, &json!(value)), "{scenario}");
    }
}
