//! A JSON text with everything where it stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON text: members in their order, and twice where they stand twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// A text, a number, `true`, `false` or `null`, as it is written. One that was put in may be
    /// any JSON, and is not looked into.
    Leaf(String),
    /// A list. Its members have no names.
    List(Vec<Member>),
    /// An object.
    Object(Vec<Member>),
}

/// A member of an object or of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name as it is written, with quotes; empty in a list.
    pub name: String,
    /// Its value.
    pub value: Json,
}

impl Json {
    /// Reads a text; nothing where it is no JSON, or one of too many levels. What is no UTF-8 is
    /// read as characters that stand for nothing: readers pass over it where they pass over texts.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_str(&String::from_utf8_lossy(text)).ok()
    }

    /// The text.
    #[must_use]
    pub fn write(&self) -> String {
        let joined = |members: &[Member]| {
            let texts: Vec<String> = members.iter().map(Member::write).collect();
            texts.join(",")
        };
        match self {
            Self::Leaf(text) => text.clone(),
            Self::List(members) => format!("[{}]", joined(members)),
            Self::Object(members) => format!("{{{}}}", joined(members)),
        }
    }

    /// What stands at the end of these names, if each of them stands there once.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = names.split_first() else { return Some(self) };
        let Self::Object(members) = self else { return None };
        let mut found = members.iter().filter(|member| member.is(first));
        let only = found.next().filter(|_| found.next().is_none())?;
        only.value.only(rest)
    }

    /// The same as text: a text without its quotes, a number in its shortest form.
    #[must_use]
    pub fn only_text(&self, names: &[&str]) -> Option<String> {
        let Self::Leaf(written) = self.only(names)? else { return None };
        match serde_json::from_str(written).ok()? {
            serde_json::Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    /// The members of a list or of an object.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match self {
            Self::Leaf(_) => &[],
            Self::List(members) | Self::Object(members) => members,
        }
    }

    pub(crate) fn members_mut(&mut self) -> Option<&mut Vec<Member>> {
        match self {
            Self::Leaf(_) => None,
            Self::List(members) | Self::Object(members) => Some(members),
        }
    }

    /// Everything in it, and itself.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let below = self.members().iter().flat_map(|member| member.value.parts());
        std::iter::once(self.clone()).chain(below).collect()
    }
}

impl Member {
    /// Whether it has this name, however it is written.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        serde_json::from_str::<String>(&self.name).is_ok_and(|own| own == name)
    }

    fn write(&self) -> String {
        match self.name.as_str() {
            "" => self.value.write(),
            name => format!("{name}:{}", self.value.write()),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

/// A value as it is written.
fn leaf<E: serde::de::Error>(value: impl Into<serde_json::Value>) -> Result<Json, E> {
    Ok(Json::Leaf(value.into().to_string()))
}

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Json, E> {
        leaf(())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Json, E> {
        leaf(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Json, E> {
        leaf(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Json, E> {
        leaf(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        leaf(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Json, E> {
        leaf(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(value) = items.next_element()? {
            members.push(Member { name: String::new(), value });
        }
        Ok(Json::List(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = entries.next_entry::<String, Json>()? {
            members.push(Member { name: serde_json::Value::from(name).to_string(), value });
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn what_stands_twice_stands_there_twice() {
        let text = r#"{"a":{"b":1,"\u0062":"1"},"c":[null,true,1.5,-1,"x"],"d":{"b":"é\n"}}"#;
        let json = Json::read(text.as_bytes()).expect("JSON");
        assert_eq!(json.write(), text.replace("\\u0062", "b"));
        assert_eq!(json.only_text(&["a", "b"]), None);
        assert_eq!(json.only_text(&["d", "b"]).as_deref(), Some("é\n"));
        let number = Json::read(b"{\"a\":1.250e3}").expect("JSON");
        assert_eq!(number.only_text(&["a"]).as_deref(), Some("1250.0"));
        assert_eq!(json.only(&["c"]).map(|list| list.members().len()), Some(5));
        assert_eq!(json.only(&["e"]), None);
        assert!(Json::read(b"{\"a\":1").is_none() && Json::read(&b"[".repeat(9_999)).is_none());
    }
}
