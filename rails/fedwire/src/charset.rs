//! The characters of names, addresses and texts: printable ASCII. Fedwire takes more than that, but
//! which, its public pages do not say.

use railhead_rail::letters;
pub use railhead_rail::letters::says_something;

/// The text in printable ASCII: see [`letters::tidy`].
#[must_use]
pub fn tidy(text: &str) -> String {
    letters::tidy(text, |c| (' '..='~').contains(&c))
}

/// As much of a text as fits, tidied.
#[must_use]
pub fn fitting(text: &str, most: usize) -> String {
    letters::cut(&tidy(text), most)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{fitting, says_something, tidy};

    #[test]
    fn letters_without_accents() {
        for (given, expected) in [
            ("  Siobh\u{e1}n\tO\u{2019}Brien \r\n", "Siobhan O'Brien"),
            ("Zo\u{308}e Mu\u{308}ller", "Zoe Muller"),
            ("Łódź Æther Straße", "Lodz AEther Strasse"),
            ("Nguyễn Thị Ánh", "Nguyen Thi Anh"),
            ("Иван 1", "1"),
            ("A\u{0}B\u{7f}C", "A B C"),
            ("<&>\"'", "<&>\"'"),
        ] {
            assert_eq!(tidy(given), expected);
        }
        assert!(tidy("Ünïcödé\u{202e} текст").is_ascii());
    }

    #[test]
    fn what_fits() {
        assert_eq!(fitting("Jane  Smith", 5), "Jane");
        assert_eq!(fitting("ÆÆÆ", 5), "AEAEA");
        assert!(says_something("a") && !says_something("-") && !says_something(""));
    }
}
