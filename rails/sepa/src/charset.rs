//! The characters that every bank in SEPA takes: Latin letters, digits, and a few marks.
//!
//! EPC217-08 recommends what stands for the others: letters without their accents, and Latin ones
//! for those of the Greek and Cyrillic alphabets.

/// Marks that are carried, beside letters, digits and the space.
const MARKS: &str = "/-?:().,'+";

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

/// Small Greek and Cyrillic letters; their capitals are written with a capital first.
const LETTERS: &[(char, &str)] = &[
    ('α', "a"),
    ('ά', "a"),
    ('β', "v"),
    ('γ', "g"),
    ('δ', "d"),
    ('ε', "e"),
    ('έ', "e"),
    ('ζ', "z"),
    ('η', "i"),
    ('ή', "i"),
    ('θ', "th"),
    ('ι', "i"),
    ('ί', "i"),
    ('ϊ', "i"),
    ('ΐ', "i"),
    ('κ', "k"),
    ('λ', "l"),
    ('μ', "m"),
    ('ν', "n"),
    ('ξ', "x"),
    ('ο', "o"),
    ('ό', "o"),
    ('π', "p"),
    ('ρ', "r"),
    ('σ', "s"),
    ('ς', "s"),
    ('τ', "t"),
    ('υ', "y"),
    ('ύ', "y"),
    ('ϋ', "y"),
    ('ΰ', "y"),
    ('φ', "f"),
    ('χ', "ch"),
    ('ψ', "ps"),
    ('ω', "o"),
    ('ώ', "o"),
    ('а', "a"),
    ('б', "b"),
    ('в', "v"),
    ('г', "g"),
    ('д', "d"),
    ('е', "e"),
    ('ё', "e"),
    ('ж', "zh"),
    ('з', "z"),
    ('и', "i"),
    ('й', "y"),
    ('к', "k"),
    ('л', "l"),
    ('м', "m"),
    ('н', "n"),
    ('о', "o"),
    ('п', "p"),
    ('р', "r"),
    ('с', "s"),
    ('т', "t"),
    ('у', "u"),
    ('ф', "f"),
    ('х', "h"),
    ('ц', "ts"),
    ('ч', "ch"),
    ('ш', "sh"),
    ('щ', "sht"),
    ('ъ', "a"),
    ('ы', "y"),
    ('ь', "y"),
    ('э', "e"),
    ('ю', "yu"),
    ('я', "ya"),
    ('ђ', "dj"),
    ('ѓ', "gj"),
    ('є', "ye"),
    ('ѕ', "dz"),
    ('і', "i"),
    ('ї', "yi"),
    ('ј', "j"),
    ('љ', "lj"),
    ('њ', "nj"),
    ('ћ', "c"),
    ('ќ', "kj"),
    ('џ', "dz"),
    ('ґ', "g"),
];

/// The text in the characters that are carried: one space between words, none at the ends, and no
/// slash there either. What has no such form becomes a space.
#[must_use]
pub fn carried(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_carried(c) => plain.push(c),
            // Accents that stand by themselves after their letter, and what has no width.
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200f}' => {}
            ' '..='~' => plain.push(mark(c)),
            c => push_latin(&mut plain, c),
        }
    }
    let words = plain.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    // Nothing begins or ends with a slash, and no two stand together (EPC132-08, 1.4).
    let single = words.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    single.trim().to_owned()
}

/// As much of what is carried as `most` characters hold.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    let start: String = carried(text).chars().take(most).collect();
    start.trim_end_matches([' ', '/']).to_owned()
}

/// Whether every character of a text is carried.
#[must_use]
pub fn is_all_carried(text: &str) -> bool {
    text.chars().all(is_carried)
}

fn is_carried(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ' ' || MARKS.contains(c)
}

/// What stands for a mark of ASCII that is not carried.
fn mark(c: char) -> char {
    match c {
        '&' => '+',
        '[' | '{' | '<' => '(',
        ']' | '}' | '>' => ')',
        '_' | '~' | '=' => '-',
        ';' => ',',
        '`' => '\'',
        '\\' | '|' => '/',
        _ => '.',
    }
}

fn push_latin(plain: &mut String, c: char) {
    if let Some(latin) = latin(c) {
        plain.push_str(latin);
        return;
    }
    let mut small = c.to_lowercase();
    let (first, is_single) = (small.next().unwrap_or(c), small.next().is_none());
    let found = LETTERS.iter().find(|(known, _)| *known == first).filter(|_| is_single);
    let Some((_, letters)) = found else { return plain.push(' ') };
    if first == c {
        plain.push_str(letters);
    } else {
        let (head, rest) = letters.split_at(1);
        plain.push_str(&head.to_ascii_uppercase());
        plain.push_str(rest);
    }
}

/// What stands for a letter of the Latin alphabet, or a mark, that is not ASCII.
fn latin(c: char) -> Option<&'static str> {
    Some(match c {
        'À'..='Å' => "A",
        'à'..='å' | 'ª' => "a",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' => "C",
        'ç' => "c",
        'È'..='Ë' | '€' => "E",
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
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»' => ".",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        c => return pair(c),
    })
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
    use super::{LETTERS, carried, cut, is_all_carried};

    #[test]
    fn names_of_europe() {
        for (given, expected) in [
            ("José Núñez", "Jose Nunez"),
            ("Jose\u{301}", "Jose"),
            ("Łukasz Żółć", "Lukasz Zolc"),
            ("Jürgen Groß", "Jurgen Gross"),
            ("Ægir Þór", "AEgir THor"),
            ("Søren Ångström", "Soren Angstrom"),
            ("Ștefan Țepeș", "Stefan Tepes"),
            ("Ľubomír Ďurčanský", "Lubomir Durcansky"),
            ("Γιώργος Παπαδόπουλος", "Giorgos Papadopoylos"),
            ("Щерю Цветков", "Shteryu Tsvetkov"),
            ("Љиљана Ђорђевић", "Ljiljana Djordjevic"),
            ("O\u{2019}Brien & Sons [UK] Ltd_1; \"x\"", "O'Brien + Sons (UK) Ltd-1, .x."),
            ("100 € * 2", "100 E . 2"),
            ("  A \t B\u{a0}C\n", "A B C"),
            ("//a//b/", "a/b"),
            ("株式会社", ""),
            ("", ""),
        ] {
            assert_eq!(carried(given), expected, "{given}");
            assert_eq!(carried(expected), expected);
        }
    }

    #[test]
    fn no_other_character_gets_in() {
        for c in ('\0'..='\u{ffff}').chain(['😀', '\u{10ffff}']) {
            let text = carried(&format!("a{c}b"));
            assert!(is_all_carried(&text) && !text.contains("//"), "{c:?}");
            assert!(text.starts_with('a') && text.ends_with('b'), "{c:?}");
        }
    }

    #[test]
    fn letters_are_small_and_stand_once() {
        for (index, (letter, latin)) in LETTERS.iter().enumerate() {
            assert!(letter.is_lowercase() && latin.is_ascii(), "{letter}");
            assert!(LETTERS[index + 1..].iter().all(|(other, _)| other != letter), "{letter}");
        }
    }

    #[test]
    fn what_is_cut_ends_with_a_word() {
        assert_eq!(cut("Jane Smith", 5), "Jane");
        assert_eq!(cut("Jane/Smith", 5), "Jane");
        assert_eq!(cut("Jane", 70), "Jane");
    }
}
