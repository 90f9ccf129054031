//! Routing numbers of the American Bankers Association: eight digits and one that checks them.

/// Whether nine digits are a routing number: the check digit holds, and the first two are of
/// those that are allotted.
#[must_use]
pub fn is_routing_number(text: &str) -> bool {
    text.len() == 9
        && text.get(..8).and_then(check_digit) == text.get(8..)
        && text.get(..8).is_some_and(is_institution)
}

/// Whether eight digits begin as a routing number does.
#[must_use]
pub fn is_institution(text: &str) -> bool {
    let is_digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let start = text.get(..2).and_then(|start| start.parse::<u8>().ok());
    // All zeros pass every sum, and are nobody's.
    let is_allotted = |start| matches!(start, 0..=12 | 21..=32 | 61..=72 | 80);
    is_digits && start.is_some_and(is_allotted) && text.bytes().any(|byte| byte != b'0')
}

/// The digit that goes with eight: what is missing to a multiple of ten, where the digits count
/// three times, seven times and once in turn.
#[must_use]
pub fn check_digit(institution: &str) -> Option<&'static str> {
    if institution.len() != 8 || !institution.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = institution.bytes().map(|byte| u32::from(byte - b'0'));
    let sum: u32 = digits.zip([3, 7, 1, 3, 7, 1, 3, 7]).map(|(digit, weight)| digit * weight).sum();
    let digits = ["0", "9", "8", "7", "6", "5", "4", "3", "2", "1"];
    digits.get(usize::try_from(sum % 10).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::is_routing_number;

    #[test]
    fn routing_numbers() {
        for text in [
            "021000021",
            "011000015",
            "026009593",
            "121000248",
            "231380104",
            "121042882",
            "011104238",
            "021040078",
            "021151080",
        ] {
            assert!(is_routing_number(text), "{text}");
        }
        for text in [
            "021000020",
            "123456789",
            "000000000",
            "400000008",
            "02100002",
            "0210-0002-1",
            "0210000 1",
            "££££",
        ] {
            assert!(!is_routing_number(text), "{text}");
        }
    }
}
