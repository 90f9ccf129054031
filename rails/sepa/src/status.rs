//! How a payment stands, in the words of ISO 20022, and why it was rejected.

use railhead_rail::types::Refusal;
use railhead_rail::wording::speaks_of_a_copy;

use crate::codes::{self, Class};
use crate::xml::{Element, Odd};

/// How far a bank has come with a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// ACTC: the message is well made.
    Technical,
    /// ACCP, ACWC, ACFC: the payer may pay it.
    Profile,
    /// ACSP, ACWP: it is being carried out.
    InProcess,
    /// ACSC: the paying account was debited, and it is settled.
    Settled,
    /// ACCC: the recipient's account was credited.
    Credited,
}

/// How a payment, or a file of them, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// RJCT: nothing of it is carried out.
    Rejected,
    /// CANC: it was called off, and nothing of it is carried out.
    Cancelled,
    /// PART, PATC: some payments of it stand otherwise than others.
    Partly,
    /// RCVD, PDNG, ACTC and more: it is on its way.
    Open,
    /// It has come so far.
    Reached(Stage),
}

impl Standing {
    /// By the word that a message has for it.
    ///
    /// # Errors
    /// It is a word of which nobody knows what it means here.
    pub fn read(word: &str) -> Result<Self, Odd> {
        Ok(match word {
            "RJCT" => Self::Rejected,
            "CANC" => Self::Cancelled,
            "PART" | "PATC" => Self::Partly,
            "RCVD" | "PDNG" => Self::Open,
            "ACTC" => Self::Reached(Stage::Technical),
            "ACCP" | "ACWC" | "ACFC" => Self::Reached(Stage::Profile),
            "ACSP" | "ACWP" => Self::Reached(Stage::InProcess),
            "ACSC" => Self::Reached(Stage::Settled),
            "ACCC" => Self::Reached(Stage::Credited),
            other => return Err(format!("the status {:?} is not known", codes::plain(other))),
        })
    }

    /// Whether it has come as far as this.
    #[must_use]
    pub fn has_reached(self, wanted: Stage) -> bool {
        matches!(self, Self::Reached(stage) if stage >= wanted)
    }

    /// Whether nothing of it is carried out.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Rejected | Self::Cancelled)
    }
}

/// What a rejection proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Nothing was paid, and nothing will be.
    Refused(Refusal),
    /// Nothing.
    Unclear(String),
}

/// What the rejection of a payment or a file proves: that it is not carried out, where every reason
/// is known to refuse, on whichever of these parts of a message it stands; the nearest part comes
/// first. A duplicate is none of that, whatever code stands beside the words for one: what it is one
/// of may be carried out.
///
/// # Errors
/// Their reasons are not written as they must be.
pub fn judged(parts: &[&Element]) -> Result<Judged, Odd> {
    let mut codes = Vec::new();
    for part in parts {
        codes.extend(reasons(part)?);
    }
    let worst = |class| codes.iter().find(|code| codes::class(code) == class);
    if let Some(code) = worst(Class::Duplicate) {
        return Ok(Judged::Unclear(format!("rejected as a duplicate ({code})")));
    }
    if parts.iter().any(|part| part.all("StsRsnInf").any(says_copy)) {
        return Ok(Judged::Unclear("rejected as a duplicate, in words".to_owned()));
    }
    let Some(first) = codes.first() else {
        return Ok(Judged::Unclear("rejected without a reason that SEPA lists".to_owned()));
    };
    if let Some(code) = worst(Class::Unclear) {
        return Ok(Judged::Unclear(format!(
            "rejected for {code:?}, which refuses nothing for sure"
        )));
    }
    Ok(Judged::Refused(refusal(first)))
}

/// Whether a part of a message gives a reason for which a person or an authority stopped it.
///
/// # Errors
/// Its reasons are not written as they must be.
pub fn is_stopped(part: &Element) -> Result<bool, Odd> {
    Ok(reasons(part)?.iter().any(|code| codes::is_stop(code)))
}

/// Whether a part of a message gives a reason that speaks of an earlier copy.
///
/// # Errors
/// Its reasons are not written as they must be.
pub fn is_of_a_copy(part: &Element) -> Result<bool, Odd> {
    let is_one = |code: &String| codes::class(code) == Class::Duplicate;
    Ok(reasons(part)?.iter().any(is_one) || part.all("StsRsnInf").any(says_copy))
}

fn says_copy(reason: &Element) -> bool {
    let lines: Vec<&str> = reason.all("AddtlInf").map(Element::own).collect();
    // A line may end within a word, or between two.
    speaks_of_a_copy(&lines.concat()) || speaks_of_a_copy(&lines.join(" "))
}

/// The refusal of a code.
#[must_use]
pub fn refusal(code: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: codes::meaning(code).to_owned() }
}

