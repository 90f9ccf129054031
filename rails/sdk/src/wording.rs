//! Texts that a network writes for people.

/// Parts of words of an earlier copy, wherever they stand, and whatever stands between their
/// letters: banks write in their own languages.
const COPY_PARTS: &[&str] = &[
    "duplica",
    "duplikat",
    "dublette",
    "doppel",
    "doublon",
    "dubbel",
    "mehrfach",
    "twice",
    "usedbefore",
    "notunique",
];
/// Words of an earlier copy that other words contain.
const COPY_WORDS: &[&str] = &["unique", "uniqueness"];
/// Words for "before", also as parts of words: what they stand beside was there, or was done.
const BEFORE_PARTS: &[&str] = &["already", "previous", "bereits"];
/// The same, which other words contain.
const BEFORE_WORDS: &[&str] = &["deja", "gia", "reeds"];
/// Parts of words for an account.
const ACCOUNTS: &[&str] =
    &["account", "acct", "konto", "compte", "conto", "rekening", "cuenta", "iban"];
/// How words begin that say of an account that it is over, or locked.
const ENDED: &[&str] = &[
    "clos",
    "block",
    "frozen",
    "dormant",
    "inactiv",
    "terminat",
    "aufgel",
    "geschlossen",
    "gesperrt",
    "gelosch",
    "geloesch",
    "erlosch",
    "gekund",
    "gekuend",
    "clotur",
    "ferme",
    "bloqu",
    "estint",
    "chius",
    "blocc",
    "opgeheven",
    "gesloten",
    "geblok",
];
/// Words before "exists" that say that nothing does.
const DENIALS: &[&str] =
    &["not", "no", "non", "n", "t", "cannot", "never", "kein", "keine", "nicht", "niet"];
/// The same behind it.
const DENIALS_BEHIND: &[&str] = &["nicht", "pas", "niet", "kein", "keine"];
/// The same in one word with it.
const DENIALS_WITHIN: &[&str] = &["inexist", "nonexist", "notexist"];
/// Words between a denial and what does not exist, beside those for an account.
const FILLERS: &[&str] =
    &["a", "an", "the", "this", "such", "yet", "valid", "with", "number", "mit", "dieser"];

/// A text as it may be kept and shown: printable, and not longer than this.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(most).collect::<String>().trim().to_owned()
}

/// Whether a text may speak of an earlier copy of what was sent. It refuses nothing then: the copy
/// may have been carried out. What it says of an account, that there is none or that it was closed
/// before, is something else.
#[must_use]
pub fn speaks_of_a_copy(text: &str) -> bool {
    let text: String = text.chars().flat_map(char::to_lowercase).filter_map(bare).collect();
    let letters: String = text.chars().filter(|c| c.is_alphabetic()).collect();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    has_any(&letters, COPY_PARTS) || (0..words.len()).any(|at| is_of_a_copy(&words, at))
}

fn is_of_a_copy(words: &[&str], at: usize) -> bool {
    let word = words[at];
    let is_before = has_any(word, BEFORE_PARTS) || BEFORE_WORDS.contains(&word);
    COPY_WORDS.contains(&word)
        || (is_before && !is_of_an_end(words, at))
        || (word.contains("exist") && !is_denied(words, at))
}

/// Whether a word for "before" stands beside the end of an account.
fn is_of_an_end(words: &[&str], at: usize) -> bool {
    let beside = &words[at.saturating_sub(1)..words.len().min(at + 3)];
    let is_ended = |word: &str| ENDED.iter().any(|beginning| word.starts_with(*beginning));
    words.iter().any(|word| has_any(word, ACCOUNTS)) && beside.iter().any(|word| is_ended(word))
}

/// Whether what may exist is said not to.
fn is_denied(words: &[&str], at: usize) -> bool {
    let is_filler = |word: &str| FILLERS.contains(&word) || has_any(word, ACCOUNTS);
    let before = words[..at].iter().rev().find(|word| !is_filler(word));
    has_any(words[at], DENIALS_WITHIN)
        || before.is_some_and(|word| DENIALS.contains(word))
        || words.get(at + 1).is_some_and(|word| DENIALS_BEHIND.contains(word))
}

fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(*part))
}

/// A small letter without its accent; nothing for an accent that stands by itself.
fn bare(letter: char) -> Option<char> {
    Some(match letter {
        '\u{300}'..='\u{36f}' => return None,
        '\u{e0}'..='\u{e5}' => 'a',
        '\u{e7}' => 'c',
        '\u{e8}'..='\u{eb}' => 'e',
        '\u{ec}'..='\u{ef}' => 'i',
        '\u{f1}' => 'n',
        '\u{f2}'..='\u{f6}' => 'o',
        '\u{f9}'..='\u{fc}' => 'u',
        other => other,
    })
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
            "wasalready received",
            "it was used\nbefore",
            "not unique",
            "The reference must be UNIQUE",
            "Auftrag wurde bereits verarbeitet",
            "Datei bereits vorhanden",
            "Auftrag bereits ausgef\u{fc}hrt",
            "bereits eingereicht",
            "fichier d\u{e9}j\u{e0} re\u{e7}u",
            "La r\u{e9}f\u{e9}rence existe d\u{e9}j\u{e0}",
            "fichero duplicado",
            "El fichero ya existe",
            "ordine gi\u{e0} eseguito",
            "A file with this name exists and is being processed",
            "File no. 42 exists",
            "Fichier dej\u{e0} re\u{e7}u",
            "Fichier de\u{301}ja\u{300} recu",
            "File sent twice",
            "reeds verwerkt",
            "The message was received previously",
            "Payment to a closed account already processed",
            "Payment already processed, account closed",
            "Already closed",
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

    #[test]
    fn words_of_an_account_that_is_not_there_or_is_over() {
        for text in [
            "Account does not exist",
            "The account doesn't exist",
            "ACCOUNT_DOES_NOT_EXIST",
            "No such account exists",
            "No account with this IBAN exists",
            "Not an existing account",
            "Non-existent account",
            "nonexistent account",
            "IBAN existiert nicht",
            "Es existiert kein solches Konto",
            "COMPTE INEXISTANT",
            "Le compte n'existe pas",
            "La cuenta ya no existe",
            "Conto inesistente",
            "Account already closed",
            "The account has already been closed",
            "Account was closed already",
            "Previously closed account",
            "Konto bereits aufgel\u{f6}st",
            "KONTO BEREITS GELOESCHT",
            "Konto wurde bereits 2019 geschlossen",
            "Compte d\u{e9}j\u{e0} cl\u{f4}tur\u{e9}",
            "CONTO GIA ESTINTO",
            "Conto gi\u{e0} estinto",
            "Rekening reeds opgeheven",
            "MOTIF NON COMMUNIQUE",
            "Motif non communiqu\u{e9}",
        ] {
            assert!(!speaks_of_a_copy(text), "{text}");
        }
    }
}
