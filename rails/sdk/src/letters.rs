//! Texts for networks that carry less than people write.

/// Letters of languages that are written with accents, and signs of word processors, with what
/// stands for each of a row in ASCII.
const LETTERS: &[(&str, &str)] = &[
    ("ÀÁÂÃÄÅĀĂĄǍẠẢẤẦẨẪẬẮẰẲẴẶ", "A"),
    ("àáâãäåāăąǎạảấầẩẫậắằẳẵặª", "a"),
    ("Æ", "AE"),
    ("æ", "ae"),
    ("ÇĆĈĊČ", "C"),
    ("çćĉċč", "c"),
    ("ĎĐÐ", "D"),
    ("ďđð", "d"),
    ("ÈÉÊËĒĔĖĘĚẸẺẼẾỀỂỄỆ", "E"),
    ("èéêëēĕėęěẹẻẽếềểễệ", "e"),
    ("ĜĞĠĢ", "G"),
    ("ĝğġģ", "g"),
    ("ĤĦ", "H"),
    ("ĥħ", "h"),
    ("ÌÍÎÏĨĪĬĮİỈỊ", "I"),
    ("ìíîïĩīĭįıỉị", "i"),
    ("Ĳ", "IJ"),
    ("ĳ", "ij"),
    ("Ĵ", "J"),
    ("ĵ", "j"),
    ("Ķ", "K"),
    ("ķĸ", "k"),
    ("ĹĻĽĿŁ", "L"),
    ("ĺļľŀł", "l"),
    ("ÑŃŅŇŊ", "N"),
    ("ñńņňŋ", "n"),
    ("ÒÓÔÕÖØŌŎŐƠǑỌỎỐỒỔỖỘỚỜỞỠỢ", "O"),
    ("òóôõöøōŏőơǒọỏốồổỗộớờởỡợº", "o"),
    ("Œ", "OE"),
    ("œ", "oe"),
    ("ŔŖŘ", "R"),
    ("ŕŗř", "r"),
    ("ŚŜŞŠȘ", "S"),
    ("śŝşšș", "s"),
    ("ẞ", "SS"),
    ("ß", "ss"),
    ("ŢŤŦȚ", "T"),
    ("ţťŧț", "t"),
    ("Þ", "TH"),
    ("þ", "th"),
    ("ÙÚÛÜŨŪŬŮŰŲƯỤỦỨỪỬỮỰ", "U"),
    ("ùúûüũūŭůűųưụủứừửữự", "u"),
    ("Ŵ", "W"),
    ("ŵ", "w"),
    ("ÝŶŸỲỴỶỸ", "Y"),
    ("ýÿŷỳỵỷỹ", "y"),
    ("ŹŻŽ", "Z"),
    ("źżž", "z"),
    ("\u{2018}\u{2019}\u{201b}\u{2032}\u{b4}", "'"),
    ("\u{201c}\u{201d}\u{201e}«»", "\""),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}", "-"),
];

/// The text in the characters that are carried: letters without their accents, straight quotes and
/// hyphens where they are carried, one space between words and none at the ends. What has no such
/// form becomes a space.
#[must_use]
pub fn tidy(text: &str, is_carried: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_carried(c) => plain.push(c),
            // Accents that stand by themselves after their letter, and what has no width.
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' => {}
            c => match base(c) {
                Some(form) if form.chars().all(&is_carried) => plain.push_str(form),
                _ => plain.push(' '),
            },
        }
    }
    plain.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// As much of a tidy text as `most` characters hold.
#[must_use]
pub fn cut(tidy: &str, most: usize) -> String {
    let cut: String = tidy.chars().take(most).collect();
    cut.trim_end().to_owned()
}

/// Whether there is anything to read in a text: a letter or a digit.
#[must_use]
pub fn says_something(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_alphanumeric())
}

/// What stands for a character beyond ASCII.
fn base(c: char) -> Option<&'static str> {
    LETTERS.iter().find(|(row, _)| row.contains(c)).map(|(_, plain)| *plain)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{LETTERS, cut, says_something, tidy};

    #[test]
    fn what_is_not_carried_is_said_otherwise_or_not_at_all() {
        let ascii = |text: &str| tidy(text, |c| (' '..='~').contains(&c));
        for (given, expected) in [
            ("  Siobh\u{e1}n\tO\u{2019}Brien \r\n", "Siobhan O'Brien"),
            ("Zo\u{308}e Mu\u{308}ller", "Zoe Muller"),
            ("Łódź Æther Straße \u{133}", "Lodz AEther Strasse ij"),
            ("Nguyễn Thị Ánh", "Nguyen Thi Anh"),
            ("«A» \u{2013} \"B\"", "\"A\" - \"B\""),
            ("Иван 1", "1"),
            ("A\u{0}B\u{7f}C", "A B C"),
        ] {
            assert_eq!(ascii(given), expected);
            assert_eq!(ascii(expected), expected);
        }
        let letters = |text: &str| tidy(text, |c| c.is_ascii_alphanumeric());
        assert_eq!(letters("O\u{2019}Brien-Łuczak \u{2013} Œ."), "O Brien Luczak OE");
    }

    #[test]
    fn each_letter_stands_in_one_row_and_keeps_its_case() {
        let rows = LETTERS.iter().flat_map(|(row, plain)| row.chars().map(move |c| (c, plain)));
        let rows: Vec<_> = rows.collect();
        for (c, plain) in &rows {
            assert_eq!(rows.iter().filter(|(other, _)| other == c).count(), 1, "{c}");
            assert!(!c.is_ascii() && plain.is_ascii() && !plain.is_empty(), "{c}");
            let is_capital = plain.chars().all(|it| it.is_ascii_uppercase());
            assert_eq!(c.is_uppercase(), is_capital, "{c}");
        }
    }

    #[test]
    fn what_is_cut_ends_with_a_word() {
        assert_eq!((cut("Jane Smith", 5), cut("Jane", 22)), ("Jane".into(), "Jane".into()));
        assert!(says_something("-1-") && !says_something("- '"));
    }
}
