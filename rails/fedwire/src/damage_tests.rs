//! Whatever the gateway sends is read or refused, and what is believed stands in it: once, and of
//! our wire.

use proptest::prelude::*;
use proptest::sample::Index;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Response;
use railhead_rail::types::{Finding, News, Outcome, Subject};

use crate::fixtures::{self, IMAD, REFERENCE, payment};
use crate::imad;
use crate::notices::receive;
use crate::payments::{query, submit};
use crate::recalls::recall;
use crate::settings::Settings;

/// What is answered, and what is told.
fn corpus() -> Vec<String> {
    let reason = |code: &str| format!("<StsRsnInf><Rsn><Prtry>{code}</Prtry></Rsn></StsRsnInf>");
    let amount = "<OrgnlTxRef><IntrBkSttlmAmt Ccy=\"USD\">1250.50</IntrBkSttlmAmt></OrgnlTxRef>";
    let own = vec![
        fixtures::status("ACSC", ""),
        fixtures::status("ACSC", amount),
        fixtures::status("PDNG", ""),
        fixtures::status("RJCT", &reason("E433")),
        fixtures::status("RJCT", &(reason("AC04") + &reason("AM05"))),
        fixtures::status("CANC", ""),
        fixtures::returned("1250.50"),
        fixtures::resolution("IPAY"),
        fixtures::acknowledged("20261123B1QDRCQR000006"),
        fixtures::rejection(IMAD, "E990"),
    ];
    let other = own.iter().map(|text| text.replace(REFERENCE, &OTHER.replace('f', "e")));
    let more = own.iter().map(|text| text.replace("1250.50", "77.00"));
    own.iter().cloned().chain(other).chain(more).collect()
}

const OTHER: &str = "8a562c67-ca16-48ba-b074-65581be6f011";

/// Texts that trouble readers.
const ODD: &[&str] = &[
    "",
    " ",
    "0",
    "-1",
    "1e3",
    "NaN",
    "ACSC",
    "RJCT",
    "CANC",
    "E433",
    "X001",
    "\u{202e}",
    "&amp;",
    "&lt;b&gt;",
    "&#0;",
    "&own;",
    "<a/>",
    "<![CDATA[ACSC]]>",
    "<!-- -->",
    "]]>",
    "1250.50",
];

/// A change to a text, at one of its elements or of its bytes.
#[derive(Clone, Debug)]
enum Change {
    /// An element is not there.
    Remove(Index),
    /// It stands there twice.
    Repeat(Index),
    /// It has another text.
    Put(Index, usize),
    /// It has another name.
    Rename(Index),
    /// Its attributes are gone.
    Bare(Index),
    /// A byte is another one.
    Flip(Index, u8),
    /// The text ends too early.
    Cut(Index),
}

/// Where elements without elements in them stand: from their `<` to behind their last `>`.
fn leaves(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('<') {
        let rest = &text[at..];
        let Some(end) = rest.find('>') else { continue };
        let name = rest[1..end].split(' ').next().unwrap_or_default();
        let closing = format!("</{name}>");
        let inner = &rest[end + 1..];
        if let Some(length) = inner.find('<').filter(|it| inner[*it..].starts_with(&closing)) {
            found.push((at, at + end + 1 + length + closing.len()));
        }
    }
    found
}

impl Change {
    fn apply(&self, text: String) -> String {
        let all = leaves(&text);
        let leaf = |at: &Index| {
            (!all.is_empty()).then(|| {
                let (from, to) = all[at.index(all.len())];
                (&text[..from], &text[from..to], &text[to..])
            })
        };
        let name = |leaf: &str| leaf[1..].split([' ', '>']).next().unwrap_or_default().to_owned();
        let changed = match self {
            Self::Remove(at) => leaf(at).map(|(before, _, after)| format!("{before}{after}")),
            Self::Repeat(at) => {
                leaf(at).map(|(before, it, after)| format!("{before}{it}{it}{after}"))
            }
            Self::Put(at, odd) => leaf(at).map(|(before, it, after)| {
                let name = name(it);
                format!("{before}<{name}>{}</{name}>{after}", ODD[odd % ODD.len()])
            }),
            Self::Rename(at) => leaf(at).map(|(before, it, after)| {
                format!("{before}{}{after}", it.replace(&name(it), "Other"))
            }),
            Self::Bare(at) => leaf(at).map(|(before, it, after)| {
                format!("{before}{}{after}", it.replace(" Ccy=\"USD\"", ""))
            }),
            Self::Flip(at, bits) if !text.is_empty() => {
                let mut bytes = text.clone().into_bytes();
                let place = at.index(bytes.len());
                bytes[place] ^= bits;
                String::from_utf8(bytes).ok()
            }
            Self::Cut(at) => {
                let place = at.index(text.len() + 1);
                text.get(..place).map(str::to_owned)
            }
            Self::Flip(..) => None,
        };
        changed.unwrap_or(text)
    }
}

