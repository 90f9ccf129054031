//! Recipients against the declaration: shape first, then the component's own checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex_lite::Regex;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::error::{ErrorCode, Problem};
use crate::wasm::rail::{Field, Violation};

use super::declaration::{FieldTerms, Recipient, RequiredWhen};
use super::methods::SelectTerms;

const LENGTH_DEFAULT: usize = 140;

/// What is said about fields begins with this; no field of a rail does.
const MARK: char = '@';
/// And what says where the body of a saved recipient has a field goes on with this.
const IN: &str = "in ";

/// A recipient's fields by name. In a request as they were sent; in a payout in canonical form.
///
/// Where its rail calls the account, the bank or the bank's name otherwise than the API does, the
/// canonical form says how, under names that begin with `@`: whoever shows a payout need not know
/// its rail, not even years later. They are written once, and shared by whoever keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, String>")]
pub struct RecipientFields(Arc<BTreeMap<String, String>>);

impl From<BTreeMap<String, String>> for RecipientFields {
    fn from(fields: BTreeMap<String, String>) -> Self {
        Self(Arc::new(fields))
    }
}

impl Serialize for RecipientFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl RecipientFields {
    /// The value of a field; empty if it is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The account, as the payout's `recipient_account` shows it.
    #[must_use]
    pub fn account(&self) -> &str {
        self.shown_as("account_number")
    }

    /// The bank or the operator, as the payout's `recipient_bank_code` shows it.
    #[must_use]
    pub fn bank(&self) -> &str {
        self.shown_as("bank_code")
    }

    /// The bank's name.
    #[must_use]
    pub fn bank_name(&self) -> &str {
        self.shown_as("bank_name")
    }

    fn shown_as(&self, name: &str) -> &str {
        let mut said =
            self.0.iter().filter_map(|(mark, own)| Some((mark.strip_prefix(MARK)?, own)));
        self.get(said.find(|(shown, _)| *shown == name).map_or(name, |(_, own)| own))
    }

    /// Puts another value in the place of one, if there is one.
    pub(super) fn change(&mut self, name: &str, with: impl FnOnce(&str) -> String) {
        if let Some(value) = self.0.get(name).map(|value| with(value)) {
            Arc::make_mut(&mut self.0).insert(name.to_owned(), value);
        }
    }

    /// The same, saying which of its fields are shown as what.
    #[must_use]
    pub(super) fn marked(mut self, recipient: &Recipient) -> Self {
        let fields = Arc::make_mut(&mut self.0);
        let shown = [
            ("account_number", Some(&recipient.account)),
            ("bank_code", recipient.bank.as_ref()),
            ("bank_name", recipient.bank_name.as_ref()),
        ];
        for (name, own) in shown {
            if let Some(own) = own.filter(|own| *own != name) {
                fields.insert(format!("{MARK}{name}"), own.clone());
            }
        }
        for (name, place) in
            recipient.fields.iter().filter_map(|it| Some((&it.name, it.from.as_ref()?)))
        {
            if fields.contains_key(name) {
                fields.insert(format!("{MARK}{IN}{name}"), place.clone());
            }
        }
        self
    }

    /// Its own fields, each with where the body of a saved recipient has it.
    pub fn placed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.own().map(|(name, value)| {
            let place = self.0.get(&format!("{MARK}{IN}{name}"));
            (place.unwrap_or(name).as_str(), value.as_str())
        })
    }

    /// Its own fields, without what is said about them.
    pub fn own(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter(|(name, _)| !name.starts_with(MARK))
    }

    /// As the component takes them.
    #[must_use]
    pub fn to_guest(&self) -> Vec<Field> {
        let fields = self.own();
        fields.map(|(name, value)| Field { name: name.clone(), value: value.clone() }).collect()
    }

    /// As the component returns them.
    #[must_use]
    pub fn from_guest(fields: Vec<Field>) -> Self {
        let own = fields.into_iter().filter(|field| !field.name.starts_with(MARK));
        Self(Arc::new(own.map(|field| (field.name, field.value)).collect()))
    }

    /// As the database keeps them.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As the database kept them.
    #[must_use]
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// In what a recipient is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// With a payment.
    Inline,
    /// To be saved.
    Saved,
    /// To be known again: only what it is identified by has to be there.
    Identity,
}

/// A value in the body of a request, by its name or, with points, by its place in blocks.
#[must_use]
pub fn placed<'a>(body: &'a BTreeMap<String, Value>, place: &str) -> Option<&'a Value> {
    let (first, rest) = place.split_once('.').map_or((place, None), |(a, b)| (a, Some(b)));
    let found = body.get(first)?;
    match rest {
        Some(rest) => rest.split('.').try_fold(found, |found, name| found.get(name)),
        None => Some(found),
    }
}

