//! How alike two names are.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most that a single word can score against several: `Ada` is not yet Ada Obi.
const SINGLE_WORD_MAX: i64 = 70;

/// How well one name matches another, from 0 to 100: order, case, accents, punctuation and
/// further words do not matter, misspelt letters cost their share. Nothing where a name has no
/// letters.
#[must_use]
pub fn score(one: &str, other: &str) -> Option<i64> {
    let (one, other) = (words(one), words(other));
    // Of equally long names, always the same one is looked for in the other.
    let is_first = (one.len(), &one) <= (other.len(), &other);
    let (few, many) = if is_first { (one, other) } else { (other, one) };
    if few.is_empty() {
        return None;
    }
    let is_single = few.len() == 1 && many.len() > 1;
    let mut left = many;
    let (mut matched, mut letters) = (0, 0);
    for word in few {
        let length = i64::try_from(word.chars().count()).unwrap_or(i64::MAX);
        let best = left.iter().map(|other| (likeness(&word, other), other.clone())).max();
        if let Some((likeness, other)) = best {
            matched += likeness * length;
            left.remove(&other);
        }
        letters += length;
    }
    let score = matched / letters.max(1);
    Some(if is_single { score.min(SINGLE_WORD_MAX) } else { score })
}

/// The share of letters that two words have in common, in hundredths.
fn likeness(one: &str, other: &str) -> i64 {
    let length = one.chars().count().max(other.chars().count()).max(1);
    let apart = strsim::levenshtein(one, other).min(length);
    i64::try_from(100 * (length - apart) / length).unwrap_or(0)
}

fn words(name: &str) -> BTreeSet<String> {
    let plain: String = name.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_by_their_words() {
        for (one, other, expected) in [
            ("Ada Obi", "OBI, ADA", Some(100)),
            ("Ad\u{e1} Ob\u{ed}", "ada obi", Some(100)),
            ("Ada Obi", "Ada Ngozi Obi", Some(100)),
            ("Ada Obi", "Ada Oba", Some(83)),
            ("Ada", "Ada Obi", Some(70)),
            ("Ada", "ada", Some(100)),
            ("Ada Obi", "Kwame Mensah", Some(10)),
            ("", "Ada Obi", None),
            ("...", "Ada Obi", None),
        ] {
            assert_eq!(score(one, other), expected, "{one} and {other}");
            assert_eq!(score(other, one), expected, "{other} and {one}");
        }
    }
}
