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

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, all, find};

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
