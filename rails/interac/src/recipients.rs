//! Canonical form of a recipient: one email address in lowercase, and a first and a last name.

use railhead_rail::fields::{field, find};
use railhead_rail::types::{Field, Violation};
use railhead_rail::violations::{missing, violation};

/// Most characters of an email address, of what stands before its `@`, and of one of its domain's
/// labels.
const EMAIL_MAX: usize = 254;
const LOCAL_MAX: usize = 64;
const LABEL_MAX: usize = 63;
/// Most characters of a first or a last name.
const NAME_MAX: usize = 60;

/// The recipient with its address in lowercase, its names with one space between words, and the
/// name that they make. What is named for Interac wins over what is not. An address alone is enough
/// to speak of a recipient, and too little to pay one.
///
/// # Errors
/// Every violation, not only the first.
pub fn check(fields: &[Field]) -> Result<Vec<Field>, Vec<Violation>> {
    let given: Vec<Field> = fields.iter().map(|it| field(&it.name, it.value.trim())).collect();
    let either = |name: &'static str, own: &'static str| {
        let named = find(&given, own).map(|value| (own, value));
        named.or_else(|| find(&given, name).map(|value| (name, value)))
    };
    let mut violations = Vec::new();
    let mut canonical = Vec::new();
    match either("email", "interac_email") {
        Some((place, text)) => match email(text) {
            Some(email) => {
                canonical.push(field("email", email.clone()));
                canonical.push(field("interac_email", email));
            }
            None => violations.push(no_email(place)),
        },
        None => violations.push(missing("interac_email", "the address that it is sent to")),
    }
    let names = [("first_name", "interac_first_name"), ("last_name", "interac_last_name")];
    let is_payee = names.iter().any(|(name, own)| either(name, own).is_some());
    if is_payee || find(&given, "name").is_some() {
        let mut whole = Vec::new();
        for (place, own) in names {
            match either(place, own).map(|(place, text)| name(place, text)) {
                Some(Ok(name)) => {
                    whole.push(name.clone());
                    canonical.push(field(own, name));
                }
                Some(Err(violation)) => violations.push(violation),
                None => violations.push(missing(place, "transfers name their recipient")),
            }
        }
        canonical.push(field("name", whole.join(" ")));
    }
    if violations.is_empty() { Ok(canonical) } else { Err(violations) }
}

fn no_email(place: &str) -> Violation {
    let message = format!("{place} must be an email address, such as jane@example.com.");
    violation(place, "invalid_field", message)
}

