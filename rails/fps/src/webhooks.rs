//! What the gateway tells by itself, at least once each: that a payment settled, that it was
//! rejected, that money came back.
//!
//! The host has checked the gateway's signature. A message that is of no concern here is
//! acknowledged like any other: the gateway would repeat it for a day.

use railhead_rail::request::{parameter, signature};
use railhead_rail::types::{
    Finding, News, Notice, Receipt, Refusal, Reply, ReturnOfFunds, Subject,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::amount;
use crate::codes::{self, Class};
use crate::gateway::{SIGNATURE, SIGNING_KEY};
use crate::payments::named;
use crate::reference;
use railhead_rail::strict::Object;

const WEBHOOKS: &str = "/webhooks";

/// Most characters of a nonce: any integer of 64 bits.
const NONCE_MAX: usize = 20;

/// The pair of a settlement's supplementary data that says why money came back.
const RETURN_CODE: &str = "PaymentReturnCode";
/// The one that names the payment which came back as the scheme does.
const RETURNED_FPID: &str = "ReturnedPaymentFpId";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope {
    r#type: String,
    payload: Option<Box<RawValue>>,
    nonce: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Transaction {
    transaction_id: Option<String>,
    status: Option<String>,
    end_to_end_transaction_id: Option<String>,
    amount: Option<Box<RawValue>>,
    currency_code: Option<String>,
    debit_credit_code: String,
    is_return: Option<bool>,
    cancellation_code: Option<String>,
    actual_end_to_end_transaction_id: Option<String>,
    supplementary_data: Option<Vec<Object<Pair>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pair {
    name: String,
    value: Option<String>,
}

/// Payments that were refused before they were any. The gateway writes the first name so; the
/// documentation has objects where its examples have lists, and in one table nothing around them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Failures {
    Listed {
        #[serde(
            rename = "AssesmentFailure",
            alias = "AssessmentFailure",
            alias = "ValidationFailure"
        )]
        failures: OneOrMore<Object<Failure>>,
    },
    Bare(BareFailure),
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BareFailure {
    end_to_end_id: String,
    reasons: Option<OneOrMore<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    end_to_end_id: Option<String>,
    reasons: Option<OneOrMore<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    More(Vec<T>),
    One(T),
}

impl<T> OneOrMore<T> {
    fn all(&self) -> &[T] {
        match self {
            Self::More(all) => all,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// Reads a message.
///
/// # Errors
/// A sentence, where it is not one of the gateway's messages.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    if path != WEBHOOKS {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let Object(envelope): Object<Envelope> = serde_json::from_slice(body)
        .map_err(|_| "the message is not a webhook of the gateway".to_owned())?;
    let reply = reply(envelope.nonce.get())?;
    let payload = envelope.payload.as_deref();
    let notices = match envelope.r#type.as_str() {
        "TransactionSettled" => settled(&read(payload)?).into_iter().collect(),
        "TransactionRejected" => rejected(&read(payload)?).into_iter().collect(),
        "PaymentMessageAssesmentFailed" | "PaymentMessageAssessmentFailed" => {
            failed(&read(payload)?, "AssessmentFailed")
        }
        "PaymentMessageValidationFailed" => failed(&read(payload)?, "ValidationFailed"),
        _ => Vec::new(),
    };
    Ok((reply, notices))
}

fn read<'a, T: Deserialize<'a>>(payload: Option<&'a RawValue>) -> Result<T, String> {
    let payload = payload.ok_or("the message has no payload")?;
    serde_json::from_str(payload.get())
        .map(|Object(payload)| payload)
        .map_err(|_| "the message's payload is not as documented".to_owned())
}

/// The nonce as it came, in a body that is signed.
fn reply(nonce: &str) -> Result<Reply, String> {
    let digits = nonce.strip_prefix('-').unwrap_or(nonce);
    if nonce.len() > NONCE_MAX || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("the message's nonce is not a whole number".to_owned());
    }
    let body = format!("{{\"Nonce\":{nonce}}}");
    Ok(Reply {
        headers: vec![parameter(SIGNATURE, [signature(SIGNING_KEY)])],
        ..Reply::ok("application/json", body.as_bytes())
    })
}

fn settled(transaction: &Transaction) -> Option<Notice> {
    match (transaction.debit_credit_code.as_str(), transaction.is_return) {
        ("Credit", Some(true)) => returned(transaction),
        // Somebody paid us.
        ("Credit", _) => None,
        ("Debit", is_return) => {
            let reference = ours(transaction.end_to_end_transaction_id.as_ref())?;
            // We return nothing: a return under our own reference makes no sense.
            let paid = Some(paid(transaction)).filter(|_| is_return != Some(true)).flatten();
            Some(about(reference, paid.map_or(News::Ask, News::Found)))
        }
        _ => {
            let reference = ours(transaction.end_to_end_transaction_id.as_ref())?;
            Some(about(reference, News::Ask))
        }
    }
}

/// What was paid, if the message says all of it.
fn paid(transaction: &Transaction) -> Option<Finding> {
    let amount_minor = pence(transaction)?;
    let status = transaction.status.as_deref().filter(|status| *status == "Settled")?;
    Some(Finding::Paid(Receipt {
        code: status.to_owned(),
        network_id: named(
            transaction.actual_end_to_end_transaction_id.as_ref(),
            transaction.transaction_id.as_ref(),
        ),
        amount_minor: Some(amount_minor),
        facts: Vec::new(),
    }))
}

/// A return names the payment by our reference, as the scheme does, or not at all.
fn returned(transaction: &Transaction) -> Option<Notice> {
    let pair = |name: &str| {
        let pairs = transaction.supplementary_data.as_deref().unwrap_or_default();
        let found = pairs.iter().find(|Object(pair)| pair.name == name);
        found.and_then(|Object(pair)| pair.value.as_deref()).filter(|value| !value.is_empty())
    };
    let by_reference = ours(transaction.end_to_end_transaction_id.as_ref()).map(Subject::Reference);
    // Money that came back is never passed over: what it is about, nobody here may know, and a
    // person has to find out.
    let own = transaction.transaction_id.clone().filter(|id| !id.is_empty());
    let named = pair(RETURNED_FPID).map(str::to_owned).or_else(|| own.clone());
    let nobody = || "a return without a name".to_owned();
    let Some(amount_minor) = pence(transaction) else {
        // No question would show it: it is told as something that nobody here knows.
        let name = own.unwrap_or_else(nobody);
        let about = Subject::NetworkId(format!("a return of an unreadable amount, {name}"));
        return Some(Notice { about, news: News::Ask });
    };
    let about = by_reference.unwrap_or_else(|| Subject::NetworkId(named.unwrap_or_else(nobody)));
    if transaction.status.as_deref().is_some_and(|status| status != "Settled") {
        return Some(Notice { about, news: News::Ask });
    }
    let code = codes::plain(pair(RETURN_CODE).unwrap_or("returned"));
    let message = codes::returned(&code).to_owned();
    let funds = ReturnOfFunds { code, message, amount_minor, network_id: own };
    let news = News::Found(Finding::Returned(funds));
    Some(Notice { about, news })
}

/// A rejection is believed with a code that is known to refuse; the gateway is asked otherwise.
fn rejected(transaction: &Transaction) -> Option<Notice> {
    let reference = ours(transaction.end_to_end_transaction_id.as_ref())?;
    let code = codes::plain(transaction.cancellation_code.as_deref().unwrap_or_default());
    let is_rejected = transaction.status.as_deref().is_none_or(|status| status == "Rejected");
    let is_payment =
        transaction.is_return != Some(true) && transaction.debit_credit_code == "Debit";
    let news = if is_rejected && is_payment && codes::class(&code) == Class::Refused {
        let message = codes::reject(&code).to_owned();
        News::Found(Finding::Refused(Refusal { code, message }))
    } else {
        News::Ask
    };
    Some(about(reference, news))
}

fn failed(failures: &Failures, code: &str) -> Vec<Notice> {
    let one = |reference: Option<&String>, reasons: Option<&OneOrMore<String>>| {
        let reasons = reasons.map(OneOrMore::all).unwrap_or_default();
        Some(about(ours(reference)?, refused(reasons, code)))
    };
    match failures {
        Failures::Listed { failures } => failures
            .all()
            .iter()
            .filter_map(|Object(it)| one(it.end_to_end_id.as_ref(), it.reasons.as_ref()))
            .collect(),
        Failures::Bare(it) => {
            one(Some(&it.end_to_end_id), it.reasons.as_ref()).into_iter().collect()
        }
    }
}

/// What the gateway's reasons come to: a refusal only where one is known to be one. The texts
/// themselves are not passed on: they quote accounts.
fn refused(reasons: &[String], code: &str) -> News {
    let says =
        |words: &str| reasons.iter().any(|reason| reason.to_ascii_lowercase().contains(words));
    // What it refuses this service for has the code that an answer to an order has for it.
    let known = [
        ("insufficientfunds", "InsufficientFunds", codes::OURS),
        ("insufficient funds", "InsufficientFunds", codes::OURS),
        ("modulus", code, "No account at this sort code has this number"),
        ("schemenotaccepted", code, "The bank does not take Faster Payments at this sort code"),
        ("inboundpaymentdisabled", code, "The account cannot be paid into"),
        ("inbound payments disabled", code, "The account cannot be paid into"),
        ("outboundpaymentdisabled", "DebitPaymentDisabled", codes::OURS),
        ("no internal account", code, "The bank knows no account with this sort code and number"),
        ("closed", code, "The account is closed"),
        ("limit exceeded", code, "The amount is above the scheme's limit"),
        ("characters", code, "The name or the reference holds what the scheme does not carry"),
    ];
    // A reason that is not listed may be about a copy of the payment that was made.
    let found = known.iter().find(|(words, ..)| says(words));
    let found = found.filter(|_| !reasons.iter().any(|it| codes::is_of_a_copy(it)));
    let Some((_, code, message)) = found else { return News::Ask };
    let (code, message) = ((*code).to_owned(), (*message).to_owned());
    News::Found(Finding::Refused(Refusal { code, message }))
}

fn pence(transaction: &Transaction) -> Option<i64> {
    transaction.currency_code.as_deref().filter(|currency| *currency == "GBP")?;
    amount::pence(transaction.amount.as_deref()?)
}

fn ours(reference: Option<&String>) -> Option<String> {
    reference.filter(|it| reference::is_ours(it)).cloned()
}

fn about(reference: String, news: News) -> Notice {
    Notice { about: Subject::Reference(reference), news }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::request::{parameter, signature};
    use railhead_rail::types::{Finding, News, Notice, Subject};

    use super::receive;
    use crate::fixtures::{self, REFERENCE};

    fn told(kind: &str, payload: &str) -> Vec<Notice> {
        fixtures::install();
        let body = format!(
            "{{\"Type\":\"{kind}\",\"Version\":6,\"Payload\":{payload},\"Nonce\":949893874}}"
        );
        receive("/webhooks", body.as_bytes()).expect(payload).1
    }

    fn settled(rest: &str) -> Vec<Notice> {
        told("TransactionSettled", &format!("{{\"Status\":\"Settled\",{rest}}}"))
    }

    #[test]
    fn every_reply_repeats_the_nonce_and_is_signed() {
        for nonce in ["0", "949893874", "-3", "18446744073709551615"] {
            let body =
                format!("{{\"Nonce\":{nonce},\"Payload\":\"Test\",\"Type\":\"FITestEvent\"}}");
            let (reply, notices) = receive("/webhooks", body.as_bytes()).expect("a message");
            assert_eq!(reply.body, format!("{{\"Nonce\":{nonce}}}").as_bytes());
            assert_eq!(reply.headers, [parameter("DigitalSignature", [signature("signing")])]);
            assert!(notices.is_empty());
        }
        for nonce in ["\"1\"", "1.0", "1e3", "null", "[1]", "true", "999999999999999999999"] {
            let body = format!("{{\"Type\":\"FITestEvent\",\"Nonce\":{nonce}}}");
            assert!(receive("/webhooks", body.as_bytes()).is_err(), "{nonce}");
        }
    }

    #[test]
    fn a_settlement_of_ours() {
        let ours = format!("\"EndToEndTransactionId\":\"{REFERENCE}\"");
        let found = settled(&format!(
            "{ours},\"DebitCreditCode\":\"Debit\",\"Amount\":1250.5,\"CurrencyCode\":\"GBP\",\
             \"TransactionId\":\"T\",\"ActualEndToEndTransactionId\":\"F\",\"IsReturn\":false"
        ));
        let [Notice { about, news: News::Found(Finding::Paid(receipt)) }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(*about, Subject::Reference(REFERENCE.into()));
        assert_eq!(receipt.amount_minor, Some(125_050));
        assert_eq!(receipt.network_id.as_deref(), Some("F"));
        for rest in [
            "\"DebitCreditCode\":\"Debit\"",
            "\"DebitCreditCode\":\"Debit\",\"Amount\":1250.505",
            "\"DebitCreditCode\":\"Debit\",\"Amount\":\"1250.50\"",
            "\"DebitCreditCode\":\"Debit\",\"Amount\":1250.50,\"CurrencyCode\":\"EUR\"",
            "\"DebitCreditCode\":\"Debit\",\"Amount\":1250.50,\"IsReturn\":true",
            "\"DebitCreditCode\":\"Other\",\"Amount\":1250.50",
        ] {
            let found = settled(&format!("{ours},{rest}"));
            assert!(matches!(found.as_slice(), [Notice { news: News::Ask, .. }]), "{rest}");
        }
        let cleared = ours.clone() + ",\"DebitCreditCode\":\"Debit\",\"Amount\":1250.50";
        let found = told("TransactionSettled", &format!("{{\"Status\":\"Clearing\",{cleared}}}"));
        assert!(matches!(found.as_slice(), [Notice { news: News::Ask, .. }]), "{found:?}");
    }

    #[test]
    fn money_of_others() {
        for rest in [
            "\"EndToEndTransactionId\":\"05726acd06dc\",\"DebitCreditCode\":\"Debit\"",
            "\"EndToEndTransactionId\":null,\"DebitCreditCode\":\"Debit\"",
            "\"DebitCreditCode\":\"Credit\",\"Amount\":5",
            "\"EndToEndTransactionId\":\"RP01A1FD557A800000000002\",\"DebitCreditCode\":\"Credit\",\
             \"IsReturn\":false,\"Amount\":5",
        ] {
            assert!(settled(rest).is_empty(), "{rest}");
        }
        // A return is never passed over, whatever it does not say.
        let returned = settled(
            "\"DebitCreditCode\":\"Credit\",\"Amount\":5,\"IsReturn\":true,\"CurrencyCode\":\"GBP\"",
        );
        assert!(matches!(
            returned.as_slice(),
            [Notice { about: Subject::NetworkId(_), news: News::Found(Finding::Returned(_)) }]
        ));
    }

    #[test]
    fn returns_by_our_reference_or_the_schemes() {
        let data = "\"SupplementaryData\":[{\"Name\":\"ReturnedPaymentFpId\",\"Value\":\"F\"},\
                    {\"Name\":\"PaymentReturnCode\",\"Value\":\"00000002\"}]";
        let credit = "\"DebitCreditCode\":\"Credit\",\"IsReturn\":true,\"CurrencyCode\":\"GBP\",\
                      \"Amount\":1250.50";
        for (reference, subject) in [
            (REFERENCE, Subject::Reference(REFERENCE.into())),
            ("another", Subject::NetworkId("F".into())),
        ] {
            let name = format!("\"EndToEndTransactionId\":\"{reference}\"");
            let found = settled(&format!("{name},{credit},{data}"));
            let [Notice { about, news: News::Found(Finding::Returned(funds)) }] = found.as_slice()
            else {
                panic!("{found:?}")
            };
            assert_eq!(*about, subject);
            assert_eq!((funds.code.as_str(), funds.amount_minor), ("00000002", 125_050));
            assert_eq!(funds.message, "Returned: the account is closed");
        }
    }

    #[test]
    fn several_failures_in_one_message() {
        let found = told(
            "PaymentMessageAssesmentFailed",
            &format!(
                "{{\"AssesmentFailure\":[{{\"EndToEndId\":\"x\",\"Reasons\":[\"Modulus\"]}},\
                 {{\"EndToEndId\":\"{REFERENCE}\",\"Reasons\":[\"Modulus check failed\"]}},\
                 {{\"EndToEndId\":\"RP01A1FD557A800000000003\",\"Reasons\":\"Other\"}}]}}"
            ),
        );
        let [first, second] = found.as_slice() else { panic!("{found:?}") };
        let News::Found(Finding::Refused(refusal)) = &first.news else { panic!("{found:?}") };
        assert_eq!(refusal.message, "No account at this sort code has this number");
        // A reason that nobody knows may be about a copy that was paid.
        assert_eq!(second.news, News::Ask);
    }

    #[test]
    fn what_is_no_webhook() {
        for body in [
            "",
            "[]",
            "{}",
            "{\"Type\":\"TransactionSettled\",\"Nonce\":1}",
            "{\"Type\":\"TransactionSettled\",\"Payload\":null,\"Nonce\":1}",
            "{\"Type\":\"TransactionSettled\",\"Payload\":{},\"Nonce\":1}",
            "{\"Type\":\"FITestEvent\",\"Payload\":\"x\"}",
            "{\"Type\":\"FITestEvent\",\"Type\":\"FITestEvent\",\"Nonce\":1}",
            "{\"Type\":\"FITestEvent\",\"Nonce\":1,\"Nonce\":2}",
            "{\"Type\":1,\"Nonce\":1}",
            "{\"Type\":\"FITestEvent\",\"Nonce\":1} x",
            "{\"Type\":\"TransactionSettled\",\"Payload\":{\"DebitCreditCode\":\"Debit\",\
             \"DebitCreditCode\":\"Credit\"},\"Nonce\":1}",
            "{\"Type\":\"TransactionSettled\",\"Payload\":{\"DebitCreditCode\":\"Credit\",\
             \"IsReturn\":\"true\"},\"Nonce\":1}",
            "{\"Type\":\"TransactionSettled\",\"Payload\":{\"DebitCreditCode\":\"Debit\",\
             \"EndToEndTransactionId\":7},\"Nonce\":1}",
            "{\"Type\":\"PaymentMessageAssesmentFailed\",\"Payload\":{},\"Nonce\":1}",
        ] {
            assert!(receive("/webhooks", body.as_bytes()).is_err(), "{body}");
        }
        let fine = b"{\"Type\":\"FITestEvent\",\"Nonce\":1}";
        assert!(receive("/webhooks", fine).is_ok());
        assert!(receive("/webhook", fine).is_err());
        assert!(receive("/webhooks", b"{\"Type\":\"\xff\",\"Nonce\":1}").is_err());
    }
}
