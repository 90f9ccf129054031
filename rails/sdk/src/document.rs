//! What networks write that are not strict: JSON in which a value is a text in one place, or on one
//! day, and a number in another. Where a member stands twice nobody knows which counts: there is
//! none then.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A document, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// A text, or a number in its shortest form.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object, with every member that stands in it.
    Object(Vec<(String, Self)>),
    /// Anything else, or nothing.
    Nothing,
}

const NOTHING: &Document = &Document::Nothing;

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// It is no JSON, or has too many levels.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|_| "the message is not JSON".to_owned())
    }

    /// The member of this name, if it stands there once.
    #[must_use]
    pub fn get(&self, name: &str) -> &Self {
        let mut found = self.named(name);
        found.next().filter(|_| found.next().is_none()).unwrap_or(NOTHING)
    }

    /// Whether there is a member of this name, or several.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.named(name).next().is_some()
    }

    /// Whether there are two members of this name, or more.
    #[must_use]
    pub fn has_twice(&self, name: &str) -> bool {
        self.named(name).nth(1).is_some()
    }

    /// The text of the member of this name; an empty one without it.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Self::Text(text) => text,
            _ => "",
        }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Self> {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().filter(move |(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Document;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Document, E> {
        Ok(Document::Nothing)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Document, E> {
        Ok(Document::Nothing)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Document, E> {
        Ok(Document::Text(number.to_string()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Document, E> {
        Ok(Document::Text(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Document, E> {
        let number = Number::from_f64(number).map(|number| number.to_string());
        Ok(number.map_or(Document::Nothing, Document::Text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Document, E> {
        Ok(Document::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = entries.next_entry()? {
            members.push(member);
        }
        Ok(Document::Object(members))
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::Document;

    #[test]
    fn texts_numbers_and_what_stands_twice() {
        let read = |text: &str| Document::read(text.as_bytes()).expect("JSON");
        let body =
            "{\"a\":\" 0\",\"b\":0,\"c\":-1.50,\"d\":null,\"e\":true,\"f\":[1],\"g\":{\"h\":1}}";
        let document = read(body);
        for (name, text) in
            [("a", " 0"), ("b", "0"), ("c", "-1.5"), ("d", ""), ("e", ""), ("f", ""), ("g", "")]
        {
            assert_eq!(document.text(name), text, "{name}");
        }
        assert_eq!((document.get("g").text("h"), document.get("i").text("h")), ("1", ""));
        let twice = read("{\"a\":1,\"\\u0061\":1,\"b\":2}");
        assert!(twice.has("a") && twice.has("b") && !twice.has("c"));
        assert!(twice.has_twice("a") && !twice.has_twice("b") && !twice.has_twice("c"));
        assert_eq!((twice.text("a"), twice.text("b")), ("", "2"));
        for text in ["", "{", "{} x", "1e400", &"[".repeat(9_999)] {
            assert!(Document::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
