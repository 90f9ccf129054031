//! Which name somebody may have meant.

use crate::velocity::{Measure, Scope, window_s};

/// The fact whose name is most like this one; `None` if none is.
#[must_use]
pub fn nearest(name: &str) -> Option<String> {
    let mut known: Vec<String> = crate::PLAIN.iter().map(|(name, _, _)| (*name).into()).collect();
    // Velocities are compared with the window that was asked for, so that only the words count.
    let window = name.rsplit_once('_').map(|(_, window)| window);
    let window = window.filter(|window| window_s(window).is_some()).unwrap_or("24h");
    for measure in Measure::ALL {
        for scope in Scope::ALL {
            known.push(format!("{}_per_{}_{window}", measure.name(), scope.name()));
        }
    }
    nearest_of(name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The one of these names that is most like this one; `None` if none is, and the first of
/// several that are equally like it.
pub fn nearest_of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may differ: more, and the proposal puzzles rather than helps.
    let limit = name.chars().count().min(60).div_ceil(3);
    let near = known.into_iter().map(|known| match name.len() >= 3 && known.starts_with(name) {
        // Half a name is the likeliest slip of all: `amount` for `amount_minor`.
        true => (1, known),
        false => (distance(name, known), known),
    });
    let nearest = near.filter(|(far, _)| *far <= limit).min_by_key(|(far, _)| *far);
    nearest.map(|(_, known)| known)
}

/// How many letters must be put in, taken out or replaced to make one name of the other.
fn distance(from: &str, to: &str) -> usize {
    // What nobody would have typed by mistake is not worth the work.
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len().abs_diff(to.len()) > 20 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (taken, letter) in from.iter().enumerate() {
        let mut above_left = taken;
        let mut left = taken + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&to) {
            let replaced = above_left + usize::from(letter != other);
            above_left = *cell;
            left = replaced.min(above_left + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = taken + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_recognised() {
        for (name, meant) in [
            ("amount", Some("amount_minor")),
            ("ammount_minor", Some("amount_minor")),
            ("curency", Some("currency")),
            ("bank", Some("bank_code")),
            ("count_per_walet_10m", Some("count_per_wallet_10m")),
            ("counts_per_merchant_1h", Some("count_per_merchant_1h")),
            ("sum_per_recipient_amount_7d", Some("sum_per_recipient_and_amount_7d")),
            ("count_per_wallet_90d", Some("count_per_wallet_24h")),
            ("count_per_wallet", Some("count_per_wallet_24h")),
            ("zebra", None),
            ("", None),
        ] {
            assert_eq!(nearest(name).as_deref(), meant, "{name}");
        }
    }

    #[test]
    fn distances() {
        for (from, to, far) in
            [("", "", 0), ("a", "", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("abc", "acb", 2)]
        {
            assert_eq!(distance(from, to), far, "{from} {to}");
        }
    }
}
