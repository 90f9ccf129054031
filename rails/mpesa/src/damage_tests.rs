//! Whatever Daraja sends is read or refused, and what is believed stands in it: once, and of our
//! payment.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, News, Notice, Outcome, Receipt, Subject};

use crate::fixtures::{self, REFERENCE, payment};
use crate::payments::{query, submit};
use crate::results::receive;

/// What is answered.
const PAYMENTS: &str = include_str!("../cases/payments.toml");
/// What is told.
const RESULTS: &str = include_str!("../cases/results.toml");

/// The amount of [`payment`] in cents.
const AMOUNT_MINOR: i64 = 125_000;

/// A result in which everything stands that one may hold.
fn whole() -> String {
    format!(
        "{{\"Result\":{{\"ResultType\":0,\"ResultCode\":0,\"ResultDesc\":\"x\",\
         \"OriginatorConversationID\":\"{REFERENCE}\",\"ConversationID\":\"AG_1\",\
         \"TransactionID\":\"NLJ41HAY6Q\",\"ResultParameters\":{{\"ResultParameter\":[\
         {{\"Key\":\"TransactionAmount\",\"Value\":1250}},\
         {{\"Key\":\"B2CUtilityAccountAvailableFunds\",\"Value\":10116.00}},\
         {{\"Key\":\"TransactionReceipt\",\"Value\":\"NLJ41HAY6Q\"}}]}},\
         \"ReferenceData\":{{\"ReferenceItem\":{{\"Key\":\"QueueTimeoutURL\",\"Value\":\"x\"}}}}}}}}"
    )
}

/// The cases' bodies and the whole one; and the same about another payment and of another amount.
fn corpus(cases: &str) -> Vec<String> {
    let own = bodies(cases).into_iter().chain([whole()]).collect::<Vec<_>>();
    let other = own.iter().map(|body| body.replace(REFERENCE, "600000-1b2fe668b90-77"));
    let more = own.iter().map(|body| body.replace("1250", "77"));
    own.iter().cloned().chain(other).chain(more).collect()
}

/// Installs a Daraja that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

/// The text under these names, which stand there once.
fn said(json: Option<&Json>, names: &[&str]) -> Option<String> {
    json.and_then(|json| json.only_text(names)).map(|text| text.trim().to_owned())
}

/// The values of the parameters of this name.
fn parameters(json: Option<&Json>, name: &str) -> Vec<Option<String>> {
    let names = ["Result", "ResultParameters", "ResultParameter"];
    let found = json.and_then(|json| json.only(&names));
    let all: Vec<&Json> = match found {
        Some(Json::List(members)) => members.iter().map(|member| &member.value).collect(),
        one => one.into_iter().collect(),
    };
    let of_name = |it: &&Json| said(Some(it), &["Key"]).as_deref() == Some(name);
    all.into_iter().filter(of_name).map(|it| said(Some(it), &["Value"])).collect()
}

/// Whether every parameter of this name, and one at least, says this.
fn all_say(json: Option<&Json>, name: &str, is_it: impl Fn(&str) -> bool) -> bool {
    let values = parameters(json, name);
    !values.is_empty() && values.iter().all(|value| value.as_deref().is_some_and(&is_it))
}

/// Whether this is the amount of [`payment`] in shillings, with zeros around it or without.
fn is_amount(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    whole.trim_start_matches('0') == "1250" && fraction.trim_end_matches('0').is_empty()
}

fn is_ours(receipt: &Receipt) -> bool {
    receipt.amount_minor == Some(AMOUNT_MINOR)
}

/// What is told where results are: of the payment that the message names.
fn result_holds(told: &Damaged) {
    let Ok((_, notices)) = receive("/result", &told.bytes) else { return };
    let json = told.json.as_ref();
    let text = String::from_utf8_lossy(&told.bytes);
    let [Notice { about, news }] = notices.as_slice() else { panic!("{notices:?}: {text}") };
    let named = said(json, &["Result", "OriginatorConversationID"]);
    let named = named.unwrap_or_else(|| panic!("nobody is named: {text}"));
    assert_eq!(*about, Subject::Reference(named), "{text}");
    let code = said(json, &["Result", "ResultCode"]);
    match news {
        News::Found(Finding::Paid(receipt)) => {
            assert_eq!(code.as_deref(), Some("0"), "{text}");
            let is_proved = all_say(json, "TransactionAmount", is_amount);
            assert!(!is_ours(receipt) || is_proved, "{text}");
        }
        News::Found(Finding::Refused(refusal)) => {
            assert_eq!(code.as_deref(), Some(refusal.code.as_str()), "{text}");
        }
        News::Found(Finding::Unknown(why)) => assert!(why.len() < 300, "{why}"),
        other => panic!("{other:?}: {text}"),
    }
}

