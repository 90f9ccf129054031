//! The characters of the texts in a CPA-005 file: letters and digits of ASCII, and a few signs.

use railhead_rail::letters;
pub use railhead_rail::letters::{cut, says_something};

/// Signs that banks take in names. The standard leaves that to them, and others, such as a quote or
/// a dollar sign, may have the whole file turned away.
const SIGNS: &str = ".,-'/&()";

/// The text in the characters of a file: see [`letters::tidy`].
#[must_use]
pub fn tidy(text: &str) -> String {
    letters::tidy(text, |c| c.is_ascii_alphanumeric() || SIGNS.contains(c))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::tidy;

    #[test]
    fn common_accents() {
        for (given, expected) in [
            ("José Tremblay", "Jose Tremblay"),
            ("François-Xavier Lefèvre", "Francois-Xavier Lefevre"),
            ("Cœur à l\u{2019}œuvre", "Coeur a l'oeuvre"),
            ("ÉLODIE CÔTÉ, ÇA ET LÀ", "ELODIE COTE, CA ET LA"),
            ("Noël Haüy de L\u{2019}Haÿ", "Noel Hauy de L'Hay"),
            ("Jose\u{301}", "Jose"),
            ("Łukasz Żółć", "Lukasz Zolc"),
            ("Jürgen Groß", "Jurgen Gross"),
            ("Đặng Thị Ngọc Ưng ở Huế", "Dang Thi Ngoc Ung o Hue"),
            ("«A» \u{2013} \"B\"", "A - B"),
            ("A+B=C; 50% off!", "A B C 50 off"),
            ("O'Neil & Co. (1990), c/o A-B", "O'Neil & Co. (1990), c/o A-B"),
            ("a@b.c #1 $5 *_~^`|\\<>[]{}:?", "a b.c 1 5"),
            ("  A \t B\u{a0}C\n", "A B C"),
            ("Jane 😀 Smith ᐃᓄᒃ", "Jane Smith"),
            ("Иван", ""),
            ("", ""),
        ] {
            assert_eq!(tidy(given), expected, "{given}");
            assert_eq!(tidy(expected), expected);
        }
    }

    #[test]
    fn no_other_character_gets_in() {
        for c in '\0'..='\u{ffff}' {
            let text = tidy(&format!("a{c}b"));
            let is_carried = |c: char| c.is_ascii_alphanumeric() || " .,-'/&()".contains(c);
            assert!(text.chars().all(is_carried), "{c:?}");
            assert!(text.starts_with('a') && text.ends_with('b'), "{c:?}");
        }
    }
}
