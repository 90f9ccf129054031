//! The simulated Airtel, as whoever pays over it sees it.

use railhead_simulator::host::double::{self, Host};
use railhead_simulator::types::{Answer, Event, Obstacle, Place, Request};
use serde_json::{Value, json};

use crate::{BEARER, handle, tell};

const REFERENCE: &str = "RH01A1FD557A800000000002";

fn install(scenario: &str) {
    double::install(Host { scenario: scenario.to_owned(), ..Host::default() });
}

fn request(method: &str, path: &str, body: &str) -> Request {
    let headers = [
        ("authorization", format!("Bearer {BEARER}")),
        ("content-type", "application/json".to_owned()),
        ("x-country", "KE".to_owned()),
        ("x-currency", "KES".to_owned()),
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
        "payee": { "currency": "KES", "msisdn": "733123456", "name": "Wanjiku Kamau" },
        "reference": "po0001",
        "pin": format!("{}simulator", double::seal("airtel")),
        "transaction": { "amount": 1250, "id": REFERENCE, "type": "B2C" },
    })
}

fn payment(order: &Value) -> Request {
    request("POST", "/standard/v2/disbursements/", &order.to_string())
}

fn question() -> Request {
    let mut asked = request("GET", &format!("/standard/v2/disbursements/{REFERENCE}"), "");
    asked.query = vec![("transactionType".to_owned(), "B2C".to_owned())];
    asked
}

fn with_header(mut request: Request, name: &str, value: &str) -> Request {
    request.headers.retain(|(known, _)| known != name);
    request.headers.push((name.to_owned(), value.to_owned()));
    request
}

/// The status of an answer, and the JSON in it; zero where there is none.
fn heard(request: &Request) -> (u16, Value) {
    match handle(request) {
        Answer::Response(it) => (it.status, serde_json::from_slice(&it.body).unwrap_or_default()),
        Answer::NotReceived | Answer::Silence => (0, Value::Null),
    }
}

/// The word and the code of an answer.
fn words(body: &Value) -> (&str, &str) {
    let word = body["data"]["transaction"]["status"].as_str();
    (word.unwrap_or_default(), body["status"]["response_code"].as_str().unwrap_or_default())
}

fn executed() -> u32 {
    double::with(|host| host.book.values().map(|payment| payment.executed).sum())
}

fn told() -> Vec<Value> {
    double::with(|host| {
        let is_there = |to: &Place| *to == Place::Notice("/callback".to_owned());
        assert!(host.sent.iter().all(|message| is_there(&message.to)));
        let body = |body: &[u8]| serde_json::from_slice(body).expect("JSON");
        host.sent.iter().map(|message| body(&message.body)).collect()
    })
}

#[test]
fn a_payment_is_made_once() {
    install("paid");
    let (status, body) = heard(&payment(&order()));
    assert_eq!((status, words(&body)), (200, ("TS", "DP00900001001")));
    let (_, again) = heard(&payment(&order()));
    assert_eq!(words(&again), ("", "DP00900001017"));
    assert_eq!(heard(&question()).1, body);
    double::with(|host| {
        let kept = &host.book[REFERENCE];
        assert_eq!((kept.executed, kept.received, kept.amount_minor), (1, 2, 125_000));
        assert_eq!(kept.account, "254733123456");
    });
    assert_eq!(tell(REFERENCE, Event::Return), Err(Obstacle::Impossible));
    assert_eq!(tell("another", Event::Settle), Err(Obstacle::Unknown));
}

#[test]
fn scenarios() {
    // What is answered, what the next question says, how often it is told and paid.
    let (ts, tf) = (("TS", "DP00900001001"), ("TF", "DP00900001013"));
    let (tip, ta) = (("TIP", "DP00900001006"), ("TA", "DP00900001000"));
    let lost = ("", "DP00900001015");
    for (scenario, answered, stands, times, paid) in [
        ("paid", ts, ts, 0, 1),
        ("processing", tip, tip, 0, 0),
        ("in_progress", tip, tip, 0, 1),
        ("failed", tf, tf, 0, 0),
        ("timeout_then_paid", ("", ""), ts, 0, 1),
        ("timeout_then_failed", ("", ""), tf, 0, 0),
        ("timeout_then_unknown", ("", ""), ta, 0, 0),
        ("never_received", ("", ""), lost, 0, 0),
        ("duplicate_callback", ts, ts, 2, 1),
        ("provider_down", ("", ""), lost, 0, 0),
        ("ambiguous", ta, ts, 0, 1),
        ("similar_exists", ("", "DP00900001011"), ts, 0, 1),
        ("duplicate_id", ("", "DP00900001017"), ts, 0, 1),
        ("timed_out", ("", "DP00900001014"), ts, 0, 1),
        ("out_of_float", ("TF", "DP00900001007"), ("TF", "DP00900001007"), 0, 0),
        ("number_unknown", ("", "DP00900001012"), ("TF", "DP00900001012"), 0, 0),
        ("wrong_pin", ("", "ROUTER115"), lost, 0, 0),
    ] {
        install(scenario);
        assert_eq!(words(&heard(&payment(&order())).1), answered, "{scenario}");
        assert_eq!(words(&heard(&question()).1), stands, "{scenario}");
        assert_eq!((told().len(), executed()), (times, paid), "{scenario}");
    }
    install("never_received");
    heard(&payment(&order()));
    assert_eq!((words(&heard(&payment(&order())).1), executed()), (ts, 1));
    install("in_progress");
    heard(&payment(&order()));
    heard(&question());
    assert_eq!((words(&heard(&question()).1), executed()), (ts, 1));
}

