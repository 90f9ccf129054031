//! Why a payment was refused, and why one came back.
//!
//! Sources: the scheme's reject codes (four digits) and return codes (eight digits) as banks
//! that are members publish them; ISO 20022's and ClearBank's own codes (`CB_`) as ClearBank's
//! webhooks for Faster Payments list them, and the words with which its gateway turns an order
//! away. As of 2026-11-20; the sentences are ours. A code that is not listed proves nothing.

use railhead_rail::wording::speaks_of_a_copy;

/// What a reject code proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The payee will not get this payment. Final.
    Refused,
    /// Nothing: a copy of the payment may have been made, or may still be.
    Unclear,
}

use Class::{Refused, Unclear};

/// What a merchant is told where it is this service that is refused, not the payment. The codes are
/// declared as `refusals.ours`.
pub const OURS: &str = "Faster Payments takes no payments from this service at present";

/// A reject code, what it proves, and its meaning.
const REJECTS: &[(&str, Class, &str)] = &[
    ("1100", Refused, "The bank declined for reasons of its own"),
    ("1114", Refused, "The bank knows no account with this sort code and number"),
    ("1160", Refused, "The account is closed"),
    ("1161", Refused, "The account is stopped"),
    ("1162", Refused, "The name is not the account's"),
    ("1163", Refused, "The account can only be found with a reference, and there was none"),
    ("1164", Refused, "The reference is not one that the account can be found with"),
    ("1165", Refused, "The account does not take pounds"),
    ("1166", Refused, "The account has moved to another bank"),
    ("1167", Refused, "The account holder has died"),
    ("1168", Refused, "The bank wants the sending bank to act first"),
    ("1169", Refused, "The account cannot be paid into at present"),
    ("1170", Refused, "The account's terms do not allow this payment"),
    ("1171", Refused, "The recipient's name is missing"),
    ("1172", Refused, OURS),
    ("1173", Refused, OURS),
    ("1174", Refused, OURS),
    ("1175", Refused, OURS),
    ("1176", Refused, "The receiving agency's sort code and account are unknown"),
    ("1177", Refused, "The receiving agency's account is closed"),
    ("1178", Refused, "The receiving agency's account is stopped"),
    ("1179", Refused, OURS),
    ("1180", Refused, "The receiving agency's account has moved"),
    ("1181", Unclear, "A payment with this identifier is known already"),
    ("1909", Unclear, "The receiving bank's system failed and may pay later"),
    ("1930", Refused, "The payment message was malformed"),
    ("4021", Unclear, "The receiving bank did not answer in time"),
    ("4400", Refused, "The receiving bank could not accept the payment"),
    ("9902", Refused, "The scheme found the payment invalid"),
    ("9905", Refused, OURS),
    ("9908", Refused, "The scheme found no way to the sort code"),
    ("9909", Unclear, "The scheme's central system failed"),
    ("9910", Refused, "The receiving bank is not connected at present"),
    ("9911", Unclear, "The receiving bank's system did not answer in time"),
    ("9912", Unclear, "The receiving bank's system was not available, and may pay later"),
    ("9913", Unclear, "The scheme's central system knows a payment with this identifier already"),
    ("9935", Unclear, "The scheme does not say what became of the payment"),
    ("AC03", Refused, "The bank knows no account with this sort code and number"),
    ("AC04", Refused, "The account is closed"),
    ("AC06", Refused, "The account is stopped"),
    ("AC07", Refused, "The account is closed"),
    ("AC09", Refused, "The account does not take pounds"),
    ("AG01", Refused, "The account's terms do not allow this payment"),
    ("AM05", Unclear, "A payment with this identifier is known already"),
    ("BE08", Refused, "The receiving bank made a mistake or could not be reached"),
    ("CB_AccountHoldersBankrupt", Refused, "The account cannot be paid into at present"),
    ("CB_AccountNameAndNumberMismatch", Refused, "The name is not the account's"),
    ("CB_AccountNameInvalid", Refused, "The name is not the account's"),
    ("CB_AccountSwitched", Refused, "The account has moved to another bank"),
    ("CB_CancelledCreditAccountDisabled", Refused, "The account cannot be paid into"),
    ("CB_CancelledDebitAccountDisabled", Refused, OURS),
    ("CB_DupSttlmntOriginalIsQueued", Unclear, "The payment is known already and waits"),
    ("CB_DupSttlmntOriginalWasRejected", Unclear, "The payment is known already"),
    ("CB_FailedModulusCheck", Refused, "No account at this sort code has this number"),
    ("CB_InitiatingPartyActionRequired", Refused, "The bank wants the sending bank to act first"),
    ("CB_PaymentBeneficiaryNameMissing", Refused, "The recipient's name is missing"),
    (
        "CB_PaymentReferenceIncorrect",
        Refused,
        "The reference is not one that the account can be found with",
    ),
    (
        "CB_PaymentReferenceMissing",
        Refused,
        "The account can only be found with a reference, and there was none",
    ),
    ("DU05", Unclear, "A payment with this identifier is known already"),
    ("DebitPaymentDisabled", Refused, OURS),
    ("HOPRJ", Refused, "The payment was held for a review and declined"),
    ("InsufficientFunds", Refused, OURS),
    ("InvalidAccount", Refused, "The gateway does not take the account"),
    ("InvalidCurrency", Refused, "The account cannot be paid in pounds"),
    ("MD07", Refused, "The account holder has died"),
    ("MD09", Refused, "The account holder has died"),
    ("MS02", Refused, "The recipient declined, without a reason"),
    ("MS03", Refused, "The receiving bank declined, without a reason"),
    ("PY01", Refused, "The sort code is unknown, or the account at it"),
];

