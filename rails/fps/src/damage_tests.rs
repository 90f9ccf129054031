//! Whatever the gateway sends is read or refused, and what is believed stands in it: once, and of
//! our payment.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, bodies, damaged, each_change};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Enquiry, Finding, News, Notice, Outcome, Receipt, Subject, Verdict};

use crate::codes::{self, Class};
use crate::fixtures::{self, REFERENCE, payment};
use crate::names::resolve;
use crate::payments::{query, submit};
use crate::webhooks::receive;

/// What is answered, by call.
const PAYMENTS: &str = include_str!("../cases/payments.toml");
const QUESTIONS: &str = include_str!("../cases/questions.toml");
const NAMES: &str = include_str!("../cases/names.toml");
/// What is told.
const WEBHOOKS: &str = include_str!("../cases/webhooks.toml");

/// The amount of [`payment`] in pence, and the ways in which it is written.
const AMOUNT_MINOR: i64 = 125_050;
const POUNDS: [&str; 2] = ["1250.5", "1250.50"];

/// The cases' bodies, and the same about another payment and of another amount.
fn corpus(cases: &str) -> Vec<String> {
    let own = bodies(cases);
    let other = own.iter().map(|body| body.replace(REFERENCE, "RP01B2FE668B900000000077"));
    let more = own.iter().map(|body| body.replace("1250.5", "77"));
    own.iter().cloned().chain(other).chain(more).collect()
}

/// Installs a gateway that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

/// The texts under these names are these.
fn says(json: Option<&Json>, texts: &[(&[&str], &[&str])]) -> bool {
    texts.iter().all(|(names, allowed)| {
        let said = json.and_then(|json| json.only_text(names));
        said.is_some_and(|said| allowed.contains(&said.as_str()))
    })
}

fn is_ours(receipt: &Receipt) -> bool {
    receipt.amount_minor == Some(AMOUNT_MINOR)
}

/// What a message says in so many words, of our payment: that it settled.
fn tells_of_payment(told: &Damaged) -> bool {
    let is_no_return = told.json.as_ref().is_some_and(|json| {
        let said = json.only_text(&["Payload", "IsReturn"]);
        said.is_none_or(|said| ["false", "null"].contains(&said.as_str()))
    });
    let proof: [(&[&str], &[&str]); 6] = [
        (&["Type"], &["TransactionSettled"]),
        (&["Payload", "EndToEndTransactionId"], &[REFERENCE]),
        (&["Payload", "Status"], &["Settled"]),
        (&["Payload", "DebitCreditCode"], &["Debit"]),
        (&["Payload", "CurrencyCode"], &["GBP"]),
        (&["Payload", "Amount"], &POUNDS),
    ];
    is_no_return && says(told.json.as_ref(), &proof)
}

/// And that it was rejected, or that it never was a payment.
fn tells_of_refusal(told: &Damaged, code: &str) -> bool {
    let json = told.json.as_ref();
    let rejected: [(&[&str], &[&str]); 3] = [
        (&["Type"], &["TransactionRejected"]),
        (&["Payload", "EndToEndTransactionId"], &[REFERENCE]),
        (&["Payload", "DebitCreditCode"], &["Debit"]),
    ];
    let said = json.and_then(|json| json.only_text(&["Payload", "CancellationCode"]));
    let is_its_code = said.is_some_and(|said| codes::plain(&said) == code);
    let kind = json.and_then(|json| json.only_text(&["Type"])).unwrap_or_default();
    let is_of_failure =
        code.ends_with("Failed") || ["DebitPaymentDisabled", "InsufficientFunds"].contains(&code);
    is_its_code && says(json, &rejected) || kind.ends_with("Failed") && is_of_failure
}

fn holds(told: &Damaged) {
    let Ok((_, notices)) = receive("/webhooks", &told.bytes) else { return };
    let text = String::from_utf8_lossy(&told.bytes);
    for Notice { about, news } in notices {
        match news {
            News::Found(Finding::Paid(receipt)) => {
                assert!(receipt.amount_minor.is_some(), "{text}");
                let is_about_it = about == Subject::Reference(REFERENCE.to_owned());
                assert!(!is_about_it || !is_ours(&receipt) || tells_of_payment(told), "{text}");
            }
            News::Found(Finding::Refused(refusal))
                if about == Subject::Reference(REFERENCE.to_owned()) =>
            {
                assert!(tells_of_refusal(told, &refusal.code), "{text}");
            }
            News::Found(Finding::Returned(funds)) => {
                let is_return = says(
                    told.json.as_ref(),
                    &[
                        (&["Payload", "IsReturn"], &["true"]),
                        (&["Payload", "DebitCreditCode"], &["Credit"]),
                    ],
                );
                assert!(is_return && funds.amount_minor >= 0, "{text}");
            }
            News::Found(Finding::Refused(_)) | News::Ask => {}
            other => panic!("{other:?}: {text}"),
        }
    }
}