/// What is told where a question about our payment is answered.
fn answer_holds(told: &Damaged) {
    let path = format!("/status/{REFERENCE}~{AMOUNT_MINOR}");
    let Ok((_, notices)) = receive(&path, &told.bytes) else { return };
    let json = told.json.as_ref();
    let text = String::from_utf8_lossy(&told.bytes);
    let [Notice { about, news }] = notices.as_slice() else { panic!("{notices:?}: {text}") };
    assert_eq!(*about, Subject::Reference(REFERENCE.to_owned()), "{text}");
    match news {
        News::Found(Finding::Paid(receipt)) => {
            assert!(is_ours(receipt), "{text}");
            assert!(all_say(json, "Amount", is_amount), "{text}");
            assert!(all_say(json, "TransactionStatus", |said| said == "Completed"), "{text}");
            assert_eq!(said(json, &["Result", "ResultCode"]).as_deref(), Some("0"), "{text}");
        }
        News::Found(Finding::Unknown(_)) => {}
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn what_is_whole_is_believed() {
    let mut paid = 0;
    for body in corpus(RESULTS) {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() };
        for path in ["/result".to_owned(), format!("/status/{REFERENCE}~{AMOUNT_MINOR}")] {
            let notices = receive(&path, &told.bytes).map(|(_, notices)| notices);
            let is_paid = |it: &Notice| match &it.news {
                News::Found(Finding::Paid(receipt)) => is_ours(receipt),
                _ => false,
            };
            paid += notices.unwrap_or_default().iter().filter(|it| is_paid(it)).count();
        }
        result_holds(&told);
        answer_holds(&told);
    }
    assert!(paid >= 6, "{paid}");
}

#[test]
fn every_change_of_what_says_that_it_was_paid() {
    let answers = corpus(RESULTS).into_iter().filter(|body| body.contains("Completed"));
    for text in answers.chain([whole()]) {
        for told in each_change(&text) {
            result_holds(&told);
            answer_holds(&told);
        }
    }
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn results(told in damaged(corpus(RESULTS))) {
        result_holds(&told);
    }

    #[test]
    fn answers_to_questions(told in damaged(corpus(RESULTS))) {
        answer_holds(&told);
    }

    #[test]
    fn addresses(path in "(/result|/status/|/timeout/|~|/|600000-1a1fd557a80-2|125000|[^a-z]){1,6}") {
        for body in [whole().as_bytes(), b"{}", b""] {
            let Ok((_, notices)) = receive(&path, body) else { continue };
            for notice in notices {
                let is_paid = matches!(notice.news, News::Found(Finding::Paid(_)));
                prop_assert!(!is_paid || path.ends_with("/result") || path.ends_with("~125000"), "{path}");
            }
        }
    }

    #[test]
    fn answers_to_requests(
        answer in damaged(corpus(PAYMENTS)),
        status in prop::sample::select(&[200, 200, 202, 400, 400, 401, 404, 429, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        let text = String::from_utf8_lossy(&answer.bytes);
        match submit(&payment()) {
            Outcome::Accepted(_) => {
                let named = said(json, &["OriginatorConversationID"]);
                prop_assert_eq!(named.as_deref(), Some(REFERENCE), "{}", text);
                let code = said(json, &["ResponseCode"]);
                prop_assert_eq!((status / 100, code.as_deref()), (2, Some("0")), "{}", text);
            }
            Outcome::Refused(refusal) => {
                let code = said(json, &["errorCode"]);
                prop_assert_eq!(code.as_deref(), Some(refusal.code.as_str()), "{}", text);
                let is_known = matches!(
                    (status, refusal.code.as_str()),
                    (400, "400.002.02") | (401 | 404, "404.001.03")
                );
                prop_assert!(is_known, "{text}");
            }
            Outcome::Paid(_) => prop_assert!(false, "{text}"),
            Outcome::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
        }
        // A question is never answered at once, whatever is answered.
        prop_assert!(matches!(query(&payment()), Finding::Unknown(_)), "{text}");
    }
}
