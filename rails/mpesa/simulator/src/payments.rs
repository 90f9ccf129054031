//! What becomes of a payment, and of questions about it.

use railhead_simulator::answers::unavailable;
use railhead_simulator::host;
use railhead_simulator::types::{Answer, Event, Message, Obstacle, State, Transfer};
use serde_json::json;

use crate::requests::{PaymentRequest, StatusRequest};
use crate::results::{answer_to, held_up, result, result_again, told_at};
use crate::{acknowledged, error};

/// "The recipient is not registered": what refused payments are refused with.
const REFUSAL: i64 = 2040;
/// The note of where a payment's outcome is told.
pub(crate) const RESULT_URL: &str = "result_url";

/// Takes a request for payment.
///
/// # Errors
/// Daraja would not understand it.
pub fn take(body: &[u8]) -> Result<Answer, String> {
    let request = PaymentRequest::read(body)?;
    if host::scenario(&request.party_b) == "provider_down" {
        return Ok(unavailable());
    }
    let mut payment = host::find(&request.reference).unwrap_or_else(|| {
        Transfer::new(&request.reference, request.amount * 100, &request.party_b)
            .noting(RESULT_URL, &request.result_url)
    });
    let reply = receive(&mut payment);
    host::keep(&payment);
    Ok(match reply {
        Reply::NotReceived => Answer::NotReceived,
        Reply::Unheard(results) => {
            results.iter().for_each(host::send);
            Answer::Silence
        }
        Reply::Duplicate => error(500, "500.002.1001", "Duplicate OriginatorConversationID."),
        Reply::Taken(results) => {
            results.iter().for_each(host::send);
            if payment.scenario == "queue_timeout" {
                let body = json!({ "Result": {} });
                host::send(&told_at(&payment.reference, request.timeout_url, &body));
            }
            acknowledged(&payment.reference)
        }
    })
}

/// What the network does with a payment once it has written it down.
enum Reply {
    /// It never came.
    NotReceived,
    /// These results are told. Its acknowledgement comes too late, or not at all: nobody hears it.
    Unheard(Vec<Message>),
    /// It came before.
    Duplicate,
    /// It is acknowledged, and these results are told.
    Taken(Vec<Message>),
}

fn receive(payment: &mut Transfer) -> Reply {
    let is_first = payment.received == 0;
    payment.received += 1;
    if !is_first {
        let was_lost = payment.scenario == "never_received" && payment.state == State::Lost;
        if !was_lost {
            return Reply::Duplicate;
        }
        payment.pay();
        return Reply::Taken(vec![result(payment, &json!(0))]);
    }
    match payment.scenario.as_str() {
        "never_received" => return Reply::NotReceived,
        "processing" => payment.state = State::Pending,
        "failed" | "timeout_then_failed" => payment.state = State::Refused(REFUSAL.to_string()),
        "timeout_then_unknown" => payment.state = State::Unclear,
        _ => payment.pay(),
    }
    match payment.scenario.as_str() {
        // What stays in a queue for too long is carried out all the same, and nobody tells.
        "processing" | "queue_timeout" => Reply::Taken(Vec::new()),
        "failed" => Reply::Taken(vec![result(payment, &json!(REFUSAL))]),
        // As a text and as a number, as it comes in practice.
        "duplicate_callback" => {
            Reply::Taken(vec![result(payment, &json!("0")), result(payment, &json!(0))])
        }
        "code_as_text" => Reply::Taken(vec![result(payment, &json!("0"))]),
        "result_twice" => Reply::Taken(vec![result(payment, &json!(0)), result_again(payment)]),
        "result_first" => Reply::Unheard(vec![result(payment, &json!(0))]),
        scenario if scenario.starts_with("timeout_") => Reply::Unheard(Vec::new()),
        _ => Reply::Taken(vec![result(payment, &json!(0))]),
    }
}

/// Takes a question about a payment. The answer is told where the question says, and a result
/// that was held up where the payment's own request said.
///
/// # Errors
/// Daraja would not understand it.
pub fn status(body: &[u8]) -> Result<Answer, String> {
    let request = StatusRequest::read(body)?;
    let found = host::find(&request.reference);
    let account = found.as_ref().map_or("", |payment| payment.account.as_str());
    if host::scenario(account) == "provider_down" {
        return Ok(unavailable());
    }
    if let Some(result) = found.as_ref().and_then(held_up) {
        host::send(&result);
    }
    if let Some(answer) = answer_to(found.as_ref()) {
        host::send(&told_at(&request.reference, request.result_url, &answer));
    }
    Ok(acknowledged(&format!("question-about-{}", request.reference)))
}

/// Something happens to a payment.
///
/// # Errors
/// There is none of this reference, or it does not happen to it as it stands. What was paid to
/// a customer does not come back.
pub fn tell(reference: &str, event: Event) -> Result<Transfer, Obstacle> {
    let mut payment = host::find(reference).ok_or(Obstacle::Unknown)?;
    let code = match (event, &payment.state) {
        (Event::Settle, State::Pending | State::Unclear) => {
            payment.pay();
            json!(0)
        }
        (Event::Fail, State::Pending | State::Unclear) => {
            payment.state = State::Refused(REFUSAL.to_string());
            json!(REFUSAL)
        }
        _ => return Err(Obstacle::Impossible),
    };
    host::keep(&payment);
    host::send(&result(&payment, &code));
    Ok(payment)
}

#[cfg(test)]
mod tests {
    use railhead_simulator::host::double::{self, Host};
    use railhead_simulator::types::{Place, Request};
    use serde_json::Value;

    use super::*;

    fn sent(amount: &Value) -> Answer {
        presenting(crate::BEARER, amount)
    }

