//! Whatever MTN sends is read or refused, and what is believed stands in it: once, and of our
//! transfer.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Enquiry, Finding, News, Notice, Outcome, Subject, Verdict};

use crate::amount;
use crate::callbacks::receive;
use crate::countries;
use crate::fixtures::{self, REFERENCE, payment};
use crate::names::resolve;
use crate::payments::{query, submit};
use crate::reasons;
use crate::settings::Unclear;

/// What is answered, by call.
const TRANSFERS: &str = include_str!("../cases/transfers.toml");
const QUESTIONS: &str = include_str!("../cases/questions.toml");
const NAMES: &str = include_str!("../cases/names.toml");
/// What is told.
const CALLBACKS: &str = include_str!("../cases/callbacks.toml");

/// The amount of [`payment`] in pesewas.
const AMOUNT_MINOR: i64 = 125_050;

/// The cases' bodies, and the same about another transfer, of another amount, to another wallet.
fn corpus(cases: &[&str]) -> Vec<String> {
    let own: Vec<String> = cases.iter().flat_map(|cases| bodies(cases)).collect();
    let change = |from: &'static str, to: &'static str| {
        own.iter().map(move |body| body.replace(from, to)).collect::<Vec<_>>()
    };
    let other = change(REFERENCE, "8c5e6489-57f2-49ec-bc0f-bef3da36f1ef");
    let more = change("1250.5", "77");
    let elsewhere = change("233241234567", "233241234568");
    [own.clone(), other, more, elsewhere].concat()
}

/// Installs an MTN that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

fn said(json: Option<&Json>, names: &[&str]) -> Option<String> {
    json.and_then(|json| json.only_text(names))
}

/// Whether the names lead to this, once.
fn says(json: Option<&Json>, names: &[&str], what: &str) -> bool {
    said(json, names).as_deref() == Some(what)
}

fn is_our_amount(json: Option<&Json>) -> bool {
    let said = said(json, &["amount"]);
    says(json, &["currency"], "GHS")
        && said.and_then(|text| amount::read(&text, 2)) == Some(AMOUNT_MINOR)
}

/// Whether the reason that refuses stands there.
fn has_reason(json: Option<&Json>, code: &str) -> bool {
    let is_it = says(json, &["reason"], code) || says(json, &["reason", "code"], code);
    is_it && reasons::refusing(code, Unclear::Asked).is_some()
}

fn question_holds(answer: &Damaged) {
    answering(200, &answer.bytes);
    let json = answer.json.as_ref();
    let text = String::from_utf8_lossy(&answer.bytes);
    let is_ours = || says(json, &["externalId"], REFERENCE) && is_our_amount(json);
    match query(&payment()) {
        Finding::Paid(receipt) => {
            assert!(is_ours() && says(json, &["status"], "SUCCESSFUL"), "{text}");
            assert_eq!(receipt.amount_minor, Some(AMOUNT_MINOR), "{text}");
            let has_payee = json.is_some_and(|it| it.members().iter().any(|it| it.is("payee")));
            let payee = said(json, &["payee", "partyId"]);
            let payee =
                payee.and_then(|written| countries::of_currency("GHS")?.mobile_number(&written));
            assert!(!has_payee || payee.as_deref() == Some("233241234567"), "{text}");
        }
        Finding::Refused(refusal) => {
            assert!(is_ours() && says(json, &["status"], "FAILED"), "{text}");
            assert!(has_reason(json, &refusal.code), "{text}");
        }
        Finding::Accepted(_) => {
            let is_open = ["PENDING", "CREATED"].iter().any(|it| says(json, &["status"], it));
            assert!(is_ours() && is_open, "{text}");
        }
        Finding::Unknown(why) => assert!(why.len() < 300, "{why}"),
        other => panic!("{other:?}: {text}"),
    }
}

