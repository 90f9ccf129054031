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

    /// A textual fact.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number: a count, or an amount in minor units.
    #[must_use]
    pub fn whole(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Value::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// A fact that is true or false.
    #[must_use]
    pub fn truth(&self, name: &str) -> Option<bool> {
        match self.get(name) {
            Value::Truth(truth) => Some(*truth),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Whole(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
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
            assert_eq!(facts.at(place, "a"), &Value::Whole(1), "{place}");
            assert_eq!(facts.at(place, "e"), &Value::Absent, "{place}");
        }
        assert_eq!(
            (facts.whole("a"), facts.text("b"), facts.truth("c")),
            (Some(1), Some("x"), Some(true))
        );
        assert_eq!((facts.whole("b"), facts.text("c"), facts.truth("d")), (None, None, None));
    }
}
