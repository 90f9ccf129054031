//! The language of conditions: a part of CEL (<https://cel.dev>).
//!
//! `token` and `syntax` read the text, `check` gives every part its type and every name its
//! meaning, `tree` works the condition out. What CEL has beyond this part is refused by name
//! while reading, so that a condition means here what it means elsewhere or nothing at all.
//!
//! One thing is ours: a fact may be absent. `x == null` asks for it. Otherwise an absent value
//! spreads through arithmetic, `size`, `!` and `?:`, and a comparison, `in` or a test of strings
//! with an absent value is false. `&&`, `||` and the condition as a whole take absent as false.

mod check;
mod syntax;
mod token;
mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use railhead_facts::Type;

pub use tree::{Condition, Fault};

/// The longest condition, in bytes. Longer ones are lists in disguise.
pub const CONDITION_BYTES_MAX: usize = 4_096;
/// How deep a condition may nest: every level takes a part of the sandbox's stack. A chain of
/// operators counts one level for each.
pub const DEPTH_MAX: u32 = 100;
/// The words that CEL keeps for itself.
pub const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// What the names in conditions stand for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Facts in the order in which they are declared, which is the order they come in.
    pub facts: Vec<(String, Type)>,
    /// Constants.
    pub params: BTreeMap<String, Param>,
    /// What can be looked in with `in`.
    pub lists: BTreeMap<String, List>,
}

/// A constant with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// True or false.
    Bool(bool),
    /// 64 bits with a sign.
    Int(i64),
    /// Text in UTF-8.
    String(Box<str>),
}

/// A list of constants, sorted so that looking in it takes few steps however long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List {
    /// Nothing is in it, and anything may be looked for.
    Empty,
    /// Ints, the smallest first.
    Int(Arc<[i64]>),
    /// Strings, in the order of their bytes.
    String(Arc<[Box<str>]>),
}

impl List {
    /// A list of ints in any order.
    #[must_use]
    pub fn of_ints(mut items: Vec<i64>) -> Self {
        items.sort_unstable();
        if items.is_empty() { Self::Empty } else { Self::Int(items.into()) }
    }

    /// A list of strings in any order.
    #[must_use]
    pub fn of_strings(mut items: Vec<Box<str>>) -> Self {
        items.sort_unstable();
        if items.is_empty() { Self::Empty } else { Self::String(items.into()) }
    }

    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Int(items) => items.len(),
            Self::String(items) => items.len(),
        }
    }
}

/// What is wrong in a condition, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    at: usize,
    message: String,
}

impl Mistake {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The mistake with its place in the text, for the one who wrote it.
    fn told(&self, source: &str) -> String {
        let before = source.get(..self.at).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        match source.contains('\n') {
            true => format!("line {line}, column {column}: {}", self.message),
            false => format!("column {column}: {}", self.message),
        }
    }
}

/// Reads a condition.
///
/// # Errors
/// The first mistake in it, with its place and what to do about it.
pub fn compile(source: &str, names: &Names) -> Result<Condition, String> {
    if source.len() > CONDITION_BYTES_MAX {
        return Err(format!(
            "a condition has at most {CONDITION_BYTES_MAX} bytes; move strings and numbers into \
             [lists] and use `in`"
        ));
    }
    let tokens = token::tokens(source);
    let tree = tokens.and_then(syntax::parse).and_then(|node| check::condition(names, &node));
    tree.map_err(|mistake| mistake.told(source))
}
