//! Reading facts by name and type.

use crate::{Fact, Value};

/// What is known about one payout.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a>(pub &'a [Fact]);

impl<'a> Facts<'a> {
    /// The fact of this name; absent if the host did not give it.
    #[must_use]
    pub fn get(&self, name: &str) -> &'a Value {
        self.0.iter().find(|fact| fact.name == name).map_or(&Value::Absent, |fact| &fact.value)
    }

    /// The fact of this name, which most likely stands at this place: the host gives facts in
    /// the order in which `[pack].facts` lists them.
    #[must_use]
    pub fn at(&self, place: usize, name: &str) -> &'a Value {
        match self.0.get(place) {
            Some(fact) if fact.name == name => &fact.value,
            _ => self.get(name),
        }
    }

    /// A fact that is a string.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A fact that is an int: a count, or an amount in minor units.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A fact that is a bool.
    #[must_use]
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

/// A fact, for tests.
#[must_use]
pub fn fact(name: &str, value: impl Into<Value>) -> Fact {
    Fact { name: name.to_owned(), value: value.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_wherever_they_stand() {
        let given = [fact("a", 1), fact("b", "x"), fact("c", true), fact("d", Value::Absent)];
        let facts = Facts(&given);
        for place in 0..6 {
            assert_eq!(facts.at(place, "a"), &Value::Int(1), "{place}");
            assert_eq!(facts.at(place, "e"), &Value::Absent, "{place}");
        }
        assert_eq!(
            (facts.int("a"), facts.string("b"), facts.bool("c")),
            (Some(1), Some("x"), Some(true))
        );
        assert_eq!((facts.int("b"), facts.string("c"), facts.bool("d")), (None, None, None));
    }
}
