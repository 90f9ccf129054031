//! Masking what must not be read in records and logs.

use regex_lite::Regex;

use super::declaration::Declaration;
use super::fields::RecipientFields;

/// Masks declared elements and the values of declared fields in any text.
pub struct Redactor {
    elements: Vec<Regex>,
    sensitive: Vec<String>,
}

impl Redactor {
    /// For the messages of this rail.
    #[must_use]
    pub fn new(declaration: &Declaration) -> Self {
        let element = |name: &String| {
            // The element with or without a namespace's prefix; names are declared as words.
            let name: String = name.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect();
            Regex::new(&format!(r"(<(?:[A-Za-z0-9_]+:)?{name}(?:\s[^>]*)?>)([^<]*)(</)")).ok()
        };
        let fields = declaration.recipient.fields.iter().filter(|field| field.sensitive);
        Self {
            elements: declaration.redact.elements.iter().filter_map(element).collect(),
            sensitive: fields.map(|field| field.name.clone()).collect(),
        }
    }

    /// The text with every secret part masked. `recipient` tells which values are secret
    /// wherever they stand.
    #[must_use]
    pub fn text(&self, text: &str, recipient: &RecipientFields) -> String {
        let mut masked = text.to_owned();
        for element in &self.elements {
            let replace = |found: &regex_lite::Captures<'_>| {
                format!("{}{}{}", &found[1], mask(&found[2]), &found[3])
            };
            masked = element.replace_all(&masked, replace).into_owned();
        }
        for name in &self.sensitive {
            let value = recipient.get(name);
            if value.len() >= 4 {
                masked = masked.replace(value, &mask(value));
            }
        }
        masked
    }

    /// The recipient with its sensitive fields masked.
    #[must_use]
    pub fn fields(&self, recipient: &RecipientFields) -> RecipientFields {
        let mut masked = recipient.clone();
        for name in &self.sensitive {
            if let Some(value) = masked.0.get_mut(name) {
                *value = mask(value);
            }
        }
        masked
    }
}

/// Stars for all but the last four characters; for all of a short value.
#[must_use]
pub fn mask(value: &str) -> String {
    let length = value.chars().count();
    let shown = if length > 6 { 4 } else { 0 };
    let tail: String = value.chars().skip(length - shown).collect();
    format!("{}{tail}", "*".repeat(length - shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_values_are_masked() {
        let nip = Declaration::read(include_str!("../../../rails/nip/rail.toml")).expect("valid");
        let redactor = Redactor::new(&nip);
        let recipient = RecipientFields([("account_number".into(), "0123456785".into())].into());
        let text = "<a:BankVerificationNumber x='1'>22212345678</a:BankVerificationNumber>\
                    <Narration>to 0123456785</Narration><Amount>10.00</Amount>";
        let masked = redactor.text(text, &recipient);
        assert_eq!(
            masked,
            "<a:BankVerificationNumber x='1'>*******5678</a:BankVerificationNumber>\
             <Narration>to ******6785</Narration><Amount>10.00</Amount>"
        );
        assert_eq!(redactor.fields(&recipient).get("account_number"), "******6785");
        assert_eq!((mask("123456"), mask("é")), ("******".into(), "*".into()));
    }
}
