//! Texts that a network writes for people.

/// Parts of words of an earlier copy, wherever they stand, and whatever stands between their
/// letters: banks write in their own languages.
const COPY_PARTS: &[&str] = &[
    "duplica",
    "already",
    "previous",
    "unique",
    "usedbefore",
    "twice",
    "exist",
    "doppel",
    "dublette",
    "duplikat",
    "mehrfach",
    "bereits",
    "doublon",
    "dubbel",
    "yaexist",
];
/// Words of an earlier copy that other words contain.
const COPY_WORDS: &[&str] =
    &["reeds", "deja", "d\u{e9}j\u{e0}", "dej\u{e0}", "d\u{e9}ja", "gi\u{e0}", "gia"];

/// A text as it may be kept and shown: printable, and not longer than this.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(most).collect::<String>().trim().to_owned()
}

/// Whether a text may speak of an earlier copy of what was sent. It refuses nothing then: the copy
/// may have been carried out.
#[must_use]
pub fn speaks_of_a_copy(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let joined: String = letters.flat_map(char::to_lowercase).collect();
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphabetic());
    COPY_PARTS.iter().any(|part| joined.contains(part))
        || words.any(|word| COPY_WORDS.contains(&word))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{plain, speaks_of_a_copy};

    #[test]
    fn texts_are_printable_and_short() {
        assert_eq!(plain(" a\nb\u{7}c ", 4), "a b");
    }

    #[test]
    fn words_of_an_earlier_copy() {
        for text in [
            "A DUPLICATE",
            "FILE_DUPLICATE",
            "already_received",
            "it was used\nbefore",
            "not unique",
            "Auftrag wurde bereits verarbeitet",
            "fichier d\u{e9}j\u{e0} re\u{e7}u",
            "fichero duplicado",
            "A file with this name exists and is being processed",
            "Fichier dej\u{e0} re\u{e7}u",
            "File sent twice",
            "reeds verwerkt",
        ] {
            assert!(speaks_of_a_copy(text), "{text}");
        }
        for text in [
            "",
            "The file is not well made",
            "More than the agreed size",
            "exceeds the agreed settlement limit",
            "made January 32",
        ] {
            assert!(!speaks_of_a_copy(text), "{text}");
        }
    }
}
