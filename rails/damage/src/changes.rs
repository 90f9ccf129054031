//! What is changed in a text.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::json::{Json, Member};

/// Changes to one text.
const CHANGES_MAX: usize = 4;

/// A text as it arrives.
#[derive(Clone)]
pub struct Damaged {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What stands in it, if it is JSON.
    pub json: Option<Json>,
}

/// A text with each of its members changed in every way, one at a time.
///
/// # Panics
/// It is no JSON.
#[must_use]
pub fn each_change(text: &str) -> Vec<Damaged> {
    let whole = Json::read(text.as_bytes()).unwrap_or_else(|| panic!("no JSON: {text}"));
    let odd = ODD.iter().map(|text| Json::Leaf((*text).to_owned()));
    let values: Vec<Json> = odd.chain([nested(500, NESTS[0]), long(500, LONG[1])]).collect();
    let mut ways = vec![How::Remove, How::Retype, How::Enclose, How::Escape, How::Recase];
    for way in [How::Precede, How::Follow, How::Put] {
        ways.extend(values.iter().cloned().map(way));
    }
    let changed = |(place, how): (usize, &How)| {
        let mut json = whole.clone();
        how.descend(&mut json, place);
        Damaged { bytes: json.write().into_bytes(), json: Some(json) }
    };
    let all = (0..places(&whole)).flat_map(|place| ways.iter().map(move |how| (place, how)));
    all.map(changed).collect()
}

impl fmt::Debug for Damaged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.bytes.escape_ascii())
    }
}

/// Texts of a corpus, damaged in their bytes or in what they say.
pub fn damaged(corpus: Vec<String>) -> impl Strategy<Value = Damaged> {
    let written: Vec<Json> = corpus.iter().filter_map(|text| Json::read(text.as_bytes())).collect();
    let values: Vec<Json> = written.iter().flat_map(Json::parts).collect();
    let other_words = (prop::sample::select(written), changes(change(values)));
    let other_bytes = (prop::sample::select(corpus), changes(byte_change()));
    prop_oneof![
        3 => other_words.prop_map(|(mut json, changes)| {
            changes.iter().for_each(|change| change.apply(&mut json));
            Damaged { bytes: json.write().into_bytes(), json: Some(json) }
        }),
        1 => other_bytes.prop_map(|(text, changes)| {
            let mut bytes = text.into_bytes();
            changes.iter().for_each(|change| change.apply(&mut bytes));
            Damaged { json: Json::read(&bytes), bytes }
        }),
    ]
}

fn changes<T: fmt::Debug>(change: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(change, 1..=CHANGES_MAX)
}

/// A change to one member of a text, wherever it stands.
#[derive(Clone, Debug)]
struct Change {
    at: Index,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// It is not there.
    Remove,
    /// It stands there twice, and the other one, which comes first, has this value.
    Precede(Json),
    /// The same, and the other one comes last.
    Follow(Json),
    /// It has another value.
    Put(Json),
    /// A text is a number, and a number a text.
    Retype,
    /// It is the only one of a list.
    Enclose,
    /// Its name is written with an escape.
    Escape,
    /// Its name begins with the other kind of letter.
    Recase,
}

impl Change {
    fn apply(&self, json: &mut Json) {
        let places = places(json);
        if places > 0 {
            self.how.descend(json, self.at.index(places));
        }
    }
}

/// How many members there are, wherever they stand.
fn places(json: &Json) -> usize {
    // The whole text is no member of itself.
    json.parts().len() - 1
}

impl How {
    /// Changes the member at a place of those below; the places that are left, where it is not.
    fn descend(&self, json: &mut Json, place: usize) -> Option<usize> {
        let mut left = place;
        for at in 0..json.members().len() {
            let members = json.members_mut()?;
            if left == 0 {
                self.apply(members, at);
                return None;
            }
            left = self.descend(&mut members[at].value, left - 1)?;
        }
        Some(left)
    }

    fn apply(&self, members: &mut Vec<Member>, at: usize) {
        let name = members[at].name.clone();
        match self {
            Self::Remove => drop(members.remove(at)),
            Self::Precede(value) => members.insert(0, Member { name, value: value.clone() }),
            Self::Follow(value) => members.push(Member { name, value: value.clone() }),
            Self::Put(value) => members[at].value = value.clone(),
            Self::Retype => retype(&mut members[at].value),
            Self::Enclose => {
                let value = members[at].value.clone();
                members[at].value = Json::List(vec![Member { name: String::new(), value }]);
            }
            Self::Escape => {
                members[at].name = renamed(&name, |c| format!("\\u{:04x}", u32::from(c)));
            }
            Self::Recase => {
                let other = |c: char| match c.is_ascii_lowercase() {
                    true => c.to_ascii_uppercase().to_string(),
                    false => c.to_ascii_lowercase().to_string(),
                };
                members[at].name = renamed(&name, other);
            }
        }
    }
}