/// An email address in lowercase; nothing where it is none that the network would send to.
fn email(text: &str) -> Option<String> {
    let (local, domain) = text.split_once('@')?;
    let is_atom = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&c);
    let is_local = local.len() <= LOCAL_MAX
        && local.split('.').all(|atom| !atom.is_empty() && atom.bytes().all(is_atom));
    let is_label = |label: &str| {
        let is_inside = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        (1..=LABEL_MAX).contains(&label.len())
            && label.bytes().all(is_inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_domain = domain.contains('.') && domain.split('.').all(is_label);
    let top = domain.rsplit('.').next().unwrap_or_default();
    let is_named = top.len() >= 2 && top.bytes().any(|c| c.is_ascii_alphabetic());
    (text.len() <= EMAIL_MAX && is_local && is_domain && is_named)
        .then(|| text.to_ascii_lowercase())
}

/// A name in characters that names are made of, with one space between words.
fn name(place: &str, text: &str) -> Result<String, Violation> {
    let is_mark = |c: char| ('\u{300}'..='\u{36f}').contains(&c);
    let is_of_a_name =
        |c: char| c.is_alphanumeric() || is_mark(c) || c.is_whitespace() || ".,'’&()/-".contains(c);
    let wrong = |why: String| Err(violation(place, "invalid_field", format!("{place} {why}.")));
    if let Some(odd) = text.chars().find(|c| !is_of_a_name(*c)) {
        return wrong(format!("must not contain {odd:?}"));
    }
    if !text.chars().any(char::is_alphanumeric) {
        return wrong("must have a letter or a digit".to_owned());
    }
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() > NAME_MAX {
        return wrong(format!("must have at most {NAME_MAX} characters"));
    }
    Ok(name)
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use proptest::prelude::*;
    use railhead_rail::fields::{field, value};
    use railhead_rail::types::Field;

    use super::{check, email};

    fn found(given: &[(&str, &str)]) -> Result<Vec<Field>, Vec<(String, String)>> {
        let given: Vec<Field> = given.iter().map(|(name, value)| field(name, *value)).collect();
        let plain = |all: Vec<_>| {
            all.into_iter().map(|it: railhead_rail::types::Violation| (it.field, it.code)).collect()
        };
        check(&given).map_err(plain)
    }

    fn one(field: &str, code: &str) -> Result<Vec<Field>, Vec<(String, String)>> {
        Err(vec![(field.to_owned(), code.to_owned())])
    }

    #[test]
    fn the_prefixed_form_wins() {
        let canonical = found(&[
            ("email", "office@example.com"),
            ("interac_email", " Jane.Tremblay@Example.COM "),
            ("first_name", "J."),
            ("interac_first_name", "  Jane  Anne "),
            ("last_name", "Tremblay-Côté"),
            ("name", "My best customer"),
            ("method", "interac"),
        ])
        .expect("a recipient");
        for (name, expected) in [
            ("email", "jane.tremblay@example.com"),
            ("interac_email", "jane.tremblay@example.com"),
            ("interac_first_name", "Jane Anne"),
            ("interac_last_name", "Tremblay-Côté"),
            ("name", "Jane Anne Tremblay-Côté"),
            ("first_name", ""),
            ("method", ""),
        ] {
            assert_eq!(value(&canonical, name), expected, "{name}");
        }
        assert_eq!(check(&canonical), Ok(canonical));
    }

    #[test]
    fn an_address_alone_is_enough_to_speak_of_one() {
        let canonical = vec![field("email", "a@b.ca"), field("interac_email", "a@b.ca")];
        assert_eq!(found(&[("interac_email", "A@b.ca")]), Ok(canonical.clone()));
        assert_eq!(found(&[("email", "a@B.ca")]), Ok(canonical));
        assert_eq!(found(&[]), one("interac_email", "missing_field"));
        let two = vec![
            ("first_name".to_owned(), "missing_field".to_owned()),
            ("last_name".to_owned(), "missing_field".to_owned()),
        ];
        assert_eq!(found(&[("email", "a@b.ca"), ("name", "Jane")]), Err(two));
        let last = one("last_name", "missing_field");
        assert_eq!(found(&[("email", "a@b.ca"), ("interac_first_name", "Jane")]), last);
    }

    #[test]
    fn what_is_wrong_is_named_as_it_was_given() {
        let names = [("first_name", "Jane"), ("last_name", "Tremblay")];
        let with = |more: &[(&str, &str)]| found(&[&names[..], more].concat());
        assert_eq!(with(&[("email", "jane")]), one("email", "invalid_field"));
        assert_eq!(with(&[("interac_email", "jane")]), one("interac_email", "invalid_field"));
        let right = ("email", "jane@example.com");
        for text in ["<b>", "a\u{0}", "a\u{202e}b", "=1", ".", "-", &"x".repeat(61)] {
            let own = with(&[right, ("interac_first_name", text)]);
            assert_eq!(own, one("interac_first_name", "invalid_field"), "{text:?}");
        }
        for text in ["O'Brien", "José", "Jose\u{301}", "Ng", "3M (Canada) Ltd.", "李", "Smith & Co"]
        {
            assert!(with(&[right, ("interac_last_name", text)]).is_ok(), "{text}");
        }
    }

    #[test]
    fn email_addresses() {
        let longest = format!("{}@{}.ca", "a".repeat(64), "b".repeat(63));
        for text in ["a@b.ca", "Jane.O'Neil+pay@mail.example.co", longest.as_str()] {
            assert_eq!(email(text), Some(text.to_ascii_lowercase()), "{text}");
        }
        let long_local = format!("{}@b.ca", "a".repeat(65));
        let long = format!("a@{}.ca", vec!["b".repeat(60); 5].join("."));
        for text in [
            "",
            "@",
            "a",
            "a@",
            "@b.ca",
            "a@b",
            "a@b.c",
            "a@b.12",
            "a@.ca",
            "a@b..ca",
            "a@-b.ca",
            "a@b-.ca",
            ".a@b.ca",
            "a.@b.ca",
            "a..b@c.ca",
            "a b@c.ca",
            "a@b@c.ca",
            "\"a\"@b.ca",
            "é@b.ca",
            "a@bé.ca",
            "a@b.ca\n",
            "+14165550123",
            long_local.as_str(),
            long.as_str(),
        ] {
            assert_eq!(email(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_addresses_that_choose_a_scenario_are_canonical() {
        let declaration = include_str!("../rail.toml");
        let addresses: Vec<&str> = declaration
            .lines()
            .filter_map(|line| line.strip_prefix('"')?.split_once("\" = ").map(|(key, _)| key))
            .collect();
        assert_eq!(addresses.len(), 18);
        for address in addresses {
            assert_eq!(email(address).as_deref(), Some(address));
        }
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_is_answered_and_what_passes_passes_again(
            given in prop::collection::vec(
                (
                    prop::sample::select(&[
                        "email", "interac_email", "first_name", "last_name",
                        "interac_first_name", "interac_last_name", "name", "method", "x",
                    ][..]),
                    prop_oneof![
                        any::<String>(),
                        "[a-zA-Z0-9.@+ -]{0,40}".boxed(),
                        "[a-zA-Z]{1,8}@[a-z]{1,8}[.]ca".boxed(),
                    ],
                ),
                0..12,
            ),
        ) {
            let given: Vec<Field> = given.iter().map(|(name, text)| field(name, text.as_str())).collect();
            match check(&given) {
                Ok(canonical) => prop_assert_eq!(check(&canonical), Ok(canonical)),
                Err(violations) => prop_assert!(!violations.is_empty()),
            }
        }
    }
}
