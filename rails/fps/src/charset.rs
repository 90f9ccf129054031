//! The characters that the scheme carries in names and references.

/// Most characters of a name that reach the other bank.
pub const NAME_MAX: usize = 35;
/// Most characters of a reference that reach the other bank.
pub const REFERENCE_MAX: usize = 18;

/// What stands as a reference where nothing else can.
const REFERENCE_DEFAULT: &str = "PAYMENT";

/// Whether the scheme carries this character.
#[must_use]
pub fn is_carried(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ' ' || "/-?:().,'+#=!\"%&*<>;{@".contains(c)
}

/// A name as it is kept: one space between words, and the straight apostrophe for the curved
/// ones that word processors make of it.
#[must_use]
pub fn tidy(name: &str) -> String {
    let straight = name.replace(['\u{2018}', '\u{2019}'], "'");
    straight.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first character of a name that the scheme does not carry.
#[must_use]
pub fn foreign(name: &str) -> Option<char> {
    name.chars().find(|c| !is_carried(*c))
}

/// As much of a name as the scheme carries.
#[must_use]
pub fn scheme_name(name: &str) -> String {
    cut(&tidy(name), NAME_MAX)
}

/// The reference for the payee's statement: the merchant's text, what the scheme does not carry
/// replaced by spaces; without one, the payout's own reference.
#[must_use]
pub fn scheme_reference(narration: &str, payout: &str) -> String {
    let readable = |text: &str| {
        let carried: String =
            tidy(text).chars().map(|c| if is_carried(c) { c } else { ' ' }).collect();
        let readable = cut(&tidy(&carried), REFERENCE_MAX);
        readable.contains(|c: char| c.is_ascii_alphanumeric()).then_some(readable)
    };
    readable(narration).or_else(|| readable(payout)).unwrap_or_else(|| REFERENCE_DEFAULT.into())
}

fn cut(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most).collect();
    start.trim_end().to_owned()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{foreign, scheme_name, scheme_reference, tidy};

    #[test]
    fn names() {
        assert_eq!(tidy("  Siobhán\tO\u{2019}Brien \r\n"), "Siobhán O'Brien");
        assert_eq!(foreign("Siobhán O'Brien"), Some('á'));
        assert_eq!(foreign("O'Brien & Sons (UK) Ltd."), None);
        for c in ['$', '£', '_', '[', '}', '|', '\\', '\u{0}', '^', '~', '`'] {
            assert_eq!(foreign(&format!("A{c}")), Some(c));
        }
        let long = "The Worshipful Company of Makers of Playing Cards";
        assert_eq!(scheme_name(long), "The Worshipful Company of Makers of");
        assert_eq!(scheme_name(long).len(), 35);
    }

    #[test]
    fn references_are_never_empty() {
        assert_eq!(scheme_reference("Invoice 17", "po_1"), "Invoice 17");
        assert_eq!(scheme_reference("Rent £500_May\n2027", "po_1"), "Rent 500 May 2027");
        assert_eq!(scheme_reference("Invoice number 20270001", "po_1"), "Invoice number 202");
        assert_eq!(scheme_reference("", "po_0001"), "po 0001");
        assert_eq!(scheme_reference("----", "po_0001"), "po 0001");
        assert_eq!(scheme_reference("é", "__"), "PAYMENT");
    }
}
