//! The simulated aggregator, as whoever pays through it sees it.

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Event, Obstacle, Place, Request};
use serde_json::{Value, json};

use crate::{handle, tell};

const REFERENCE: &str = "7b4d6378-46e1-48db-ab9f-ade2c925e0de";
const ADDRESS: &str = "https://host.example/notices/route/token/payouts/x";

fn install(scenario: &str) {
    double::install(Host { scenario: scenario.to_owned(), ..Host::default() });
}

fn request(method: &str, path: &str, body: &str) -> Request {
    let headers = [
        ("authorization", "Bearer simulator"),
        ("content-type", "application/json"),
        ("idempotency-key", REFERENCE),
    ];
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Vec::new(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: body.as_bytes().to_vec(),
    }
}

fn order() -> Value {
    json!({
        "reference": REFERENCE,
        "amount": "1250.50",
        "currency": "GHS",
        "operator": "telecel",
        "account": "233201234567",
        "name": "Ama Mensah",
        "narration": "Invoice 17",
        "callback_url": ADDRESS,
    })
}

fn with_header(mut request: Request, name: &str, value: &str) -> Request {
    request.headers.retain(|(known, _)| known != name);
    request.headers.push((name.to_owned(), value.to_owned()));
    request
}

fn payout(order: &Value) -> Request {
    request("POST", "/v1/payouts", &order.to_string())
}

fn question() -> Request {
    request("GET", &format!("/v1/payouts/{REFERENCE}"), "")
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
    double::with(|host| host.book.values().map(|payout| payout.executed).sum())
}

#[test]
fn a_payout_is_made_once_and_told_where_it_said() {
    install("paid");
    let (status, taken) = heard(&payout(&order()));
    assert_eq!(
        (status, &taken["status"], &taken["reference"]),
        (202, &json!("PENDING"), &json!(REFERENCE))
    );
    let (status, body) = heard(&payout(&order()));
    assert_eq!((status, &body["code"]), (409, &json!("DUPLICATE_REFERENCE")));
    assert_eq!(executed(), 1);
    let (status, standing) = heard(&question());
    assert_eq!(status, 200);
    for (member, value) in [
        ("reference", REFERENCE),
        ("status", "SUCCESS"),
        ("amount", "1250.50"),
        ("currency", "GHS"),
        ("operator", "telecel"),
        ("account", "233201234567"),
    ] {
        assert_eq!(standing[member], value);
    }
    assert_eq!(told(), [standing]);
    assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(tell("another", Event::Settle), Err(Obstacle::Unknown));
}

#[test]
fn shillings_to_t_kash_and_nobody_to_tell() {
    install("paid");
    let mut order = order();
    order["amount"] = json!("1250.00");
    order["currency"] = json!("KES");
    order["operator"] = json!("tkash");
    order["account"] = json!("254771234567");
    order.as_object_mut().expect("an object").remove("callback_url");
    assert_eq!(heard(&payout(&order)).0, 202);
    let (_, standing) = heard(&question());
    assert_eq!((&standing["amount"], &standing["currency"]), (&json!("1250.00"), &json!("KES")));
    assert!(told().is_empty());
}

#[test]
fn scenarios() {
    // What is answered, what the next question says, how often it is told and paid.
    for (scenario, answered, stands, times, paid) in [
        ("paid", 202, "SUCCESS", 1, 1),
        ("processing", 202, "PENDING", 0, 0),
        ("failed", 202, "FAILED", 1, 0),
        ("timeout_then_paid", 0, "SUCCESS", 0, 1),
        ("timeout_then_failed", 0, "FAILED", 0, 0),
        ("timeout_then_unknown", 0, "UNKNOWN", 0, 0),
        ("never_received", 0, "PAYOUT_NOT_FOUND", 0, 0),
        ("duplicate_callback", 202, "SUCCESS", 2, 1),
        ("provider_down", 503, "PAYOUT_NOT_FOUND", 0, 0),
        ("already_exists", 409, "SUCCESS", 0, 1),
        ("callback_first", 0, "SUCCESS", 1, 1),
        ("callback_lost", 202, "SUCCESS", 0, 1),
        ("delayed", 202, "PENDING", 0, 1),
        ("key_refused", 401, "PAYOUT_NOT_FOUND", 0, 0),
        ("out_of_float", 422, "PAYOUT_NOT_FOUND", 0, 0),
        ("outcome_unknown", 202, "UNKNOWN", 0, 1),
        ("paid_at_once", 200, "SUCCESS", 0, 1),
        ("stuck", 202, "PENDING", 0, 0),
        ("turned_away", 422, "PAYOUT_NOT_FOUND", 0, 0),
        ("wallet_full", 202, "FAILED", 1, 0),
    ] {
        install(scenario);
        assert_eq!(heard(&payout(&order())).0, answered, "{scenario}");
        let (_, standing) = heard(&question());
        let says = standing.get("status").or(standing.get("code"));
        assert_eq!(says, Some(&json!(stands)), "{scenario}");
        assert_eq!((told().len(), executed()), (times, paid), "{scenario}");
    }
    install("never_received");
    heard(&payout(&order()));
    assert_eq!((heard(&payout(&order())).0, executed()), (202, 1));
    assert_eq!((heard(&payout(&order())).0, executed()), (409, 1));
    for scenario in ["delayed", "outcome_unknown"] {
        install(scenario);
        heard(&payout(&order()));
        heard(&question());
        assert_eq!((heard(&question()).1["status"].clone(), executed()), (json!("SUCCESS"), 1));
    }
}

