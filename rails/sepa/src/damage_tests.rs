//! Whatever the bank sends is read or refused, and what is believed stands in it: once, and of our
//! payment.

use proptest::prelude::*;
use proptest::sample::Index;
use railhead_damage::{bodies, damaged};
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Enquiry, Finding, News, Notice, Outcome, Subject, Verdict};

use crate::codes::{self, Class};
use crate::fixtures::{self, INSTANT_REFERENCE, instant_payment};
use crate::{arrivals, instant, names, notices, recalls};

const PAYMENTS: &str = include_str!("../cases/instant/payments.toml");
const NOTICES: &str = include_str!("../cases/instant/notices.toml");
const REPORTS: &str = concat!(
    include_str!("../cases/reports.toml"),
    include_str!("../cases/contradictions.toml"),
    include_str!("../cases/stopped.toml"),
);
const RETURNS: &str = include_str!("../cases/returns.toml");
const NAMES: &str = include_str!("../cases/names.toml");

/// Texts that trouble readers, or that say something else.
const ODD: &[&str] = &[
    "",
    " ",
    "RJCT",
    "ACSC",
    "ACCC",
    "PART",
    "AM05",
    "AC01",
    "-1",
    "0",
    "1e3",
    "1250.50",
    "9999999999999999999",
    "&#0;",
    "&amp;",
    "&x;",
    "<A>1</A>",
    "<![CDATA[RJCT]]>",
    "<!--x-->",
    "é",
    "NOTPROVIDED",
    "RJ01A1FD557A800000000077",
    "RE01A1FD557A800000000002",
    "EUR",
    "CRDT",
    "DBIT",
    "PDNG",
];

/// The messages of cases.
fn corpus(cases: &str) -> Vec<String> {
    let all = cases.split("'''").skip(1).step_by(2).map(str::to_owned);
    // Those of all codes are long, and say nothing else.
    let messages: Vec<String> =
        all.filter(|it| it.starts_with("<?xml") && it.len() < 8_000).collect();
    assert!(messages.len() > 10);
    messages
}

/// Where values stand in a message: between the end of a tag and the beginning of the next, which
/// closes it. With its tags, and alone.
fn values(text: &str) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    for (close, _) in text.match_indices("</") {
        let Some(start) = text[..close].rfind('>').map(|at| at + 1) else { continue };
        let Some(open) = text[..start].rfind('<') else { continue };
        let Some(end) = text[close..].find('>').map(|at| close + at + 1) else { continue };
        if !text[open..].starts_with("</") {
            found.push((open..end, start..close));
        }
    }
    found
}

/// The values of elements of this name.
fn of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let is_its =
        |all: &str| all[1..].strip_prefix(name).is_some_and(|rest| rest.starts_with(['>', ' ']));
    let found = values(text).into_iter().filter(|(all, _)| is_its(&text[all.clone()]));
    found.map(|(_, value)| text[value].trim()).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Remove(Index),
    Put(Index, &'static str),
    Double(Index),
    Precede(Index, &'static str),
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, u8),
}

impl Change {
    fn apply(&self, text: &mut Vec<u8>) {
        let Ok(message) = String::from_utf8(text.clone()) else { return self.apply_to_bytes(text) };
        let values = values(&message);
        let pick =
            |at: &Index| (!values.is_empty()).then(|| values[at.index(values.len())].clone());
        let changed = match self {
            Self::Remove(at) => pick(at).map(|(all, _)| replaced(&message, all, "")),
            Self::Put(at, value) => pick(at).map(|(_, own)| replaced(&message, own, value)),
            Self::Double(at) => pick(at).map(|(all, _)| {
                let twice = message[all.clone()].repeat(2);
                replaced(&message, all, &twice)
            }),
            Self::Precede(at, value) => pick(at).map(|(all, own)| {
                let first = [&message[all.start..own.start], value, &message[own.end..all.end]];
                let both = first.concat() + &message[all.clone()];
                replaced(&message, all, &both)
            }),
            _ => return self.apply_to_bytes(text),
        };
        if let Some(changed) = changed {
            *text = changed.into_bytes();
        }
    }

    fn apply_to_bytes(&self, text: &mut Vec<u8>) {
        let len = text.len();
        match self {
            Self::Flip(at, bits) if len > 0 => text[at.index(len)] ^= bits,
            Self::Cut(at) => text.truncate(at.index(len + 1)),
            Self::Insert(at, byte) => text.insert(at.index(len + 1), *byte),
            _ => {}
        }
    }
}

