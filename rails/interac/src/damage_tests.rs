//! Whatever the participant sends is read or refused, and what is believed stands in it: once, and
//! of our payment.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, News, Notice, Outcome, Receipt, Subject};
use serde::de::IgnoredAny;

use crate::codes::{self, Class};
use crate::fixtures::{self, REFERENCE, payment};
use crate::notices::receive;
use crate::payments::{query, recall, submit};

/// What is answered, by call.
const PAYMENTS: &str = include_str!("../cases/payments.toml");
const QUESTIONS: &str = include_str!("../cases/questions.toml");
/// What is told.
const NOTICES: &str = include_str!("../cases/notices.toml");

/// The amount of [`payment`] in cents, and the ways in which it is written.
const AMOUNT_MINOR: i64 = 125_050;
const DOLLARS: [&str; 2] = ["1250.5", "1250.50"];
/// What says that it was deposited, and what says that it never will be.
const PAID: [&str; 3] = ["COMPLETED", "DEPOSITED", "REALTIME_DEPOSIT_COMPLETED"];
const ENDED: [&str; 3] = ["CANCELLED", "DECLINED", "EXPIRED"];

/// The cases' bodies, and the same about another payment and of another amount.
fn corpus(cases: &str) -> Vec<String> {
    let own = bodies(cases);
    let other = own.iter().map(|body| body.replace(REFERENCE, "RI01B2FE668B900000000077"));
    let more = own.iter().map(|body| body.replace("1250.5", "77"));
    own.iter().cloned().chain(other).chain(more).collect()
}

/// Installs a participant that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

/// What stands under this name of the transfer, if it stands there once.
fn said(json: Option<&Json>, names: &[&str]) -> Option<String> {
    let names: Vec<&str> = ["data"].iter().chain(names).copied().collect();
    json.and_then(|json| json.only_text(&names))
}

fn is_one_of(json: Option<&Json>, names: &[&str], allowed: &[&str]) -> bool {
    said(json, names).is_some_and(|said| allowed.contains(&said.as_str()))
}

fn names_it(json: Option<&Json>) -> bool {
    is_one_of(json, &["end_to_end_identification"], &[REFERENCE])
}

fn says_amount(json: Option<&Json>) -> bool {
    is_one_of(json, &["amount", "amount"], &DOLLARS)
        && is_one_of(json, &["amount", "currency"], &["CAD"])
}

fn is_ours(receipt: &Receipt) -> bool {
    receipt.amount_minor == Some(AMOUNT_MINOR)
}

/// Whether it says with this word that it is over.
fn says_ended(json: Option<&Json>, code: &str) -> bool {
    let by_code = is_one_of(json, &["payment_status"], &["FAILED"])
        && is_one_of(json, &["failure_code"], &[code]);
    by_code || (ENDED.contains(&code) && is_one_of(json, &["payment_status"], &[code]))
}

/// What an answer about our payment may have come to.
fn answer_holds(found: &Finding, (status, answer): (u16, &Damaged)) {
    // A number beyond every number, where the rail does not look.
    if answer.json.is_none() && serde_json::from_slice::<IgnoredAny>(&answer.bytes).is_ok() {
        return;
    }
    let json = answer.json.as_ref();
    let text = String::from_utf8_lossy(&answer.bytes);
    match found {
        Finding::Unknown(why) => assert!(why.len() < 300, "{why}"),
        _ => assert!(names_it(json), "{found:?}: {text}"),
    }
    match found {
        Finding::Paid(receipt) => {
            assert!(status / 100 == 2 && is_ours(receipt) && says_amount(json), "{text}");
            assert!(is_one_of(json, &["payment_status"], &PAID), "{text}");
        }
        Finding::Refused(refusal) => {
            assert!(says_ended(json, &refusal.code) && says_amount(json), "{text}");
        }
        Finding::NeverReceived(_) => {
            assert!(status == 404 && text.contains("PAYMENT_NOT_FOUND"), "{status}: {text}");
        }
        Finding::Returned(_) => panic!("{text}"),
        Finding::Accepted(_) | Finding::Unknown(_) => {}
    }
}

