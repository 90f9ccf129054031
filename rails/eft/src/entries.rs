//! A payment as a segment of a file, and our references.

use railhead_rail::fields;
use railhead_rail::types::{Opening, Payment, Refusal};

use crate::{charset, recipients};

/// The amount of a payment has ten digits.
pub const AMOUNT_MAX: i64 = 9_999_999_999;

/// Room for a reference: the originator's cross-reference number.
const REFERENCE_MAX: usize = 19;

/// A serial has twelve digits.
const SERIALS: u64 = 1_000_000_000_000;

const DAY_MS: u64 = 86_400_000;

/// Days that two digits of base 36 can tell apart.
const DAYS: u64 = 36 * 36;

/// A payment as a file carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Our reference, which returns repeat.
    pub reference: String,
    /// Institution and transit, as `0YYYXXXXX`.
    pub routing: String,
    /// The account number.
    pub account: String,
    /// Cents.
    pub amount: u64,
    /// The recipient's name, in the file's characters.
    pub name: String,
    /// The narration, in the same.
    pub narration: String,
}

/// Fixes the reference: `E`, two characters for the day on which the attempt was begun, and the
/// twelve digits of its serial.
///
/// # Errors
/// No file can carry the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if payment.serial >= SERIALS {
        return Err(refusal("reference", "No reference is left for the payment"));
    }
    let reference = format!("E{}{:012}", day(payment.begun_at_ms), payment.serial);
    entry(&Payment { reference: reference.clone(), ..payment.clone() })?;
    Ok(Opening { reference, facts: Vec::new() })
}

/// The payment as a segment.
///
/// # Errors
/// No file can carry it.
pub fn entry(payment: &Payment) -> Result<Entry, Refusal> {
    if (payment.currency.as_str(), payment.exponent) != ("CAD", 2) {
        return Err(refusal("currency", "EFT carries Canadian dollars only"));
    }
    if !(1..=AMOUNT_MAX).contains(&payment.amount_minor) {
        let why = "EFT carries amounts between 0.01 and 99,999,999.99 dollars";
        return Err(refusal("amount", why));
    }
    if !is_carried(&payment.reference) {
        return Err(refusal("reference", "The reference does not fit into a file"));
    }
    let given = |name| fields::value(&payment.recipient, name);
    let bad = |why| refusal("recipient", why);
    let routing = recipients::routing(given("institution_number"), given("transit_number"));
    let account = given("account_number");
    if !recipients::is_account(account) {
        return Err(bad("The account number is not valid"));
    }
    let name = charset::tidy(given("name"));
    if !charset::says_something(&name) {
        return Err(bad("The recipient's name is missing"));
    }
    Ok(Entry {
        reference: payment.reference.clone(),
        routing: routing.ok_or_else(|| bad("The institution or the transit is not valid"))?,
        account: account.to_owned(),
        amount: payment.amount_minor.unsigned_abs(),
        name,
        narration: charset::tidy(&payment.narration),
    })
}

/// The day of an instant, as two digits of base 36.
fn day(at_ms: u64) -> String {
    let day = at_ms / DAY_MS % DAYS;
    let digit = |value: u64| match u8::try_from(value).unwrap_or_default() {
        value @ 0..=9 => char::from(b'0' + value),
        value => char::from(b'A' + value - 10),
    };
    [day / 36, day % 36].map(digit).iter().collect()
}

/// Whether a file can carry a reference: capital letters, digits and dashes.
fn is_carried(reference: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=REFERENCE_MAX).contains(&reference.len()) && reference.bytes().all(is_plain)
}

