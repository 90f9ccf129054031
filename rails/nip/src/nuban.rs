//! The check digit of a Nigerian Uniform Bank Account Number (NUBAN).
//!
//! Ten digits: nine of serial and one of check. The check runs over the bank's code and the
//! serial with the weights 3, 7, 3 repeated; what is missing to the next ten is the digit,
//! and ten becomes zero. The Central Bank's rule of 2010 gives it for three-digit bank
//! codes. The rule revised in 2020 puts every code into six digits: "000" before a bank's
//! code, which changes no sum, and "9" before the five digits of any other institution. Its
//! weights for those are known from implementations, not from the circular's text.
//!
//! A fitting digit is no proof: the same number fits at several banks.

/// Whether `account` is ten digits whose last one fits the bank with this CBN code.
#[must_use]
pub fn is_valid(bank_code: &str, account: &str) -> bool {
    if !is_account(account) {
        return false;
    }
    let (serial, last) = account.split_at(9);
    check_digit(bank_code, serial).is_some_and(|digit| last == digit.to_string())
}

/// Whether the text has the shape of an account number: exactly ten ASCII digits.
#[must_use]
pub fn is_account(text: &str) -> bool {
    text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The digit that belongs behind a nine-digit serial at this bank. `None` where the code is
/// not three or five digits long, or anything is not a digit.
#[must_use]
pub fn check_digit(bank_code: &str, serial: &str) -> Option<u8> {
    let prefix = match bank_code.len() {
        3 => "",
        5 => "9",
        _ => return None,
    };
    if serial.len() != 9 {
        return None;
    }
    let digits = prefix.bytes().chain(bank_code.bytes()).chain(serial.bytes());
    let mut sum = 0;
    for (digit, weight) in digits.zip([3, 7, 3].into_iter().cycle()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum += u32::from(digit - b'0') * weight;
    }
    u8::try_from((10 - sum % 10) % 10).ok()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;

    use super::{check_digit, is_valid};

    /// A bank's code, a number that fits there, and the last digit of one that does not. The
    /// first two are the examples of the rule of 2010; the second has a sum that ends in
    /// zero, where ten has to become zero. 50547 is the example of the revised rule.
    const VECTORS: [(&str, &str, char); 24] = [
        ("011", "0000014579", '8'),
        ("011", "0000000220", '1'),
        ("011", "0123456784", '5'),
        ("033", "0000014579", '0'),
        ("033", "0123456784", '5'),
        ("035", "0123456788", '9'),
        ("044", "0000014579", '3'),
        ("044", "0123456784", '5'),
        ("044", "0123456784", '3'),
        ("057", "0123456788", '9'),
        ("058", "0123456785", '6'),
        ("058", "0000014570", '9'),
        ("070", "0123456785", '6'),
        ("101", "0123456788", '9'),
        ("214", "0123456789", '0'),
        ("215", "0123456786", '7'),
        ("232", "0123456781", '2'),
        ("50211", "0123456786", '9'),
        ("50211", "0000014571", '4'),
        ("50515", "0123456785", '8'),
        ("50515", "0000014570", '3'),
        ("50547", "0000014573", '6'),
        ("50547", "0123456788", '1'),
        ("51310", "0123456783", '6'),
    ];

    #[test]
    fn vectors() {
        for (bank, account, wrong) in VECTORS {
            assert!(is_valid(bank, account), "{account} at {bank}");
            let misprint = format!("{}{wrong}", &account[..9]);
            assert!(!is_valid(bank, &misprint), "{misprint} at {bank}");
        }
        assert!(is_valid("51310", "0000014578"));
        assert!(!is_valid("51310", "0000014571"));
    }

    #[test]
    fn misshapen_numbers() {
        for account in
            ["", "123456789", "01234567845", "O123456784", "0123456 84", "０１２３４５６７８４"]
        {
            assert!(!is_valid("044", account), "{account:?}");
        }
        for bank in ["", "44", "0044", "04A", "950515"] {
            assert_eq!(check_digit(bank, "012345678"), None, "{bank:?}");
        }
    }

    proptest! {
        #[test]
        fn exactly_one_last_digit_fits(bank in "[0-9]{3}|[0-9]{5}", serial in "[0-9]{9}") {
            let fitting = (0..10).filter(|digit| is_valid(&bank, &format!("{serial}{digit}")));
            prop_assert_eq!(fitting.count(), 1);
        }

        #[test]
        fn any_text_is_answered(bank in ".*", account in ".*") {
            let _ = is_valid(&bank, &account);
        }
    }
}
