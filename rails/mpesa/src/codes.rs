//! Result codes of B2C payments, and what each proves.
//!
//! Lists that go round for other products of Daraja give the same numbers other meanings: 1 is
//! not the customer's empty wallet but the payer's. A code that is not listed proves nothing.

/// What a result proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The wallet has the money.
    Paid,
    /// It will not get it. Final.
    Refused,
    /// Nothing. It is asked about.
    Unclear,
}

/// What is said where it is not the payment that is refused, but whoever sends it: his credential,
/// his short code, his float. Which of them, the code says.
const OURS: &str = "M-Pesa takes no payments from this service at present";

/// A code, what it proves, and its meaning.
const TABLE: &[(&str, Class, &str)] = &[
    ("0", Class::Paid, "Processed"),
    ("1", Class::Refused, OURS),
    ("2", Class::Refused, "The amount is below the minimum"),
    ("3", Class::Refused, "The amount is above the maximum"),
    ("4", Class::Refused, "The recipient's daily limit would be exceeded"),
    ("8", Class::Refused, "The recipient's wallet would hold more than it may"),
    ("11", Class::Refused, OURS),
    ("21", Class::Refused, OURS),
    ("2001", Class::Refused, OURS),
    ("2006", Class::Refused, "The status of the account does not allow the payment"),
    ("2028", Class::Refused, OURS),
    ("2040", Class::Refused, "The recipient is not registered for M-Pesa"),
    ("8006", Class::Refused, OURS),
    ("SFC_IC0003", Class::Refused, "The number is not one of M-Pesa's"),
];

/// What a result code proves.
#[must_use]
pub fn class(code: &str) -> Class {
    find(code).map_or(Class::Unclear, |(_, class, _)| *class)
}

/// Its meaning, for a person.
#[must_use]
pub fn meaning(code: &str) -> &'static str {
    find(code).map_or("A result that M-Pesa does not list", |(_, _, meaning)| meaning)
}

fn find(code: &str) -> Option<&'static (&'static str, Class, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == code)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, TABLE, class};

    const CASES: &str = include_str!("../cases/codes.toml");
    const NUMBERS: &str = include_str!("../cases/numbers.toml");

    #[test]
    fn every_code_has_a_case() {
        for (code, ..) in TABLE {
            assert!(CASES.contains(&format!("\ncode = \"{code}\"\n")), "{code}");
            let is_number = code.bytes().all(|byte| byte.is_ascii_digit());
            let is_there = NUMBERS.contains(&format!("\"ResultCode\":{code},"));
            assert_eq!(is_there, is_number, "{code}");
        }
    }

    #[test]
    fn only_zero_is_paid_and_what_is_not_listed_proves_nothing() {
        for (code, proves, meaning) in TABLE {
            assert_eq!(*proves == Class::Paid, *code == "0", "{code}");
            assert!(!meaning.is_empty());
        }
        for code in ["", "00", "17", "26", "1032", "1037", "-1", "9999", "sfc_ic0003"] {
            assert_eq!(class(code), Class::Unclear, "{code:?}");
        }
    }
}
