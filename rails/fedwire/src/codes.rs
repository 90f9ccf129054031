//! What statuses and reasons prove.
//!
//! Sources: the reasons with four characters are ISO 20022's external code sets (payment transaction
//! status, status reason, return reason), as of their publication of August 2026; the sentences are
//! ours. Fedwire's own reasons are a letter and three digits; the letter is the category of error of
//! the Fedwire application (its format reference guide, tag 1130). What is not listed proves
//! nothing.

/// What the status of a wire proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It settled, which is final.
    Settled,
    /// Whoever answers has it.
    Underway,
    /// It was rejected; the reason says whether that is its end.
    Rejected,
    /// It was called off before it went out.
    CalledOff,
    /// Nothing.
    Unclear,
}

/// What a reason proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The wire was not made, and will not be.
    Refused,
    /// Nothing: a copy of it may have been made, or may still be.
    Unclear,
}

use Class::{Refused, Unclear};

/// A reason, what it proves, and its meaning.
const REASONS: &[(&str, Class, &str)] = &[
    ("AB01", Unclear, "The clearing process was aborted after a timeout"),
    ("AB02", Unclear, "The clearing process was aborted after a fatal error"),
    ("AB03", Unclear, "Settlement was aborted after a timeout"),
    ("AB04", Unclear, "Settlement was aborted after a fatal error"),
    ("AB05", Unclear, "The recipient's bank did not answer in time"),
    ("AB06", Unclear, "The sending bank did not answer in time"),
    ("AB07", Unclear, "The sending bank is not reached at present"),
    ("AB08", Unclear, "The recipient's bank is not reached at present"),
    ("AB09", Unclear, "The recipient's bank failed"),
    ("AB10", Unclear, "The sending bank failed"),
    ("AC01", Refused, "The account number is invalid or missing"),
    ("AC02", Refused, "The paying account is invalid"),
    ("AC03", Refused, "The recipient's account is invalid"),
    ("AC04", Refused, "The account is closed"),
    ("AC05", Refused, "The paying account is closed"),
    ("AC06", Refused, "The account is blocked"),
    ("AC07", Refused, "The recipient's account is closed"),
    ("AC09", Refused, "The account does not take dollars"),
    ("AC13", Refused, "The paying account is of the wrong type"),
    ("AC14", Refused, "The recipient's account is of the wrong type"),
    ("AG01", Refused, "The account does not take such payments"),
    ("AG02", Refused, "The kind of payment is invalid"),
    ("AG03", Refused, "The account does not take this kind of payment"),
    ("AGNT", Refused, "A bank is wrongly identified"),
    ("AM01", Refused, "The amount is zero"),
    ("AM02", Refused, "The amount is not allowed"),
    ("AM03", Refused, "The currency is not allowed"),
    ("AM04", Refused, "The paying account has too little money"),
    ("AM05", Unclear, "The payment is known already"),
    ("AM09", Refused, "The amount is not the agreed one"),
    ("AM12", Refused, "The amount is invalid"),
    ("AM13", Refused, "The amount is above the network's limit"),
    ("AM14", Refused, "The amount is above the agreed limit"),
    ("AM23", Refused, "The amount is above the settlement limit"),
    ("BE01", Refused, "The name is not the account's"),
    ("BE04", Refused, "The recipient's address is missing or wrong"),
    ("BE06", Refused, "The recipient is not known at the bank"),
    ("BE07", Refused, "The sender's address is missing or wrong"),
    ("BE22", Refused, "The recipient's name is missing"),
    ("CNOR", Refused, "The recipient's bank does not take part in the network"),
    ("CURR", Refused, "The currency is wrong"),
    ("CUST", Refused, "The sender called it off"),
    ("DNOR", Refused, "The sending bank does not take part in the network"),
    ("DS02", Refused, "The order was called off"),
    ("DT01", Refused, "The date is invalid"),
    ("DU01", Unclear, "The message is known already"),
    ("DU02", Unclear, "The payment is known already"),
    ("DU03", Unclear, "The payment is known already"),
    ("DU04", Unclear, "The payment is known already"),
    ("DU05", Unclear, "The payment is known already"),
    ("DUPL", Unclear, "The payment is known already"),
    ("ED05", Unclear, "Settlement failed"),
    ("FF01", Refused, "The message is malformed"),
    ("FR01", Refused, "The payment is suspected of fraud"),
    ("LEGL", Refused, "The law does not allow it"),
    ("MD07", Refused, "The account holder has died"),
    ("MS02", Refused, "The recipient declined, without a reason"),
    ("MS03", Refused, "The bank declined, without a reason"),
    ("NARR", Unclear, "A reason in words, which nobody here reads"),
    ("NOAS", Refused, "The recipient did not answer"),
    ("RC01", Refused, "A bank's identification is wrong"),
    ("RC03", Refused, "The sending bank's identification is wrong"),
    ("RC04", Refused, "The recipient's bank is wrongly identified"),
    ("RC08", Refused, "A routing number is wrong"),
    ("RC09", Refused, "The sending bank's routing number is wrong"),
    ("RC10", Refused, "The recipient's bank has another routing number"),
    ("RR01", Refused, "The sender's account is missing, which regulation asks for"),
    ("RR02", Refused, "The sender's name or address is missing, which regulation asks for"),
    ("RR03", Refused, "The recipient's name or address is missing, which regulation asks for"),
    ("RR04", Refused, "Regulation does not allow it"),
    ("TECH", Unclear, "A technical problem"),
    ("TM01", Refused, "It arrived after the cut-off"),
    ("TS01", Unclear, "The transmission was not finished"),
    ("TS04", Unclear, "The payment has been sent on already"),
];

