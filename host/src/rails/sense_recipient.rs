//! Whether what a declaration says of recipients and senders makes sense.

use std::collections::BTreeSet;

use super::declaration::{Declaration, FieldTerms};
use super::fields::{error_code, whole};

/// What a sender can be asked for.
pub const SENDER_FIELDS: [&str; 14] = [
    "first_name",
    "last_name",
    "business_name",
    "date_of_birth",
    "country",
    "street",
    "city",
    "state",
    "zip_code",
    "id_type",
    "id_number",
    "id_expiry",
    "phone",
    "email",
];

impl Declaration {
    /// What methods, fields and the sandbox say of fields has to be said of some that there are.
    pub(super) fn fields_nonsense(&self) -> Option<String> {
        self.selects_nonsense()
            .or_else(|| self.names_of_fields_nonsense())
            .or_else(|| self.recipient.fields.iter().find_map(|terms| self.field_nonsense(terms)))
            .or_else(|| self.sender_nonsense())
    }

    fn field(&self, name: &str) -> Option<&FieldTerms> {
        self.recipient.fields.iter().find(|terms| terms.name == name)
    }

    fn selects_nonsense(&self) -> Option<String> {
        for terms in &self.methods {
            let Some(select) = &terms.select else { continue };
            let mut named = select.field.iter().chain(&select.present);
            let (method, is_half) =
                (&terms.name, select.field.is_none() != select.values.is_empty());
            if let Some(odd) = named.find(|name| self.field(name).is_none()) {
                return Some(format!("method {method} is selected by {odd}, which is no field"));
            }
            if is_half || (select.field.is_none() && select.present.is_empty()) {
                return Some(format!("method {method}: select by field and values, or present"));
            }
        }
        None
    }

    /// Who is known by a field that there is not is everybody.
    fn names_of_fields_nonsense(&self) -> Option<String> {
        let recipient = &self.recipient;
        if recipient.identity.is_empty() {
            return Some("recipient.identity names no field: all recipients would be one".into());
        }
        if recipient.shape.as_deref() == Some("") {
            return Some("recipient.shape is empty".to_owned());
        }
        let shown = [Some(&recipient.account), recipient.bank.as_ref()];
        let names = [recipient.bank_name.as_ref(), Some(&recipient.name)];
        let chosen = self.scenarios.as_ref().map(|scenarios| &scenarios.field);
        let named = recipient.identity.iter().chain(shown.into_iter().flatten());
        let mut named = named.chain(names.into_iter().flatten()).chain(chosen);
        if let Some(odd) = named.find(|name| self.field(name).is_none()) {
            return Some(format!("{odd} is no field of the recipient"));
        }
        let is_place = |text: &str| {
            let is_word = |word: &str| {
                let mut bytes = word.bytes();
                !word.is_empty()
                    && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            };
            text.split('.').count() <= 2 && text.split('.').all(is_word)
        };
        let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
        for terms in &recipient.fields {
            let place = terms.from.as_ref().unwrap_or(&terms.name);
            if let Some(odd) = [&terms.name, place].into_iter().find(|text| !is_place(text)) {
                return Some(format!("{odd:?} is no place of a field, as iban or bank.iban are"));
            }
            if !names.insert(terms.name.as_str()) || !places.insert(place.as_str()) {
                return Some(format!(
                    "{} is declared twice, or stands where another does",
                    terms.name
                ));
            }
        }
        let is_block = |all: &BTreeSet<&str>, name: &str| {
            all.iter().any(|other| other.split_once('.').is_some_and(|(outer, _)| outer == name))
        };
        let both = |all: &BTreeSet<&str>| {
            all.iter().find(|name| is_block(all, name)).map(|name| (*name).to_owned())
        };
        let odd = both(&names).or_else(|| both(&places))?;
        Some(format!("{odd} is a field, and a block of others"))
    }

    fn field_nonsense(&self, terms: &FieldTerms) -> Option<String> {
        let name = &terms.name;
        if let Some(when) = &terms.required_when {
            let Some(other) = self.field(&when.field) else {
                return Some(format!("{name} is required by {}, which is no field", when.field));
            };
            let pattern = other.pattern.as_deref().and_then(|pattern| whole(pattern).ok());
            let is_never =
                |value: &&String| pattern.as_ref().is_some_and(|pattern| !pattern.is_match(value));
            if when.values.is_empty() || when.values.iter().any(|value| is_never(&value)) {
                return Some(format!("{name}.required_when: {} is never that", when.field));
            }
        }
        if let Some(code) = terms.code.as_ref().filter(|code| error_code(code).is_none()) {
            return Some(format!("{name}: {code} is no error of a recipient"));
        }
        if terms.max_length == Some(0) {
            return Some(format!("{name}.max_length is 0"));
        }
        let pattern = whole(terms.pattern.as_deref()?).ok()?;
        let example = terms.example.as_ref().filter(|example| !pattern.is_match(example))?;
        Some(format!("{name}: the example {example} is not what the pattern wants"))
    }

    fn sender_nonsense(&self) -> Option<String> {
        let mut wanted = self.sender.required.iter().chain(&self.sender.required_business);
        let odd = wanted.find(|name| !SENDER_FIELDS.contains(&name.as_str()))?;
        Some(format!("sender: {odd} is nothing that a sender is asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIP: &str = include_str!("../../../rails/nip/rail.toml");

    #[test]
    fn fields_that_there_are_not_and_places_twice_are_named() {
        for (what, instead) in [
            ("identity = [", "identity = [\"acount\", "),
            ("account = \"account_number\"", "account = \"acount_number\""),
            ("name = \"account_number\"", "name = \"account.number.all\""),
            ("name = \"account_number\"", "name = \"account_number\"\nfrom = \"bank_code\""),
            ("name = \"account_number\"", "name = \"account_number\"\nmax_length = 0"),
            ("[query]", "[sender]\nrequired = [\"frist_name\"]\n[query]"),
        ] {
            let changed = NIP.replacen(what, instead, 1);
            assert_ne!(changed, NIP, "{what}");
            assert!(Declaration::read(&changed).is_err(), "{instead}");
        }
    }
}
