//! What becomes of a payment, and of questions about it.

use railhead_simulator::answers::unavailable;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Obstacle, Request, State, Transfer};
use serde::Serialize;
use serde_json::json;

use crate::amounts::Pounds;
use crate::identifiers;
use crate::orders::{self, Fault, Order};
use crate::webhooks::{self, Naming};
use crate::{as_json, problem, time};

/// "Beneficiary sort code or account number unknown": what rejected payments are rejected with.
pub const REFUSAL: &str = "AC03";
/// What an order says of a payment that it refuses at once.
const INVALID_ACCOUNT: &str = "InvalidAccount";

/// The note of the payee's name.
pub(crate) const NAME: &str = "name";
/// The note of the text for the payee's statement.
pub(crate) const REMITTANCE: &str = "remittance";
/// The note of the payer's sort code and account.
pub(crate) const DEBTOR: &str = "debtor";
/// The note of the payee's.
pub(crate) const CREDITOR: &str = "creditor";
/// The note of when the payment arrived, as it is written.
pub(crate) const CREATED_AT: &str = "created_at";
/// The notes of the last request that brought it: its identifier, and when it came.
const REQUEST_ID: &str = "request_id";
const REQUEST_AT_MS: &str = "request_at_ms";

/// For how long a request's identifier is remembered: a day.
const REQUEST_KNOWN_MS: u64 = 86_400_000;

/// Takes an order.
///
/// # Errors
/// ClearBank would not understand it.
pub fn take(request: &Request) -> Result<Answer, Fault> {
    let orders = orders::read(&request.body)?;
    let payments: Vec<Transfer> = orders.iter().map(payment).collect();
    if orders.iter().any(|order| host::scenario(&order.creditor.number) == "provider_down") {
        // Nothing has arrived. What it would have been about is remembered all the same, for a
        // question to find the network as far down.
        payments.iter().for_each(host::keep);
        return Ok(unavailable());
    }
    if payments.iter().any(|payment| is_repeated(payment, request)) {
        payments.iter().filter(|payment| payment.received > 0).for_each(count);
        return Ok(as_json(409, &json!({ "status": 409 })));
    }
    if payments.iter().any(|it| it.received == 0 && it.scenario == "never_received") {
        payments.iter().for_each(count);
        return Ok(Answer::NotReceived);
    }
    let mut decisions = Vec::new();
    let mut is_answered = true;
    for order in &orders {
        let mut payment = noting(payment(order), request);
        let reply = receive(&mut payment);
        host::keep(&payment);
        match reply {
            Reply::Silence => is_answered = false,
            Reply::Decided(response) => decisions.push(decision(&payment, response)),
        }
    }
    if !is_answered {
        return Ok(Answer::Silence);
    }
    // "You'll receive a 400 response if all payments in the batch fail."
    let is_any_accepted = decisions.iter().any(|it| it["response"] == "Accepted");
    let status = if is_any_accepted { 202 } else { 400 };
    Ok(as_json(status, &json!({ "transactions": decisions, "halLinks": [] })))
}

/// The payment as it is known, or as new.
fn payment(order: &Order) -> Transfer {
    host::find(&order.reference).unwrap_or_else(|| {
        Transfer::new(&order.reference, order.amount.0, &order.creditor.number)
            .noting(NAME, &order.name)
            .noting(REMITTANCE, &order.remittance)
            .noting(DEBTOR, &order.debtor.digits())
            .noting(CREDITOR, &order.creditor.digits())
    })
}

/// Whether the very request that brought the payment came again: it is known for a day.
fn is_repeated(payment: &Transfer, request: &Request) -> bool {
    let came_at_ms = payment.noted(REQUEST_AT_MS).parse::<u64>().unwrap_or_default();
    payment.noted(REQUEST_ID) == request.header("x-request-id")
        && host::now_ms().saturating_sub(came_at_ms) < REQUEST_KNOWN_MS
}

/// Writes down what arrives with a payment.
fn noting(payment: Transfer, request: &Request) -> Transfer {
    let now_ms = host::now_ms();
    let is_first = payment.noted(CREATED_AT).is_empty();
    let noted = payment
        .noting(REQUEST_ID, request.header("x-request-id"))
        .noting(REQUEST_AT_MS, &now_ms.to_string());
    if is_first { noted.noting(CREATED_AT, &time::written(now_ms)) } else { noted }
}

/// Counts a request that changes nothing.
fn count(payment: &Transfer) {
    host::keep(&Transfer { received: payment.received + 1, ..payment.clone() });
}

