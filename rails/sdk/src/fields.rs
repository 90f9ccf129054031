//! Reading and writing the named fields that a rail declares.

use crate::types::Field;

/// A field of this name and value.
#[must_use]
pub fn field(name: &str, value: impl Into<String>) -> Field {
    Field { name: name.to_owned(), value: value.into() }
}

/// The value under `name`; an empty string where it is missing.
#[must_use]
pub fn value<'a>(fields: &'a [Field], name: &str) -> &'a str {
    find(fields, name).unwrap_or("")
}

/// The value under `name`, if it is there and not empty.
#[must_use]
pub fn find<'a>(fields: &'a [Field], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|field| field.name == name)
        .map(|field| field.value.as_str())
        .filter(|value| !value.is_empty())
}

/// Replaces the value under `name`, or adds the field at the end.
pub fn set(fields: &mut Vec<Field>, name: &str, value: impl Into<String>) {
    match fields.iter_mut().find(|field| field.name == name) {
        Some(field) => field.value = value.into(),
        None => fields.push(field(name, value)),
    }
}
