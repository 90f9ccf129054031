//! A payment as an entry of a file, and our references.

use railhead_rail::fields;
use railhead_rail::types::{Opening, Payment, Refusal};

use crate::{aba, charset, recipients};

/// The amount of an entry has ten digits.
pub const AMOUNT_MAX: i64 = 9_999_999_999;

/// Room for the recipient's name.
const NAME_MAX: usize = 22;

/// Room for payment-related information.
const ADDENDA_MAX: usize = 80;

/// How entries are sorted into batches: NACHA's standard entry class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// PPD: to an individual.
    Individual,
    /// CCD: to a business.
    Business,
}

impl Class {
    /// Both, in the order of their batches.
    pub const ALL: [Self; 2] = [Self::Individual, Self::Business];

    /// The code in the batch header.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Individual => "PPD",
            Self::Business => "CCD",
        }
    }
}

/// A payment as a file carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Our reference, which returns repeat.
    pub reference: String,
    /// Which batch it is in.
    pub class: Class,
    /// 22 for a checking account, 32 for a savings account.
    pub transaction: &'static str,
    /// The routing number, with its check digit.
    pub routing: String,
    /// The account number.
    pub account: String,
    /// Cents.
    pub amount: u64,
    /// As much of the recipient's name as there is room for.
    pub name: String,
    /// The narration, for the addenda; empty without one.
    pub addenda: String,
}

/// Days are counted anew after this many: two digits of base 36. Returns come for sixty days.
const DAYS: u64 = 36 * 36;
const DAY_MS: u64 = 86_400_000;

/// Fixes the payment's reference: its day and its number. The number is unique in one database
/// only; the day keeps it apart from those of another, such as a pilot's, whose returns arrive in
/// the same files.
///
/// # Errors
/// No file can carry the payment.
pub fn prepare(payment: &Payment) -> Result<Opening, Refusal> {
    if payment.serial >= 1_000_000_000_000 {
        return Err(refusal("reference", "No reference is left for the payment"));
    }
    let reference = format!("R{}{:012}", day(payment.begun_at_ms), payment.serial);
    entry(&Payment { reference: reference.clone(), ..payment.clone() })?;
    Ok(Opening { reference, facts: Vec::new() })
}

/// The payment as an entry.
///
/// # Errors
/// No file can carry it.
pub fn entry(payment: &Payment) -> Result<Entry, Refusal> {
    if (payment.currency.as_str(), payment.exponent) != ("USD", 2) {
        return Err(refusal("currency", "ACH carries US dollars only"));
    }
    if !(1..=AMOUNT_MAX).contains(&payment.amount_minor) {
        let why = "ACH carries amounts between 0.01 and 99,999,999.99 dollars";
        return Err(refusal("amount", why));
    }
    if !is_ours(&payment.reference) {
        return Err(refusal("reference", "The reference is not one of this rail's"));
    }
    let given = |name| fields::value(&payment.recipient, name);
    let bad = |why| refusal("recipient", why);
    let account = recipients::account(given("account_number"));
    let routing = given("routing_number").to_owned();
    if !aba::is_possible(&routing) {
        return Err(bad("The routing number is not valid"));
    }
    let name = charset::cut(&charset::tidy(given("name")), NAME_MAX);
    if !name.contains(|c: char| c.is_ascii_alphanumeric()) {
        return Err(bad("The recipient's name is missing"));
    }
    Ok(Entry {
        reference: payment.reference.clone(),
        class: match given("type") {
            "" | "individual" => Class::Individual,
            "business" => Class::Business,
            _ => return Err(bad("The recipient is neither an individual nor a business")),
        },
        transaction: match given("account_type") {
            "checking" => "22",
            "savings" => "32",
            _ => return Err(bad("The account is neither a checking nor a savings account")),
        },
        routing,
        account: account.ok_or_else(|| bad("The account number is not valid"))?,
        amount: payment.amount_minor.unsigned_abs(),
        name,
        addenda: charset::cut(&charset::tidy(&payment.narration), ADDENDA_MAX),
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

/// Whether a text has the shape of our references: `R`, the day, twelve digits.
#[must_use]
pub fn is_ours(text: &str) -> bool {
    let Some((day, number)) = text.strip_prefix('R').and_then(|rest| rest.split_at_checked(2))
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

    use super::{Class, entry, is_ours, prepare};
    use crate::fixtures::payment;

    #[test]
    fn the_reference_is_the_payments_day_and_number() {
        let given = Payment { reference: String::new(), serial: 42, ..payment() };
        assert_eq!(prepare(&given).expect("a reference").reference, "R16000000000042");
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
                let reference =
                    prepare(&Payment { begun_at_ms, ..payment() }).expect("one").reference;
                assert_eq!(reference, format!("R{digits}000000000002"));
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
        let euros = Payment { currency: "EUR".into(), ..payment() };
        assert_eq!(prepare(&euros).expect_err("a refusal").code, "currency");
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
        assert_eq!(changed("type", "business").map(|it| it.class), Ok(Class::Business));
        assert_eq!(changed("type", "").map(|it| it.class), Ok(Class::Individual));
        assert_eq!(changed("account_type", "savings").map(|it| it.transaction), Ok("32"));
        let long = changed("name", "Bartholomew Featherstone-Haugh");
        assert_eq!(long.map(|it| it.name).as_deref(), Ok("Bartholomew Feathersto"));
        for (name, value) in [
            ("account_number", ""),
            ("account_number", "123456789012345678"),
            ("routing_number", "121042881"),
            ("routing_number", ""),
            ("name", "…"),
            ("type", "trust"),
            ("account_type", ""),
        ] {
            assert_eq!(changed(name, value).expect_err(name).code, "recipient", "{name}");
        }
    }

    #[test]
    fn what_is_no_reference_of_ours() {
        for text in [
            "",
            "R",
            "R000000000042",
            "R1600000000004",
            "R160000000000042",
            "X16000000000042",
            "R1a000000000042",
            "R1-000000000042",
            "R1é00000000042",
            "RÄ000000000042",
            "R1600000000004X",
            "R1600000000004 ",
        ] {
            assert!(!is_ours(text), "{text:?}");
            let odd = Payment { reference: text.into(), ..payment() };
            assert_eq!(entry(&odd).expect_err("a refusal").code, "reference");
        }
    }
}