/// What a notice may have come to.
fn notice_holds(told: &Damaged) {
    let Ok((_, notices)) = receive("/payments", &told.bytes) else { return };
    if told.json.is_none() && serde_json::from_slice::<IgnoredAny>(&told.bytes).is_ok() {
        return;
    }
    let json = told.json.as_ref();
    let text = String::from_utf8_lossy(&told.bytes);
    let [Notice { about: Subject::Reference(about), news }] = notices.as_slice() else {
        assert!(notices.is_empty(), "{notices:?}: {text}");
        return;
    };
    assert_eq!(said(json, &["end_to_end_identification"]).as_ref(), Some(about), "{text}");
    match news {
        News::Found(Finding::Paid(receipt)) => {
            assert!(receipt.amount_minor.is_some(), "{text}");
            assert!(!is_ours(receipt) || says_amount(json), "{text}");
            assert!(is_one_of(json, &["payment_status"], &PAID), "{text}");
        }
        News::Found(Finding::Refused(refusal)) => {
            assert!(says_ended(json, &refusal.code), "{text}");
        }
        News::Found(Finding::Accepted(_)) | News::Ask => {}
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn what_is_whole_is_believed() {
    fixtures::install();
    let (mut told, mut answered) = (0, 0);
    for body in corpus(NOTICES) {
        let notices = receive("/payments", body.as_bytes()).map(|(_, notices)| notices);
        let is_paid =
            |it: &Notice| matches!(&it.news, News::Found(Finding::Paid(it)) if is_ours(it));
        told += notices.unwrap_or_default().iter().filter(|it| is_paid(it)).count();
        notice_holds(&Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() });
    }
    for body in corpus(QUESTIONS) {
        answering(200, body.as_bytes());
        answered += usize::from(matches!(query(&payment()), Finding::Paid(_)));
    }
    assert!(told >= 2 && answered >= 2, "{told}, {answered}");
}

#[test]
fn every_change_of_what_says_how_it_ended() {
    let is_an_end = |body: &&String| {
        let names_one = PAID.iter().chain(&ENDED).any(|word| body.contains(word));
        names_one && Json::read(body.as_bytes()).is_some()
    };
    for text in bodies(QUESTIONS).iter().filter(is_an_end) {
        for answer in each_change(text) {
            answering(200, &answer.bytes);
            answer_holds(&query(&payment()), (200, &answer));
        }
    }
    for text in bodies(NOTICES).iter().filter(is_an_end) {
        each_change(text).iter().for_each(notice_holds);
    }
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn notices(told in damaged(corpus(NOTICES))) {
        fixtures::install();
        notice_holds(&told);
    }

    #[test]
    fn answers_to_questions(
        answer in damaged(corpus(QUESTIONS)),
        status in prop::sample::select(&[200, 200, 200, 201, 404, 404, 409, 500][..]),
    ) {
        answering(status, &answer.bytes);
        answer_holds(&query(&payment()), (status, &answer));
        match recall(&payment()) {
            Finding::NeverReceived(why) => prop_assert!(false, "{why}"),
            found => answer_holds(&found, (status, &answer)),
        }
    }

    #[test]
    fn answers_to_payments(
        answer in damaged(corpus(PAYMENTS)),
        status in prop::sample::select(&[201, 201, 200, 202, 400, 400, 409, 422, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let text = String::from_utf8_lossy(&answer.bytes);
        match submit(&payment()) {
            Outcome::Paid(receipt) => answer_holds(&Finding::Paid(receipt), (status, &answer)),
            Outcome::Accepted(receipt) => {
                prop_assert!((200..=202).contains(&status), "{text}");
                answer_holds(&Finding::Accepted(receipt), (status, &answer));
            }
            Outcome::Refused(_) if answer.json.is_none() => {}
            Outcome::Refused(refusal) if [400, 422].contains(&status) => {
                let notifications = answer.json.as_ref().and_then(|it| it.only(&["notifications"]));
                let all = notifications.map(Json::members).unwrap_or_default();
                let codes: Vec<_> = all.iter().map(|it| it.value.only_text(&["code"])).collect();
                prop_assert_eq!(codes.first(), Some(&Some(refusal.code)), "{}", text);
                let ends = |code: &Option<String>| {
                    code.as_ref().is_some_and(|code| codes::refusal(code) == Class::Ended)
                };
                prop_assert!(codes.iter().all(ends), "{text}");
            }
            Outcome::Refused(refusal) => {
                answer_holds(&Finding::Refused(refusal), (status, &answer));
            }
            Outcome::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
        }
    }
}
