//! Whatever the bank sends is read or refused, and what is believed stands in it: once, and of the
//! file that it names.

use proptest::prelude::*;
use railhead_damage::{Damaged, Json, damaged, each_change};
use railhead_rail::fields::field;
use railhead_rail::file_gateway;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Delivery, Field, File, Finding, News, Presence, Subject};

use crate::arrivals::read;
use crate::assembly::assemble;
use crate::fixtures::{self, payment, window};
use crate::recipients::check;
use crate::{entries, gateway};

const FILE: &str = "EFT-0123456789-20260306-00000042-0042.txt";
/// The codes of the reports and answers below that refuse a file.
const FILE_CODES: [&str; 2] = ["unbalanced", "invalid_file"];
const RETURNS: &[u8] = include_bytes!("../cases/golden/returns.txt");

/// Reports in which everything stands that one may hold.
fn reports() -> Vec<String> {
    let head = format!(
        "{{\"report\":\"file\",\"file_name\":\"{FILE}\",\"file_creation_number\":\"0042\","
    );
    let payment = "{\"cross_reference_number\":\"E16000000000001\",\"amount\":5,\
                   \"code\":\"invalid_account\",\"message\":\"No such account\"}";
    let other = payment.replace("001", "004");
    vec![
        format!("{head}\"status\":\"accepted\",\"payments\":5,\"total_credit\":12345}}"),
        format!(
            "{head}\"status\":\"accepted\",\"payments\":5,\"total_credit\":12345,\
             \"rejected_payments\":[{payment},{other}]}}"
        ),
        format!("{head}\"status\":\"rejected\",\"code\":\"unbalanced\",\"message\":\"Wrong\"}}"),
        format!(
            "{head}\"status\":\"rejected\",\"code\":\"already_received\",\"message\":\"Twice\"}}"
        ),
        "{\"report\":\"unfetchable\"}".to_owned(),
    ]
}

/// What is answered to a delivery and to a question.
fn answers() -> Vec<String> {
    let known =
        format!("{{\"name\":\"{FILE}\",\"file_creation_number\":\"0042\",\"status\":\"x\"}}");
    vec![known, "{\"code\":\"invalid_file\",\"message\":\"what is wrong\"}".to_owned()]
}

fn said(json: Option<&Json>, name: &str) -> Option<String> {
    json.and_then(|json| json.only_text(&[name]))
}

/// What is told of a report is told in it, once.
fn report_holds(told: &Damaged) {
    let Ok(notices) = read("incoming", "a.json", &told.bytes) else { return };
    let json = told.json.as_ref();
    let text = String::from_utf8_lossy(&told.bytes);
    let file = said(json, "file_name").unwrap_or_else(|| panic!("nothing is named: {text}"));
    let number = said(json, "file_creation_number");
    assert!(number.is_some_and(|number| file.ends_with(&format!("-{number}.txt"))), "{text}");
    for notice in notices {
        let News::Found(finding) = &notice.news else { panic!("{notice:?}: {text}") };
        match (&notice.about, finding) {
            (Subject::File(name), Finding::Accepted(receipt)) => {
                assert_eq!((name, said(json, "status").as_deref()), (&file, Some("accepted")));
                let total = receipt.amount_minor.map(|total| total.to_string());
                assert!(total.is_some() && total == said(json, "total_credit"), "{text}");
                let is_null = |name| said(json, name).is_none_or(|it| it == "null");
                assert!(is_null("code") && is_null("message"), "{text}");
            }
            (Subject::File(name), Finding::Refused(why)) => {
                assert_eq!((name, said(json, "status").as_deref()), (&file, Some("rejected")));
                assert!(FILE_CODES.contains(&&*why.code), "{text}");
                assert!(said(json, "code").is_some_and(|it| it.contains(&why.code)), "{text}");
            }
            (Subject::File(name), Finding::Unknown(_)) => {
                assert_eq!((name, said(json, "status").as_deref()), (&file, Some("rejected")));
            }
            (Subject::NetworkId(key), finding @ (Finding::Refused(_) | Finding::Unknown(_))) => {
                if let Finding::Refused(why) = finding {
                    assert!(why.code == "invalid_account", "{text}");
                }
                let reference = key.strip_prefix(&format!("{file}/")).expect("of the file");
                assert!(entries::is_ours(reference) && text.contains(reference.trim()), "{text}");
            }
            other => panic!("{other:?}: {text}"),
        }
    }
}

#[test]
fn what_is_whole_is_believed() {
    fixtures::install();
    let read_one = |text: String| read("incoming", "a.json", text.as_bytes()).map(|it| it.len());
    let counts: Vec<_> = reports().into_iter().map(|text| read_one(text).ok()).collect();
    assert_eq!(counts, [Some(1), Some(3), Some(1), Some(1), None]);
}

#[test]
fn every_change_of_a_report() {
    fixtures::install();
    for text in reports() {
        for told in each_change(&text) {
            report_holds(&told);
        }
    }
}

