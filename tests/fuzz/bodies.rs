//! Bodies of payouts: JSON, and what it asks for.

use std::sync::LazyLock;

use axum::extract::{FromRequest as _, Request};
use http::header::CONTENT_TYPE;
use railhead::error::Problem;
use railhead::http::Body;
use railhead::payouts::across::{Across, Asked, Method};
use railhead::payouts::request::{CreatePayout, NewPayout, To};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::inputs::fuzz;

const WORDS: &[&str] = &[
    "\"amount_minor\":",
    "\"currency\":",
    "\"NGN\"",
    "\"USD\"",
    "\"recipient\":{",
    "\"email\":",
    "\"a@b.co\"",
    "\"account_number\":",
    "\"0123456785\"",
    "\"beneficiary_id\":",
    "\"narration\":",
    "\"funding_currency\":",
    "\"funding_amount_minor\":",
    "\"max_debit_minor\":",
    "\"min_receive_minor\":",
    "\"fee_inclusive\":",
    "\"merchant_reference\":",
    "\"customer_id\":",
    "\"sender_customer_id\":",
    "\"sender\":{",
    "\"allow_duplicate\":",
    "true",
    "null",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"\"",
    "1e400",
    "-0",
    "0.1",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"funding_currency\":",
    "\"funding_amount_minor\":",
    "\"amount_basis\":",
    "\"fee_inclusive\":",
    "\"max_debit_minor\":",
    "{\"a\":{\"a\":{\"a\":",
    "[[[[[[[[[[",
];

#[test]
fn bodies() {
    fuzz("bodies", WORDS, |input| {
        let Some(body) = accepted(read(input)) else { return };
        let fingerprint = body.fingerprint("/v1/payouts");
        let subject = body.value.subject();
        let Some(payout) = accepted(understood(body)) else { return };
        sound(&payout);
        // However it is written, the same request asks for the same and is known again.
        let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
        for text in [value.to_string(), format!("{value:#}\n")] {
            // A fraction with more digits than a float holds is not read back as it was.
            if serde_json::from_str::<Value>(&text).ok().as_ref() != Some(&value) {
                continue;
            }
            let again = read(text.as_bytes()).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert_eq!(again.fingerprint("/v1/payouts"), fingerprint, "{text}");
            assert_eq!(again.value.subject(), subject, "{text}");
            let again = understood(again).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert_eq!(format!("{again:?}"), format!("{payout:?}"));
        }
    });
}

fn read(input: &[u8]) -> Result<Body<CreatePayout>, Problem> {
    let request = Request::post("/v1/payouts").header(CONTENT_TYPE, "application/json");
    let request = request.body(input.to_vec().into()).expect("a request");
    // A body has a deadline, and so needs a clock.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
    RUNTIME.block_on(Body::from_request(request, &()))
}

fn understood(body: Body<CreatePayout>) -> Result<NewPayout, Problem> {
    body.value.read()
}

/// What was accepted; a refusal is the caller's own fault, and says so.
fn accepted<T>(read: Result<T, Problem>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(problem) => {
            let status = problem.code().entry().status;
            assert!((400..500).contains(&status), "{status}: {problem}");
            let shown = serde_json::to_value(problem.envelope("")).expect("JSON");
            assert!(shown["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
            None
        }
    }
}

fn sound(payout: &NewPayout) {
    let amounts = match &payout.asked {
        Asked::Plain(amount) => vec![*amount],
        Asked::Across(Across { from, method }) => {
            assert_ne!(*from, payout.currency);
            match *method {
                Method::Destination { amount, max_debit } => {
                    [Some(amount), max_debit].into_iter().flatten().collect()
                }
                Method::Source { amount, min_receive, .. } => {
                    [Some(amount), min_receive].into_iter().flatten().collect()
                }
            }
        }
    };
    assert!(amounts.iter().all(|amount| amount.units() > 0));
    for (text, most) in [
        (&payout.merchant_reference, 128),
        (&payout.narration, 100),
        (&payout.customer_reference, 64),
    ] {
        let Some(text) = text else { continue };
        assert!((1..=most).contains(&text.chars().count()), "{text:?}");
        assert!(text.trim() == text && !text.chars().any(char::is_control), "{text:?}");
    }
    if let To::Inline(fields) = &payout.to {
        assert!(fields.keys().all(|name| !name.contains('\0')));
    }
}
