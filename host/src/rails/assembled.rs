//! What is demanded of a file that a rail has made: the same in earnest and in conformance.

use std::collections::BTreeSet;

use crate::config::limits;
use crate::wasm::rail::Assembled;

/// Longest name that a network has for an entry.
const KEY_MAX: usize = 80;
/// Longest name of a file, and of what an acknowledgement calls it.
const NAME_MAX: usize = 120;

/// What is wrong with a file that was made of these payments, by their references.
#[must_use]
pub fn objection(made: &Assembled, joined: &BTreeSet<&str>) -> Option<String> {
    has_each_once(made, joined).and_then(|()| is_fit(made)).err()
}

/// Every payment is in one of the lists, and in one only.
fn has_each_once(made: &Assembled, joined: &BTreeSet<&str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let placed = made.placed.iter().map(|placed| &placed.reference);
    let refused = made.refused.iter().map(|refused| &refused.reference);
    for reference in placed.chain(refused).chain(&made.later) {
        if !joined.contains(reference.as_str()) {
            return Err(format!("it has {reference}, which did not join it"));
        }
        if !seen.insert(reference.as_str()) {
            return Err(format!("it has {reference} twice"));
        }
    }
    match joined.difference(&seen).next() {
        Some(missing) => Err(format!("{missing} is neither in it nor out of it")),
        None => Ok(()),
    }
}

fn is_fit(made: &Assembled) -> Result<(), String> {
    if made.placed.is_empty() {
        return Ok(());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    for name in [&made.name, &made.identity] {
        if !(1..=NAME_MAX).contains(&name.len()) || !name.chars().all(is_plain) {
            return Err(format!("{name:?} is no name for a file"));
        }
    }
    let most = limits::FILE_BYTES_MAX;
    if !(1..=most).contains(&made.content.len()) {
        return Err(format!("it has {} bytes, and has 1 to {most}", made.content.len()));
    }
    let mut keys = BTreeSet::new();
    for placed in &made.placed {
        let (reference, key) = (&placed.reference, &placed.key);
        if !(1..=KEY_MAX).contains(&key.len()) {
            return Err(format!("the key of {reference} has {} bytes of {KEY_MAX}", key.len()));
        }
        if !keys.insert(key) {
            return Err(format!("two payments are called {key}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm::rail::{Placement, Refusal, TurnedDown};

    fn placed(reference: &str, key: &str) -> Placement {
        Placement { reference: reference.to_owned(), key: key.to_owned(), entry: Vec::new() }
    }

    fn made() -> Assembled {
        Assembled {
            name: "a.txt".to_owned(),
            identity: "1".to_owned(),
            content: b"first\nsecond\n".to_vec(),
            placed: vec![placed("A", "1"), placed("B", "2")],
            refused: Vec::new(),
            later: Vec::new(),
        }
    }

    fn says(made: &Assembled, joined: &[&str]) -> Option<String> {
        objection(made, &joined.iter().copied().collect())
    }

    #[test]
    fn every_payment_is_in_one_list() {
        assert_eq!(says(&made(), &["A", "B"]), None);
        assert!(says(&made(), &["A", "B", "C"]).is_some(), "C is missing");
        assert!(says(&made(), &["A"]).is_some(), "B did not join");
        let later = Assembled { later: vec!["A".to_owned()], ..made() };
        assert!(says(&later, &["A", "B"]).is_some(), "A twice");
        let why = Refusal { code: "x".to_owned(), message: String::new() };
        let refused = vec![TurnedDown { reference: "C".to_owned(), why }];
        assert_eq!(says(&Assembled { refused, ..made() }, &["A", "B", "C"]), None);
    }

    #[test]
    fn names_keys_and_sizes_are_fit() {
        let long = "1".repeat(KEY_MAX + 1);
        for odd in [
            Assembled { name: "a/b".to_owned(), ..made() },
            Assembled { name: "a".repeat(NAME_MAX + 1), ..made() },
            Assembled { identity: String::new(), ..made() },
            Assembled { content: Vec::new(), ..made() },
            Assembled { content: vec![b' '; limits::FILE_BYTES_MAX + 1], ..made() },
            Assembled { placed: vec![placed("A", ""), placed("B", "2")], ..made() },
            Assembled { placed: vec![placed("A", &long), placed("B", "2")], ..made() },
            Assembled { placed: vec![placed("A", "1"), placed("B", "1")], ..made() },
        ] {
            assert!(says(&odd, &["A", "B"]).is_some(), "{} {:?}", odd.name, odd.placed);
        }
        // Of a file with nothing in it nothing is demanded.
        let empty = Assembled { name: String::new(), placed: Vec::new(), ..made() };
        assert_eq!(says(&empty, &[]), None);
    }
}