fn file() -> File {
    File { name: FILE.into(), identity: FILE.into(), content: b"A".to_vec() }
}

/// Any recipient: texts of every kind under names of every kind.
fn recipients() -> impl Strategy<Value = Vec<Field>> {
    let name = prop::sample::select(
        &[
            "institution_number",
            "transit_number",
            "account_number",
            "name",
            "method",
            "country",
            "bank_name",
            "state",
            "email",
            "other",
        ][..],
    );
    let text = prop_oneof!["[0-9]{0,14}", "\\PC{0,20}", ".{0,8}", Just("003".to_owned())];
    prop::collection::vec((name, text), 0..12)
        .prop_map(|fields| fields.into_iter().map(|(name, text)| field(name, text)).collect())
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn reports_that_no_bank_sends(told in damaged(reports())) {
        fixtures::install();
        report_holds(&told);
    }

    #[test]
    fn answers_to_a_delivery_and_to_a_question(
        answer in damaged(answers()),
        status in prop::sample::select(&[200, 201, 401, 403, 404, 409, 413, 422, 429, 500, 503][..]),
    ) {
        let response = Response { status, headers: Vec::new(), body: answer.bytes.clone() };
        let send = Box::new(move |_: &_| Ok(response.clone()));
        double::install(Host { send, ..fixtures::host() });
        let json = answer.json.as_ref();
        let names_it = said(json, "name").as_deref() == Some(FILE)
            && said(json, "file_creation_number").as_deref() == Some("0042");
        let is_fault = said(json, "code").is_some() && said(json, "message").is_some();
        match gateway::GATEWAY.deliver(&file()) {
            Delivery::Taken => prop_assert!(names_it && status < 300),
            Delivery::Refused(why) => {
                prop_assert!(is_fault && [413, 422].contains(&status));
                prop_assert!(FILE_CODES.contains(&&*why.code));
            }
            Delivery::NotTaken(_) => prop_assert!(is_fault && status > 400),
            Delivery::Unknown(why) => prop_assert!(why.len() < 300),
        }
        match gateway::GATEWAY.look(&file()) {
            Presence::Present => prop_assert!(names_it && status == 200),
            Presence::Absent => prop_assert!(is_fault && status == 404),
            Presence::Unknown(why) => prop_assert!(why.len() < 300),
        }
        // A list is read or refused.
        let _ = file_gateway::poll("incoming", "");
    }

    #[test]
    fn files_with_stretches_of_others(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_usize..400), 1..4),
    ) {
        fixtures::install();
        let mut bytes = RETURNS.to_vec();
        for (to, from, length) in changes {
            let (to, from) = (to.index(bytes.len()), from.index(RETURNS.len()));
            let length = length.min(bytes.len() - to).min(RETURNS.len() - from);
            bytes[to..to + length].copy_from_slice(&RETURNS[from..from + length]);
        }
        let Ok(notices) = read("incoming", "a.txt", &bytes) else { return Ok(()) };
        let amounts = notices.iter().filter_map(|notice| match &notice.news {
            News::Found(Finding::Returned(funds)) => Some(funds.amount_minor),
            _ => None,
        });
        // The trailer holds together what it holds: the sum is the file's, or less.
        prop_assert!(amounts.sum::<i64>() <= 10_000_277_077 + 9_999_999_999);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..4_000)) {
        fixtures::install();
        let _ = read("incoming", "a", &bytes);
        let mut file = b"A000000001".to_vec();
        file.extend(bytes);
        prop_assert!(read("incoming", "a", &file).is_err());
    }

    #[test]
    fn any_recipient(fields in recipients()) {
        fixtures::install();
        match check(fields.clone()) {
            Ok(canonical) => {
                prop_assert_eq!(check(canonical.clone()), Ok(canonical.clone()));
                // What is a recipient can be paid, but for one without a name.
                let given = crate::fixtures::payment();
                let given = railhead_rail::types::Payment { recipient: canonical, ..given };
                let is_named = !railhead_rail::fields::value(&given.recipient, "name").is_empty();
                prop_assert_eq!(entries::prepare(&given).is_ok(), is_named);
                if is_named {
                    let made = assemble(&window(), &[given]).expect("a file");
                    prop_assert_eq!(made.placed.len(), 1);
                }
            }
            Err(violations) => {
                prop_assert!(!violations.is_empty());
                prop_assert!(violations.iter().all(|it| it.message.len() < 300));
            }
        }
    }

    #[test]
    fn any_name(name in "\\PC{0,60}") {
        fixtures::install();
        let mut given = payment();
        railhead_rail::fields::set(&mut given.recipient, "name", name);
        let made = assemble(&window(), &[given]).expect("a file");
        if let [placed] = made.placed.as_slice() {
            prop_assert!(placed.entry.is_ascii() && placed.entry.len() <= 264);
            prop_assert_eq!(made.content.len(), 3 * 1466);
        }
    }
}