fn retype(value: &mut Json) {
    let Json::Leaf(written) = value else { return };
    *written = match serde_json::from_str::<String>(written) {
        Ok(text) if serde_json::from_str::<serde_json::Number>(&text).is_ok() => text,
        Ok(_) => return,
        Err(_) => serde_json::Value::from(written.as_str()).to_string(),
    };
}

/// A written name with another first letter; a member of a list has none.
fn renamed(name: &str, letter: impl Fn(char) -> String) -> String {
    let Some(inside) = name.strip_prefix('"') else { return String::new() };
    let mut letters = inside.chars();
    match letters.next().filter(char::is_ascii_alphanumeric) {
        Some(first) => format!("\"{}{}", letter(first), letters.as_str()),
        None => name.to_owned(),
    }
}

fn change(values: Vec<Json>) -> impl Strategy<Value = Change> {
    let odd = prop::sample::select(ODD).prop_map(|text| Json::Leaf(text.to_owned()));
    let deep = (1..5_000_usize, prop::sample::select(NESTS));
    let deep = deep.prop_map(|(levels, ends)| nested(levels, ends));
    let long = (1..20_000_usize, prop::sample::select(LONG));
    let long = long.prop_map(|(times, parts)| self::long(times, parts));
    let value = prop_oneof![
        6 => prop::sample::select(values),
        4 => odd,
        1 => deep,
        1 => long,
    ]
    .boxed();
    let how = prop_oneof![
        2 => Just(How::Remove),
        2 => value.clone().prop_map(How::Precede),
        2 => value.clone().prop_map(How::Follow),
        3 => value.prop_map(How::Put),
        1 => Just(How::Retype),
        1 => Just(How::Enclose),
        1 => Just(How::Escape),
        1 => Just(How::Recase),
    ];
    (any::<Index>(), how).prop_map(|(at, how)| Change { at, how })
}

fn nested(levels: usize, (open, close): (&str, &str)) -> Json {
    Json::Leaf(format!("{}1{}", open.repeat(levels), close.repeat(levels)))
}

fn long(times: usize, (open, part, close): (&str, &str, &str)) -> Json {
    Json::Leaf(format!("{open}{}{close}", part.repeat(times)))
}

/// What lies in itself.
const NESTS: &[(&str, &str)] = &[("[", "]"), ("{\"a\":", "}"), ("[{\"Key\":", "}]")];

/// What goes on and on.
const LONG: &[(&str, &str, &str)] = &[
    ("\"", "x", "\""),
    ("", "9", ""),
    ("0.", "0", "1"),
    ("[", "1,", "1]"),
    ("\"", "\\u0000", "\""),
];

/// Values that trouble readers. Some are no JSON.
const ODD: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-1",
    "0.1",
    "1e0",
    "1E-400",
    "1e400",
    "00",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "92233720368547758.08",
    "1e18",
    "NaN",
    "\"\"",
    "\" \"",
    "\"0\"",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\u{202e}\u{301}\"",
    "[]",
    "[[]]",
    "{}",
    "{\"\":{}}",
];

/// A change to a text's bytes.
#[derive(Clone, Debug)]
enum ByteChange {
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index, u8),
    Cut(Index),
}

impl ByteChange {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        match self {
            Self::Flip(at, bits) if len > 0 => bytes[at.index(len)] ^= bits,
            Self::Flip(..) => {}
            Self::Insert(at, byte) => bytes.insert(at.index(len + 1), *byte),
            Self::Remove(at, count) => {
                let start = at.index(len + 1);
                bytes.drain(start..len.min(start + usize::from(*count)));
            }
            Self::Cut(at) => bytes.truncate(at.index(len + 1)),
        }
    }
}

fn byte_change() -> impl Strategy<Value = ByteChange> {
    let at = any::<Index>;
    let byte = prop_oneof![any::<u8>(), prop::sample::select(&b"\"\\{}[]:,.0123456789-eE "[..])];
    prop_oneof![
        3 => (at(), 1..=255_u8).prop_map(|(at, bits)| ByteChange::Flip(at, bits)),
        3 => (at(), byte).prop_map(|(at, byte)| ByteChange::Insert(at, byte)),
        2 => (at(), 1..16_u8).prop_map(|(at, count)| ByteChange::Remove(at, count)),
        1 => at().prop_map(ByteChange::Cut),
    ]
}
