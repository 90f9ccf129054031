//! Whatever the aggregator sends is read or refused, and what is believed stands in it: once, and
//! of our payout.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Enquiry, Finding, News, Outcome, Subject, Verdict};

use crate::callbacks::receive;
use crate::codes;
use crate::fixtures::{self, REFERENCE, payment};
use crate::names::resolve;
use crate::payouts::{query, submit};

/// What is answered, by call.
const PAYOUTS: &str = include_str!("../cases/payouts.toml");
const QUESTIONS: &str = include_str!("../cases/questions.toml");
const NAMES: &str = include_str!("../cases/names.toml");
/// What is told.
const CALLBACKS: &str = include_str!("../cases/callbacks.toml");

/// The cases' bodies, and the same about another payout, of another amount, to another wallet.
fn corpus(cases: &[&str]) -> Vec<String> {
    let own: Vec<String> = cases.iter().flat_map(|cases| bodies(cases)).collect();
    let change = |from: &'static str, to: &'static str| {
        own.iter().map(move |body| body.replace(from, to)).collect::<Vec<_>>()
    };
    let other = change(REFERENCE, "8c5e6489-57f2-49ec-bc0f-bef3da36f1ef");
    let more = change("1250.50", "77.00");
    let elsewhere = change("233201234567", "233201234568");
    [own.clone(), other, more, elsewhere].concat()
}

/// Installs an aggregator that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

/// Whether a member of this name stands there once, and is this.
fn says(json: Option<&Json>, name: &str, what: &str) -> bool {
    json.and_then(|json| json.only_text(&[name])).as_deref() == Some(what)
}

/// Whether everything that names our payout stands there, once.
fn is_ours(json: Option<&Json>) -> bool {
    [
        ("reference", REFERENCE),
        ("amount", "1250.50"),
        ("currency", "GHS"),
        ("operator", "telecel"),
        ("account", "233201234567"),
    ]
    .iter()
    .all(|(name, what)| says(json, name, what))
}

/// Whether a document says that our payout stands like that.
fn stands(json: Option<&Json>, status: &str) -> bool {
    is_ours(json) && says(json, "status", status)
}

fn question_holds(answer: &Damaged) {
    answering(200, &answer.bytes);
    let json = answer.json.as_ref();
    let text = String::from_utf8_lossy(&answer.bytes);
    match query(&payment()) {
        Finding::Paid(receipt) => {
            assert!(stands(json, "SUCCESS"), "{text}");
            assert_eq!(receipt.amount_minor, Some(125_050), "{text}");
        }
        Finding::Refused(refusal) => {
            assert!(stands(json, "FAILED") && says(json, "code", &refusal.code), "{text}");
            assert!(codes::refusing(&refusal.code).is_some(), "{text}");
        }
        Finding::Accepted(_) => assert!(stands(json, "PENDING"), "{text}"),
        Finding::Unknown(why) => assert!(why.len() < 300, "{why}"),
        other => panic!("{other:?}: {text}"),
    }
}