fn decision(payment: &Transfer, response: &str) -> serde_json::Value {
    json!({ "endToEndIdentification": payment.reference, "response": response })
}

/// What the gateway does with a payment that has arrived.
enum Reply {
    /// It is not answered.
    Silence,
    /// Answers with this word.
    Decided(&'static str),
}

fn receive(payment: &mut Transfer) -> Reply {
    payment.received += 1;
    if payment.state != State::Lost {
        // Another request with a reference that was used: it is found out after the answer.
        host::send(&webhooks::duplicate(payment));
        return Reply::Decided("Accepted");
    }
    let scenario = payment.scenario.clone();
    match scenario.as_str() {
        "processing" => payment.state = State::Pending,
        "failed" | "timeout_then_failed" => payment.state = State::Refused(REFUSAL.to_owned()),
        "timeout_then_unknown" => payment.state = State::Unclear,
        "rejected_at_once" => payment.state = State::Refused(INVALID_ACCOUNT.to_owned()),
        _ => payment.pay(),
    }
    match scenario.as_str() {
        "processing" => Reply::Decided("Accepted"),
        "rejected_at_once" => Reply::Decided(INVALID_ACCOUNT),
        it if it.starts_with("timeout_") => Reply::Silence,
        _ => {
            speak(payment, &scenario);
            Reply::Decided("Accepted")
        }
    }
}

/// What the gateway tells by itself once a payment has ended.
fn speak(payment: &mut Transfer, scenario: &str) {
    match scenario {
        "failed" => host::send(&webhooks::rejected(payment)),
        "returned" => {
            host::send(&webhooks::settled(payment));
            payment.state = State::Returned;
            host::send(&webhooks::returned(payment, Naming::Reference));
        }
        // Settled, an older "held", and the same once more.
        "duplicate_callback" => {
            let settled = webhooks::settled(payment);
            host::send(&settled);
            host::send(&webhooks::held(payment));
            host::send(&settled);
        }
        "webhook_forged" => host::send(&webhooks::forged(payment)),
        "key_rotated" => host::send(&webhooks::by_another_key(webhooks::settled(payment))),
        _ => host::send(&webhooks::settled(payment)),
    }
}

/// Where a payment stands. ClearBank offers no such question: this is the one that the rail
/// agrees on with its gateway.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    end_to_end_identification: &'a str,
    status: &'static str,
    transaction_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fpid: Option<String>,
    amount: InstructedAmount,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason_code: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InstructedAmount {
    instructed_amount: Pounds,
    currency: &'static str,
}

/// Answers a question about a payment.
#[must_use]
pub fn status(reference: &str) -> Answer {
    let found = host::find(reference);
    let account = found.as_ref().map_or("", |payment| payment.account.as_str());
    if host::scenario(account) == "provider_down" {
        return unavailable();
    }
    let not_found = json!({
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "endToEndIdentification": reference,
    });
    let Some(payment) = found else { return as_json(404, &not_found) };
    let (status, reason_code) = match &payment.state {
        State::Lost => return as_json(404, &not_found),
        State::Unclear => return problem(500, "Internal Server Error"),
        State::Pending => ("Pending", None),
        // A payment that came back was made: the return is another one.
        State::Paid | State::Returned => ("Settled", None),
        State::Refused(code) => ("Rejected", Some(code.as_str())),
    };
    let fpid = (status == "Settled").then(|| identifiers::fpid(reference));
    let amount =
        InstructedAmount { instructed_amount: Pounds(payment.amount_minor), currency: "GBP" };
    let transaction_id = identifiers::guid(reference, "transaction");
    let end_to_end_identification = reference;
    let status =
        Status { end_to_end_identification, status, transaction_id, fpid, amount, reason_code };
    as_json(200, &status)
}

/// Something happens to a payment.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut payment = host::find(reference).ok_or(Obstacle::Unknown)?;
    let message = match (event, &payment.state) {
        (Event::Settle, State::Pending | State::Unclear) => {
            payment.pay();
            webhooks::settled(&payment)
        }
        (Event::Fail, State::Pending | State::Unclear) => {
            payment.state = State::Refused(REFUSAL.to_owned());
            webhooks::rejected(&payment)
        }
        (Event::Return, State::Paid) => {
            payment.state = State::Returned;
            webhooks::returned(&payment, Naming::Scheme)
        }
        _ => return Err(Obstacle::Impossible),
    };
    host::keep(&payment);
    host::send(&message);
    Ok(payment)
}