#[test]
fn what_waits_is_decided_from_outside() {
    for (event, word) in [(Event::Settle, "TS"), (Event::Fail, "TF")] {
        install("processing");
        heard(&payment(&order()));
        tell(REFERENCE, event).expect("it waits");
        let transaction = &told()[0]["transaction"];
        assert_eq!(
            (&transaction["id"], &transaction["status_code"]),
            (&json!(REFERENCE), &json!(word))
        );
        assert_eq!(words(&heard(&question()).1).0, word);
        assert_eq!(tell(REFERENCE, event), Err(Obstacle::Impossible));
    }
}

#[test]
fn what_airtel_would_not_have_is_refused_loudly() {
    let change = |at: &[&str], value: Value| {
        let mut order = order();
        let place = at.iter().fold(&mut order, |place, name| &mut place[*name]);
        *place = value;
        payment(&order)
    };
    for (fault, code) in [
        (change(&["pin"], json!("1234")), "ROUTER116"),
        (change(&["payee", "currency"], json!("UGX")), ""),
        (change(&["payee", "msisdn"], json!("254733123456")), "DP00900001012"),
        (change(&["payee", "msisdn"], json!("0733123456")), "DP00900001012"),
        (change(&["payee", "msisdn"], json!(733_123_456)), "ROUTER003"),
        (change(&["payee", "name"], json!(" ")), ""),
        (change(&["payee", "other"], json!("x")), "ROUTER003"),
        (change(&["reference"], json!("a b c")), ""),
        (change(&["reference"], json!("abc")), ""),
        (change(&["transaction", "id"], json!("")), ""),
        (change(&["transaction", "id"], json!("RH-1")), ""),
        (change(&["transaction", "amount"], json!("1250")), "ROUTER003"),
        (change(&["transaction", "amount"], json!(12.5)), "ROUTER003"),
        (change(&["transaction", "amount"], json!(0)), "DP00900001004"),
        (change(&["transaction", "amount"], json!(250_001)), "DP00900001004"),
        (change(&["transaction", "type"], json!("B2B")), ""),
        (request("POST", "/standard/v2/disbursements/", "{"), "ROUTER003"),
        (with_header(payment(&order()), "x-country", "UG"), "ROUTER006"),
        (with_header(payment(&order()), "x-currency", "UGX"), "ROUTER112"),
        (with_header(payment(&order()), "content-type", "text/plain"), "ROUTER003"),
        (with_header(question(), "x-country", ""), "ROUTER006"),
        (Request { query: Vec::new(), ..question() }, ""),
    ] {
        install("paid");
        let (status, body) = heard(&fault);
        assert_eq!((status, words(&body)), (400, ("", code)), "{body}");
        double::with(|host| assert_eq!((host.errors.len(), host.book.len()), (1, 0), "{body}"));
    }
}

#[test]
fn strangers_and_tokens() {
    install("paid");
    assert_eq!(heard(&with_header(payment(&order()), "authorization", "Bearer x")).0, 401);
    assert_eq!(heard(&request("GET", "/standard/v1/users/733123456", "")).0, 404);
    assert_eq!(heard(&request("DELETE", "/standard/v2/disbursements/x", "")).0, 405);
    let mut wanted = json!({
        "client_id": "simulator",
        "client_secret": "simulator",
        "grant_type": "client_credentials",
    });
    let asked = |body: &Value| heard(&request("POST", "/auth/oauth2/token", &body.to_string()));
    let (status, body) = asked(&wanted);
    assert_eq!((status, &body["access_token"]), (200, &json!(BEARER)));
    assert_eq!(body["expires_in"], "180");
    for name in ["client_id", "client_secret", "grant_type", "other"] {
        wanted[name] = json!("x");
        assert_eq!(asked(&wanted).0, 401, "{name}");
    }
    assert_eq!(executed(), 0);
}
