//! A transfer as it is shown to who sent it, and what is told of it.

use railhead_simulator::types::{Message, Place, State, Transfer};
use serde::Serialize;
use serde_json::value::RawValue;

/// The note of whether the recipient is asked.
pub const AUTHENTICATION: &str = "authentication";
/// The recipient has to answer.
pub const PAYMENT_LEVEL: &str = "PAYMENT_LEVEL";
/// The recipient has Autodeposit.
pub const NOT_REQUIRED: &str = "NOT_REQUIRED";

/// Where notices are told.
const NOTICES: &str = "/payments";
/// What is refused in words of its own; everything else has failed with a code.
const ENDS: [&str; 3] = ["CANCELLED", "DECLINED", "EXPIRED"];

/// The word for how a transfer stands, and the code of its failure.
#[must_use]
pub fn word(transfer: &Transfer) -> (&str, Option<&str>) {
    let is_automatic = transfer.noted(AUTHENTICATION) == NOT_REQUIRED;
    match &transfer.state {
        State::Paid | State::Returned if is_automatic => ("REALTIME_DEPOSIT_COMPLETED", None),
        State::Paid | State::Returned => ("COMPLETED", None),
        State::Refused(code) if ENDS.contains(&code.as_str()) => (code, None),
        State::Refused(code) => ("FAILED", Some(code)),
        State::Unclear => ("DIRECT_DEPOSIT_FAILED", None),
        State::Pending | State::Lost if is_automatic => ("REALTIME_INITIATED", None),
        State::Pending | State::Lost => ("AVAILABLE", None),
    }
}

/// A transfer as an answer and a notice have it.
#[derive(Serialize)]
pub struct Data<'a> {
    product_code: &'static str,
    payment_id: String,
    end_to_end_identification: &'a str,
    clearing_system_reference: String,
    payment_type: &'static str,
    authentication_type: &'a str,
    payment_status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'a str>,
    amount: Amount,
}

#[derive(Serialize)]
struct Amount {
    amount: Option<Box<RawValue>>,
    currency: &'static str,
}

#[derive(Serialize)]
struct Event<'a> {
    event_id: String,
    event_type: &'static str,
    data: Data<'a>,
}

/// A transfer under this word.
#[must_use]
pub fn data<'a>(
    transfer: &'a Transfer,
    (payment_status, failure_code): (&'a str, Option<&'a str>),
) -> Data<'a> {
    let authentication_type = transfer.noted(AUTHENTICATION);
    let payment_type = match authentication_type {
        NOT_REQUIRED => "REAL_TIME_ACCOUNT_ALIAS_PAYMENT",
        _ => "REGULAR_PAYMENT",
    };
    Data {
        product_code: "DOMESTIC",
        payment_id: format!("{:016x}", hash(&transfer.reference)),
        end_to_end_identification: &transfer.reference,
        clearing_system_reference: network_id(&transfer.reference),
        payment_type,
        authentication_type,
        payment_status,
        failure_code,
        amount: Amount { amount: dollars(shown_minor(transfer)), currency: "CAD" },
    }
}

/// A notice that a transfer stands so; `number` keeps apart what is told of one.
#[must_use]
pub fn notice(transfer: &Transfer, word: (&str, Option<&str>), number: u32) -> Message {
    let event = Event {
        event_id: format!("{}-{number}", transfer.reference),
        event_type: "PAYMENT_STATUS_CHANGED",
        data: data(transfer, word),
    };
    let mut message = transfer.message(Place::Notice(NOTICES.to_owned()), &crate::written(&event));
    message.headers.push(("content-type".to_owned(), "application/json".to_owned()));
    message
}

/// What the network calls a transfer, as its recipient reads it.
#[must_use]
pub fn network_id(reference: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let (mut left, mut id) = (hash(reference), String::from("CA"));
    for _ in 0..12 {
        let digit = usize::try_from(left % 36).unwrap_or_default();
        id.push(char::from(DIGITS[digit]));
        left /= 36;
    }
    id
}

/// The amount that is shown: in one scenario another one than was sent.
fn shown_minor(transfer: &Transfer) -> i64 {
    match transfer.scenario.as_str() {
        "other_amount" => transfer.amount_minor + 100,
        _ => transfer.amount_minor,
    }
}

/// Dollars with two decimals, as a number of JSON.
fn dollars(amount_minor: i64) -> Option<Box<RawValue>> {
    RawValue::from_string(format!("{}.{:02}", amount_minor / 100, amount_minor % 100)).ok()
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
