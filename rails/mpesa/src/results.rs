//! What Daraja tells by itself: results of payments, answers to questions, and that something
//! waited too long in a queue.

use railhead_rail::document::Document;
use railhead_rail::types::{Finding, News, Notice, Receipt, Refusal, Reply, Subject};

use crate::codes::{self, Class};

const RESULT: &str = "/result";
const STATUS: &str = "/status/";
const TIMEOUT: &str = "/timeout/";

/// What Daraja is answered.
const HEARD: &[u8] = b"{\"ResultCode\":0,\"ResultDesc\":\"Accepted\"}";

/// Reads a message.
///
/// # Errors
/// A sentence, where it is not one of Daraja's messages.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    let notice = if let Some(reference) = path.strip_prefix(TIMEOUT) {
        about(reference, News::Ask)
    } else if let Some(asked) = path.strip_prefix(STATUS) {
        let (reference, sent) = asked.split_once('~').ok_or("the address names no amount")?;
        about(reference, News::Found(answered(Document::read(body)?.get("Result"), sent)))
    } else if path == RESULT {
        let message = Document::read(body)?;
        let result = result(&message)?;
        about(result.text("OriginatorConversationID").trim(), News::Found(ended(result)))
    } else {
        return Err("this rail receives nothing under this path".to_owned());
    };
    let Subject::Reference(reference) = &notice.about else { unreachable!("named by us") };
    if reference.is_empty() || reference.contains('/') {
        return Err("the message names no payment".to_owned());
    }
    Ok((Reply::ok("application/json", HEARD), vec![notice]))
}

fn about(reference: &str, news: News) -> Notice {
    Notice { about: Subject::Reference(reference.to_owned()), news }
}

fn result(message: &Document) -> Result<&Document, String> {
    let result = message.get("Result");
    if !matches!(result, Document::Object(_)) {
        return Err("the message has no Result".to_owned());
    }
    match ["ResultCode", "OriginatorConversationID"].iter().find(|name| result.has_twice(name)) {
        Some(name) => Err(format!("the message has {name} twice")),
        None => Ok(result),
    }
}

/// What the result of a payment says.
fn ended(result: &Document) -> Finding {
    let code = result.text("ResultCode").trim();
    match codes::class(code) {
        Class::Paid => Finding::Paid(Receipt {
            code: code.to_owned(),
            network_id: network_id(result.text("TransactionID").trim()),
            amount_minor: amount(parameter(result, "TransactionAmount")),
            facts: Vec::new(),
        }),
        Class::Refused => {
            let (code, message) = (code.to_owned(), codes::meaning(code).to_owned());
            Finding::Refused(Refusal { code, message })
        }
        Class::Unclear => Finding::Unknown(codes::meaning(code).to_owned()),
    }
}

/// What the answer to a question says. Its own code is about the question, and one that waited
/// too long has none. An answer that does not speak of our amount speaks of something else.
fn answered(result: &Document, sent: &str) -> Finding {
    if result.text("ResultCode").trim() != "0" {
        return Finding::Unknown("M-Pesa could not answer the question".to_owned());
    }
    let said = amount(parameter(result, "Amount"));
    if said.map(|said| said.to_string()).as_deref() != Some(sent) {
        return Finding::Unknown("M-Pesa answered about another amount than was sent".to_owned());
    }
    // No other word is documented, so that none proves that the money stayed here. A refusal is
    // told as the payment's own result.
    if parameter(result, "TransactionStatus") != "Completed" {
        return Finding::Unknown("M-Pesa does not say that the payment is completed".to_owned());
    }
    Finding::Paid(Receipt {
        code: "0".to_owned(),
        network_id: network_id(parameter(result, "ReceiptNo")),
        amount_minor: said,
        facts: Vec::new(),
    })
}

