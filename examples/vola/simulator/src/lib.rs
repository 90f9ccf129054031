//! A simulated Vola. It shares no code with the rail, so that a misunderstanding on one side is
//! noticed by the other.
#![cfg(target_family = "wasm")]

mod bulk;
mod guest;

use railhead_simulator::answers::{answer, malformed, plain, unavailable};
use railhead_simulator::types::{Answer, Event, Obstacle, Place, Request, State, Transfer};
use railhead_simulator::{CREDENTIAL, host};
use serde_json::{Value, json};

/// What refused payments are refused with.
const REFUSAL: &str = "no_wallet";

pub fn handle(request: &Request) -> Answer {
    if request.header("authorization") != format!("Bearer {CREDENTIAL}") {
        return plain(401, "the key is missing");
    }
    let (method, path) = request.what();
    let place: Vec<&str> = path.split('/').skip(1).collect();
    match (method, &place[..]) {
        ("POST", ["payments"]) => pay(&request.body).unwrap_or_else(|why| {
            malformed("payment", &why);
            plain(422, &why)
        }),
        ("GET", ["payments", id]) => state_of(id),
        ("PUT", ["bulk", name]) => bulk::take(name, request),
        ("GET", ["bulk", name]) => bulk::look(name),
        ("GET", ["answers", number]) => bulk::answer_of(number),
        _ => plain(404, "there is nothing here"),
    }
}

fn pay(body: &[u8]) -> Result<Answer, String> {
    let sent: Value = serde_json::from_slice(body).map_err(|cause| cause.to_string())?;
    let text = |name: &'static str| {
        let found = sent[name].as_str().filter(|text| !text.is_empty());
        found.ok_or_else(|| name.to_owned())
    };
    let (id, number, url) = (text("id")?, text("number")?, text("outcome_url")?);
    text("name")?;
    let amount = sent["amount"].as_i64().filter(|amount| *amount > 0 && amount % 5 == 0);
    let amount = amount.ok_or("amount must be ariary in steps of 5")?;
    if !is_wallet(number) {
        return Err("number".to_owned());
    }
    if host::scenario(number) == "provider_down" {
        return Ok(unavailable());
    }
    let known = host::find(id);
    let mut payment =
        known.unwrap_or_else(|| Transfer::new(id, amount * 100, number).noting("outcome_url", url));
    payment.received += 1;
    if payment.received > 1 && payment.state != State::Lost {
        host::keep(&payment);
        return Ok(plain(409, "this id was used"));
    }
    let scenario = payment.scenario.clone();
    match scenario.as_str() {
        "never_received" if payment.received == 1 => {}
        "failed" | "timeout_then_failed" => payment.state = State::Refused(REFUSAL.to_owned()),
        "processing" => payment.state = State::Pending,
        "timeout_then_unknown" => payment.state = State::Unclear,
        _ => payment.pay(),
    }
    host::keep(&payment);
    if payment.state == State::Lost {
        return Ok(Answer::NotReceived);
    }
    if scenario.starts_with("timeout_") {
        return Ok(Answer::Silence);
    }
    if payment.state != State::Pending {
        let times = if scenario == "duplicate_callback" { 2 } else { 1 };
        (0..times).for_each(|_| tell_outcome(&payment));
    }
    Ok(plain(202, "taken"))
}

fn is_wallet(number: &str) -> bool {
    let has_form = number.len() == 12 && number.starts_with("2613");
    has_form && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn state_of(id: &str) -> Answer {
    match host::find(id) {
        _ if host::scenario("") == "provider_down" => unavailable(),
        None => plain(404, "there is no such payment"),
        Some(payment) if payment.state == State::Lost => plain(404, "there is no such payment"),
        Some(payment) => answer(200, "application/json", &outcome(&payment)),
    }
}

/// Something happens to a payment. What was paid into a wallet at once does not come back.
pub fn tell(id: &str, event: Event) -> Result<Transfer, Obstacle> {
    let payment = host::find(id).filter(|payment| payment.received > 0);
    let mut payment = payment.ok_or(Obstacle::Unknown)?;
    let came_in_a_file = !payment.noted(bulk::FILE).is_empty();
    match (event, &payment.state) {
        (Event::Settle, State::Pending | State::Unclear) => payment.pay(),
        (Event::Fail, State::Pending | State::Unclear) => {
            payment.state = State::Refused(REFUSAL.to_owned());
        }
        (Event::Return, State::Paid) if came_in_a_file => payment.state = State::Returned,
        _ => return Err(Obstacle::Impossible),
    }
    host::keep(&payment);
    match came_in_a_file {
        true => bulk::tell(&payment),
        false => tell_outcome(&payment),
    }
    Ok(payment)
}

fn tell_outcome(payment: &Transfer) {
    let url = Place::Url(payment.noted("outcome_url").to_owned());
    host::send(&payment.message(url, &outcome(payment)));
}

fn outcome(payment: &Transfer) -> String {
    let (state, reason) = match &payment.state {
        State::Paid | State::Returned => ("paid", ""),
        State::Refused(reason) => ("refused", reason.as_str()),
        State::Lost | State::Pending | State::Unclear => ("taken", ""),
    };
    let (id, amount) = (&payment.reference, payment.amount_minor / 100);
    json!({ "id": id, "state": state, "reason": reason, "amount": amount }).to_string()
}
