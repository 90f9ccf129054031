//! The characters that a NACHA file carries: printable ASCII.

use railhead_rail::letters;
pub use railhead_rail::letters::cut;

/// The text in printable ASCII: see [`letters::tidy`].
#[must_use]
pub fn tidy(text: &str) -> String {
    letters::tidy(text, |c| (' '..='~').contains(&c))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::tidy;

    #[test]
    fn common_accents() {
        for (given, expected) in [
            ("José Núñez", "Jose Nunez"),
            ("Jose\u{301}", "Jose"),
            ("Łukasz Żółć", "Lukasz Zolc"),
            ("Çağlar Şahin İçöz ılgın", "Caglar Sahin Icoz ilgin"),
            ("Jürgen Groß", "Jurgen Gross"),
            ("Ægir Þór Ðað", "AEgir THor Dad"),
            ("Søren Ångström", "Soren Angstrom"),
            ("Đặng Thị Ngọc Ưng ở Huế", "Dang Thi Ngoc Ung o Hue"),
            ("Ștefan Țepeș", "Stefan Tepes"),
            ("Škoda Ďurčanský Ľubomír", "Skoda Durcansky Lubomir"),
            ("O\u{2019}Brien\u{2013}Smith", "O'Brien-Smith"),
            ("  A \t B\u{a0}C\n", "A B C"),
            ("Jane 😀 Smith 株式会社", "Jane Smith"),
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
            assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{c:?}");
            assert!(text.starts_with('a') && text.ends_with('b'), "{c:?}");
        }
    }
}
