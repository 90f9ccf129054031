//! What Daraja tells by itself: results of payments, answers to questions, and that something
//! waited too long in a queue.

use railhead_rail::types::{Finding, News, Notice, Receipt, Refusal, Reply, Subject};
use serde_json::Value;

use crate::codes::{self, Class};
use crate::daraja::written;

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
        about(reference, News::Found(answered(&message(body)?["Result"], sent)))
    } else if path == RESULT {
        let result = result(body)?;
        let reference = written(&result["OriginatorConversationID"]);
        about(&reference, News::Found(ended(&result)))
    } else {
        return Err("this rail receives nothing under this path".to_owned());
    };
    let Subject::Reference(reference) = &notice.about else { unreachable!("named by us") };
    if reference.is_empty() || reference.contains('/') {
        return Err("the message names no payment".to_owned());
    }
    let reply = Reply {
        content_type: "application/json".into(),
        headers: Vec::new(),
        body: HEARD.to_vec(),
    };
    Ok((reply, vec![notice]))
}

fn about(reference: &str, news: News) -> Notice {
    Notice { about: Subject::Reference(reference.to_owned()), news }
}

fn message(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|_| "the message is not JSON".to_owned())
}

fn result(body: &[u8]) -> Result<Value, String> {
    if String::from_utf8_lossy(body).matches("\"ResultCode\"").count() > 1 {
        return Err("the message has two result codes".to_owned());
    }
    match &message(body)?["Result"] {
        result @ Value::Object(_) => Ok(result.clone()),
        _ => Err("the message has no Result".to_owned()),
    }
}

/// What the result of a payment says.
fn ended(result: &Value) -> Finding {
    let code = written(&result["ResultCode"]);
    match codes::class(&code) {
        Class::Paid => Finding::Paid(Receipt {
            code,
            network_id: Some(written(&result["TransactionID"])).filter(|id| !id.is_empty()),
            amount_minor: amount(&parameter(result, "TransactionAmount")),
            facts: Vec::new(),
        }),
        Class::Refused => {
            let message = codes::meaning(&code).to_owned();
            Finding::Refused(Refusal { code, message })
        }
        Class::Unclear => Finding::Unknown(codes::meaning(&code).to_owned()),
    }
}

/// What the answer to a question says. Its own code is about the question, and one that waited
/// too long has none. An answer that does not speak of our amount speaks of something else.
fn answered(result: &Value, sent: &str) -> Finding {
    if written(&result["ResultCode"]) != "0" {
        return Finding::Unknown("M-Pesa could not answer the question".to_owned());
    }
    let said = amount(&parameter(result, "Amount"));
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
        network_id: Some(parameter(result, "ReceiptNo")).filter(|id| !id.is_empty()),
        amount_minor: said,
        facts: Vec::new(),
    })
}

/// The first parameter of this name. They come as a list in which a name may stand twice, or as
/// one object where there is only one.
fn parameter(result: &Value, name: &str) -> String {
    let parameters = &result["ResultParameters"]["ResultParameter"];
    let all = match parameters {
        Value::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let found = all.iter().find(|parameter| parameter["Key"] == name);
    found.map(|parameter| written(&parameter["Value"])).unwrap_or_default()
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
