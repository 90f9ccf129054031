//! Names in the characters that Airtel is sent.

use railhead_rail::letters;
pub use railhead_rail::letters::says_something;

/// Most characters of a name: Airtel says nothing of it.
const CHARS_MAX: usize = 60;

/// What is said of a name of which nothing is left.
pub const UNREADABLE: &str =
    "name must hold a letter or a digit that Airtel can be sent: A to Z, or 0 to 9.";

/// A name in plain letters without their accents, with spaces in place of everything else but
/// digits, points and hyphens.
#[must_use]
pub fn plain(name: &str) -> String {
    let is_carried = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    letters::cut(&letters::tidy(name, is_carried), CHARS_MAX)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{plain, says_something};

    #[test]
    fn letters_lose_their_accents_and_nothing_else() {
        for (name, expected) in [
            ("Wanjikũ Kamaũ", "Wanjiku Kamau"),
            ("Zoë N\u{2019}Diaye-Łuczak Jr.", "Zoe N Diaye-Luczak Jr."),
            ("ÉLODIE Œuvre", "ELODIE OEuvre"),
            ("Jose\u{301} \t Grüße", "Jose Grusse"),
            ("Иван 2", "2"),
            ("ዮሐንስ", ""),
            ("محمد", ""),
            ("- .", "- ."),
            ("", ""),
        ] {
            assert_eq!(plain(name), expected, "{name}");
            assert_eq!(plain(expected), expected);
        }
        let long = format!("{} {}", "a".repeat(59), "b".repeat(9));
        assert_eq!(plain(&long), "a".repeat(59));
        assert!(says_something("-2-") && !says_something("- ."));
    }
}
