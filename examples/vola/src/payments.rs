//! Paying, and asking what became of a payment.

use railhead_rail::fields::value;
use railhead_rail::host;
use railhead_rail::json::Object;
use railhead_rail::request::{self, Request, callback, parameter, secret, text, why};
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Receipt, Refusal};

use crate::messages::{finding, read};

/// The reference follows from the number that the host allotted: it is new for every attempt, and
/// the same however often this is called. Payments by file have references of the same kind.
pub fn prepare(payment: &Payment) -> Opening {
    Opening { reference: format!("rh{:012}", payment.serial), facts: Vec::new() }
}

pub fn submit(payment: &Payment) -> Outcome {
    let body = Object::new()
        .text("id", &payment.reference)
        .text("number", value(&payment.recipient, "mobile_number"))
        .text("name", value(&payment.recipient, "name"))
        .number("amount", payment.amount_minor / 100)
        .part("outcome_url", callback("/outcome"))
        .finish();
    let answer = host::send(&Request {
        headers: vec![authorization(), parameter("Content-Type", [text("application/json")])],
        body,
        ..request::call("pay")
    });
    match answer {
        Ok(answer) if answer.status == 202 => Outcome::Accepted(Receipt {
            code: "taken".to_owned(),
            network_id: None,
            amount_minor: None,
            facts: Vec::new(),
        }),
        // Refused as it stands: nothing of it was kept.
        Ok(answer) if answer.status == 422 => Outcome::Refused(Refusal {
            code: "422".to_owned(),
            message: "Vola does not take this payment".to_owned(),
        }),
        // 409 is our own first sending: it is asked about like everything else.
        Ok(answer) => Outcome::Unknown(format!("Vola answered HTTP {}", answer.status)),
        Err(failure) => Outcome::Unknown(why(failure)),
    }
}

pub fn query(payment: &Payment) -> Finding {
    let answer = host::send(&Request {
        path: payment.reference.clone(),
        headers: vec![authorization()],
        ..request::call("ask")
    });
    match answer {
        Ok(answer) if answer.status == 200 => match read(&answer.body) {
            Some(told) if told.id == payment.reference => finding(&told),
            _ => Finding::Unknown("Vola answered about something else".to_owned()),
        },
        Ok(answer) if answer.status == 404 => Finding::NeverReceived("404".to_owned()),
        Ok(answer) => Finding::Unknown(format!("Vola answered HTTP {}", answer.status)),
        Err(failure) => Finding::Unknown(why(failure)),
    }
}

pub fn authorization() -> request::Parameter {
    parameter("Authorization", [text("Bearer "), secret("api_key")])
}