/// Puts a value at its name or, with a point, into a block, unless something else stands there.
pub fn put(body: &mut Map<String, Value>, place: &str, value: Value) {
    let (outer, inner) = place.split_once('.').unwrap_or((place, ""));
    if inner.is_empty() {
        body.entry(outer).or_insert(value);
    } else if let Value::Object(members) = body.entry(outer).or_insert_with(|| json!({})) {
        members.insert(inner.to_owned(), value);
    }
}

/// Refuses what stands where a block belongs and is none.
///
/// # Errors
/// `invalid_field`.
pub fn refuse_no_block(body: &BTreeMap<String, Value>, place: &str) -> Result<(), Problem> {
    let Some((block, _)) = place.split_once('.') else { return Ok(()) };
    match body.get(block) {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(_) => {
            let message = format!("{block} must be an object.");
            Err(Problem::because(ErrorCode::InvalidField, message).field(block))
        }
    }
}

impl Recipient {
    /// The recipient that it gives as an example, as a payment has it: every field that must be
    /// there, and the one that selects a method.
    #[must_use]
    pub fn example(&self, select: Option<&SelectTerms>) -> Map<String, Value> {
        let mut body = Map::new();
        let example = |name: &str| {
            let terms = self.fields.iter().find(|terms| terms.name == name)?;
            terms.example.as_deref()
        };
        let is_wanted = |terms: &&FieldTerms| {
            let when = terms.required_when.as_ref();
            terms.is_required(Block::Inline)
                || when.is_some_and(|when| {
                    example(&when.field)
                        .is_some_and(|given| when.values.iter().any(|it| it == given))
                })
        };
        for terms in self.fields.iter().filter(is_wanted) {
            if let Some(example) = &terms.example {
                put(&mut body, terms.place(Block::Inline), json!(example));
            }
        }
        if let Some((field, value)) = select.and_then(|it| it.field.as_ref().zip(it.values.first()))
        {
            put(&mut body, field, json!(value));
        }
        body
    }
}

impl FieldTerms {
    /// Whether it must be there, in a block of this kind.
    #[must_use]
    pub fn is_required(&self, block: Block) -> bool {
        self.required || (self.required_inline && block == Block::Inline)
    }

    /// Where it belongs in a block of this kind.
    #[must_use]
    pub fn place(&self, block: Block) -> &str {
        match (&self.from, block) {
            (Some(from), Block::Saved) => from,
            _ => &self.name,
        }
    }
}

/// A pattern as the whole value matches it.
///
/// # Errors
/// It is none.
pub(super) fn whole(pattern: &str) -> Result<Regex, regex_lite::Error> {
    Regex::new(&anchored(pattern))
}

/// A pattern that only the whole value matches, as text.
#[must_use]
pub fn anchored(pattern: &str) -> String {
    let is_anchored = pattern.starts_with('^') && pattern.ends_with('$');
    match is_anchored && !pattern.contains('|') && !pattern.ends_with("\\$") {
        true => pattern.to_owned(),
        false => format!("^(?:{pattern})$"),
    }
}

/// The compiled patterns of a recipient's declared fields.
pub(super) struct Shapes {
    fields: Vec<(FieldTerms, Option<Regex>)>,
    identity: Vec<String>,
}

impl Shapes {
    pub(super) fn new(recipient: &Recipient) -> Self {
        let compiled = recipient.fields.iter().map(|field| {
            let pattern = field.pattern.as_deref().and_then(|pattern| whole(pattern).ok());
            (field.clone(), pattern)
        });
        Self { fields: compiled.collect(), identity: recipient.identity.clone() }
    }

