//! How a transfer stands, and why one was refused.
//!
//! Sources, as of 2026-11-20: the network's rules for senders as it and banks publish them (a
//! transfer is available, then deposited, declined, cancelled, or expired after thirty days, and
//! the money goes back); the statuses that published clients of a bank's API read. The codes of
//! refusals are this rail's own: participants do not publish theirs. A word that is not listed
//! proves nothing.

/// What a word proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The network has it, and the recipient may still get the money.
    Waiting,
    /// The recipient has the money. Final.
    Paid,
    /// The recipient does not get it. Final.
    Ended,
    /// Nothing.
    Unclear,
}

use Class::{Ended, Paid, Unclear, Waiting};

/// The status of a transfer that the participant has stopped: its failure code says why.
pub const FAILED: &str = "FAILED";

/// A status, what it proves, and its meaning.
const STATUSES: &[(&str, Class, &str)] = &[
    // Tries may be left, and whoever sent it may have the question changed.
    ("AUTHENTICATION_FAILURE", Waiting, "The recipient answered wrongly"),
    ("AUTHENTICATION_SUCCESSFUL", Waiting, "The recipient answered, and the money is on its way"),
    ("AVAILABLE", Waiting, "The transfer waits for its recipient"),
    ("CANCELLED", Ended, "The transfer was cancelled before anybody claimed it"),
    ("COMPLETED", Paid, "Deposited"),
    ("DECLINED", Ended, "The recipient declined the transfer"),
    ("DEPOSITED", Paid, "Deposited"),
    // Some networks of this kind ask the recipient to claim it then.
    ("DIRECT_DEPOSIT_FAILED", Unclear, "The recipient's bank did not take the deposit"),
    ("DIRECT_DEPOSIT_PENDING", Waiting, "The money is on its way"),
    ("EXPIRED", Ended, "Nobody claimed the transfer in time"),
    ("FAILED", Unclear, "The transfer failed"),
    ("INITIATED", Waiting, "The network has the transfer"),
    ("REALTIME_DEPOSIT_COMPLETED", Paid, "Deposited"),
    ("REALTIME_DEPOSIT_FAILED", Unclear, "The recipient's bank did not take the deposit"),
    ("REALTIME_INITIATED", Waiting, "The network has the transfer"),
];

/// Why a transfer was not taken on, or has failed; what that proves, and its meaning.
const REFUSALS: &[(&str, Class, &str)] = &[
    ("AMOUNT_TOO_HIGH", Ended, "The amount is above the limit of one transfer"),
    ("AMOUNT_TOO_LOW", Ended, "The amount is below the least of one transfer"),
    ("ANSWER_TRIES_EXCEEDED", Ended, "The recipient answered wrongly too often"),
    ("DEBTOR_ACCOUNT_BLOCKED", Ended, "The paying account may not send transfers"),
    ("DEPOSIT_REFUSED", Ended, "The recipient's bank refused the deposit"),
    ("DUPLICATE_PAYMENT", Unclear, "A transfer of this reference is known already"),
    ("INSUFFICIENT_FUNDS", Ended, "The paying account has too little money"),
    ("INVALID_HANDLE", Ended, "Transfers cannot be sent to this email address"),
    ("INVALID_MEMO", Ended, "The network does not carry the text for the recipient"),
    ("INVALID_REQUEST", Ended, "The participant found the transfer invalid"),
    ("INVALID_SECURITY_QUESTION", Ended, "The network does not take the question or its answer"),
    ("PAYMENT_NOT_FOUND", Unclear, "No transfer of this reference is known"),
    ("RECIPIENT_BLOCKED", Ended, "The recipient cannot receive transfers"),
    ("SENDER_LIMIT_EXCEEDED", Ended, "The paying account has sent as much as it may for now"),
];

/// What a status proves.
#[must_use]
pub fn status(word: &str) -> Class {
    find(STATUSES, word).map_or(Unclear, |(_, class, _)| *class)
}

/// What the code of a refusal proves: that the recipient does not get the money, or nothing.
#[must_use]
pub fn refusal(code: &str) -> Class {
    find(REFUSALS, code).map_or(Unclear, |(_, class, _)| *class)
}

/// The meaning of a status or of a refusal's code, for a person.
#[must_use]
pub fn meaning(word: &str) -> &'static str {
    let found = find(STATUSES, word).or_else(|| find(REFUSALS, word));
    found.map_or("The transfer was refused", |(_, _, meaning)| meaning)
}

/// A word as it may be shown and kept: letters, digits and underscores of what was written, and
/// not too many of them.
#[must_use]
pub fn plain(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
}

type Row = (&'static str, Class, &'static str);

fn find(table: &'static [Row], word: &str) -> Option<&'static Row> {
    table.iter().find(|(known, ..)| *known == word)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, REFUSALS, STATUSES, plain, refusal, status};

    const CODES: &str = include_str!("../cases/codes.toml");
    const PAYMENTS: &str = include_str!("../cases/payments.toml");
    const QUESTIONS: &str = include_str!("../cases/questions.toml");

    #[test]
    fn every_word_has_a_case() {
        for (word, ..) in STATUSES {
            assert!(CODES.contains(&format!("\ncode = \"{word}\"\n")), "{word}");
        }
        for (code, ..) in REFUSALS {
            assert!(PAYMENTS.contains(&format!("\"code\":\"{code}\"")), "{code}");
            assert!(QUESTIONS.contains(&format!("\"failure_code\":\"{code}\"")), "{code}");
        }
    }

    #[test]
    fn the_tables_are_in_order_and_have_no_word_twice() {
        for table in [STATUSES, REFUSALS] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (word, _, meaning) in table {
                assert!(!meaning.is_empty() && plain(word) == *word, "{word}");
            }
        }
        // A refusal is final or proves nothing, and none of its codes is a status.
        for (code, class, _) in REFUSALS {
            assert!(matches!(class, Class::Ended | Class::Unclear), "{code}");
            assert_eq!(status(code), Class::Unclear, "{code}");
        }
    }

    #[test]
    fn what_is_ambiguous_or_not_listed_never_gives_money_back() {
        for word in ["", "deposited", "FAILED", "DIRECT_DEPOSIT_FAILED", "RJCT", "ACSP", "REVERSED"]
        {
            assert_eq!(status(word), Class::Unclear, "{word:?}");
        }
        for code in ["", "DUPLICATE_PAYMENT", "PAYMENT_NOT_FOUND", "invalid_handle", "500"] {
            assert_eq!(refusal(code), Class::Unclear, "{code:?}");
        }
        for word in ["AUTHENTICATION_FAILURE", "AVAILABLE"] {
            assert_eq!(status(word), Class::Waiting, "{word}");
        }
    }
}
