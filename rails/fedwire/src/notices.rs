//! What the gateway tells by itself: how a wire stands, that money came back, what a bank says to
//! asking for it.
//!
//! The host has checked the gateway's signature. A message of no concern is acknowledged like any
//! other. Fedwire's own status of a wire says no amount, so that "settled" is asked about; a return
//! is told nowhere else.

use railhead_rail::types::{Finding, News, Notice, Reply, Subject};

use crate::imad;
use crate::messages;
use crate::payments::proved;
use crate::recalls;
use crate::reference::is_uetr;
use crate::reports::{self, Rejection, Report, ReturnReport, StatusReport};
use crate::settings::Settings;

const MESSAGES: &str = "/messages";

/// Reads a message.
///
/// # Errors
/// A sentence, where it is no message of ISO 20022, or not as documented.
pub fn receive(path: &str, body: &[u8]) -> Result<(Reply, Vec<Notice>), String> {
    if path != MESSAGES {
        return Err("this rail receives nothing under this path".to_owned());
    }
    let notice = match reports::read(body)? {
        Report::Status(report) => stands(&report),
        Report::Return(report) => Some(returned(&report)),
        Report::Resolution(resolution) => about_wire(&resolution.uetr, News::Ask),
        Report::Rejection(rejection) => not_understood(&rejection),
        Report::Acknowledgement { .. } | Report::Other => None,
    };
    Ok((Reply::ok("text/plain", b""), notice.into_iter().collect()))
}

/// Believed are a settlement that says how much, which the host compares, and a refusal that says
/// no amount, both of a wire under our own source; anything else is asked about.
fn stands(report: &StatusReport) -> Option<Notice> {
    let source = Settings::read().source_id;
    let is_wire = report.kind == messages::WIRE && imad::is_of_source(&report.imad, &source);
    let news = match proved(report) {
        Ok(Finding::Paid(receipt)) if is_wire && receipt.amount_minor.is_some() => {
            News::Found(Finding::Paid(receipt))
        }
        Ok(Finding::Refused(refusal)) if is_wire && report.amount_minor.is_none() => {
            News::Found(Finding::Refused(refusal))
        }
        _ => News::Ask,
    };
    about_wire(&report.uetr, news)
}

/// Money that came back is never passed over: what it is about, nobody here may know, and a person
/// has to find out.
fn returned(report: &ReturnReport) -> Notice {
    let Some(funds) = recalls::returned(report) else {
        let name = format!("a return of an unreadable amount, {}", report.imad);
        return Notice { about: Subject::NetworkId(name), news: News::Ask };
    };
    let by_imad = || report.original.clone().unwrap_or_else(|| report.imad.clone());
    let about = match &report.uetr {
        Some(uetr) => Subject::Reference(uetr.clone()),
        None => Subject::NetworkId(by_imad()),
    };
    Notice { about, news: News::Found(Finding::Returned(funds)) }
}

/// A wire that was taken on is known by its IMAD.
fn not_understood(rejection: &Rejection) -> Option<Notice> {
    let about = Subject::NetworkId(rejection.about.clone());
    imad::is_imad(&rejection.about).then_some(Notice { about, news: News::Ask })
}