#[test]
fn what_waits_is_decided_from_outside() {
    for (event, stands) in [(Event::Settle, "SUCCESS"), (Event::Fail, "FAILED")] {
        for scenario in ["processing", "timeout_then_unknown"] {
            install(scenario);
            heard(&payout(&order()));
            tell(REFERENCE, event).expect("it waits");
            assert_eq!(told()[0]["status"], stands);
            assert_eq!(tell(REFERENCE, event), Err(Obstacle::Impossible));
        }
        install("stuck");
        heard(&payout(&order()));
        assert_eq!(tell(REFERENCE, event), Err(Obstacle::Impossible));
        assert_eq!((told().len(), heard(&question()).1["status"].clone()), (0, json!("PENDING")));
    }
}

#[test]
fn what_is_not_as_documented_is_refused_loudly() {
    let change = |member: &str, value: Value| {
        let mut order = order();
        order[member] = value;
        payout(&order)
    };
    let twice = order().to_string().replacen('{', "{\"amount\":\"1250.50\",", 1);
    let faults = [
        change("amount", json!(1250.5)),
        change("amount", json!("1250")),
        change("amount", json!("1250.5")),
        change("amount", json!("1250.505")),
        change("amount", json!("01250.50")),
        change("amount", json!("0.00")),
        change("amount", json!("-1.00")),
        change("amount", json!("1,250.00")),
        change("amount", json!("99999999999999999999.00")),
        change("currency", json!("KES")),
        change("currency", json!("EUR")),
        change("currency", Value::Null),
        change("reference", json!("7b4d6378-46e1-18db-ab9f-ade2c925e0de")),
        change("reference", json!("8c5e6489-57f2-49ec-bc0f-bef3da36f1ef")),
        change("operator", json!("vodafone")),
        change("operator", json!("tkash")),
        change("account", json!("0201234567")),
        change("account", json!("254771234567")),
        change("account", json!("23320123456x")),
        change("name", json!("")),
        change("name", json!(" Ama")),
        change("name", json!("Ama\u{0}")),
        change("name", json!("é".repeat(141))),
        change("narration", json!("Ama's")),
        change("narration", json!("x".repeat(101))),
        change("callback_url", json!("nowhere")),
        change("unknown", json!("x")),
        request("POST", "/v1/payouts", &twice),
        request("POST", "/v1/payouts", "{"),
        request("POST", "/v1/payouts", &format!("[{}]", order())),
        with_header(payout(&order()), "idempotency-key", ""),
        with_header(payout(&order()), "content-type", "text/plain"),
        request("GET", &format!("/v1/payouts/{REFERENCE}"), "{}"),
        request("POST", "/v1/accounts/lookup", "{\"operator\":\"telecel\"}"),
        request(
            "POST",
            "/v1/accounts/lookup",
            "{\"operator\":\"at\",\"account\":\"1\",\"currency\":\"GHS\"}",
        ),
        request(
            "POST",
            "/v1/accounts/lookup",
            "{\"operator\":\"telecel\",\"account\":\"233201234567\",\"currency\":\"KES\"}",
        ),
    ];
    for fault in &faults {
        install("paid");
        let (status, body) = heard(fault);
        assert_eq!((status, &body["code"]), (400, &json!("INVALID_REQUEST")), "{body}");
        double::with(|host| {
            assert_eq!((host.errors.len(), host.book.len()), (1, 0), "{body}");
        });
    }
    // Half shillings are nobody's.
    install("paid");
    let mut order = order();
    order["operator"] = json!("tkash");
    order["account"] = json!("254771234567");
    order["currency"] = json!("KES");
    assert_eq!(heard(&payout(&order)).0, 400);
}

#[test]
fn strangers() {
    install("paid");
    for (name, value) in [("authorization", "Bearer x"), ("authorization", "simulator")] {
        let (status, body) = heard(&with_header(payout(&order()), name, value));
        assert_eq!((status, &body["code"]), (401, &json!("UNAUTHENTICATED")));
        assert_eq!(body["reference"], REFERENCE);
        assert_eq!(heard(&with_header(question(), name, value)).0, 401);
    }
    for path in ["/v1/payouts/", "/v1/payouts/a/b", "/v1/other", "/"] {
        let (status, body) = heard(&request("GET", path, ""));
        assert_eq!((status, body.get("code")), (404, None), "{path}");
    }
    assert_eq!(executed(), 0);
}

#[test]
fn names_are_told_where_a_scenario_is_about_them() {
    let question = "{\"operator\":\"telecel\",\"account\":\"233201234567\",\"currency\":\"GHS\"}";
    for (scenario, status, member, value) in [
        ("name_mismatch", 200, "name", "Sand Box"),
        ("unresolvable", 404, "code", "ACCOUNT_NOT_FOUND"),
        ("paid", 501, "code", "OPERATOR_UNAVAILABLE"),
    ] {
        install(scenario);
        let (found, body) = heard(&request("POST", "/v1/accounts/lookup", question));
        assert_eq!((found, &body[member]), (status, &json!(value)), "{scenario}");
        assert_eq!(body["account"], "233201234567");
    }
}
