//! Routing numbers of the American Bankers Association.

/// The first two digits of routing numbers: the government, Federal Reserve districts, the same
/// for thrifts and for electronic payments, and traveller's cheques.
const PREFIXES: [(u32, u32); 4] = [(0, 12), (21, 32), (61, 72), (80, 80)];

/// Weights of the nine digits, whose sum of products is a multiple of ten.
const WEIGHTS: [u32; 9] = [3, 7, 1, 3, 7, 1, 3, 7, 1];

/// Whether a text can be a routing number: nine digits, a prefix that is in use, and the right
/// check digit. Nine zeros have all that and are none.
#[must_use]
pub fn is_possible(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    if digits.len() != WEIGHTS.len() || text.len() != WEIGHTS.len() {
        return false;
    }
    let prefix = digits[0] * 10 + digits[1];
    let sum: u32 = digits.iter().zip(WEIGHTS).map(|(digit, weight)| digit * weight).sum();
    PREFIXES.iter().any(|(least, most)| (*least..=*most).contains(&prefix))
        && sum.is_multiple_of(10)
        && digits.iter().any(|digit| *digit != 0)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::is_possible;

    #[test]
    fn known_numbers() {
        for number in [
            "021000021",
            "011000015",
            "026009593",
            "121000248",
            "231380104",
            "121042882",
            "011104238",
            "021040078",
            "021151080",
            "000000518",
        ] {
            assert!(is_possible(number), "{number}");
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "021000020",
            "123456789",
            "000000000",
            "400000008",
            "02100002",
            "0210000210",
            "0210-0002-1",
            "02100002١",
            "02100002 ",
            " 21000021",
            "130000006",
        ] {
            assert!(!is_possible(text), "{text:?}");
        }
    }

    #[test]
    fn a_mistyped_digit_is_always_found() {
        for at in 0..9 {
            for digit in b'0'..=b'9' {
                let mut number = *b"121042882";
                let is_same = number[at] == digit;
                number[at] = digit;
                let text = String::from_utf8(number.to_vec()).expect("digits");
                assert_eq!(is_possible(&text), is_same, "{text}");
            }
        }
    }
}
