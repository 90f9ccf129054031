//! Reason codes of ISO 20022 (external code sets `ExternalStatusReason1Code` and
//! `ExternalReturnReason1Code`), as SEPA uses them, in words for merchants.

/// What a rejection with a code proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing was paid, and nothing will be.
    Refused,
    /// The bank has the payment, the entry or the file already: that one may be carried out.
    Duplicate,
    /// Nothing by itself: the code is not one that is known to refuse.
    Unclear,
}

/// Codes that refuse, and why money came back. A few are of one use only; they mean the same.
const REASONS: &[(&str, &str)] = &[
    ("AB05", "The recipient's bank did not answer in time"),
    ("AB08", "The recipient's bank is not connected"),
    ("AB09", "The recipient's bank could not process the payment"),
    ("AB10", "A bank on the way could not process the payment"),
    ("AC01", "There is no account of this IBAN"),
    ("AC02", "The paying account is not valid"),
    ("AC03", "The recipient's account is not valid"),
    ("AC04", "The recipient's account is closed"),
    ("AC05", "The paying account is closed"),
    ("AC06", "The recipient's account is blocked"),
    ("AC07", "The recipient's account is closed"),
    ("AC13", "The paying account is of a type that may not pay"),
    ("AC14", "The recipient's account is of a type that cannot be paid to"),
    ("AC16", "An account is in liquidation or under sequestration"),
    ("AG01", "The account may not take payments of this kind"),
    ("AG02", "The payment is not of a kind that the bank knows"),
    ("AG03", "The bank does not offer payments of this kind"),
    ("AG10", "The paying bank is suspended"),
    ("AG11", "The recipient's bank is suspended"),
    ("AM01", "The amount is nothing"),
    ("AM02", "The amount is above what is allowed"),
    ("AM03", "The currency is not euro"),
    ("AM04", "The paying account has too little money"),
    ("AM06", "The amount is below what is allowed"),
    ("AM07", "The amount is blocked by an authority"),
    ("AM09", "The amount is not what was agreed"),
    ("AM10", "The sums of the file are wrong"),
    ("AM11", "The currency is not valid"),
    ("AM12", "The amount is not valid"),
    ("AM14", "The amount is above an agreed limit"),
    ("AM16", "The sums of the file are wrong"),
    ("AM17", "The sums of the file are wrong"),
    ("AM18", "The count of payments in the file is wrong"),
    ("AM19", "The count of payments in the file is wrong"),
    ("AM21", "A limit of the paying account is reached"),
    ("AM23", "The amount is above what the network settles at once"),
    ("BE01", "The name is not the one on the account"),
    ("BE04", "The recipient's address is missing or wrong"),
    ("BE05", "The bank does not know who sent the payment"),
    ("BE06", "The bank does not know the recipient"),
    ("BE07", "The payer's address is missing or wrong"),
    ("BE10", "The payer's country is missing or wrong"),
    ("BE11", "The recipient's country is missing or wrong"),
    ("BE16", "The payer's identification is missing or wrong"),
    ("BE17", "The recipient's identification is missing or wrong"),
    ("BE22", "The recipient's name is missing"),
    ("CNOR", "SEPA does not reach the recipient's bank by this BIC"),
    ("CURR", "The currency is not right"),
    ("CUST", "The recipient or the payer asked for it"),
    ("DNOR", "The paying bank is not registered by this BIC"),
    ("DS02", "An authorised person cancelled the order"),
    ("DT01", "The date is not valid"),
    ("ED05", "The payment could not be settled"),
    ("FF01", "The message is not written as it must be"),
    ("FF03", "The payment's type is missing or wrong"),
    ("FF04", "The service level is missing or wrong"),
    ("FF05", "The local instrument is missing or wrong"),
    ("FF07", "The purpose is missing or wrong"),
    ("FOCR", "The payer's bank asked for it back"),
    ("FR01", "It is taken for fraud"),
    ("FRAD", "It is taken for fraud"),
    ("LEGL", "A legal decision demands it"),
    ("MD07", "The recipient has died"),
    ("MS02", "The recipient refuses it, without saying why"),
    ("MS03", "The bank refuses it, without saying why"),
    ("RC01", "The BIC is not valid"),
    ("RC03", "The paying bank's BIC is not valid"),
    ("RC04", "The recipient's bank's BIC is not valid"),
    ("RC07", "The recipient's bank's BIC is not valid"),
    ("RC10", "The recipient's bank's clearing code is not valid"),
    ("RR01", "The rules of an authority want the payer's account or identification"),
    ("RR02", "The rules of an authority want the payer's name or address"),
    ("RR03", "The rules of an authority want the recipient's name or address"),
    ("RR04", "The rules of an authority forbid it"),
    ("RR12", "The rules of an authority want an identification that is missing or wrong"),
    ("SL01", "The bank does not offer this service to the account"),
    ("TD03", "The file is not written as it must be"),
    ("TM01", "It came after the time until which it is carried out"),
    ("UPAY", "The payment is not justified"),
];

