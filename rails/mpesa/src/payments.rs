//! Payments, and questions about them.
//!
//! Daraja answers neither: it acknowledges, and tells the result later (see [`crate::results`]).

use railhead_rail::fields;
use railhead_rail::json::Object;
use railhead_rail::request::{callback, sealed};
use railhead_rail::types::{Finding, Opening, Outcome, Payment, Receipt, Refusal};

use crate::daraja::{self, PAYMENT, STATUS};
use crate::settings::Settings;

/// Remarks have 2 to 100 characters.
const REMARKS_MAX: usize = 100;
const REMARKS_DEFAULT: &str = "Payment";

/// What Daraja says where it has read a request and will not have it, before anything is done.
const BAD_REQUEST: &str = "400.002.02";
/// What its gateway says, in front of everything else, to a token that it does not take: under 404,
/// as it is documented, or 401.
const BAD_TOKEN: &str = "404.001.03";

/// Fixes the `OriginatorConversationID`.
///
/// # Errors
/// The amount is not in whole shillings.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if payment.amount_minor <= 0 || payment.amount_minor % 100 != 0 {
        let message = "M-Pesa pays whole shillings".to_owned();
        return Err(Refusal { code: "whole_shillings".to_owned(), message });
    }
    // The serial is unique here; the instant keeps it apart from those of another database.
    let reference =
        format!("{}-{:x}-{:x}", Settings::read().short_code, payment.begun_at_ms, payment.serial);
    Ok(Opening { reference, facts: Vec::new() })
}

/// Orders the payment.
#[must_use]
pub fn submit(payment: &Payment) -> Outcome {
    let answer = match daraja::ask(PAYMENT, order(payment)) {
        Ok(answer) => answer,
        Err(why) => return Outcome::Unknown(why),
    };
    if answer.is_taken() && answer.get("OriginatorConversationID") == payment.reference {
        return Outcome::Accepted(Receipt {
            code: answer.get("ResponseCode").to_owned(),
            network_id: Some(answer.get("ConversationID").to_owned()).filter(|id| !id.is_empty()),
            amount_minor: None,
            facts: Vec::new(),
        });
    }
    match (answer.status, answer.get("errorCode")) {
        (400, code @ BAD_REQUEST) | (401 | 404, code @ BAD_TOKEN) => Outcome::Refused(Refusal {
            code: code.to_owned(),
            message: "M-Pesa did not accept the request".to_owned(),
        }),
        // A duplicate (500.002.1001) was taken on before, whatever became of it.
        _ => Outcome::Unknown(answer.sentence()),
    }
}

/// Asks what became of the payment; the answer comes by itself.
#[must_use]
pub fn query(payment: &Payment) -> Finding {
    Finding::Unknown(match daraja::ask(STATUS, question(payment)) {
        Ok(answer) if answer.is_taken() => "asked; M-Pesa answers by itself".to_owned(),
        Ok(answer) => answer.sentence(),
        Err(why) => why,
    })
}

fn order(payment: &Payment) -> Object {
    let settings = Settings::read();
    Object::new()
        .text("OriginatorConversationID", &payment.reference)
        .text("InitiatorName", &settings.initiator_name)
        .part("SecurityCredential", sealed("safaricom", "initiator_password"))
        .text("CommandID", &settings.command)
        .number("Amount", payment.amount_minor / 100)
        .text("PartyA", &settings.short_code)
        .text("PartyB", fields::value(&payment.recipient, "mobile_number"))
        .text("Remarks", &remarks(&payment.narration))
        .part("QueueTimeOutURL", callback(&format!("/timeout/{}", payment.reference)))
        .part("ResultURL", callback("/result"))
        // Daraja's own spelling.
        .text("Occassion", &payment.payout)
}

fn question(payment: &Payment) -> Object {
    let settings = Settings::read();
    Object::new()
        .text("Initiator", &settings.initiator_name)
        .part("SecurityCredential", sealed("safaricom", "initiator_password"))
        .text("CommandID", "TransactionStatusQuery")
        .text("OriginalConversationID", &payment.reference)
        .text("PartyA", &settings.short_code)
        // A short code that belongs to an organisation.
        .text("IdentifierType", "4")
        // Both lead to where questions are answered: that one waited too long is no reason to ask.
        .part("ResultURL", callback(&answers(payment)))
        .part("QueueTimeOutURL", callback(&answers(payment)))
        .text("Remarks", REMARKS_DEFAULT)
        .text("Occasion", &payment.payout)
}

/// Where a question about a payment is answered: the address says which it is, and how much.
fn answers(payment: &Payment) -> String {
    format!("/status/{}~{}", payment.reference, payment.amount_minor)
}

