//! Which files of a folder were fetched.
//!
//! A date alone would pass over a file that is put there late with an early date. So the newest
//! thousand are remembered one by one, by name, size and date; what is older than the oldest of them
//! counts as fetched, unless it is of the last day. A file that changed is another one: whether its content is new, the inbox
//! knows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Entry;

/// Files that are remembered one by one.
const REMEMBERED: usize = 1_000;

/// What is younger than that is remembered in any case.
const DAY_S: i64 = 24 * 3_600;

/// How far a folder was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    /// Which folder, as a digest of its address: in another one nothing was fetched.
    folder: String,
    /// Everything that is not younger was fetched.
    until_s: i64,
    /// Of what is younger, what was fetched: date and digest.
    fetched: BTreeSet<(i64, String)>,
}

impl Cursor {
    /// What was written down about a folder; the beginning, where that is about another.
    pub(super) fn read(address: &str, text: &str) -> Self {
        let folder = digest(address);
        let known = serde_json::from_str(text).ok().filter(|known: &Self| known.folder == folder);
        known.unwrap_or(Self { folder, until_s: i64::MIN, fetched: BTreeSet::new() })
    }

    /// Whether a text is one of the host's own.
    pub(super) fn is_one(text: &str) -> bool {
        serde_json::from_str::<Self>(text).is_ok()
    }

    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether a file was not fetched yet.
    pub(super) fn is_new(&self, entry: &Entry) -> bool {
        entry.changed_s > self.until_s && !self.fetched.contains(&key(entry))
    }

    /// Takes note of one that was.
    /// Dates of the future, by a wrong clock, say nothing of what is yet to come.
    pub(super) fn note(&mut self, entry: &Entry, now_s: i64) {
        self.fetched.insert(key(entry));
        let newest_s = self.fetched.last().map_or(i64::MIN, |(changed_s, _)| *changed_s);
        while self.fetched.len() > REMEMBERED {
            let Some((oldest_s, _)) = self.fetched.first().cloned() else { return };
            // Of one moment there may be others, which are yet to be fetched, and of today.
            if oldest_s == newest_s || oldest_s > now_s - DAY_S {
                return;
            }
            self.until_s = oldest_s;
            self.fetched.retain(|(changed_s, _)| *changed_s > oldest_s);
        }
    }
}

fn key(entry: &Entry) -> (i64, String) {
    (entry.changed_s, digest(&format!("{}/{}", entry.bytes, entry.name)))
}

fn digest(text: &str) -> String {
    let mut digest = hex::encode(Sha256::digest(text));
    digest.truncate(16);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn entry(number: usize, changed_s: i64) -> Entry {
        Entry { name: format!("file-{number}"), bytes: 10, changed_s }
    }

    fn begin() -> Cursor {
        Cursor::read("file:///srv/in", "")
    }

    #[test]
    fn what_was_fetched_is_not_new() {
        let mut cursor = begin();
        let (first, late) = (entry(1, 1_000), entry(2, 900));
        cursor.note(&first, NOW);
        let cursor = Cursor::read("file:///srv/in", &cursor.text());
        assert!(!cursor.is_new(&first));
        assert!(cursor.is_new(&late), "its date is earlier, and it came later");
        assert!(cursor.is_new(&Entry { bytes: 11, ..first.clone() }), "it has changed");
        assert!(cursor.is_new(&Entry { changed_s: 1_001, ..first.clone() }));
        assert!(Cursor::read("file:///srv/other", &cursor.text()).is_new(&first));
        assert!(Cursor::is_one(&cursor.text()) && !Cursor::is_one("") && !Cursor::is_one("42"));
    }

    #[test]
    fn the_newest_are_remembered_and_nothing_is_lost_on_the_way() {
        let mut cursor = begin();
        let of = |number: usize| entry(number, i64::try_from(number / 2).expect("small"));
        for entry in (0..3_000).map(of) {
            assert!(cursor.is_new(&entry), "{entry:?}");
            cursor.note(&entry, NOW);
        }
        assert!(cursor.fetched.len() <= REMEMBERED);
        assert!((0..3_000).all(|number| !cursor.is_new(&of(number))));
        assert!(!cursor.is_new(&entry(5_000, 10)), "older than everything that is remembered");
    }

    #[test]
    fn files_of_one_moment_are_all_fetched() {
        let mut cursor = begin();
        for number in 0..2_000 {
            assert!(cursor.is_new(&entry(number, 7)), "{number}");
            cursor.note(&entry(number, 7), NOW);
        }
        assert!((0..2_000).all(|number| !cursor.is_new(&entry(number, 7))));
        cursor.note(&entry(2_000, 8), NOW);
        assert!((0..2_000).all(|number| !cursor.is_new(&entry(number, 7))));
        assert_eq!(cursor.fetched.len(), 1);
    }

    #[test]
    fn files_of_the_future_keep_none_of_today_out() {
        let mut cursor = begin();
        for number in 0..1_500 {
            cursor
                .note(&entry(number, NOW + 400_000_000 + i64::try_from(number).expect("few")), NOW);
        }
        assert!(cursor.is_new(&entry(5_000, NOW - 60)));
        assert!(!cursor.is_new(&entry(7, NOW + 400_000_007)));
    }
}