/// Codes of what was there before: of a payment, of a message, of a batch, of references.
const DUPLICATES: &[&str] = &["AM05", "DU01", "DU02", "DU03", "DU04", "DU05", "DUPL", "RF01"];

/// Codes with which a whole file is not rejected for what it is, but stopped: by a person, or
/// because of fraud, the law or an authority. Whoever stopped it expects no other one with the same
/// payments.
const STOPS: &[&str] = &[
    "AC16", "AM07", "CUST", "DS02", "FOCR", "FR01", "FRAD", "LEGL", "MS02", "RR01", "RR02", "RR03",
    "RR04", "RR12", "UPAY",
];

/// What a rejection with this code proves.
#[must_use]
pub fn class(code: &str) -> Class {
    if DUPLICATES.contains(&code) {
        Class::Duplicate
    } else if REASONS.iter().any(|(known, _)| *known == code) {
        Class::Refused
    } else {
        Class::Unclear
    }
}

/// Whether a file that is rejected with this code was stopped.
#[must_use]
pub fn is_stop(code: &str) -> bool {
    STOPS.contains(&code)
}

/// What a code means, in words for merchants.
#[must_use]
pub fn meaning(code: &str) -> &'static str {
    if DUPLICATES.contains(&code) {
        return "The bank takes it for a duplicate";
    }
    let found = REASONS.iter().find(|(known, _)| *known == code);
    found.map_or("The bank gave a reason that SEPA does not list", |(_, meaning)| meaning)
}

/// A code of the network's, as far as it can be shown: letters and digits.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{Class, DUPLICATES, REASONS, STOPS, class, is_stop, meaning, plain};

    #[test]
    fn each_code_stands_once() {
        for (index, (code, meaning)) in REASONS.iter().enumerate() {
            assert!(code.len() == 4 && plain(code) == *code && !meaning.ends_with('.'), "{code}");
            assert!(REASONS[index + 1..].iter().all(|(other, _)| other > code), "{code}");
            assert!(!DUPLICATES.contains(code), "{code}");
            assert_eq!(class(code), Class::Refused);
        }
    }

    #[test]
    fn what_stops_a_file_refuses_a_payment() {
        for code in STOPS {
            assert_eq!(class(code), Class::Refused, "{code}");
        }
        for code in ["AC01", "AC02", "AC06", "AM04", "FF01", "MS03", "TM01", "AM05", ""] {
            assert!(!is_stop(code), "{code}");
        }
    }

    #[test]
    fn what_was_there_before_and_what_is_not_listed() {
        for code in DUPLICATES {
            assert_eq!(class(code), Class::Duplicate);
            assert!(meaning(code).contains("duplicate"));
        }
        for code in ["", "NARR", "NOOR", "AB03", "AB04", "AB06", "ac01", "ZZZZ", "AC011"] {
            assert_eq!(class(code), Class::Unclear, "{code}");
        }
    }
}