fn replaced(text: &str, range: std::ops::Range<usize>, by: &str) -> String {
    [&text[..range.start], by, &text[range.end..]].concat()
}

fn change() -> impl Strategy<Value = Change> {
    let (at, odd) = (any::<Index>, || prop::sample::select(ODD));
    let byte = prop::sample::select(&b"<>/&;\"'= \0\xffA1"[..]);
    prop_oneof![
        3 => at().prop_map(Change::Remove),
        4 => (at(), odd()).prop_map(|(at, value)| Change::Put(at, value)),
        2 => at().prop_map(Change::Double),
        2 => (at(), odd()).prop_map(|(at, value)| Change::Precede(at, value)),
        1 => (at(), 1..=255_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), byte).prop_map(|(at, byte)| Change::Insert(at, byte)),
    ]
}

fn changed(cases: &str) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec(change(), 0..=3);
    (prop::sample::select(corpus(cases)), changes).prop_map(|(text, changes)| {
        let mut bytes = text.into_bytes();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    })
}

/// Installs a gateway that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

/// Whether a report says that our instant payment was made, and of nothing else.
fn says_paid(text: &str) -> bool {
    let mut words = of(text, "TxSts");
    words.extend(of(text, "GrpSts"));
    let is_made = !words.is_empty() && words.iter().all(|word| ["ACSC", "ACCC"].contains(word));
    let amounts = of(text, "IntrBkSttlmAmt");
    is_made
        && of(text, "OrgnlEndToEndId") == [INSTANT_REFERENCE]
        && amounts.iter().all(|amount| crate::amount::cents(amount) == Some(125_050))
}

/// Whether a report says that our payment was rejected for this reason.
fn says_refused(text: &str, code: &str) -> bool {
    let mut words = of(text, "TxSts");
    words.extend(of(text, "GrpSts"));
    !words.is_empty()
        && words.iter().all(|word| *word == "RJCT")
        && of(text, "OrgnlEndToEndId") == [INSTANT_REFERENCE]
        && codes::class(code) == Class::Refused
        && of(text, "Cd").contains(&code)
}

/// A message as a reader sees it: without comments, and without marks around its values.
fn seen(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    ["<!--x-->", "<![CDATA[", "]]>"]
        .iter()
        .fold(text.into_owned(), |text, mark| text.replace(mark, ""))
}

