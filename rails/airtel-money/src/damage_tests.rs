//! Whatever Airtel sends is read or refused, and what is believed stands in it: once, and of our
//! payment.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::fields::{field, value};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, News, Outcome, Subject};

use crate::callbacks::receive;
use crate::codes;
use crate::fixtures::{self, REFERENCE, payment};
use crate::payments::{query, submit};
use crate::recipients::check;

/// What is answered, by call.
const PAYMENTS: &str = include_str!("../cases/payments.toml");
const REFUSALS: &str = include_str!("../cases/refusals.toml");
const QUESTIONS: &str = include_str!("../cases/questions.toml");
/// What is told.
const CALLBACKS: &str = include_str!("../cases/callbacks.toml");

/// The cases' bodies, and the same about another payment.
fn corpus(cases: &[&str]) -> Vec<String> {
    let own: Vec<String> = cases.iter().flat_map(|cases| bodies(cases)).collect();
    let other = own.iter().map(|body| body.replace(REFERENCE, "RH01B2FE668B900000000077"));
    own.iter().cloned().chain(other).collect()
}

/// Installs an Airtel that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host("never-received") });
}

/// Whether the names lead to this, once.
fn says(json: Option<&Json>, names: &[&str], what: &str) -> bool {
    json.and_then(|json| json.only_text(names)).as_deref() == Some(what)
}

fn has_member(json: Option<&Json>, at: &[&str], name: &str) -> bool {
    let found = json.and_then(|json| json.only(at));
    found.is_some_and(|json| json.members().iter().any(|member| member.is(name)))
}

/// The code that counts.
fn has_code(json: Option<&Json>, code: &str) -> bool {
    match has_member(json, &["status"], "response_code") {
        true => says(json, &["status", "response_code"], code),
        false => says(json, &["status", "result_code"], code),
    }
}

/// Whether the transaction in it is ours and has this status.
fn is_ours(json: Option<&Json>, status: &str) -> bool {
    const AT: [&str; 2] = ["data", "transaction"];
    let at = |name| ["data", "transaction", name];
    let amount = json.and_then(|json| json.only_text(&at("amount")));
    let has_no_cents = |it: &str| it.bytes().all(|cent| cent == b'0');
    let is_1250 = |it: String| it == "1250" || it.strip_prefix("1250.").is_some_and(has_no_cents);
    let is_amount = !has_member(json, &AT, "amount") || amount.is_some_and(is_1250);
    let is_currency = !has_member(json, &AT, "currency") || says(json, &at("currency"), "KES");
    let is_it = says(json, &at("id"), REFERENCE) && says(json, &at("status"), status);
    is_it && is_amount && is_currency
}

/// Whether no transaction is named at all.
fn names_none(json: Option<&Json>) -> bool {
    let data = json.and_then(|json| json.only(&["data"]));
    match has_member(json, &[], "data") {
        true => data.is_some_and(|data| match data {
            Json::Object(members) => members.is_empty(),
            Json::Leaf(text) => text == "{}",
            Json::List(_) => false,
        }),
        false => true,
    }
}

fn question_holds(answer: &Damaged, status: u16) {
    answering(status, &answer.bytes);
    let json = answer.json.as_ref();
    let text = String::from_utf8_lossy(&answer.bytes);
    match query(&payment()) {
        Finding::Paid(_) => {
            assert!(is_ours(json, "TS") && has_code(json, "DP00900001001"), "{text}");
            assert_eq!(status, 200);
        }
        Finding::Refused(refusal) => {
            assert!(is_ours(json, "TF") && has_code(json, &refusal.code), "{text}");
            assert!(codes::refusing(&refusal.code).is_some(), "{text}");
            assert_eq!(status, 200);
        }
        Finding::Accepted(_) => assert!(is_ours(json, "TIP") && status == 200, "{text}"),
        Finding::NeverReceived(_) => {
            let is_it = has_code(json, "DP00900001015") || has_code(json, "ESB000045");
            assert!(is_it && names_none(json) && [200, 400, 404].contains(&status), "{text}");
        }
        Finding::Unknown(why) => assert!(why.len() < 300, "{why}"),
        Finding::Returned(_) => panic!("{text}"),
    }
}