/// Categories of Fedwire's own reasons, what each proves, and its meaning.
const CATEGORIES: &[(char, Class, &str)] = &[
    ('E', Refused, "Fedwire found the payment's particulars wrong"),
    ('F', Refused, "The sending bank's balance at the Federal Reserve is too low"),
    ('H', Unclear, "Fedwire found the message's number wrong"),
    ('I', Unclear, "Fedwire is processing the payment, or has intercepted it"),
    ('W', Refused, "It arrived after Fedwire's cut-off"),
    ('X', Unclear, "Fedwire has had a message of this number"),
];

/// Why money came back, where that reason says something else than as a reason of a rejection, or
/// is none of those.
const RETURNS: &[(&str, &str)] = &[
    ("AM05", "Returned: the recipient's bank takes it for a duplicate"),
    ("CUST", "Returned because the sender asked for it"),
    ("DUPL", "Returned: the recipient's bank takes it for a duplicate"),
    ("FOCR", "Returned because it was asked back"),
    ("NARR", "Returned, with a reason in words"),
    ("TECH", "Returned because of a technical problem"),
    ("UPAY", "Returned: the payment was not due"),
];

/// What the status of a wire proves.
#[must_use]
pub fn status(word: &str) -> Status {
    match word {
        "ACSC" => Status::Settled,
        "ACSP" | "ACTC" | "ACCP" | "PDNG" | "RCVD" => Status::Underway,
        "RJCT" => Status::Rejected,
        "CANC" => Status::CalledOff,
        _ => Status::Unclear,
    }
}

/// What a reason proves.
#[must_use]
pub fn class(reason: &str) -> Class {
    let of_category = category(reason).map(|(_, class, _)| *class);
    of_category.or_else(|| find(reason).map(|(_, class, _)| *class)).unwrap_or(Unclear)
}

/// The meaning of a reason, for a person.
#[must_use]
pub fn meaning(reason: &str) -> &'static str {
    let of_category = category(reason).map(|(.., meaning)| *meaning);
    let listed = || find(reason).map(|(.., meaning)| *meaning);
    of_category.or_else(listed).unwrap_or("The payment was rejected")
}

/// Why money came back, for a person.
#[must_use]
pub fn returned(reason: &str) -> String {
    let own = RETURNS.iter().find(|(known, _)| *known == reason);
    match (own, find(reason)) {
        (Some((_, meaning)), _) => (*meaning).to_owned(),
        (None, Some((_, Refused, meaning))) => format!("Returned: {}", uncapitalised(meaning)),
        _ => "The recipient's bank sent the payment back".to_owned(),
    }
}

/// A code as it may be shown and kept: letters and digits of what was written, and not too many.
#[must_use]
pub fn plain(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).take(35).collect()
}

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

fn find(reason: &str) -> Option<&'static (&'static str, Class, &'static str)> {
    REASONS.iter().find(|(known, ..)| *known == reason)
}

/// The category of a reason of Fedwire's own: a letter and three digits.
fn category(reason: &str) -> Option<&'static (char, Class, &'static str)> {
    let letter = reason.chars().next()?;
    let digits = reason.get(1..)?;
    let is_own = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    CATEGORIES.iter().find(|(known, ..)| is_own && *known == letter)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{
        CATEGORIES, Class, REASONS, RETURNS, Status, class, meaning, plain, returned, status,
    };

    const CASES: &str = include_str!("../cases/codes.toml");

    #[test]
    fn every_code_has_a_case() {
        for (code, ..) in REASONS {
            assert!(CASES.contains(&format!("\ncode = \"{code}\"\n")), "{code}");
        }
        for (letter, ..) in CATEGORIES {
            assert!(CASES.contains(&format!("\ncode = \"{letter}")), "{letter}");
        }
    }

    #[test]
    fn the_tables_are_in_order_and_have_no_code_twice() {
        assert!(REASONS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(CATEGORIES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(RETURNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(REASONS.iter().all(|(code, ..)| code.len() == 4));
    }

    #[test]
    fn what_reasons_prove() {
        for (reason, expected) in [
            ("AC04", Class::Refused),
            ("AM05", Class::Unclear),
            ("E433", Class::Refused),
            ("F001", Class::Refused),
            ("W999", Class::Refused),
            ("X100", Class::Unclear),
            ("H100", Class::Unclear),
            ("I100", Class::Unclear),
            ("Q100", Class::Unclear),
            ("E43", Class::Unclear),
            ("E4333", Class::Unclear),
            ("e433", Class::Unclear),
            ("\u{c9}433", Class::Unclear),
            ("ac04", Class::Unclear),
            ("", Class::Unclear),
        ] {
            assert_eq!(class(reason), expected, "{reason}");
            assert!(!meaning(reason).is_empty());
        }
    }

    #[test]
    fn what_statuses_prove() {
        assert_eq!(status("ACSC"), Status::Settled);
        assert_eq!(status("CANC"), Status::CalledOff);
        for word in ["", "acsc", "ACCC", "ACWC", "ACWP", "PART", "BLCK", "ACSC "] {
            assert_eq!(status(word), Status::Unclear, "{word}");
        }
    }

    #[test]
    fn why_money_came_back() {
        assert_eq!(returned("AC04"), "Returned: the account is closed");
        assert_eq!(returned("FOCR"), "Returned because it was asked back");
        assert_eq!(returned("TS01"), "The recipient's bank sent the payment back");
        assert_eq!(returned(""), "The recipient's bank sent the payment back");
    }

    #[test]
    fn texts() {
        assert_eq!(plain("E4-33 \u{e9}<b>"), "E433b");
    }
}