/// The codes of all reasons that an element gives for its status. A bank's own word is one, and
/// means nothing here.
fn reasons(element: &Element) -> Result<Vec<String>, Odd> {
    let mut codes = Vec::new();
    for reason in element.all("StsRsnInf") {
        match (reason.text(&["Rsn", "Cd"])?, reason.text(&["Rsn", "Prtry"])?) {
            (Some(_), Some(_)) => return Err("a reason is both a code and a word".to_owned()),
            // A code with anything else in it is none.
            (Some(code), None) if codes::plain(code) == code => codes.push(code.to_owned()),
            (Some(_), None) | (None, Some(_)) => codes.push(String::new()),
            (None, None) => {}
        }
    }
    Ok(codes)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Judged, Stage, Standing, is_of_a_copy, is_stopped, judged};
    use crate::xml;

    fn of(reasons: &str) -> Result<Judged, String> {
        judged(&[&part(reasons)])
    }

    fn part(reasons: &str) -> xml::Element {
        let body = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a.1\"><M>{reasons}</M></Document>"
        );
        xml::read(body.as_bytes()).expect("a message").content
    }

    fn code(code: &str) -> String {
        format!("<StsRsnInf><Rsn><Cd>{code}</Cd></Rsn></StsRsnInf>")
    }

    #[test]
    fn words() {
        for (word, reached) in
            [("ACTC", false), ("ACCP", true), ("ACWC", true), ("ACSP", true), ("ACCC", true)]
        {
            let standing = Standing::read(word).expect(word);
            assert_eq!(standing.has_reached(Stage::Profile), reached, "{word}");
        }
        for word in ["RJCT", "CANC", "PART", "RCVD", "PDNG"] {
            let standing = Standing::read(word).expect(word);
            assert!(!standing.has_reached(Stage::Technical), "{word}");
        }
        for word in ["", "acsc", "BLCK", "ACSC "] {
            assert!(Standing::read(word).is_err(), "{word}");
        }
    }

    #[test]
    fn only_known_reasons_refuse() {
        let Ok(Judged::Refused(why)) = of(&code("AC04")) else { panic!("refused") };
        assert_eq!((&*why.code, &*why.message), ("AC04", "The recipient's account is closed"));
        let Ok(Judged::Refused(why)) = of(&[code("AC01"), code("BE04")].concat()) else {
            panic!("refused")
        };
        assert_eq!(why.code, "AC01");
        for reasons in [
            String::new(),
            "<StsRsnInf><AddtlInf>no</AddtlInf></StsRsnInf>".to_owned(),
            "<StsRsnInf><Rsn><Prtry>AC01</Prtry></Rsn></StsRsnInf>".to_owned(),
            code("AM05"),
            code("NARR"),
            code("A.C01"),
            code("AC01AC01AC01"),
            [code("AC01"), code("AM05")].concat(),
            [code("AC01"), code("NARR")].concat(),
        ] {
            assert!(matches!(of(&reasons), Ok(Judged::Unclear(_))), "{reasons}");
        }
        let both = "<StsRsnInf><Rsn><Cd>AC01</Cd><Prtry>x</Prtry></Rsn></StsRsnInf>";
        assert!(of(both).is_err());
        let twice = "<StsRsnInf><Rsn><Cd>AC01</Cd><Cd>AC01</Cd></Rsn></StsRsnInf>";
        assert!(of(twice).is_err());
    }
    #[test]
    fn the_worst_reason_of_all_parts_counts() {
        let (closed, copy) = (part(&code("AC04")), part(&code("AM05")));
        for parts in [[&closed, &copy], [&copy, &closed]] {
            assert!(matches!(judged(&parts), Ok(Judged::Unclear(_))));
        }
        let found = judged(&[&closed, &part(&code("FF01")), &part("")]);
        let Ok(Judged::Refused(why)) = found else { panic!("{found:?}") };
        assert_eq!(why.code, "AC04");
        assert_eq!((is_of_a_copy(&closed), is_of_a_copy(&copy)), (Ok(false), Ok(true)));
    }

    #[test]
    fn a_word_of_an_earlier_copy_refuses_nothing() {
        let with = |words: &str| {
            let words: String =
                words.split('|').map(|line| format!("<AddtlInf>{line}</AddtlInf>")).collect();
            format!("<StsRsnInf><Rsn><Cd>FF01</Cd></Rsn>{words}</StsRsnInf>")
        };
        for words in [
            "Duplicate message",
            "the file was ALREADY processed",
            "seen|dupli|cate payment",
            "the identification is not unique",
            "it was used|before",
            "Auftrag wurde bereits verarbeitet",
            "Doppeleinreichung",
            "fichier d\u{e9}j\u{e0} re\u{e7}u",
            "fichero duplicado",
        ] {
            assert!(matches!(of(&with(words)), Ok(Judged::Unclear(_))), "{words}");
            assert_eq!(is_of_a_copy(&part(&with(words))), Ok(true), "{words}");
        }
        assert!(matches!(of(&with("not well made")), Ok(Judged::Refused(_))));
        for words in ["Account does not exist", "Konto bereits aufgel\u{f6}st"] {
            assert!(matches!(of(&with(words)), Ok(Judged::Refused(_))), "{words}");
        }
    }

    #[test]
    fn words_for_a_copy_count_beside_every_code() {
        let beside = |rest: &str| {
            format!("<StsRsnInf>{rest}<AddtlInf>Duplicate payment</AddtlInf></StsRsnInf>")
        };
        let coded = |code: &str| beside(&format!("<Rsn><Cd>{code}</Cd></Rsn>"));
        for code in ["AC01", "AC04", "RR04", "FF01", "MS02", "MS03", "CUST", "NARR", "ZZZZ"] {
            assert!(matches!(of(&coded(code)), Ok(Judged::Unclear(_))), "{code}");
            assert_eq!(is_of_a_copy(&part(&coded(code))), Ok(true), "{code}");
        }
        // Words without a code of their own are of everything.
        for rest in [String::new(), "<Rsn><Prtry>x</Prtry></Rsn>".to_owned()] {
            let both = code("AC01") + &beside(&rest);
            assert!(matches!(of(&both), Ok(Judged::Unclear(_))), "{both}");
        }
    }

    #[test]
    fn what_was_stopped() {
        for stop in ["DS02", "CUST", "FOCR", "FRAD", "LEGL", "RR04", "AM07", "AC16"] {
            assert_eq!(is_stopped(&part(&(code("FF01") + &code(stop)))), Ok(true), "{stop}");
        }
        for rest in [String::new(), code("FF01"), code("AM04"), code("AC06")] {
            assert_eq!(is_stopped(&part(&rest)), Ok(false), "{rest}");
        }
    }
}