fn callback_holds(told: &Damaged) {
    let Ok((_, notices)) = receive(&format!("/transfers/{REFERENCE}"), &told.bytes) else { return };
    let json = told.json.as_ref();
    let text = String::from_utf8_lossy(&told.bytes);
    let [Notice { about, news }] = notices.as_slice() else { panic!("{notices:?}: {text}") };
    assert_eq!(*about, Subject::Reference(REFERENCE.to_owned()), "{text}");
    let names_us = || says(json, &["externalId"], REFERENCE);
    match news {
        News::Ask => {}
        News::Found(Finding::Paid(receipt)) => {
            assert!(names_us() && says(json, &["status"], "SUCCESSFUL"), "{text}");
            let is_our_amount = is_our_amount(json);
            assert_eq!(receipt.amount_minor == Some(AMOUNT_MINOR), is_our_amount, "{text}");
        }
        News::Found(Finding::Refused(refusal)) => {
            assert!(names_us() && says(json, &["status"], "FAILED"), "{text}");
            assert!(has_reason(json, &refusal.code), "{text}");
        }
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn what_is_whole_is_believed() {
    fixtures::install();
    let mut paid = 0;
    for body in corpus(&[QUESTIONS, CALLBACKS]) {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() };
        question_holds(&told);
        paid += usize::from(matches!(query(&payment()), Finding::Paid(_)));
        fixtures::install();
        callback_holds(&told);
    }
    assert!(paid >= 6, "{paid}");
}

#[test]
fn every_change_of_what_says_that_it_was_paid_or_not() {
    let answers = corpus(&[QUESTIONS]).into_iter();
    let is_definite = |body: &String| {
        (body.contains("SUCCESSFUL") || body.contains("FAILED"))
            && Json::read(body.as_bytes()).is_some()
    };
    for text in answers.filter(is_definite) {
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
        fixtures::install();
        callback_holds(&told);
    }

    #[test]
    fn answers_to_questions_under_any_status(
        answer in damaged(corpus(&[QUESTIONS, TRANSFERS])),
        status in prop::sample::select(&[201, 202, 400, 401, 404, 404, 409, 429, 500, 503][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        match query(&payment()) {
            Finding::NeverReceived(_) => {
                prop_assert!(status == 404 && says(json, &["code"], "RESOURCE_NOT_FOUND"));
            }
            Finding::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn answers_to_transfers(
        answer in damaged(corpus(&[TRANSFERS, QUESTIONS])),
        status in prop::sample::select(&[200, 201, 202, 400, 400, 401, 401, 403, 409, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let json = answer.json.as_ref();
        let text = String::from_utf8_lossy(&answer.bytes);
        match submit(&payment()) {
            Outcome::Accepted(_) => prop_assert_eq!(status, 202),
            Outcome::Refused(refusal) if status == 401 => {
                prop_assert!(says(json, &["statusCode"], "401"), "{text}");
                let why = said(json, &["message"]).unwrap_or_default();
                prop_assert!(why.starts_with("Access denied due to"), "{text}");
                prop_assert_eq!(refusal.code, "ACCESS_DENIED");
            }
            Outcome::Refused(refusal) => {
                prop_assert_eq!(status, 400, "{}", text);
                prop_assert!(says(json, &["code"], &refusal.code), "{text}");
                prop_assert!(reasons::refusing(&refusal.code, Unclear::Asked).is_some(), "{text}");
            }
            Outcome::Paid(_) => prop_assert!(false, "{text}"),
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
                prop_assert_eq!(status, 200);
                let part = |name: &str| said(json, &[name]).unwrap_or_default();
                let name = format!("{} {}", part("given_name").trim(), part("family_name").trim());
                prop_assert!(!found.name.is_empty() && name.contains(&found.name), "{name}");
            }
            Verdict::Refused(_) => {
                prop_assert!(status == 404 && says(json, &["code"], "RESOURCE_NOT_FOUND"));
            }
            Verdict::Unavailable(why) => prop_assert!(why.len() < 300, "{why}"),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn addresses(path in "(/transfers/|/|~|7b4d6378|[^a-z]){1,4}") {
        fixtures::install();
        for body in [&b"{}"[..], b"", b"[]"] {
            let Ok((_, notices)) = receive(&path, body) else { continue };
            prop_assert!(notices.iter().all(|notice| notice.news == News::Ask), "{path}");
        }
    }
}