fn submit_holds(answer: &Damaged, status: u16) {
    answering(status, &answer.bytes);
    let json = answer.json.as_ref();
    let text = String::from_utf8_lossy(&answer.bytes);
    match submit(&payment()) {
        Outcome::Paid(_) => {
            assert!(is_ours(json, "TS") && has_code(json, "DP00900001001"), "{text}");
            assert_eq!(status, 200);
        }
        Outcome::Refused(refusal) => {
            assert!(is_ours(json, "TF") || names_none(json), "{text}");
            // What fails in a transaction is no refusal without one.
            let is_of_transaction = ["005", "007", "010", "013", "016"]
                .iter()
                .any(|end| refusal.code == format!("DP00900001{end}"));
            assert!(is_ours(json, "TF") || !is_of_transaction, "{text}");
            assert!(has_code(json, &refusal.code), "{text}");
            assert!(codes::refusing(&refusal.code).is_some(), "{text}");
            assert!([200, 400].contains(&status), "{text}");
        }
        Outcome::Accepted(_) => {
            assert!(is_ours(json, "TIP") && [200, 202].contains(&status), "{text}");
        }
        Outcome::Unknown(why) => assert!(why.len() < 300, "{why}"),
    }
}

#[test]
fn what_is_whole_is_believed() {
    let mut paid = 0;
    for body in corpus(&[QUESTIONS, PAYMENTS, REFUSALS]) {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() };
        for status in [200, 202, 400, 404, 500] {
            question_holds(&told, status);
            submit_holds(&told, status);
        }
        answering(200, &told.bytes);
        paid += usize::from(matches!(query(&payment()), Finding::Paid(_)));
    }
    assert!(paid >= 4, "{paid}");
}

#[test]
fn every_change_of_what_says_that_it_was_paid_or_not() {
    let is_definite = |body: &String| {
        let has_end = ["\"TS\"", "\"TF\"", "ESB000033"].iter().any(|word| body.contains(word));
        has_end && Json::read(body.as_bytes()).is_some()
    };
    for text in corpus(&[QUESTIONS, PAYMENTS, REFUSALS]).into_iter().filter(is_definite) {
        for told in each_change(&text) {
            question_holds(&told, 200);
            submit_holds(&told, 200);
        }
    }
}

fn status() -> impl Strategy<Value = u16> {
    prop::sample::select(&[200, 200, 200, 202, 400, 400, 401, 404, 408, 500][..])
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn answers_to_questions(answer in damaged(corpus(&[QUESTIONS, PAYMENTS, REFUSALS])), status in status()) {
        question_holds(&answer, status);
    }

    #[test]
    fn answers_to_payments(answer in damaged(corpus(&[QUESTIONS, PAYMENTS, REFUSALS])), status in status()) {
        submit_holds(&answer, status);
    }

    #[test]
    fn callbacks(told in damaged(corpus(&[CALLBACKS, QUESTIONS]))) {
        if let Ok((_, notices)) = receive("/callback", &told.bytes) {
            let json = told.json.as_ref();
            for notice in notices {
                prop_assert_eq!(notice.news, News::Ask);
                let Subject::Reference(named) = notice.about else { panic!("a reference") };
                prop_assert!(says(json, &["transaction", "id"], &named), "{named}");
            }
        }
    }

    #[test]
    fn numbers(number in "[+0-9 -]{0,18}|.{0,40}") {
        let named = |number: &str| vec![
            field("mobile_operator", "airtel"),
            field("mobile_number", number),
            field("name", "Wanjiku Kamau"),
        ];
        let Ok(fields) = check(named(&number)) else { return Ok(()) };
        let canonical = value(&fields, "mobile_number").to_owned();
        prop_assert!(canonical.len() == 12 && canonical.starts_with("254"), "{canonical}");
        prop_assert_eq!(check(fields.clone()), Ok(fields.clone()));
        prop_assert_eq!(check(named(&format!("0{}", &canonical[3..]))), Ok(fields));
    }

    #[test]
    fn recipients_of_any_kind(given in prop::collection::vec((".{0,20}", ".{0,60}"), 0..6)) {
        let fields = given.iter().map(|(name, value)| field(name, value.as_str())).collect();
        prop_assert!(check(fields).is_err());
    }
}