fn is_about(notice: &Notice, reference: &str) -> bool {
    notice.about == Subject::Reference(reference.to_owned())
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn answers_about_instant_payments(
        body in changed(PAYMENTS),
        status in prop::sample::select(&[200, 200, 200, 202, 400, 404, 409, 422, 500][..]),
    ) {
        answering(status, &body);
        let text = seen(&body);
        let asked = instant::query(&instant_payment());
        match (instant::submit(&instant_payment()), &asked) {
            (Outcome::Paid(_), found) => {
                prop_assert!(status < 300 && says_paid(&text), "{}", text);
                prop_assert!(matches!(found, Finding::Paid(_)), "{found:?}: {text}");
            }
            (Outcome::Refused(why), found) => {
                prop_assert!(says_refused(&text, &why.code), "{}", text);
                prop_assert!(matches!(found, Finding::Refused(_)), "{found:?}: {text}");
            }
            (Outcome::Accepted(_), _) => prop_assert!(status < 300, "{}", text),
            (Outcome::Unknown(why), found) => {
                prop_assert!(why.len() < 300, "{why}");
                prop_assert!(matches!(found, Finding::Unknown(_)), "{found:?}: {text}");
            }
        }
    }

    #[test]
    fn what_the_bank_tells(body in changed(NOTICES)) {
        fixtures::install();
        let text = seen(&body);
        let told = notices::receive("/sepa/notices", &body);
        for notice in told.map(|(_, notices)| notices).unwrap_or_default() {
            let is_ours = is_about(&notice, INSTANT_REFERENCE);
            match notice.news {
                News::Found(Finding::Paid(receipt)) if is_ours => {
                    let cents = receipt.amount_minor;
                    prop_assert!(cents.is_some(), "{}", text);
                    prop_assert!(cents != Some(125_050) || says_paid(&text), "{}", text);
                }
                News::Found(Finding::Refused(why)) if is_ours => {
                    prop_assert!(says_refused(&text, &why.code), "{}", text);
                }
                News::Found(Finding::Returned(funds)) => {
                    prop_assert!(text.contains("RtrdIntrBkSttlmAmt Ccy=\"EUR\""), "{}", text);
                    prop_assert!(funds.amount_minor >= 0);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn reports_on_files(body in changed(REPORTS)) {
        fixtures::install();
        let text = seen(&body);
        let is_no_copy = |code: &&str| codes::class(code) != Class::Duplicate;
        let whole: Vec<&str> = [of(&text, "GrpSts"), of(&text, "PmtInfSts")].concat();
        // What stands before single payments is of all of them.
        let levels = &text[..text.find("<TxInfAndSts").unwrap_or(text.len())];
        let notices = arrivals::read("incoming", "a.xml", &body).unwrap_or_default();
        let told = notices.iter().filter(|it| !matches!(it.about, Subject::File(_))).count();
        for notice in notices {
            let is_file = matches!(notice.about, Subject::File(_));
            match notice.news {
                News::Found(Finding::Accepted(_)) => {
                    prop_assert!(is_file && !whole.contains(&"RJCT"), "{}", text);
                    let is_early = |word: &&str| ["ACTC", "RCVD", "PDNG", "CANC"].contains(word);
                    prop_assert!(!whole.iter().any(is_early), "{}", text);
                    let words = of(&text, "TxSts");
                    let is_over = |word: &&&str| ["RJCT", "CANC"].contains(*word);
                    let is_rejected = words.contains(&"RJCT");
                    // What is not carried out of it is told, one by one: the host pays the rest.
                    prop_assert_eq!(told, words.iter().filter(is_over).count(), "{}", text);
                    // Where anything else is said than of the whole, the host compares the sum.
                    let is_compared = !of(&text, "OrgnlCtrlSum").is_empty();
                    prop_assert!(is_compared || !(is_rejected || whole.is_empty()), "{}", text);
                }
                News::Found(Finding::Refused(why)) if is_file => {
                    prop_assert!(whole.contains(&"RJCT"), "{}", text);
                    let is_clear = why.code == "RJCT" || codes::class(&why.code) == Class::Refused;
                    prop_assert!(is_clear && !of(&text, "TxSts").contains(&"ACSP"), "{}", text);
                    prop_assert!(whole.iter().all(|word| *word == "RJCT"), "{}", text);
                    prop_assert!(of(&text, "Cd").iter().all(is_no_copy), "{}", text);
                    prop_assert!(!of(levels, "Cd").into_iter().any(codes::is_stop), "{}", text);
                }
                News::Found(Finding::Refused(why)) => {
                    let words = of(&text, "TxSts");
                    let is_rejected = words.contains(&"RJCT") && codes::class(&why.code) == Class::Refused;
                    prop_assert!(is_rejected || words.contains(&"CANC"), "{}", text);
                }
                News::Found(Finding::Unknown(_)) => {}
                other => prop_assert!(false, "{other:?}: {text}"),
            }
        }
    }

    #[test]
    fn notifications_of_what_was_booked(body in changed(RETURNS)) {
        fixtures::install();
        let text = seen(&body);
        for notice in arrivals::read("incoming", "a.xml", &body).unwrap_or_default() {
            match notice.news {
                News::Found(Finding::Returned(funds)) => {
                    let is_booked = of(&text, "CdtDbtInd").contains(&"CRDT") && text.contains("BOOK");
                    prop_assert!(is_booked && text.contains("<RtrInf"), "{}", text);
                    prop_assert!(funds.amount_minor >= 0);
                }
                News::Ask => {}
                other => prop_assert!(false, "{other:?}: {text}"),
            }
        }
    }

    #[test]
    fn answers_to_recalls(body in changed(NOTICES), status in prop::sample::select(&[200, 202, 409, 500][..])) {
        answering(status, &body);
        let text = seen(&body);
        match recalls::recall(&instant_payment(), &fixtures::recall_request()) {
            Finding::Returned(_) => {
                prop_assert!(status < 300 && text.contains("RtrdIntrBkSttlmAmt"), "{}", text);
            }
            Finding::Accepted(_) | Finding::Unknown(_) => {}
            other => prop_assert!(false, "{other:?}: {text}"),
        }
    }

    #[test]
    fn answers_to_name_checks(answer in damaged(bodies(NAMES))) {
        answering(200, &answer.bytes);
        let verdict = names::resolve(&Enquiry::about(&fixtures::payment()));
        let said = answer.json.as_ref().and_then(|json| json.only_text(&["partyNameMatch"]));
        let said = said.unwrap_or_default();
        match verdict {
            Verdict::Matches(_) => prop_assert_eq!(said, "MTCH"),
            Verdict::Close(_) => prop_assert_eq!(said, "CMTC"),
            Verdict::Differs(_) => prop_assert_eq!(said, "NMTC"),
            Verdict::Unavailable(_) => {}
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
