//! Codes of the aggregator, and what each proves: of a payout that failed, and of a request that is
//! not taken on. A code that is not listed proves nothing.

/// What a code proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The wallet will not get it. Final.
    Refused,
    /// The same, and it is not the payment that is refused but whoever sends it. rail.toml lists
    /// these as `refusals.ours`.
    Ours,
    /// Nothing: nobody knows how it ended, or the code is about something else.
    Open,
}

/// What is said where it is not the payment that is refused.
const OURS: &str = "The operator takes no payments from this service at present";

/// A code, what it proves, and its meaning.
const TABLE: &[(&str, Class, &str)] = &[
    ("ACCOUNT_NOT_FOUND", Class::Refused, "The operator has no wallet of this number"),
    ("ACCOUNT_NOT_ACTIVE", Class::Refused, "The recipient's wallet is closed or blocked"),
    ("ACCOUNT_NOT_ALLOWED", Class::Refused, "The recipient's wallet cannot receive this"),
    (
        "ACCOUNT_LIMIT_REACHED",
        Class::Refused,
        "A limit of the recipient's wallet would be exceeded",
    ),
    ("AMOUNT_NOT_ALLOWED", Class::Refused, "The operator does not pay this amount"),
    ("NAME_MISMATCH", Class::Refused, "The wallet is in another name"),
    ("REJECTED", Class::Refused, "The operator rejected the payment"),
    ("CANCELLED", Class::Refused, "The payment was cancelled"),
    ("EXPIRED", Class::Refused, "The payment expired"),
    ("INVALID_REQUEST", Class::Refused, "The aggregator found the request invalid"),
    ("INSUFFICIENT_FLOAT", Class::Ours, OURS),
    ("FLOAT_LIMIT_REACHED", Class::Ours, OURS),
    ("FLOAT_NOT_ACTIVE", Class::Ours, OURS),
    ("OPERATOR_NOT_ENABLED", Class::Ours, OURS),
    ("UNAUTHENTICATED", Class::Ours, OURS),
    ("FORBIDDEN", Class::Ours, OURS),
    ("OPERATOR_TIMEOUT", Class::Open, "The operator did not answer"),
    ("OPERATOR_UNAVAILABLE", Class::Open, "The operator could not be reached"),
    ("INTERNAL_ERROR", Class::Open, "Something went wrong at the aggregator"),
    ("TOO_MANY_REQUESTS", Class::Open, "The aggregator is asked too often"),
    ("DUPLICATE_REFERENCE", Class::Open, "There is a payout of this reference"),
    ("PAYOUT_NOT_FOUND", Class::Open, "There is no payout of this reference"),
];

/// The meaning of a code that refuses a payment for good; nothing for any other.
#[must_use]
pub fn refusing(code: &str) -> Option<&'static str> {
    let (_, class, meaning) = TABLE.iter().find(|(known, ..)| *known == code)?;
    (*class != Class::Open).then_some(*meaning)
}

/// A code for the operator's eyes: letters, digits and underscores, and not many.
#[must_use]
pub fn shown(code: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    code.chars().filter(is_plain).take(40).collect()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, TABLE, refusing, shown};

    const CASES: &str = include_str!("../cases/codes.toml");
    const README: &str = include_str!("../README.md");
    const DECLARATIONS: [&str; 2] =
        [include_str!("../rail.toml"), include_str!("../kenya/rail.toml")];

    #[test]
    fn every_code_has_a_case_and_is_documented_and_stands_there_once() {
        for (at, (code, class, meaning)) in TABLE.iter().enumerate() {
            assert!(CASES.contains(&format!("\ncode = \"{code}\"\n")), "{code}");
            let kind = match class {
                Class::Refused => "refused",
                Class::Ours => "refused, for our sake",
                Class::Open => "nothing",
            };
            let row = README.lines().find(|line| line.starts_with(&format!("| `{code}` |")));
            assert!(row.is_some_and(|row| row.ends_with(&format!("| {kind} |"))), "{code}");
            assert!(!meaning.is_empty(), "{code}");
            assert!(!TABLE[..at].iter().any(|(other, ..)| other == code), "{code}");
        }
    }

    #[test]
    fn what_is_ours_is_declared() {
        for declaration in DECLARATIONS {
            let (_, refusals) = declaration.split_once("[refusals]").expect("a list");
            let (refusals, _) = refusals.split_once("\n[").expect("an end");
            for (code, class, _) in TABLE {
                let is_declared = refusals.contains(&format!("\"{code}\""));
                assert_eq!(is_declared, *class == Class::Ours, "{code}");
            }
        }
    }

    #[test]
    fn only_what_is_listed_refuses() {
        for (code, class, _) in TABLE {
            assert_eq!(refusing(code).is_some(), *class != Class::Open, "{code}");
        }
        for code in ["", "FAILED", "rejected", "REJECTED ", "TIMEOUT", "ACCOUNT"] {
            assert_eq!(refusing(code), None, "{code:?}");
        }
    }

    #[test]
    fn codes_for_the_operator() {
        assert_eq!(shown("ACCOUNT_NOT_FOUND"), "ACCOUNT_NOT_FOUND");
        assert_eq!(shown("<b>\u{202e}233 20\n"), "b23320");
        assert_eq!(shown(&"A".repeat(99)).len(), 40);
    }
}
