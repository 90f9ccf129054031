//! Response codes of disbursements, and what each proves.
//!
//! The list is that of Airtel's developer portal for Disbursements ("DP009…"), for all products
//! ("ESB…") and for the gateway in front of them ("ROUTER…"), as it stood in 2026. Lists that go
//! round call the ambiguous ones failed, or paid. A code that is not listed proves nothing.

/// What a code proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The wallet has the money.
    Paid,
    /// It will not get it. Final.
    Refused(Stage),
    /// The same, and it is not the payment that is refused but whoever sends it. rail.toml lists
    /// these as `refusals.ours`.
    Ours(Stage),
    /// Nothing, as Airtel says itself: it has to be asked.
    Open,
    /// Airtel finds no payment of the reference that it was asked about.
    NotFound,
}

/// When a payment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// When the request is looked at: no transaction is begun.
    Request,
    /// When it is carried out: only a transaction that failed is refused.
    Transaction,
}

/// What is said where it is not the payment that is refused.
const OURS: &str = "Airtel takes no payments from this service at present";

const REFUSED: Class = Class::Refused(Stage::Request);
const FAILED: Class = Class::Refused(Stage::Transaction);
const MISSENT: Class = Class::Ours(Stage::Request);
const UNABLE: Class = Class::Ours(Stage::Transaction);

/// A code, what it proves, and its meaning.
const TABLE: &[(&str, Class, &str)] = &[
    ("DP00900001000", Class::Open, "Ambiguous"),
    ("DP00900001001", Class::Paid, "Paid"),
    ("DP00900001003", REFUSED, "The limit of payments for the day is reached"),
    ("DP00900001004", REFUSED, "The amount is out of range"),
    ("DP00900001005", FAILED, "The payment failed"),
    ("DP00900001006", Class::Open, "It goes on"),
    ("DP00900001007", UNABLE, OURS),
    ("DP00900001009", REFUSED, "The recipient cannot be paid"),
    ("DP00900001010", UNABLE, OURS),
    ("DP00900001011", Class::Open, "Airtel has a payment like it already"),
    ("DP00900001012", REFUSED, "The number is not one that Airtel pays"),
    ("DP00900001013", FAILED, "The payment was refused"),
    ("DP00900001014", Class::Open, "Timed out at Airtel"),
    ("DP00900001015", Class::NotFound, "Airtel knows no payment of this reference"),
    ("DP00900001016", UNABLE, OURS),
    ("DP00900001017", Class::Open, "Airtel has a payment of this reference already"),
    ("ESB000001", Class::Open, "Something went wrong"),
    ("ESB000004", Class::Open, "An error while the payment was begun"),
    ("ESB000008", Class::Open, "A field is not valid, which leaves open what was done"),
    ("ESB000010", Class::Open, "The request was successful, which says nothing of the payment"),
    ("ESB000011", Class::Open, "The request failed, which says nothing of the payment"),
    ("ESB000014", Class::Open, "The status could not be fetched"),
    ("ESB000033", REFUSED, "The number has not as many digits as Airtel's"),
    ("ESB000034", MISSENT, OURS),
    ("ESB000035", MISSENT, OURS),
    ("ESB000036", REFUSED, "The number is not written as Airtel's are"),
    ("ESB000039", MISSENT, OURS),
    ("ESB000041", Class::Open, "Airtel has a payment of this reference already"),
    ("ESB000045", Class::NotFound, "Airtel knows no payment of this reference"),
    ("ROUTER001", MISSENT, OURS),
    ("ROUTER003", MISSENT, OURS),
    ("ROUTER005", MISSENT, OURS),
    ("ROUTER006", MISSENT, OURS),
    ("ROUTER007", MISSENT, OURS),
    ("ROUTER112", MISSENT, OURS),
    ("ROUTER114", Class::Open, "An error while the PIN was looked at"),
    ("ROUTER115", MISSENT, OURS),
    ("ROUTER116", MISSENT, OURS),
    ("ROUTER117", Class::Open, "Timed out in front of Airtel"),
    ("ROUTER119", MISSENT, OURS),
];

/// What a code proves, and its meaning; nothing for one that is not listed.
#[must_use]
pub fn find(code: &str) -> Option<(Class, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == code).map(|(_, class, meaning)| (*class, *meaning))
}

/// What a code proves; [`Class::Open`] for one that is not listed.
#[must_use]
pub fn class(code: &str) -> Class {
    find(code).map_or(Class::Open, |(class, _)| class)
}

/// The meaning of a code that refuses a payment for good; nothing for any other.
#[must_use]
pub fn refusing(code: &str) -> Option<&'static str> {
    find(code)
        .filter(|(class, _)| matches!(class, Class::Refused(_) | Class::Ours(_)))
        .map(|it| it.1)
}

/// A word of Airtel's for the operator's eyes: letters and digits, and not many.
#[must_use]
pub fn shown(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).take(20).collect()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, TABLE, class, refusing, shown};

    const CASES: &str = include_str!("../cases/codes.toml");
    const DECLARATION: &str = include_str!("../rail.toml");

    #[test]
    fn every_code_has_a_case_and_stands_there_once() {
        for (at, (code, _, meaning)) in TABLE.iter().enumerate() {
            assert!(CASES.contains(&format!("\ncode = \"{code}\"\n")), "{code}");
            assert!(!TABLE[..at].iter().any(|(other, ..)| other == code), "{code}");
            assert!(!meaning.is_empty(), "{code}");
        }
    }

    #[test]
    fn what_is_ours_is_declared() {
        let (_, refusals) = DECLARATION.split_once("[refusals]").expect("a list");
        let (refusals, _) = refusals.split_once("\n[").expect("an end");
        for (code, class, _) in TABLE {
            let is_declared = refusals.contains(&format!("\"{code}\""));
            assert_eq!(is_declared, matches!(class, Class::Ours(_)), "{code}");
        }
    }

    #[test]
    fn one_code_is_paid_and_what_is_ambiguous_refuses_nothing() {
        for (code, proves, _) in TABLE {
            assert_eq!(*proves == Class::Paid, *code == "DP00900001001", "{code}");
            let is_definite = matches!(proves, Class::Refused(_) | Class::Ours(_));
            assert_eq!(refusing(code).is_some(), is_definite, "{code}");
        }
        // Those that Airtel itself calls ambiguous, or wants to be asked about.
        for code in ["000", "006", "011", "014", "017"] {
            assert_eq!(class(&format!("DP00900001{code}")), Class::Open, "{code}");
        }
        for code in ["", "DP00900001002", "DP00900001018", "DP00800001001", "200", "dp00900001001"]
        {
            assert_eq!((class(code), refusing(code)), (Class::Open, None), "{code:?}");
        }
        assert_eq!(shown("DP0090\u{202e}0001001 <x>"), "DP00900001001x");
    }
}
