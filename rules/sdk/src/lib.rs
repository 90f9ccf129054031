//! What a rule pack is written with: the facts of the contract in `wit/rules.wit`, by name
//! and type.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/rules.wit",
        world: "types",
        generate_all,
        additional_derives: [PartialEq, Eq],
    });
}

pub use bindings::railhead::rules::facts::{Fact, Value};

/// The raw interface, for `with:` in a pack's own `wit_bindgen::generate!`.
pub mod imports {
    pub use crate::bindings::railhead::rules::facts;
}

/// What is known about one payout.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a>(pub &'a [Fact]);

impl<'a> Facts<'a> {
    /// The fact of this name; absent if the host did not give it.
    #[must_use]
    pub fn get(&self, name: &str) -> &'a Value {
        self.0.iter().find(|fact| fact.name == name).map_or(&Value::Absent, |fact| &fact.value)
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
}

/// A fact, for tests.
#[must_use]
pub fn fact(name: &str, value: Value) -> Fact {
    Fact { name: name.to_owned(), value }
}