fn damaged() -> impl Strategy<Value = String> {
    let at = any::<Index>;
    let change = prop_oneof![
        3 => at().prop_map(Change::Remove),
        3 => at().prop_map(Change::Repeat),
        4 => (at(), any::<usize>()).prop_map(|(at, odd)| Change::Put(at, odd)),
        1 => at().prop_map(Change::Rename),
        1 => at().prop_map(Change::Bare),
        2 => (at(), 1..=127_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => at().prop_map(Change::Cut),
    ];
    let changes = prop::collection::vec(change, 0..=3);
    (prop::sample::select(corpus()), changes)
        .prop_map(|(text, changes)| changes.iter().fold(text, |text, change| change.apply(text)))
}

/// Installs a gateway that answers this.
fn answering(status: u16, body: &[u8]) {
    let response = Response { status, headers: Vec::new(), body: body.to_vec() };
    let send = Box::new(move |_: &_| Ok(response.clone()));
    double::install(Host { send, ..fixtures::host() });
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// What stands in an element that is there once; a comment or a CDATA section within it aside.
fn only<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let opening = format!("<{name}>");
    let once = count(text, &opening) == 1;
    let (_, rest) = text.split_once(&opening).filter(|_| once)?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner.trim())
}

/// Which wires a text is believed of.
type Wires = fn(&str) -> bool;

/// The one that was sent.
fn ours(imad: &str) -> bool {
    imad == IMAD
}

/// Who is told without having asked, knows the source, not the number.
fn of_our_source(wire: &str) -> bool {
    imad::is_of_source(wire, &Settings::read().source_id)
}

/// The text says, once each, that a wire stands so, and that it is one of these.
fn says(text: &str, status: &str, wires: Wires) -> bool {
    let inner = only(text, "TxSts");
    let is_it = inner.is_some_and(|it| it == status || it == format!("<![CDATA[{status}]]>"));
    is_it
        && only(text, "OrgnlUETR") == Some(REFERENCE)
        && only(text, "OrgnlMsgId").is_some_and(wires)
        && only(text, "OrgnlMsgNmId") == Some("pacs.008.001.08")
}

/// No amount, or ours.
fn is_of_amount(text: &str, found: Option<i64>) -> bool {
    match found {
        Some(amount) => amount == 125_050 && count(text, "Ccy=\"USD\">1250.50<") == 1,
        None => !text.contains("<IntrBkSttlmAmt"),
    }
}

/// The amount stands there, once.
fn writes(text: &str, found: Option<i64>) -> bool {
    found.is_some_and(|cents| {
        let dollars = format!("Ccy=\"USD\">{}.{:02}<", cents / 100, cents % 100);
        count(text, &dollars) == 1
    })
}

fn refuses(text: &str, wires: Wires) -> bool {
    let rejected =
        says(text, "RJCT", wires) && !text.contains("AM05") && text.contains("StsRsnInf");
    rejected || says(text, "CANC", wires)
}

fn is_believed(text: &str, found: &Finding, wires: Wires) -> bool {
    match found {
        Finding::Paid(receipt) => {
            says(text, "ACSC", wires) && is_of_amount(text, receipt.amount_minor)
        }
        Finding::Refused(_) => refuses(text, wires),
        Finding::Returned(funds) => {
            only(text, "OrgnlUETR") == Some(REFERENCE) && funds.amount_minor > 0
        }
        Finding::Accepted(_) | Finding::Unknown(_) | Finding::NeverReceived(_) => true,
    }
}

proptest! {
    #![proptest_config(railhead_damage::config())]

    #[test]
    fn answers(text in damaged(), status in prop::sample::select(vec![200_u16, 201, 202, 400, 404, 422])) {
        answering(status, text.as_bytes());
        match submit(&payment()) {
            Outcome::Paid(receipt) => {
                prop_assert!(status < 300 && says(&text, "ACSC", ours), "{}", text);
                prop_assert!(is_of_amount(&text, receipt.amount_minor), "{}", text);
            }
            Outcome::Refused(_) => {
                let rejected = only(&text, "Ref") == Some(IMAD);
                prop_assert!(refuses(&text, ours) || rejected, "{}", text);
            }
            Outcome::Accepted(_) | Outcome::Unknown(_) => {}
        }
        answering(status, text.as_bytes());
        let found = query(&payment());
        prop_assert!(is_believed(&text, &found, ours) && !matches!(found, Finding::Returned(_)), "{}", text);
        answering(status, text.as_bytes());
        let found = recall(&payment(), &fixtures::recall_request());
        prop_assert!(is_believed(&text, &found, ours), "{}", text);
    }

    #[test]
    fn messages(text in damaged()) {
        fixtures::install();
        for notice in receive("/messages", text.as_bytes()).map(|(_, it)| it).unwrap_or_default() {
            if let News::Found(found) = &notice.news {
                let is_ours = notice.about == Subject::Reference(REFERENCE.into());
                let is_told = match found {
                    // Whether it is the payment's amount, the host looks.
                    Finding::Paid(receipt) => {
                        says(&text, "ACSC", of_our_source) && writes(&text, receipt.amount_minor)
                    }
                    other => is_believed(&text, other, of_our_source),
                };
                prop_assert!(!is_ours || is_told, "{}", text);
            }
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), status in 100..600_u16) {
        answering(status, &bytes);
        prop_assert!(matches!(submit(&payment()), Outcome::Unknown(_)));
        prop_assert!(matches!(query(&payment()), Finding::Unknown(_)));
        prop_assert!(matches!(recall(&payment(), &fixtures::recall_request()), Finding::Unknown(_)));
        prop_assert!(receive("/messages", &bytes).is_err());
    }
}