fn callback_holds(told: &Damaged) {
    let text = String::from_utf8_lossy(&told.bytes);
    let Ok((_, notices)) = receive(&format!("/payouts/{REFERENCE}"), &told.bytes) else { return };
    let [notice] = notices.as_slice() else { panic!("{notices:?}: {text}") };
    assert_eq!(notice.about, Subject::Reference(REFERENCE.to_owned()), "{text}");
    let json = told.json.as_ref();
    assert!(says(json, "reference", REFERENCE), "{text}");
    match &notice.news {
        News::Ask => {}
        News::Found(Finding::Paid(receipt)) => {
            assert!(says(json, "status", "SUCCESS"), "{text}");
            let is_ours = receipt.amount_minor == Some(125_050);
            assert_eq!(is_ours, says(json, "amount", "1250.50"), "{text}");
        }
        News::Found(Finding::Refused(refusal)) => {
            assert!(says(json, "status", "FAILED"), "{text}");
            assert!(says(json, "code", &refusal.code), "{text}");
            assert!(codes::refusing(&refusal.code).is_some(), "{text}");
        }
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn what_is_whole_is_believed() {
    let mut paid = 0;
    for body in corpus(&[QUESTIONS, CALLBACKS]) {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() };
        question_holds(&told);
        paid += usize::from(matches!(query(&payment()), Finding::Paid(_)));
        callback_holds(&told);
    }
    assert!(paid >= 3, "{paid}");
}

#[test]
fn every_change_of_what_says_that_it_was_paid_or_not() {
    let is_definite = |body: &String| {
        (body.contains("SUCCESS") || body.contains("FAILED"))
            && Json::read(body.as_bytes()).is_some()
    };
    for text in corpus(&[QUESTIONS]).into_iter().filter(is_definite) {
        for told in each_change(&text) {
            question_holds(&told);
            callback_holds(&told);
        }
    }
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn answers_to_questions(answer in damaged(corpus(&[QUESTIONS, CALLBACKS]))) {
        question_holds(&answer);
    }

    #[test]
    fn callbacks(told in damaged(corpus(&[QUESTIONS, CALLBACKS]))) {
        callback_holds(&told);
    }

    #[test]
    fn answers_to_questions_under_any_status(
        answer in damaged(corpus(&[QUESTIONS, PAYOUTS])),
        status in prop::sample::select(&[201, 202, 400, 401, 404, 404, 409, 422, 500, 503][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        match query(&payment()) {
            Finding::NeverReceived(_) => {
                prop_assert_eq!(status, 404);
                prop_assert!(says(json, "code", "PAYOUT_NOT_FOUND"));
                prop_assert!(says(json, "reference", REFERENCE));
            }
            Finding::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn answers_to_payouts(
        answer in damaged(corpus(&[PAYOUTS, QUESTIONS])),
        status in prop::sample::select(&[200, 200, 201, 202, 400, 401, 403, 409, 422, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        let text = String::from_utf8_lossy(&answer.bytes);
        match submit(&payment()) {
            Outcome::Paid(_) => prop_assert!(status == 200 && stands(json, "SUCCESS"), "{text}"),
            Outcome::Accepted(_) => {
                prop_assert!([200, 202].contains(&status) && stands(json, "PENDING"), "{text}");
            }
            Outcome::Refused(refusal) => {
                let is_failed = status == 200 && stands(json, "FAILED");
                let is_turned_away = [400, 401, 403, 422].contains(&status)
                    && says(json, "reference", REFERENCE)
                    && !stands(json, "SUCCESS");
                prop_assert!(is_failed || is_turned_away, "{status} {text}");
                prop_assert!(says(json, "code", &refusal.code), "{text}");
                prop_assert!(codes::refusing(&refusal.code).is_some(), "{text}");
            }
            Outcome::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
        }
    }

    #[test]
    fn answers_about_names(
        answer in damaged(corpus(&[NAMES])),
        status in prop::sample::select(&[200, 200, 200, 404, 404, 401, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        let account = payment().recipient;
        match resolve(&Enquiry { account, ..Enquiry::about(&fixtures::payment()) }) {
            Verdict::Named(found) => {
                prop_assert!(status == 200 && says(json, "account", "233201234567"));
                prop_assert!(says(json, "operator", "telecel") && !found.name.is_empty());
            }
            Verdict::Refused(refusal) => {
                prop_assert!(status == 404 && says(json, "account", "233201234567"));
                prop_assert!(says(json, "code", &refusal.code));
            }
            Verdict::Unavailable(why) => prop_assert!(why.len() < 300, "{why}"),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn addresses(path in "(/payouts/|/|~|096a71bd|[^a-z]){1,4}") {
        for body in [&b"{}"[..], b"", b"[]", b"{\"reference\":\"096a71bd\"}"] {
            let Ok((_, notices)) = receive(&path, body) else { continue };
            prop_assert!(notices.iter().all(|notice| notice.news == News::Ask), "{path}");
        }
    }
}
