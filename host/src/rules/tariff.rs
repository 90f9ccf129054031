//! Who priced payouts, and what the lines of their prices are. Very many payouts have that in common,
//! and name it; the amounts are their own.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::db::Written;
use crate::money::{Minor, Overflow};

/// How many a pack remembers.
const REMEMBERED: usize = 100;

/// A price but for its amounts. It is never changed.
#[derive(Debug)]
pub struct Tariff {
    /// Follows from the rest.
    pub id: String,
    /// The pack's name.
    pub pack: String,
    /// The pack's version.
    pub version: String,
    /// SHA-256 of the pack's file.
    pub digest: String,
    /// Kind (`fee`, `tax` or `levy`) and label of each line.
    pub lines: Vec<(String, String)>,
    /// Whether the database has it. Otherwise it goes with whatever names it.
    pub written: Written,
}

impl Tariff {
    /// What this pack calls these lines.
    #[must_use]
    pub fn new([pack, version, digest]: [&str; 3], lines: Vec<(String, String)>) -> Self {
        let mut tariff = Self {
            id: String::new(),
            pack: pack.to_owned(),
            version: version.to_owned(),
            digest: digest.to_owned(),
            lines,
            written: Written::default(),
        };
        tariff.id = tariff.derived_id();
        tariff
    }

    /// The sum of the amounts of those lines that are of one kind.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn sum(&self, kind: &str, amounts: &[i64]) -> Result<Minor, Overflow> {
        let wanted = self.lines.iter().zip(amounts).filter(|((known, _), _)| known == kind);
        Minor::total(wanted.map(|(_, amount)| Minor::new(*amount)))
    }

    /// Whether it is what it was when it was written.
    #[must_use]
    pub fn is_genuine(&self) -> bool {
        self.id == self.derived_id()
    }

    fn derived_id(&self) -> String {
        let Self { pack, version, digest, .. } = self;
        let all = format!("{pack}\n{version}\n{digest}\n{}", self.lines_as_json());
        BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(all)[..12])
    }

    /// The lines as they are stored.
    pub(super) fn lines_as_json(&self) -> String {
        serde_json::to_string(&self.lines).unwrap_or_default()
    }
}

/// Those by which a pack has priced of late, the last one last.
#[derive(Default)]
pub(super) struct Tariffs(Mutex<Vec<Arc<Tariff>>>);

impl Tariffs {
    /// The one with these lines.
    pub(super) fn of(&self, pack: [&str; 3], lines: Vec<(String, String)>) -> Arc<Tariff> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tariff = match known.iter().position(|known| known.lines == lines) {
            Some(at) => known.remove(at),
            None => Arc::new(Tariff::new(pack, lines)),
        };
        // A pack that writes amounts into its labels has a new one each time: those that come again
        // stay, and what was used longest ago goes.
        if known.len() >= REMEMBERED {
            known.remove(0);
        }
        known.push(Arc::clone(&tariff));
        tariff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(labels: &[&str]) -> Vec<(String, String)> {
        labels.iter().map(|label| ("fee".to_owned(), (*label).to_owned())).collect()
    }

    const PACK: [&str; 3] = ["fees", "0.1.0", "b387"];

    #[test]
    fn a_tariff_has_the_id_and_the_lines_that_it_always_had() {
        let tariff = Tariff::new(PACK, lines(&["Payout fee"]));
        let stored = (tariff.id.as_str(), tariff.lines_as_json());
        assert_eq!(stored, ("rZaxQbD-xDk-BRM4", r#"[["fee","Payout fee"]]"#.to_owned()));
        assert_ne!(tariff.id, Tariff::new(PACK, lines(&["Payout fee", "VAT"])).id);
    }

    #[test]
    fn a_pack_remembers_what_it_has_priced_by_of_late() {
        let tariffs = Tariffs::default();
        let first = tariffs.of(PACK, lines(&["Payout fee"]));
        assert!(Arc::ptr_eq(&first, &tariffs.of(PACK, lines(&["Payout fee"]))));
        for number in 0..2 * REMEMBERED {
            tariffs.of(PACK, lines(&[&number.to_string()]));
            if number < REMEMBERED {
                assert!(Arc::ptr_eq(&first, &tariffs.of(PACK, lines(&["Payout fee"]))));
            }
        }
        assert_eq!(tariffs.0.lock().expect("unpoisoned").len(), REMEMBERED);
        assert!(!Arc::ptr_eq(&first, &tariffs.of(PACK, lines(&["Payout fee"]))));
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        let tariff = || Tariff::new(PACK, lines(&["Payout fee"]));
        assert!(tariff().is_genuine());
        for change in [
            (|it| it.pack.push('x')) as fn(&mut Tariff),
            |it| it.version.push('x'),
            |it| it.digest.push('x'),
            |it| it.lines[0].0.push('x'),
            |it| it.lines[0].1.push('x'),
            |it| it.lines.clear(),
        ] {
            let mut changed = tariff();
            change(&mut changed);
            assert!(!changed.is_genuine(), "{changed:?}");
        }
    }
}