/// The merchant's text as far as there is room for it.
fn remarks(narration: &str) -> String {
    let remarks: String = narration.trim().chars().take(REMARKS_MAX).collect();
    if remarks.chars().count() < 2 { REMARKS_DEFAULT.to_owned() } else { remarks }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::imports::http::Failure;
    use railhead_rail::request::{callback, sealed, text};
    use railhead_rail::types::{Finding, Outcome, Payment};

    use super::{prepare, query, submit};
    use crate::fixtures::{self, REFERENCE, payment};

    const ACK: &str = "{\"ConversationID\":\"AG_1\",\"OriginatorConversationID\":\"REF\",\
                       \"ResponseCode\":\"0\",\"ResponseDescription\":\"Accepted\"}";

    fn ack() -> String {
        ACK.replace("REF", REFERENCE)
    }

    #[test]
    fn the_reference_is_ours_and_the_same_every_time() {
        fixtures::install();
        let opening = prepare(&payment()).expect("a reference");
        assert_eq!(opening.reference, REFERENCE);
        let cents = prepare(&Payment { amount_minor: 1_050, ..payment() }).expect_err("cents");
        assert_eq!(cents.code, "whole_shillings");
    }

    #[test]
    fn an_order() {
        let sent = fixtures::daraja(Ok((200, ack())));
        let Outcome::Accepted(receipt) = submit(&payment()) else { panic!("accepted") };
        assert_eq!(receipt.network_id.as_deref(), Some("AG_1"));
        let request = &sent.borrow()[0];
        assert_eq!(request.call, "payment");
        let expected = [
            text(format!(
                "{{\"OriginatorConversationID\":\"{REFERENCE}\",\"InitiatorName\":\"railhead\",\
                 \"SecurityCredential\":\""
            )),
            sealed("safaricom", "initiator_password"),
            text(
                "\",\"CommandID\":\"BusinessPayment\",\"Amount\":1250,\"PartyA\":\"600000\",\
                 \"PartyB\":\"254712345678\",\"Remarks\":\"Invoice 17\",\"QueueTimeOutURL\":\"",
            ),
            callback(&format!("/timeout/{REFERENCE}")),
            text("\",\"ResultURL\":\""),
            callback("/result"),
            text("\",\"Occassion\":\"po_0001\"}"),
        ];
        assert_eq!(request.body, expected);
    }

    #[test]
    fn what_does_not_say_that_it_was_taken_on_is_unknown() {
        let submitted = |status, body: &str| {
            fixtures::daraja(Ok((status, body.to_owned())));
            submit(&payment())
        };
        let error = |code: &str| format!("{{\"errorCode\":\"{code}\",\"requestId\":\"1\"}}");
        for (status, body) in [
            (200, ack().replace(REFERENCE, "another")),
            (200, ack().replace("\"0\"", "\"1\"")),
            (500, ack()),
            (200, String::new()),
            (200, "[]".to_owned()),
            (500, error("500.002.1001")),
            (401, error("400.002.02")),
            (404, error("400.002.02")),
            // There is no such path: nobody knows who answers.
            (404, error("404.001.01")),
            (404, "<html></html>".to_owned()),
            (400, error("404.001.03")),
            (500, error("404.001.03")),
            (429, error("400.002.02")),
            (503, String::new()),
        ] {
            let came = submitted(status, &body);
            assert!(matches!(came, Outcome::Unknown(_)), "{status} {body}: {came:?}");
        }
        assert!(matches!(submitted(400, &error("400.002.02")), Outcome::Refused(_)));
        for status in [401, 404] {
            let came = submitted(status, &error("404.001.03"));
            assert!(matches!(came, Outcome::Refused(_)), "{status}: {came:?}");
        }
        fixtures::daraja(Err(Failure::NoAnswer("timeout".into())));
        assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
    }

    #[test]
    fn a_question_is_never_answered_at_once() {
        let sent = fixtures::daraja(Ok((200, ack())));
        assert!(matches!(query(&payment()), Finding::Unknown(why) if why.contains("by itself")));
        assert_eq!(sent.borrow()[0].call, "status");
        assert!(sent.borrow()[0].body.contains(&callback(&format!("/status/{REFERENCE}~125000"))));
        // That its token is not taken says nothing of the payment.
        for status in [401, 404] {
            let refused = "{\"requestId\":\"1\",\"errorCode\":\"404.001.03\"}".to_owned();
            fixtures::daraja(Ok((status, refused)));
            let Finding::Unknown(why) = query(&payment()) else { panic!("{status}") };
            assert!(why.contains("404.001.03"), "{why}");
        }
    }
}
