//! The characters that a NACHA file carries: printable ASCII.

/// Letters in pairs, a capital and its small one by turns, from the first to the last.
const PAIRS: &[(char, char, &str, &str)] = &[
    ('Ā', 'ą', "A", "a"),
    ('Ć', 'č', "C", "c"),
    ('Ď', 'đ', "D", "d"),
    ('Ē', 'ě', "E", "e"),
    ('Ĝ', 'ģ', "G", "g"),
    ('Ĥ', 'ħ', "H", "h"),
    ('Ĩ', 'ı', "I", "i"),
    ('Ĳ', 'ĳ', "IJ", "ij"),
    ('Ĵ', 'ĵ', "J", "j"),
    ('Ķ', 'ķ', "K", "k"),
    ('Ĺ', 'ł', "L", "l"),
    ('Ń', 'ň', "N", "n"),
    ('Ŋ', 'ŋ', "N", "n"),
    ('Ō', 'ő', "O", "o"),
    ('Œ', 'œ', "OE", "oe"),
    ('Ŕ', 'ř', "R", "r"),
    ('Ś', 'š', "S", "s"),
    ('Ţ', 'ŧ', "T", "t"),
    ('Ũ', 'ų', "U", "u"),
    ('Ŵ', 'ŵ', "W", "w"),
    ('Ŷ', 'ŷ', "Y", "y"),
    ('Ź', 'ž', "Z", "z"),
    ('Ơ', 'ơ', "O", "o"),
    ('Ǎ', 'ǎ', "A", "a"),
    ('Ș', 'ș', "S", "s"),
    ('Ț', 'ț', "T", "t"),
    ('Ạ', 'ặ', "A", "a"),
    ('Ẹ', 'ệ', "E", "e"),
    ('Ỉ', 'ị', "I", "i"),
    ('Ọ', 'ợ', "O", "o"),
    ('Ụ', 'ự', "U", "u"),
    ('Ỳ', 'ỹ', "Y", "y"),
];

/// The text in printable ASCII: letters without their accents, straight quotes and dashes, one
/// space between words and none at the ends. What has no such form becomes a space.
#[must_use]
pub fn tidy(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => plain.push(c),
            // Accents that stand by themselves after their letter, and what has no width.
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' => {}
            c => plain.push_str(base(c)),
        }
    }
    plain.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// As much of a tidy text as `width` characters hold.
#[must_use]
pub fn cut(tidy: &str, width: usize) -> String {
    let cut: String = tidy.chars().take(width).collect();
    cut.trim_end().to_owned()
}

/// What stands for a character that is not ASCII.
fn base(c: char) -> &'static str {
    match c {
        'À'..='Å' => "A",
        'à'..='å' | 'ª' => "a",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' => "C",
        'ç' => "c",
        'È'..='Ë' => "E",
        'è'..='ë' => "e",
        'Ì'..='Ï' => "I",
        'ì'..='ï' => "i",
        'Ð' => "D",
        'ð' => "d",
        'Ñ' => "N",
        'ñ' => "n",
        'Ò'..='Ö' | 'Ø' => "O",
        'ò'..='ö' | 'ø' | 'º' => "o",
        'Ù'..='Ü' | 'Ư' => "U",
        'ù'..='ü' | 'ư' => "u",
        'Ý' | 'Ÿ' => "Y",
        'ý' | 'ÿ' => "y",
        'Þ' => "TH",
        'þ' => "th",
        'ß' => "ss",
        'ẞ' => "SS",
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' | '\u{b4}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        c => pair(c).unwrap_or(" "),
    }
}

fn pair(c: char) -> Option<&'static str> {
    let (first, _, capital, small) =
        PAIRS.iter().find(|(first, last, ..)| (*first..=*last).contains(&c))?;
    let is_capital = (u32::from(c) - u32::from(*first)).is_multiple_of(2);
    Some(if is_capital { capital } else { small })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{PAIRS, cut, tidy};

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

    #[test]
    fn pairs_begin_with_a_capital_and_end_with_a_small_letter() {
        for (first, last, ..) in PAIRS {
            assert!(first.is_uppercase() && last.is_lowercase(), "{first} {last}");
        }
    }

    #[test]
    fn what_is_cut_ends_with_a_word() {
        assert_eq!(cut("Jane Smith", 5), "Jane");
        assert_eq!(cut("Jane", 22), "Jane");
    }
}