fn network_id(text: &str) -> Option<String> {
    Some(text).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The parameter of this name, if all of them say the same. They come as a list in which a name
/// may stand twice, or as one object where there is only one.
fn parameter<'a>(result: &'a Document, name: &str) -> &'a str {
    let parameters = result.get("ResultParameters").get("ResultParameter");
    let all = match parameters {
        Document::List(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let of_name = all.iter().filter(|parameter| parameter.text("Key").trim() == name);
    let mut values = of_name.map(|parameter| parameter.text("Value").trim());
    let first = values.next().unwrap_or_default();
    if values.all(|value| value == first) { first } else { "" }
}

/// Cents of an amount in shillings; nothing where it is not written as one.
fn amount(shillings: &str) -> Option<i64> {
    let (whole, fraction) = shillings.split_once('.').unwrap_or((shillings, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let cents = format!("{:0<2}", fraction.trim_end_matches('0'));
    if !is_number(whole) || !is_number(fraction) || cents.len() > 2 {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(cents.parse().ok()?)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::types::{Finding, News, Subject};
    use serde_json::json;

    use super::receive;
    use crate::fixtures::REFERENCE;

    fn told(path: &str, body: &serde_json::Value) -> News {
        let (reply, notices) = receive(path, body.to_string().as_bytes()).expect("a notice");
        assert_eq!(reply.content_type, "application/json");
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert_eq!(notice.about, Subject::Reference(REFERENCE.into()));
        notice.news.clone()
    }

    fn result(code: &serde_json::Value) -> serde_json::Value {
        json!({ "Result": {
            "ResultType": 0,
            "ResultCode": code,
            "ResultDesc": "whatever it says",
            "OriginatorConversationID": REFERENCE,
            "ConversationID": "AG_1",
            "TransactionID": "NLJ41HAY6Q",
            "ResultParameters": { "ResultParameter": [
                { "Key": "TransactionAmount", "Value": 1250 },
                { "Key": "DebitPartyName", "Value": "1" },
                { "Key": "DebitPartyName", "Value": "2" },
            ] },
        } })
    }

    #[test]
    fn results_with_codes_as_numbers_and_as_texts() {
        for code in [json!(0), json!("0")] {
            let News::Found(Finding::Paid(receipt)) = told("/result", &result(&code)) else {
                panic!("paid")
            };
            assert_eq!(receipt.amount_minor, Some(125_000));
            assert_eq!(receipt.network_id.as_deref(), Some("NLJ41HAY6Q"));
        }
        for code in [json!(2040), json!("SFC_IC0003"), json!("1")] {
            let told = told("/result", &result(&code));
            assert!(matches!(told, News::Found(Finding::Refused(_))), "{code}: {told:?}");
        }
        for code in [json!(17), json!(null), json!(-1), json!("00")] {
            let told = told("/result", &result(&code));
            assert!(matches!(told, News::Found(Finding::Unknown(_))), "{code}: {told:?}");
        }
    }

    #[test]
    fn of_two_amounts_neither_counts() {
        let with = |more: serde_json::Value| {
            let mut whole = result(&json!(0));
            let parameters = &mut whole["Result"]["ResultParameters"]["ResultParameter"];
            parameters.as_array_mut().expect("a list").push(more);
            match told("/result", &whole) {
                News::Found(Finding::Paid(receipt)) => receipt.amount_minor,
                other => panic!("{other:?}"),
            }
        };
        let amount =
            |value: serde_json::Value| json!({ "Key": "TransactionAmount", "Value": value });
        assert_eq!(with(amount(json!("1250"))), Some(125_000));
        assert_eq!(with(json!({ "Key": "TransactionReceipt", "Value": 1 })), Some(125_000));
        for value in [json!(1251), json!("1250.00"), json!(null), json!([1250])] {
            assert_eq!(with(amount(value.clone())), None, "{value}");
        }
    }

    #[test]
    fn answers_to_questions_are_about_the_payment_in_their_address() {
        let answer = |status: &str| {
            json!({ "Result": {
                "ResultCode": "0",
                "OriginatorConversationID": "of the question itself",
                "ResultParameters": { "ResultParameter": [
                    { "Key": "TransactionStatus", "Value": status },
                    { "Key": "Amount", "Value": "1250.00" },
                    { "Key": "ReceiptNo", "Value": "NLJ41HAY6Q" },
                ] },
            } })
        };
        let path = format!("/status/{REFERENCE}~125000");
        let other = format!("/status/{REFERENCE}~125100");
        let elsewhere = told(&other, &answer("Completed"));
        assert!(matches!(elsewhere, News::Found(Finding::Unknown(_))), "{elsewhere:?}");
        assert!(matches!(told(&path, &json!({})), News::Found(Finding::Unknown(_))));
        let News::Found(Finding::Paid(receipt)) = told(&path, &answer("Completed")) else {
            panic!("paid")
        };
        assert_eq!(receipt.amount_minor, Some(125_000));
        for status in ["Failed", "Cancelled", "Declined", "Expired", "Pending", "completed", ""] {
            let told = told(&path, &answer(status));
            assert!(matches!(told, News::Found(Finding::Unknown(_))), "{status}: {told:?}");
        }
        let failed = json!({ "Result": { "ResultCode": 2001 } });
        assert!(matches!(told(&path, &failed), News::Found(Finding::Unknown(_))));
        let path = format!("/timeout/{REFERENCE}");
        assert_eq!(told(&path, &json!({})), News::Ask);
    }

    #[test]
    fn what_is_no_message_of_daraja() {
        for (path, body) in [
            ("/result", "".to_owned()),
            ("/result", "{}".to_owned()),
            ("/result", "{\"Result\":[]}".to_owned()),
            ("/result", "{\"Result\":{\"ResultCode\":0}}".to_owned()),
            ("/status/", "{\"Result\":{\"ResultCode\":0}}".to_owned()),
            ("/status/~5", "{\"Result\":{\"ResultCode\":0}}".to_owned()),
            ("/timeout/a/b", "{}".to_owned()),
            ("/result", "{\"Result\":{\"ResultCode\":1,\"ResultCode\":0}}".to_owned()),
            ("/timeout/", "{}".to_owned()),
            ("/other", result(&json!(0)).to_string()),
        ] {
            assert!(receive(path, body.as_bytes()).is_err(), "{path} {body}");
        }
    }
}
