//! Texts that a network writes for people.

/// Parts of words of an earlier copy, wherever they stand, and whatever stands between their
/// letters: banks write in their own languages.
const COPY_PARTS: &[&str] = &[
    "duplica",
    "duplikat",
    "dublette",
    "doppel",
    "doublon",
    "endouble",
    "doublepayment",
    "doppio",
    "dubbel",
    "mehrfach",
    "zweimal",
    "deuxfois",
    "twice",
    "repet",
    "repeated",
    "ripetut",
    "wiederhol",
    "reused",
    "usedbefore",
    "hasbeenused",
    "isinuse",
    "unique",
    "uniek",
    "nichteindeutig",
    "univoc",
];
/// What those are not, though they hold one: a reason that is not told, in French.
const NO_COPY_PARTS: &[&str] = &["communique"];
/// Words for "before", also as parts of words: what they stand beside was there, or was done.
const BEFORE_PARTS: &[&str] =
    &["already", "previous", "bereits", "zuvor", "precedent", "precedem", "previament"];
/// The same, which other words contain.
const BEFORE_WORDS: &[&str] =
    &["deja", "gia", "reeds", "schon", "ya", "eerder", "earlier", "vorher"];
/// Parts of words for what is there, or is not.
const THERE: &[&str] = &["exist", "esiste", "bestaat"];
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
    "cerrad",
    "cancelad",
];
/// Words that say that something is not so.
const DENIALS: &[&str] = &[
    "not", "no", "non", "n", "t", "cannot", "never", "kein", "keine", "kennt", "nicht", "niet",
    "pas", "doesn", "geen",
];
/// The same in one word with what is there.
const DENIALS_WITHIN: &[&str] = &["inexist", "inesist", "nonexist", "notexist"];
/// Words behind a denial that take it back: "not only".
const ONLY: &[&str] = &["nur", "only", "seulement", "solo", "alleen", "just"];
/// Words that say nothing beside those for an account and its end.
const FILLERS: &[&str] = &[
    "a", "an", "the", "this", "that", "such", "with", "number", "of", "is", "was", "has", "have",
    "been", "does", "do", "did", "mit", "dieser", "dieses", "diese", "das", "der", "die", "ist",
    "wurde", "worden", "war", "es", "solches", "le", "la", "les", "il", "ce", "cette", "est",
    "ete", "un", "une", "el", "esta", "ha", "sido", "fue", "lo", "e", "stato", "stata", "de",
    "het", "deze", "werd", "valid", "existing", "yet", "any", "s",
];
/// What parts of a text are kept apart by.
const BETWEEN_CLAUSES: &[char] = &[',', ';', ':', '.', '!', '?', '(', ')', '/', '\n', '\u{2013}'];

/// A text as it may be kept and shown: printable, and not longer than this.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(most).collect::<String>().trim().to_owned()
}

/// Whether a text may speak of an earlier copy of what was sent. It refuses nothing then: the copy
/// may have been carried out. What it says of an account and of nothing else, that there is none or
/// that it was closed before, is something else.
#[must_use]
pub fn speaks_of_a_copy(text: &str) -> bool {
    let text: String = text.chars().flat_map(char::to_lowercase).filter_map(bare).collect();
    let mut letters: String = text.chars().filter(|c| c.is_alphabetic()).collect();
    for part in NO_COPY_PARTS {
        letters = letters.replace(part, "");
    }
    let text = text.replace(" - ", ",");
    has_any(&letters, COPY_PARTS) || text.split(BETWEEN_CLAUSES).any(is_of_a_copy)
}

/// Whether a clause says that something was there or was done, which is no account's end.
fn is_of_a_copy(clause: &str) -> bool {
    let words = clause.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_there = (0..words.len()).any(|at| has_any(words[at], THERE) && !is_denied(&words, at));
    let is_before = words.iter().any(|word| is_before(word));
    is_there || (is_before && !is_of_an_account(&words))
}

fn is_before(word: &str) -> bool {
    has_any(word, BEFORE_PARTS) || BEFORE_WORDS.contains(&word)
}

/// Whether a clause is about an account that is over or not there, and says nothing else.
fn is_of_an_account(words: &[&str]) -> bool {
    let is_ended = |word: &str| ENDED.iter().any(|beginning| word.starts_with(*beginning));
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_of_it = |word: &&str| {
        has_any(word, ACCOUNTS)
            || has_any(word, THERE)
            || is_ended(word)
            || is_before(word)
            || is_number(word)
            || DENIALS.contains(word)
            || FILLERS.contains(word)
    };
    words.iter().any(|word| has_any(word, ACCOUNTS)) && words.iter().all(is_of_it)
}

/// Whether what may be there is said not to be.
fn is_denied(words: &[&str], at: usize) -> bool {
    let is_filler = |word: &str| FILLERS.contains(&word) || has_any(word, ACCOUNTS);
    let before = words[..at].iter().rev().find(|word| !is_filler(word));
    let is_denied_behind = || match words.get(at + 1..) {
        Some([denial, rest @ ..]) if DENIALS.contains(denial) => {
            rest.first().is_none_or(|word| !ONLY.contains(word))
        }
        // "There exists no such account", in German.
        Some(rest) => rest.first().is_some_and(|word| word.starts_with("kein")),
        None => false,
    };
    has_any(words[at], DENIALS_WITHIN)
        || before.is_some_and(|word| DENIALS.contains(word))
        || is_denied_behind()
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
            "Account closed, already paid",
            "Account blocked; already paid",
            "Payment already executed, closed account",
            "Konto gesperrt - bereits ausgef\u{fc}hrt",
            "Konto geschlossen, bereits verarbeitet",
            "Compte cl\u{f4}tur\u{e9}, d\u{e9}j\u{e0} pay\u{e9}",
            "Conto chiuso, gi\u{e0} pagato",
            "Rekening geblokkeerd, reeds betaald",
            "Batch for this account already closed",
            "Sammler bereits geschlossen, Konto belastet",
            "Payment from this account already terminated successfully",
            "Datei mit dieser MsgId existiert, nicht verarbeitet",
            "Le fichier existe, pas trait\u{e9}",
            "Reference is not valid: exists",
            "Cannot: account exists",
            "Datei existiert nicht nur einmal",
            "UniqueConstraintViolation",
            "MessageIdMustBeUnique",
            "Auftrag schon verarbeitet",
            "Referenz nicht eindeutig",
            "Paiement en double",
            "Pagamento doppio",
            "Pago ya procesado",
            "Operaci\u{f3}n repetida",
            "Double payment",
            "The reference is in use",
            "The id has been used",
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