    /// Takes the declared fields out of a recipient block, trimmed, each of the declared shape.
    /// The first that is missing or malformed is refused, in the order of the declaration.
    pub(super) fn take(
        &self,
        block: Block,
        sent: impl Fn(&str) -> Option<String>,
    ) -> Result<RecipientFields, Problem> {
        let mut fields = BTreeMap::new();
        let given = |place: &str| {
            let value = sent(place).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        for (terms, pattern) in &self.fields {
            let place = terms.place(block);
            let (placed, plain) = (given(place), given(&terms.name));
            if placed.is_some() && plain.is_some() && placed != plain {
                let message = format!("{place} and {} say two things; send one.", terms.name);
                return Err(
                    Problem::because(ErrorCode::InvalidField, message).field(place.to_owned())
                );
            }
            let value = placed.or(plain);
            let is_wanted = block != Block::Identity || self.identity.contains(&terms.name);
            match value {
                Some(value) => {
                    check(terms, pattern.as_ref(), (place, &value))?;
                    fields.insert(terms.name.clone(), value);
                }
                None if is_wanted && (terms.is_required(block) || self.asks_for(terms, &given)) => {
                    let message = format!("{place} is required: {}.", terms.title);
                    return Err(
                        Problem::because(ErrorCode::MissingField, message).field(place.to_owned())
                    );
                }
                None => {}
            }
        }
        Ok(fields.into())
    }

    /// Whether what is given of the other fields makes this one required.
    fn asks_for(&self, terms: &FieldTerms, given: &dyn Fn(&str) -> Option<String>) -> bool {
        let Some(RequiredWhen { field, values }) = &terms.required_when else { return false };
        let other = self.fields.iter().find(|(terms, _)| terms.name == *field);
        let from = || given(other?.0.from.as_deref()?);
        given(field).or_else(from).is_some_and(|value| values.contains(&value))
    }

    /// Where a field belongs in a block of this kind.
    pub(super) fn place<'a>(&'a self, name: &'a str, block: Block) -> &'a str {
        let mut fields = self.fields.iter();
        fields.find(|(terms, _)| terms.name == name).map_or(name, |(terms, _)| terms.place(block))
    }
}

impl Shapes {
    /// Refuses what is longer than a declared field may be, whatever becomes of it.
    pub(super) fn refuse_long(&self, sent: impl Fn(&str) -> Option<String>) -> Result<(), Problem> {
        for (terms, _) in &self.fields {
            let most = terms.max_length.unwrap_or(LENGTH_DEFAULT);
            if sent(&terms.name).is_some_and(|value| value.trim().chars().count() > most) {
                let message = format!("{} must have at most {most} characters.", terms.name);
                return Err(
                    Problem::because(ErrorCode::InvalidField, message).field(terms.name.clone())
                );
            }
        }
        Ok(())
    }
}

fn check(
    terms: &FieldTerms,
    pattern: Option<&Regex>,
    (place, value): (&str, &str),
) -> Result<(), Problem> {
    let most = terms.max_length.unwrap_or(LENGTH_DEFAULT);
    let why = if value.chars().count() > most {
        format!("must have at most {most} characters")
    } else if value.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else if pattern.is_some_and(|pattern| !pattern.is_match(value)) {
        terms.hint.clone().unwrap_or_else(|| "does not have the right format".to_owned())
    } else {
        return Ok(());
    };
    let code = terms.code.as_deref().and_then(error_code).unwrap_or(ErrorCode::InvalidField);
    Err(Problem::because(code, format!("{place} {why}.")).field(place.to_owned()))
}

/// The refusal for the first violation that a component found.
pub(super) fn refusal<'a>(
    violations: &'a [Violation],
    place: impl Fn(&'a str) -> &'a str,
) -> Problem {
    let Some(violation) = violations.first() else {
        return Problem::new(ErrorCode::InvalidRecipient);
    };
    let code = error_code(&violation.code).unwrap_or(ErrorCode::InvalidRecipient);
    Problem::because(code, violation.message.clone()).field(place(&violation.field).to_owned())
}

/// The errors that a rail can find in a recipient.
pub(super) fn error_code(code: &str) -> Option<ErrorCode> {
    Some(match code {
        "missing_field" => ErrorCode::MissingField,
        "invalid_field" => ErrorCode::InvalidField,
        "unknown_bank_code" => ErrorCode::UnknownBankCode,
        "unknown_operator" => ErrorCode::UnknownOperator,
        "recipient_unresolvable" => ErrorCode::RecipientUnresolvable,
        "invalid_account" => ErrorCode::InvalidAccount,
        "invalid_recipient" => ErrorCode::InvalidRecipient,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::declaration::Declaration;
    use super::*;

    fn declared(before: &str, after: &str) -> Recipient {
        let nip = include_str!("../../../rails/nip/rail.toml");
        assert!(nip.contains(before));
        Declaration::read(&nip.replacen(before, after, 1)).expect("a declaration").recipient
    }

    #[test]
    fn what_is_wrong_is_said_as_the_field_declares() {
        let odd = "hint = \"is odd\"\ncode = \"invalid_account\"";
        let shapes = Shapes::new(&declared("hint = \"must be exactly 10 digits\"", odd));
        let sent = |place: &str| (place == "account_number").then(|| "12".to_owned());
        let problem = shapes.take(Block::Inline, sent).expect_err("refused");
        assert_eq!(problem.code(), ErrorCode::InvalidAccount);
        assert!(problem.to_string().contains("account_number is odd."), "{problem}");
    }

    #[test]
    fn the_name_of_a_bank_is_shown_whatever_its_field_is_called() {
        let recipient = declared("bank_name = \"bank_name\"", "bank_name = \"name\"");
        let fields =
            RecipientFields::from(BTreeMap::from([("name".to_owned(), "Guaranty".to_owned())]));
        assert_eq!(fields.bank_name(), "");
        assert_eq!(fields.marked(&recipient).bank_name(), "Guaranty");
    }
}
