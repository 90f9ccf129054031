//! Return codes, in words for merchants: those of Standard 007 of Payments Canada, as banks and
//! public lists give them (known on 2026-11-20).
//!
//! Some speak of debits only, and a credit does not come back with them; a list that goes round
//! leaves some out, and another one has 904. So whether money came back is not read from the code
//! but from the record that carries it: a returned credit is one whatever its reason.

/// What a payment was returned for.
const RETURNS: &[(&str, &str)] = &[
    ("900", "The payment was rejected: something in it cannot be processed"),
    ("901", "The account does not hold enough for the debit"),
    ("902", "There is no such account"),
    ("903", "The payment was stopped or recalled"),
    ("904", "The date of the payment is too far off"),
    ("905", "The account has been closed"),
    ("907", "The account allows no debits"),
    ("908", "What the account holds is not cleared yet"),
    ("909", "The account is in another currency"),
    ("910", "The recipient has died"),
    ("911", "The account is frozen"),
    ("912", "The account number is not valid or not right"),
    ("914", "The name is not that of the account's holder"),
    ("915", "There was no agreement to the debit"),
    ("916", "The debit is not what a person agreed to"),
    ("917", "A person has revoked the agreement to the debit"),
    ("918", "A person was not told of the debit before"),
    ("919", "The debit is not what a business agreed to"),
    ("920", "A business has revoked the agreement to the debit"),
    ("921", "A business was not told of the debit before"),
    ("922", "The recipient has sent it back"),
    ("990", "The recipient's institution is in default"),
];

/// What a return code says; nothing, where it is not written as one. A code that is not listed is
/// one of a later edition of the standard.
#[must_use]
pub fn meaning(code: &str) -> Option<&'static str> {
    let is_code =
        code.len() == 3 && code.starts_with('9') && code.bytes().all(|byte| byte.is_ascii_digit());
    let found = || RETURNS.iter().find(|(known, _)| *known == code);
    is_code.then(|| found().map_or("The recipient's institution returned it", |(_, it)| it))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{RETURNS, meaning};

    #[test]
    fn the_table_is_in_order_and_every_code_has_its_own_meaning() {
        assert!(RETURNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let mut meanings: Vec<_> = RETURNS.iter().map(|(_, meaning)| *meaning).collect();
        meanings.sort_unstable();
        meanings.dedup();
        assert_eq!((meanings.len(), RETURNS.len()), (22, 22));
        for (code, expected) in RETURNS {
            assert_eq!(meaning(code), Some(*expected));
        }
    }

    #[test]
    fn the_cases_have_every_code() {
        let file = include_str!("../cases/golden/every-return.txt");
        let codes: Vec<String> = file
            .lines()
            .filter(|line| line.starts_with('I'))
            .flat_map(|line| (0..6).map(|place| line[24 + place * 240..][..3].to_owned()))
            .filter(|code| !code.trim().is_empty())
            .collect();
        assert_eq!(codes, RETURNS.iter().map(|(code, _)| *code).collect::<Vec<_>>());
    }

    #[test]
    fn codes_that_no_list_has_are_codes_all_the_same() {
        for code in ["906", "913", "923", "989", "998", "999"] {
            assert_eq!(meaning(code), Some("The recipient's institution returned it"), "{code}");
        }
        for text in ["", "9", "90", "9000", "450", "000", "9O2", " 90", "89é"] {
            assert_eq!(meaning(text), None, "{text:?}");
        }
    }
}