/// A return code and its meaning.
const RETURNS: &[(&str, &str)] = &[
    ("00000001", "Returned: the bank knows no account with this sort code and number"),
    ("00000002", "Returned: the account is closed"),
    ("00000003", "Returned: the account is stopped"),
    ("00000004", "Returned: the account holder has died"),
    ("00000005", "Returned: the account can only be found with a reference"),
    ("00000006", "Returned: the name is not the account's"),
    ("00000007", "Returned because the sender asked for it"),
    ("00000008", "Returned: the account does not take pounds"),
    ("00000009", "Returned: the recipient expects no such payment, or sent it back"),
    ("00000010", "Returned: the account's terms do not allow this payment"),
    ("00000011", "Returned: the bank wants the sending bank to act first"),
    ("00000012", "Returned: the account has moved to another bank"),
    ("00000013", "Returned: the account cannot be paid into at present"),
    ("00000014", "Returned without a reason"),
];

/// Whether a text of the gateway's may speak of an earlier copy of the same payment, which may have
/// been made.
#[must_use]
pub fn is_of_a_copy(text: &str) -> bool {
    const WORDS: [&str; 6] = [
        "endtoend",
        "end to end",
        "end-to-end",
        "instructionidentification",
        "request-id",
        "requestid",
    ];
    let lower = text.to_ascii_lowercase();
    speaks_of_a_copy(text) || WORDS.iter().any(|word| lower.contains(word))
}

/// What a reject code proves, wherever it is told.
#[must_use]
pub fn class(code: &str) -> Class {
    find(code).map_or(Unclear, |(_, class, _)| *class)
}

/// The meaning of a reject code, for a person.
#[must_use]
pub fn reject(code: &str) -> &'static str {
    find(code).map_or("The payment was rejected", |(_, _, meaning)| meaning)
}

/// The meaning of a return code, for a person.
#[must_use]
pub fn returned(code: &str) -> &'static str {
    let found = RETURNS.iter().find(|(known, _)| *known == code);
    found.map_or("The receiving bank sent the payment back", |(_, meaning)| meaning)
}

/// A code as it may be shown and kept: letters, digits and underscores of what the gateway
/// wrote, and not too many of them.
#[must_use]
pub fn plain(code: &str) -> String {
    code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect()
}

fn find(code: &str) -> Option<&'static (&'static str, Class, &'static str)> {
    REJECTS.iter().find(|(known, ..)| *known == code)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, OURS, REJECTS, RETURNS, class, is_of_a_copy, plain};

    const CASES: &str = include_str!("../cases/codes.toml");
    const WEBHOOKS: &str = include_str!("../cases/webhooks.toml");
    const DECLARATION: &str = include_str!("../rail.toml");

    #[test]
    fn every_code_has_a_case() {
        for (code, ..) in REJECTS {
            assert!(CASES.contains(&format!("\ncode = \"{code}\"\n")), "{code}");
        }
        for (code, _) in RETURNS {
            let told = format!("{{\"Name\":\"PaymentReturnCode\",\"Value\":\"{code}\"}}");
            assert!(WEBHOOKS.contains(&told), "{code}");
        }
    }

    #[test]
    fn the_tables_are_in_order_and_have_no_code_twice() {
        assert!(REJECTS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(RETURNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(REJECTS.iter().filter(|(code, ..)| code.parse::<u16>().is_ok()).count(), 37);
        assert_eq!(RETURNS.len(), 14);
        for (code, _, meaning) in REJECTS {
            assert!(!meaning.is_empty() && plain(code) == *code, "{code}");
        }
    }

    #[test]
    fn what_is_ambiguous_or_not_listed_never_gives_money_back() {
        for code in ["1181", "1909", "4021", "9909", "9911", "9912", "9913", "9935", "AM05", "DU05"]
        {
            assert_eq!(class(code), Class::Unclear, "{code}");
        }
        for code in ["", "0", "1101", "9999", "ac03", "CB_Other", "00000001", "Rejected"] {
            assert_eq!(class(code), Class::Unclear, "{code:?}");
        }
    }

    #[test]
    fn what_is_ours_is_declared_and_is_no_matter_of_the_merchants() {
        let (_, refusals) = DECLARATION.split_once("[refusals]").expect("a list");
        let (refusals, _) = refusals.split_once(']').expect("an end");
        for (code, class, meaning) in REJECTS {
            let is_declared = refusals.contains(&format!("\"{code}\""));
            assert_eq!(is_declared, *meaning == OURS, "{code}");
            assert!(!is_declared || *class == Class::Refused, "{code}");
            assert!(!meaning.contains("paying a"), "{code}");
        }
        assert_eq!(refusals.matches('"').count(), 2 * 9);
    }

    #[test]
    fn a_text_of_an_earlier_copy() {
        for text in ["The EndToEndIdentification is invalid", "A payment like this already exists"]
        {
            assert!(is_of_a_copy(text), "{text}");
        }
        for text in ["The account does not exist", "The account is already closed"] {
            assert!(!is_of_a_copy(text), "{text}");
        }
    }
}