    fn presenting(token: &str, amount: &Value) -> Answer {
        let body = json!({
            "OriginatorConversationID": "rh-1",
            "InitiatorName": "railhead",
            "SecurityCredential": format!("{}simulator", double::seal("safaricom")),
            "CommandID": "BusinessPayment",
            "Amount": amount,
            "PartyA": "600000",
            "PartyB": "254712345678",
            "Remarks": "Invoice",
            "QueueTimeOutURL": "http://localhost/timeout",
            "ResultURL": "http://localhost/result",
            "Occassion": "po_1",
        });
        let request = Request {
            method: "POST".to_owned(),
            path: "/mpesa/b2c/v3/paymentrequest".to_owned(),
            query: Vec::new(),
            headers: vec![("authorization".to_owned(), format!("Bearer {token}"))],
            body: body.to_string().into_bytes(),
        };
        crate::handle(&request)
    }

    fn payment(amount: &Value) -> (u16, String) {
        match sent(amount) {
            Answer::Response(it) => (it.status, String::from_utf8(it.body).expect("a text")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_payment_is_made_once_and_told_where_it_said() {
        double::install(Host { scenario: "paid".to_owned(), ..Host::default() });
        assert_eq!(payment(&json!(1250)).0, 200);
        let (status, again) = payment(&json!(1250));
        assert_eq!(status, 500);
        assert!(again.contains("500.002.1001"), "{again}");
        double::with(|host| {
            let kept = &host.book["rh-1"];
            assert_eq!((kept.executed, kept.received, kept.amount_minor), (1, 2, 125_000));
            assert_eq!(host.sent.len(), 1);
            assert_eq!(host.sent[0].to, Place::Url("http://localhost/result".to_owned()));
        });
        assert_eq!(tell("rh-1", Event::Return), Err(Obstacle::Impossible));
        assert_eq!(tell("rh-2", Event::Settle), Err(Obstacle::Unknown));
    }

    #[test]
    fn a_token_that_is_none_is_answered_as_documented_and_pays_nothing() {
        double::install(Host { scenario: "paid".to_owned(), ..Host::default() });
        let Answer::Response(answer) = presenting("another", &json!(1250)) else {
            panic!("an answer")
        };
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer.status, &body["errorCode"]), (404, &json!("404.001.03")));
        double::with(|host| assert!(host.book.is_empty() && host.errors.is_empty()));
        assert_eq!(payment(&json!(1250)).0, 200);
    }

    #[test]
    fn a_refusal_that_was_held_up_is_told_once_it_is_asked_about() {
        double::install(Host::default());
        let mut refused = Transfer::new("rh-1", 125_000, "254712345678")
            .noting(RESULT_URL, "http://localhost/result");
        assert!(held_up(&refused).is_none());
        refused.state = State::Refused(REFUSAL.to_string());
        let told = held_up(&refused).expect("a result");
        assert_eq!(told.to, Place::Url("http://localhost/result".to_owned()));
        let told: Value = serde_json::from_slice(&told.body).expect("JSON");
        assert_eq!(told["Result"]["ResultCode"], "2040");
    }

    /// The results that were told, without what is around them.
    fn told() -> Vec<Value> {
        let read = |message: &Message| {
            assert_eq!(message.to, Place::Url("http://localhost/result".to_owned()));
            let whole: Value = serde_json::from_slice(&message.body).expect("JSON");
            whole["Result"].clone()
        };
        double::with(|host| host.sent.iter().map(read).collect())
    }

    fn values(result: &Value, key: &str) -> Vec<Value> {
        let all = result["ResultParameters"]["ResultParameter"].as_array().expect("a list");
        let of_key = all.iter().filter(|parameter| parameter["Key"] == key);
        of_key.map(|parameter| parameter["Value"].clone()).collect()
    }

    #[test]
    fn results_that_come_early_twice_or_with_a_text_as_their_code() {
        for (scenario, is_answered, codes) in [
            ("paid", true, vec![json!(0)]),
            ("code_as_text", true, vec![json!("0")]),
            ("result_twice", true, vec![json!(0), json!(0)]),
            ("result_first", false, vec![json!(0)]),
        ] {
            double::install(Host { scenario: scenario.to_owned(), ..Host::default() });
            let is_silent = sent(&json!(1250)) == Answer::Silence;
            assert_eq!(is_silent, !is_answered, "{scenario}");
            let results = told();
            let told: Vec<&Value> = results.iter().map(|result| &result["ResultCode"]).collect();
            assert_eq!(told, codes.iter().collect::<Vec<_>>(), "{scenario}");
            for result in &results {
                assert_eq!(values(result, "TransactionAmount"), [json!(1250)], "{scenario}");
                assert_eq!(result["TransactionID"], results[0]["TransactionID"], "{scenario}");
            }
            let names = values(results.last().expect("a result"), "DebitPartyName");
            assert_eq!(names.len(), if scenario == "result_twice" { 2 } else { 0 }, "{scenario}");
            // The same payment once more is none, and nothing more is told.
            assert_eq!(payment(&json!(1250)).0, 500, "{scenario}");
            double::with(|host| {
                assert_eq!(host.book["rh-1"].executed, 1, "{scenario}");
                assert_eq!(host.sent.len(), codes.len(), "{scenario}");
            });
        }
    }

    #[test]
    fn what_daraja_does_not_understand_is_refused_loudly() {
        double::install(Host::default());
        for amount in [json!("1250"), json!(12.5), json!(9), json!(250_001), Value::Null] {
            let (status, answer) = payment(&amount);
            assert_eq!(status, 400, "{amount}: {answer}");
        }
        double::with(|host| {
            assert_eq!(host.errors.len(), 5);
            assert!(host.book.is_empty());
        });
    }
}
