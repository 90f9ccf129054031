//! How long a text may be, and of what form: one line for each kind that a merchant sends.
//!
//! Whatever is kept, shown in lists or sent on is checked against its kind where it is read.
//! What is only parsed or looked up (amounts, currencies, ids) refuses by itself what is too
//! long, and a recipient's fields have the lengths that their rail declares.

use crate::error::{ErrorCode, Problem};

/// A name of a person, a company or a saved recipient.
pub const NAME: Kind = Kind::of(140);
/// A line of an address: street, city or state.
pub const ADDRESS_LINE: Kind = Kind::of(120);
/// A postcode.
pub const POSTCODE: Kind = Kind::of(20);
/// A telephone number, as the merchant writes it.
pub const PHONE: Kind = Kind::of(40);
/// The kind or the number of an identity document.
pub const DOCUMENT: Kind = Kind::of(64);
/// A day, as the merchant writes it.
pub const DAY: Kind = Kind::of(10);
/// A merchant's reference for a payout or a saved recipient.
pub const REFERENCE: Kind = Kind::of(128);
/// A merchant's word for a customer; the contract says 64.
pub const CUSTOMER_REFERENCE: Kind = Kind::of(64);
/// The text on a recipient's statement: the longest that any network takes; a rail may take less.
pub const NARRATION: Kind = Kind::of(100);
/// Why something is done; the contract says 500.
pub const REASON: Kind = Kind::of(500);
/// An email address; the contract says 254.
pub const EMAIL: Kind = Kind {
    most: 254,
    is_formed: is_email,
    wanted: "must be a well-formed address of at most 254 characters",
};
/// A country.
pub const COUNTRY: Kind = Kind {
    most: 2,
    is_formed: |text| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
    wanted: "must be an ISO 3166 code of two capital letters",
};
/// The value of a filter: whatever is searched for is no longer.
pub const FILTER: Kind = Kind::of(254);

/// What a text has to be.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The most characters.
    pub most: usize,
    is_formed: fn(&str) -> bool,
    /// What is wanted where there is more to it than its length.
    wanted: &'static str,
}

impl Kind {
    const fn of(most: usize) -> Self {
        Self { most, is_formed: |_| true, wanted: "" }
    }

    /// Whether a text is of this kind.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        // Bytes first: of a megabyte nobody has to count the characters.
        text.len() <= 4 * self.most
            && text.chars().count() <= self.most
            && !text.chars().any(char::is_control)
            && (self.is_formed)(text)
    }

    /// Refuses a text that is not of this kind, if there is one.
    ///
    /// # Errors
    /// `invalid_field`, naming the field.
    pub fn check(&self, field: &str, text: Option<&str>) -> Result<(), Problem> {
        if text.is_none_or(|text| self.fits(text)) {
            return Ok(());
        }
        let message = match self.wanted {
            "" => format!(
                "{field} must have at most {} characters, and no control characters.",
                self.most
            ),
            wanted => format!("{field} {wanted}."),
        };
        Err(Problem::because(ErrorCode::InvalidField, message).field(field))
    }
}

/// Whether a text looks like an email address: something, an @, and a domain with a dot.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"()<>[]:;,@\\\"".contains(c);
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_plain))
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert!(NAME.fits("") && NAME.fits(&"\u{1f600}".repeat(140)));
        assert!(!NAME.fits(&"a".repeat(141)) && !NAME.fits(&"\u{1f600}".repeat(141)));
        assert!(!NAME.fits(&"a".repeat(1_000_000)));
    }

    #[test]
    fn a_refusal_names_field_and_limit() {
        let refusal = |kind: Kind, text: &str| {
            let problem = kind.check("sender.x", Some(text)).expect_err("a refusal");
            assert_eq!(problem.code(), ErrorCode::InvalidField);
            problem.message().to_owned()
        };
        let long = "1".repeat(41);
        assert_eq!(
            refusal(PHONE, &long),
            "sender.x must have at most 40 characters, and no control characters."
        );
        assert!(refusal(EMAIL, "x").contains("254"), "{}", refusal(EMAIL, "x"));
        assert!(PHONE.check("phone", None).is_ok());
    }

    #[test]
    fn countries_are_two_capitals() {
        assert!(COUNTRY.fits("NG"));
        for text in ["", "N", "ng", "NGA", "N1", "\u{c9}"] {
            assert!(!COUNTRY.fits(text), "{text}");
        }
    }

    #[test]
    fn emails_have_a_domain() {
        for good in ["a@b.co", "first.last+tag@sub.example.com", "\u{f6}@b\u{fc}cher.example"] {
            assert!(EMAIL.fits(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "a@b",
            "@b.co",
            "a@.co",
            "a@b..co",
            "a b@c.co",
            "a@@b.co",
            "a@b.co,c@d.co",
            "<a@b.co>",
            ".a@b.co",
            "a..b@c.co",
            "a@-b.co",
            "a@b_c.co",
            "a@b.co\n",
        ] {
            assert!(!EMAIL.fits(bad), "{bad}");
        }
        assert!(!EMAIL.fits(&format!("{}@b.co", "a".repeat(250))));
    }
}