#[test]
fn what_is_whole_is_believed() {
    fixtures::install();
    let mut paid = 0;
    for body in corpus(WEBHOOKS) {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.into_bytes() };
        paid += usize::from(tells_of_payment(&told));
        holds(&told);
    }
    assert!(paid >= 4, "{paid}");
}

#[test]
fn every_change_of_what_says_how_it_ended() {
    fixtures::install();
    let is_an_end = |body: &String| {
        let told = Damaged { json: Json::read(body.as_bytes()), bytes: body.clone().into_bytes() };
        body.contains("Reject") || tells_of_payment(&told)
    };
    for text in bodies(WEBHOOKS).iter().filter(|body| is_an_end(body)) {
        each_change(text).iter().for_each(holds);
    }
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn webhooks(told in damaged(corpus(WEBHOOKS))) {
        fixtures::install();
        holds(&told);
    }

    #[test]
    fn answers_to_questions(
        answer in damaged(corpus(QUESTIONS)),
        status in prop::sample::select(&[200, 200, 200, 202, 404, 404, 409, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let text = String::from_utf8_lossy(&answer.bytes);
        let found = query(&payment());
        let names_it = says(
            answer.json.as_ref(), &[(&["endToEndIdentification"], &[REFERENCE])],
        );
        prop_assert!(names_it || matches!(found, Finding::Unknown(_)), "{found:?}: {text}");
        let says_only = |word: &str| says(answer.json.as_ref(), &[(&["status"], &[word])]);
        match found {
            Finding::Paid(receipt) => {
                let amount: &[(&[&str], &[&str])] = &[
                    (&["amount", "currency"], &["GBP"]),
                    (&["amount", "instructedAmount"], &POUNDS),
                ];
                prop_assert!(status == 200 && says_only("Settled"), "{text}");
                prop_assert!(receipt.amount_minor.is_some(), "{text}");
                prop_assert!(!is_ours(&receipt) || says(answer.json.as_ref(), amount), "{text}");
            }
            Finding::Refused(refusal) => {
                let is_its_code = says(
                    answer.json.as_ref(), &[(&["reasonCode"], &[&refusal.code])],
                );
                prop_assert!(is_its_code && codes::class(&refusal.code) == Class::Refused, "{text}");
                prop_assert!(
                    status == 200 && (says_only("Rejected") || says_only("Cancelled")), "{text}"
                );
            }
            Finding::NeverReceived(_) => prop_assert_eq!(status, 404, "{}", text),
            Finding::Returned(_) => prop_assert!(false, "{text}"),
            Finding::Accepted(_) | Finding::Unknown(_) => {}
        }
    }

    #[test]
    fn answers_to_payments(
        answer in damaged(corpus(PAYMENTS)),
        status in prop::sample::select(&[202, 202, 200, 400, 400, 409, 422, 500][..]),
    ) {
        answering(status, &answer.bytes);
        let text = String::from_utf8_lossy(&answer.bytes);
        // What was decided of the only payment.
        let decided = answer.json.as_ref().and_then(|json| {
            let decisions = json.only(&["transactions"])?.members();
            let [only] = decisions else { return None };
            Some(only.value.clone()).filter(|it| {
                says(Some(it), &[(&["endToEndIdentification"], &[REFERENCE])])
            })
        });
        match submit(&payment()) {
            Outcome::Accepted(_) => prop_assert!(
                status == 202 && says(decided.as_ref(), &[(&["response"], &["Accepted"])]), "{text}"
            ),
            Outcome::Refused(refusal) => {
                let errors = answer.json.as_ref().and_then(|json| json.only(&["errors"]));
                let is_of_a_copy = errors.is_some_and(|it| codes::is_of_a_copy(&it.write()));
                let is_decided = says(decided.as_ref(), &[(&["response"], &[&refusal.code])]);
                let is_whole = [400, 422].contains(&status) && errors.is_some() && !is_of_a_copy;
                prop_assert!(is_decided || is_whole, "{text}");
            }
            Outcome::Paid(_) => prop_assert!(false, "{text}"),
            Outcome::Unknown(why) => prop_assert!(why.len() < 300, "{why}"),
        }
    }

    #[test]
    fn answers_to_name_checks(answer in damaged(corpus(NAMES))) {
        answering(200, &answer.bytes);
        let verdict = resolve(&Enquiry::about(&fixtures::payment()));
        let report = |name| {
            let names = ["Data", "VerificationReport", name];
            answer.json.as_ref().and_then(|json| json.only_text(&names)).unwrap_or_default()
        };
        let (matched, code) = (report("Matched"), codes::plain(&report("ReasonCode")));
        let text = String::from_utf8_lossy(&answer.bytes);
        match verdict {
            Verdict::Matches(_) => prop_assert!(
                matched == "true" || ["BANM", "PANM"].contains(&code.as_str()), "{text}"
            ),
            Verdict::Refused(_) => prop_assert_eq!(code, "AC01", "{}", text),
            Verdict::Close(_) | Verdict::Differs(_) => {
                prop_assert_eq!(matched, "false", "{}", text);
            }
            Verdict::Named(_) => prop_assert!(false, "{text}"),
            Verdict::Unavailable(_) => {}
        }
    }
}
