//! NIP's response codes: what each means, and what it proves about the message it answers.
//!
//! The same code proves different things in different calls. "Unable to locate record" on a
//! transfer is a refusal; on a status query it only says that the network has not seen the
//! transfer. What is not in the table proves nothing.

mod table;

use table::TABLE;

/// What an answer with a code proves about the payment, or about the account asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Done, and final.
    Done,
    /// Taken on; the end is still open.
    Pending,
    /// Will not be done. Final: money may be given back on it.
    Refused,
    /// There is no record of it.
    NotFound,
    /// Nothing. Money may have moved.
    Unclear,
}

/// A response code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Two digits.
    pub code: &'static str,
    /// Its meaning, in the network's words or near to them.
    pub meaning: &'static str,
    /// In the answer to a transfer.
    pub transfer: Class,
    /// In the answer to a status query.
    pub query: Class,
    /// In the answer to a name enquiry.
    pub enquiry: Class,
}

/// Codes with which it is this service that is refused, not the transfer: its settlement account has
/// too little money. 03, 17, 57 and 58 are about who sends as well, but may be the word of one
/// receiving bank, which must not close the route for all others. They are declared as
/// `refusals.ours`.
const OURS: &[&str] = &["51"];

/// The row of this code.
#[must_use]
pub fn find(code: &str) -> Option<&'static Code> {
    TABLE.iter().find(|row| row.code == code)
}

/// Every row.
#[must_use]
pub fn all() -> &'static [Code] {
    TABLE
}

/// The meaning of this code, for a person.
#[must_use]
pub fn meaning(code: &str) -> &'static str {
    find(code).map_or("a code that NIP does not list", |row| row.meaning)
}

/// Why a transfer was refused, for whoever ordered it: what this service is refused for is none of
/// his business, and "no sufficient funds" would read as if it were of his.
#[must_use]
pub fn refusal(code: &str) -> &'static str {
    match OURS.contains(&code) {
        true => "NIP takes no transfers from this service at present",
        false => meaning(code),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, OURS, all, find, meaning, refusal};

    const DECLARATION: &str = include_str!("../rail.toml");

    #[test]
    fn what_is_ours_is_declared_and_refuses_a_transfer() {
        let (_, refusals) = DECLARATION.split_once("[refusals]").expect("a list");
        let (refusals, _) = refusals.split_once(']').expect("an end");
        for row in all() {
            let is_ours = OURS.contains(&row.code);
            assert_eq!(refusals.contains(&format!("\"{}\"", row.code)), is_ours, "{}", row.code);
            assert!(!is_ours || row.transfer == Class::Refused, "{}", row.code);
            assert_eq!(refusal(row.code) == meaning(row.code), !is_ours, "{}", row.code);
        }
        assert_eq!(refusals.matches('"').count(), 2 * OURS.len());
    }

    #[test]
    fn the_table_is_in_order_and_has_no_code_twice() {
        assert!(all().windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(all().iter().all(|row| row.code.len() == 2 && !row.meaning.is_empty()));
        assert_eq!(all().len(), 38);
        assert_eq!(find("000"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn only_00_is_done() {
        for row in all() {
            for class in [row.transfer, row.query, row.enquiry] {
                assert_eq!(class == Class::Done, row.code == "00", "{}", row.code);
            }
        }
    }

    #[test]
    fn what_is_ambiguous_never_gives_money_back() {
        for code in ["01", "21", "26", "35", "68", "91", "92", "94", "96", "97", "98", "99"] {
            let row = find(code).expect("a row");
            assert_eq!((row.transfer, row.query), (Class::Unclear, Class::Unclear), "{code}");
            assert_eq!(row.enquiry, Class::Unclear, "{code}");
        }
    }

    #[test]
    fn a_query_proves_no_refusal_that_the_transfer_would_not() {
        for row in all() {
            let is_weaker = row.query != Class::Refused || row.transfer == Class::Refused;
            assert!(is_weaker, "{}", row.code);
        }
        let found = all().iter().filter(|row| row.query == Class::NotFound);
        assert!(found.map(|row| row.code).eq(["25"]));
    }
}
