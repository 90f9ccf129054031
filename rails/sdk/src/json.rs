//! JSON with pieces that the host puts in.

use crate::request::{Part, text};

/// An object under construction, in the order in which its members are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    parts: Vec<Part>,
    open: String,
}

impl Object {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A member with a text that is escaped.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.begin(name);
        self.open.push_str(&quoted(value));
        self
    }

    /// A member with a whole number.
    #[must_use]
    pub fn number(mut self, name: &str, value: i64) -> Self {
        self.begin(name);
        self.open.push_str(&value.to_string());
        self
    }

    /// A member whose text the host puts in. Nothing is escaped: it must hold no quotes.
    #[must_use]
    pub fn part(mut self, name: &str, part: Part) -> Self {
        self.begin(name);
        self.open.push('"');
        self.parts.push(text(std::mem::take(&mut self.open)));
        self.parts.push(part);
        self.open.push('"');
        self
    }

    /// The body of a request.
    #[must_use]
    pub fn finish(mut self) -> Vec<Part> {
        if self.parts.is_empty() && self.open.is_empty() {
            self.open.push('{');
        }
        self.open.push('}');
        self.parts.push(text(self.open));
        self.parts
    }

    fn begin(&mut self, name: &str) {
        let is_first = self.parts.is_empty() && self.open.is_empty();
        self.open.push(if is_first { '{' } else { ',' });
        self.open.push_str(&quoted(name));
        self.open.push(':');
    }
}

/// A JSON string.
fn quoted(value: &str) -> String {
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::Object;
    use crate::request::{secret, text};

    #[test]
    fn members_in_order_with_secrets_between_quotes() {
        let object = Object::new()
            .text("a", "x\"\\\n é")
            .part("b", secret("key"))
            .number("c", -7)
            .part("d", secret("other"));
        let expected = [
            text("{\"a\":\"x\\\"\\\\\\u000a é\",\"b\":\""),
            secret("key"),
            text("\",\"c\":-7,\"d\":\""),
            secret("other"),
            text("\"}"),
        ];
        assert_eq!(object.finish(), expected);
        assert_eq!(Object::new().finish(), [text("{}")]);
    }
}