/// Whether a text has the shape of our references: `E`, the day, twelve digits.
#[must_use]
pub fn is_ours(text: &str) -> bool {
    let Some((day, number)) = text.strip_prefix('E').and_then(|rest| rest.split_at_checked(2))
    else {
        return false;
    };
    day.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        && number.len() == 12
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::fields::set;
    use railhead_rail::types::Payment;

    use super::{entry, is_ours, prepare};
    use crate::fixtures::payment;

    #[test]
    fn the_reference_is_the_payments_day_and_number() {
        let given = Payment { reference: String::new(), serial: 42, ..payment() };
        assert_eq!(prepare(&given).expect("a reference").reference, "E16000000000042");
        let last = Payment { serial: 999_999_999_999, ..payment() };
        assert!(is_ours(&prepare(&last).expect("a reference").reference));
        let beyond = Payment { serial: 1_000_000_000_000, ..payment() };
        assert_eq!(prepare(&beyond).expect_err("none").code, "reference");
    }

    #[test]
    fn days_are_two_digits_of_base_36() {
        for (day, digits) in
            [(0, "00"), (9, "09"), (10, "0A"), (35, "0Z"), (36, "10"), (1295, "ZZ"), (1296, "00")]
        {
            for begun_at_ms in [day * 86_400_000, day * 86_400_000 + 86_399_999] {
                let given = Payment { begun_at_ms, ..payment() };
                let reference = prepare(&given).expect("one").reference;
                assert_eq!(reference, format!("E{digits}000000000002"));
                assert!(is_ours(&reference), "{reference}");
            }
        }
        assert!(prepare(&Payment { begun_at_ms: u64::MAX, ..payment() }).is_ok());
    }

    #[test]
    fn amounts() {
        for amount_minor in [1, 125_050, 9_999_999_999] {
            assert!(prepare(&Payment { amount_minor, ..payment() }).is_ok(), "{amount_minor}");
        }
        for amount_minor in [0, -1, i64::MIN, i64::MAX, 10_000_000_000] {
            let refused = prepare(&Payment { amount_minor, ..payment() });
            assert_eq!(refused.expect_err("a refusal").code, "amount", "{amount_minor}");
        }
        let dollars = Payment { currency: "USD".into(), ..payment() };
        assert_eq!(prepare(&dollars).expect_err("a refusal").code, "currency");
        let mills = Payment { exponent: 3, ..payment() };
        assert_eq!(prepare(&mills).expect_err("a refusal").code, "currency");
    }

    #[test]
    fn recipients() {
        let changed = |name: &str, value: &str| {
            let mut payment = payment();
            set(&mut payment.recipient, name, value);
            entry(&payment)
        };
        let plain = entry(&payment()).expect("an entry");
        assert_eq!((&*plain.routing, &*plain.account), ("000300320", "1234567"));
        assert_eq!(changed("name", "Élodie Côté").expect("a name").name, "Elodie Cote");
        for (name, value) in [
            ("account_number", ""),
            ("account_number", "1234567890123"),
            ("account_number", "12-34567"),
            ("account_number", "000"),
            ("institution_number", "3"),
            ("institution_number", ""),
            ("institution_number", "000"),
            ("transit_number", "0320"),
            ("transit_number", "00000"),
            ("name", "…"),
            ("name", ""),
        ] {
            assert_eq!(changed(name, value).expect_err(name).code, "recipient", "{name}");
        }
    }

    #[test]
    fn what_is_no_reference_of_ours() {
        for text in [
            "",
            "E",
            "E000000000042",
            "E1600000000004",
            "E160000000000042",
            "X16000000000042",
            "E1a000000000042",
            "E1-000000000042",
            "E1é00000000042",
            "EÄ000000000042",
            "E1600000000004X",
            "E1600000000004 ",
        ] {
            assert!(!is_ours(text), "{text:?}");
        }
    }

    #[test]
    fn references_that_no_file_carries() {
        for text in ["", "po 1", "po-1", "É", "A23456789012345678901", "A\n"] {
            let odd = Payment { reference: text.into(), ..payment() };
            assert_eq!(entry(&odd).expect_err("a refusal").code, "reference", "{text:?}");
        }
        for text in ["PO-0001", "A234567890123456789"] {
            assert!(entry(&Payment { reference: text.into(), ..payment() }).is_ok(), "{text}");
        }
    }
}