fn about_wire(uetr: &str, news: News) -> Option<Notice> {
    is_uetr(uetr).then(|| Notice { about: Subject::Reference(uetr.to_owned()), news })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::types::{Finding, News, Notice, Subject};

    use super::receive;
    use crate::fixtures::{self, IMAD, REFERENCE, status};

    fn told(text: &str) -> Vec<Notice> {
        fixtures::install();
        receive("/messages", text.as_bytes()).expect(text).1
    }

    fn ours(news: News) -> Vec<Notice> {
        vec![Notice { about: Subject::Reference(REFERENCE.into()), news }]
    }

    #[test]
    fn a_settlement_is_believed_of_an_amount() {
        assert_eq!(told(&status("ACSC", "")), ours(News::Ask));
        let amount =
            "<OrgnlTxRef><IntrBkSttlmAmt Ccy=\"USD\">1250.50</IntrBkSttlmAmt></OrgnlTxRef>";
        let found = told(&status("ACSC", amount));
        let [Notice { news: News::Found(Finding::Paid(receipt)), .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(receipt.amount_minor, Some(125_050));
        assert_eq!(receipt.network_id.as_deref(), Some(IMAD));
        for (what, instead) in [("pacs.008.001.08", "pacs.009.001.08"), (IMAD, "1")] {
            let odd = status("ACSC", amount).replace(what, instead);
            assert_eq!(told(&odd), ours(News::Ask), "{instead}");
        }
    }

    #[test]
    fn a_rejection_is_believed_for_known_reasons() {
        let with =
            |reason: &str| format!("<StsRsnInf><Rsn><Prtry>{reason}</Prtry></Rsn></StsRsnInf>");
        let found = told(&status("RJCT", &with("E433")));
        let [Notice { news: News::Found(Finding::Refused(refusal)), .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(refusal.code, "E433");
        for reasons in [String::new(), with("X001"), with("ZZZZ"), with("E433") + &with("X001")] {
            assert_eq!(told(&status("RJCT", &reasons)), ours(News::Ask), "{reasons}");
        }
        // Nobody compares here which amount it is, nor whose wire it is under another source.
        let amount =
            "<OrgnlTxRef><IntrBkSttlmAmt Ccy=\"USD\">1250.50</IntrBkSttlmAmt></OrgnlTxRef>";
        let rejected = status("RJCT", &with("E433"));
        for odd in [
            status("RJCT", &(with("E433") + amount)),
            rejected.replace("B1QDRCQR", "C1QDRCQR"),
            status("CANC", amount),
            status("CANC", "").replace("B1QDRCQR", "C1QDRCQR"),
            status("ACSC", amount).replace("B1QDRCQR", "C1QDRCQR"),
        ] {
            assert_eq!(told(&odd), ours(News::Ask), "{odd}");
        }
        for word in ["PDNG", "ACSP", "ACCC", "??"] {
            assert_eq!(told(&status(word, "")), ours(News::Ask), "{word}");
        }
    }

    #[test]
    fn a_return_is_never_passed_over() {
        let found = told(&fixtures::returned("1250.50"));
        let [Notice { about, news: News::Found(Finding::Returned(funds)) }] = found.as_slice()
        else {
            panic!("{found:?}")
        };
        assert_eq!(*about, Subject::Reference(REFERENCE.into()));
        assert_eq!((funds.code.as_str(), funds.amount_minor), ("AC04", 125_050));
        assert_eq!(funds.network_id.as_deref(), Some("20261123C1QDRCQR000077"));
        let nameless = fixtures::returned("5.00").replace(REFERENCE, "");
        assert_eq!(told(&nameless)[0].about, Subject::NetworkId(IMAD.into()));
        let unreadable = told(&fixtures::returned("1,250.50"));
        assert_eq!(unreadable[0].news, News::Ask);
        assert!(
            matches!(&unreadable[0].about, Subject::NetworkId(name) if name.contains("unreadable"))
        );
    }

    #[test]
    fn the_others() {
        assert_eq!(told(&fixtures::resolution("RJCR")), ours(News::Ask));
        assert_eq!(told(&fixtures::acknowledged(IMAD)), []);
        let about = Subject::NetworkId(IMAD.into());
        assert_eq!(told(&fixtures::rejection(IMAD, "E990")), [Notice { about, news: News::Ask }]);
        assert_eq!(told(&fixtures::rejection("Q01", "E990")), []);
        assert_eq!(told(&status("ACSC", "").replace(REFERENCE, "x")), []);
        let ping =
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:admi.004.001.02\"><a/></Document>";
        assert_eq!(told(ping), []);
        for (path, text) in [("/other", ping), ("/messages", ""), ("/messages", "{}")] {
            assert!(receive(path, text.as_bytes()).is_err());
        }
    }
}
