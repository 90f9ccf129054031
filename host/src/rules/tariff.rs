//! Who set a price, and what its lines are called: very many payouts have the same, and name it.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::db::Written;
use crate::db::bulk::{Table, text};
use crate::money::{Minor, Overflow};

/// How many a pack remembers.
const REMEMBERED: usize = 100;

/// New tariffs.
pub static TARIFFS: Table<Tariff> = Table {
    name: "tariffs",
    fixed: &[
        text("id", |it| (&it.id).into()),
        text("pack", |it| (&it.pack).into()),
        text("version", |it| (&it.version).into()),
        text("digest", |it| (&it.digest).into()),
        text("lines", |it| it.lines_as_json().into()),
    ],
    changing: &[],
    on_conflict: Some("(id) DO NOTHING"),
    is_sealed: false,
};

/// Columns of a tariff `t` under which [`Tariff::read`] finds it beside others.
pub const COLUMNS: &str = "t.id AS tariff_id, t.pack AS tariff_pack, t.version AS tariff_version, \
    t.digest AS tariff_digest, t.lines AS tariff_lines";

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

    /// Reads it out of a row with [`COLUMNS`]; none where there was nothing to join.
    ///
    /// # Errors
    /// It is not what this program writes.
    pub fn read(row: &AnyRow) -> Result<Option<Self>, sqlx::Error> {
        let Some(id) = row.try_get("tariff_id")? else { return Ok(None) };
        let lines: String = row.try_get("tariff_lines")?;
        let lines = serde_json::from_str(&lines);
        Ok(Some(Self {
            id,
            pack: row.try_get("tariff_pack")?,
            version: row.try_get("tariff_version")?,
            digest: row.try_get("tariff_digest")?,
            lines: lines.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
            written: Written::default(),
        }))
    }

    fn derived_id(&self) -> String {
        let Self { pack, version, digest, .. } = self;
        let all = format!("{pack}\n{version}\n{digest}\n{}", self.lines_as_json());
        BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(all)[..12])
    }

    fn lines_as_json(&self) -> String {
        serde_json::to_string(&self.lines).unwrap_or_default()
    }
}

/// The tariff of this id, if there is one.
///
/// # Errors
/// The database cannot be read.
pub async fn get_tariff(pool: &AnyPool, id: &str) -> Result<Option<Tariff>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM tariffs t WHERE t.id = $1"));
    let row = sqlx::query(sql).bind(id).fetch_optional(pool).await?;
    row.map_or(Ok(None), |row| Tariff::read(&row))
}

/// Those by which a pack has priced of late.
#[derive(Default)]
pub(super) struct Tariffs(Mutex<Vec<Arc<Tariff>>>);

impl Tariffs {
    /// The one with these lines.
    pub(super) fn of(&self, pack: [&str; 3], lines: Vec<(String, String)>) -> Arc<Tariff> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tariff) = known.iter().find(|known| known.lines == lines) {
            return Arc::clone(tariff);
        }
        // A pack that writes amounts into its labels has a new one each time.
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let tariff = Arc::new(Tariff::new(pack, lines));
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

    #[test]
    fn a_tariff_is_remembered_and_has_the_id_that_it_always_had() {
        let tariffs = Tariffs::default();
        let pack = ["fees", "0.1.0", "b387"];
        let first = tariffs.of(pack, lines(&["Payout fee"]));
        assert!(Arc::ptr_eq(&first, &tariffs.of(pack, lines(&["Payout fee"]))));
        assert_ne!(first.id, tariffs.of(pack, lines(&["Payout fee", "VAT"])).id);
        assert_eq!(first.id, "rZaxQbD-xDk-BRM4");
        for number in 0..REMEMBERED {
            tariffs.of(pack, lines(&[&number.to_string()]));
        }
        assert_eq!(first.id, tariffs.of(pack, lines(&["Payout fee"])).id);
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        let tariff = || Tariff::new(["fees", "0.1.0", "b387"], lines(&["Payout fee"]));
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
