//! Texts as MTN takes them. It turns a request away for a character that it does not like, and says
//! of one of them only which it is: the apostrophe. So what is not plain becomes a space.

/// MTN's documents say 160 characters in one place and 128 in another.
const CHARS_MAX: usize = 128;
/// What stands where nothing is left: a text must not be empty.
const DEFAULT: &str = "Payment";

/// A text for the statement of payer or payee.
#[must_use]
pub fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '-');
    let spaced: String = text.chars().map(|c| if is_plain(c) { c } else { ' ' }).collect();
    let words: Vec<&str> = spaced.split(' ').filter(|word| !word.is_empty()).collect();
    let plain: String = words.join(" ").chars().take(CHARS_MAX).collect();
    match plain.trim_end() {
        "" => DEFAULT.to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::plain;

    #[test]
    fn what_is_left_of_texts() {
        for (text, left) in [
            ("Invoice 17", "Invoice 17"),
            ("Ama's  salary,\nMay-2026.", "Ama s salary, May-2026."),
            ("po_4f2k", "po 4f2k"),
            ("Ɛdwuma", "dwuma"),
            ("", "Payment"),
            (" '\"\u{1f600}' ", "Payment"),
        ] {
            assert_eq!(plain(text), left, "{text:?}");
        }
        assert_eq!(plain(&"a".repeat(500)).len(), 128);
        // What is cut off does not end with a space.
        assert_eq!(plain(&"abc ".repeat(500)).len(), 127);
    }
}
