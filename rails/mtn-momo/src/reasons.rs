//! MTN's words for why something did not work, and what each proves: as the reason of a transfer
//! that failed, and as the code of a request that was turned away with 400.
//!
//! The list is that of MTN's API reference (`ErrorReason` of Disbursements 1.0), of its pages on
//! common errors and on testing, as they stood in 2026. A word that is not listed proves nothing.

use crate::settings::Unclear;

/// What a reason proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The wallet will not get it. Final.
    Refused,
    /// The same, and it is not the payment that is refused but whoever sends it. rail.toml lists
    /// these as `refusals.ours`.
    Ours,
    /// It may be MTN's own trouble, of which nobody knows how it ended.
    Unclear,
    /// It goes on, or the word speaks of something else than a failure.
    Open,
}

/// What is said where it is not the payment that is refused.
const OURS: &str = "MTN takes no payments from this service at present";

/// A word, what it proves, and its meaning.
const TABLE: &[(&str, Class, &str)] = &[
    ("PAYEE_NOT_FOUND", Class::Refused, "The number has no MTN wallet"),
    ("PAYEE_NOT_ALLOWED_TO_RECEIVE", Class::Refused, "The recipient's wallet cannot receive this"),
    ("PAYEE_LIMIT_REACHED", Class::Refused, "A limit of the recipient's wallet would be exceeded"),
    ("REJECTED", Class::Refused, "The payment was rejected"),
    ("APPROVAL_REJECTED", Class::Refused, "The payment was rejected"),
    ("PAYMENT_NOT_APPROVED", Class::Refused, "The payment was not approved"),
    ("TRANSACTION_CANCELED", Class::Refused, "The payment was cancelled"),
    ("EXPIRED", Class::Refused, "The payment expired"),
    ("TRANSFER_TYPE_UNKNOWN", Class::Refused, "MTN does not know this kind of payment"),
    ("VALIDATION_ERROR", Class::Refused, "MTN found the request invalid"),
    ("NOT_ENOUGH_FUNDS", Class::Ours, OURS),
    ("PAYER_LIMIT_REACHED", Class::Ours, OURS),
    ("PAYER_NOT_FOUND", Class::Ours, OURS),
    ("SENDER_ACCOUNT_NOT_ACTIVE", Class::Ours, OURS),
    ("NOT_ALLOWED", Class::Ours, OURS),
    ("NOT_ALLOWED_TARGET_ENVIRONMENT", Class::Ours, OURS),
    ("INVALID_CALLBACK_URL_HOST", Class::Ours, OURS),
    ("INVALID_CURRENCY", Class::Ours, OURS),
    ("INTERNAL_PROCESSING_ERROR", Class::Unclear, "MTN could not process the payment"),
    ("SERVICE_UNAVAILABLE", Class::Unclear, "MTN's wallets could not be reached"),
    ("COULD_NOT_PERFORM_TRANSACTION", Class::Unclear, "MTN could not perform the payment in time"),
    ("ONGOING", Class::Open, "It goes on"),
    ("PENDING", Class::Open, "It goes on"),
    ("DELAYED", Class::Open, "It is delayed"),
    ("RESOURCE_ALREADY_EXIST", Class::Open, "MTN has a payment of this reference"),
    ("RESOURCE_NOT_FOUND", Class::Open, "MTN knows no payment of this reference"),
    ("TRANSACTION_NOT_FOUND", Class::Open, "MTN knows no payment of this reference"),
];

/// What a word proves, and its meaning for a person; nothing for a word that is not listed.
#[must_use]
pub fn find(word: &str) -> Option<(Class, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == word).map(|(_, class, meaning)| (*class, *meaning))
}

/// The meaning of a word that refuses a payment for good; nothing for any other.
#[must_use]
pub fn refusing(word: &str, unclear: Unclear) -> Option<&'static str> {
    match find(word)? {
        (Class::Refused | Class::Ours, meaning) => Some(meaning),
        (Class::Unclear, meaning) if unclear == Unclear::Refused => Some(meaning),
        (Class::Unclear | Class::Open, _) => None,
    }
}

/// A word of MTN's for the operator's eyes: letters, digits and underscores, and not many.
#[must_use]
pub fn shown(word: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    word.chars().filter(is_plain).take(40).collect()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, TABLE, refusing, shown};
    use crate::settings::Unclear;

    const CASES: &str = include_str!("../cases/codes.toml");
    const DECLARATION: &str = include_str!("../rail.toml");

    #[test]
    fn every_word_has_a_case_and_stands_there_once() {
        for (at, (word, ..)) in TABLE.iter().enumerate() {
            assert!(CASES.contains(&format!("\ncode = \"{word}\"\n")), "{word}");
            assert!(!TABLE[..at].iter().any(|(other, ..)| other == word), "{word}");
        }
    }

    #[test]
    fn what_is_ours_is_declared() {
        let (_, refusals) = DECLARATION.split_once("[refusals]").expect("a list");
        let (refusals, _) = refusals.split_once("\n[").expect("an end");
        for (word, class, _) in TABLE {
            let is_declared = refusals.contains(&format!("\"{word}\""));
            assert_eq!(is_declared, *class == Class::Ours, "{word}");
        }
    }

    #[test]
    fn only_what_is_listed_refuses() {
        for (word, class, meaning) in TABLE {
            assert!(!meaning.is_empty());
            let refuses = |unclear| refusing(word, unclear).is_some();
            let is_definite = matches!(class, Class::Refused | Class::Ours);
            assert_eq!(refuses(Unclear::Asked), is_definite, "{word}");
            assert_eq!(refuses(Unclear::Refused), *class != Class::Open, "{word}");
        }
        for word in ["", "FAILED", "expired", "PAYER_FAILED", "PAYEE_NOT_FOUND ", "TIMEOUT"] {
            assert_eq!(refusing(word, Unclear::Refused), None, "{word:?}");
        }
    }

    #[test]
    fn words_for_the_operator() {
        assert_eq!(shown("PAYEE_NOT_FOUND"), "PAYEE_NOT_FOUND");
        assert_eq!(shown("<b>\u{202e}233 24\n"), "b23324");
        assert_eq!(shown(&"A".repeat(99)).len(), 40);
    }
}
