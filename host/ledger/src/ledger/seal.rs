//! Seals: what a batch wrote cannot be changed, moved or taken away unnoticed.
//!
//! Each batch that writes to a sealed table leaves a row with a digest per table, over the fixed
//! columns of the rows it wrote, and the hash of the writer's batch before: a chain for each
//! writer. Whoever changes a row would have to make the chain anew from there, and then it is
//! not the chain whose head was anchored elsewhere.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::db::bulk::{Shape, Table, int, text};
use crate::db::cell::{Cell, Row};
use crate::db::{Db, Moves};

/// A batch as it is written: with a seal where it wrote to sealed tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// The writer's number, and the batch's in it.
    pub id: i64,
    /// Hash of the writer's sealed batch before; empty without a seal.
    pub previous: String,
    /// Digests by table, as JSON; empty without a seal.
    pub digests: String,
    /// Hash of the seal; empty without one.
    pub hash: String,
    /// The batch's instant.
    pub created_at: Moment,
}

/// Batches, by which a writer also learns after a lost connection whether one was committed.
pub(super) static BATCHES: Table<Batch> = Table {
    name: "writer_batches",
    fixed: &[
        int("id", |batch| batch.id.into()),
        text("previous", |batch| (&batch.previous).into()),
        text("digests", |batch| (&batch.digests).into()),
        text("hash", |batch| (&batch.hash).into()),
        int("created_at", |batch| batch.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: false,
};

/// In the place of a batch whose COMMIT was not answered: whoever writes it knows that the
/// batch is gone for good, and finds it there otherwise.
pub(super) static TOMBSTONES: Table<Batch> = Table {
    name: "writer_batches",
    fixed: BATCHES.fixed,
    changing: &[],
    on_conflict: Some("(id) DO NOTHING"),
    is_sealed: false,
};

/// How many bits of a batch's id are its number in its writer.
const NUMBER_BITS: u32 = 32;

/// Where a writer's chain of batches stands.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The id of the next batch. Tries that fail use up ids too.
    pub(super) next: i64,
    /// Hash of the last sealed batch.
    pub(super) head: String,
    /// Its id, if this writer made it.
    pub(super) head_id: Option<i64>,
    /// Where connections led as it began: elsewhere nothing follows on it.
    pub(super) at: Moves,
}

/// Takes the number of a new writer, whose chain begins after the newest batch of all. Whoever asks
/// for it has the turn to write.
pub(super) async fn begin(db: &Db) -> Result<Chain, sqlx::Error> {
    let at = db.moves();
    let mut tx = db.write_in_turn().await?;
    let sql = "UPDATE serials SET next = next + 1 WHERE id = 'writers' RETURNING next";
    let writer: i64 = sqlx::query_scalar(sql).fetch_one(tx.conn()).await?;
    let sql = "SELECT hash FROM writer_batches WHERE hash <> '' ORDER BY id DESC LIMIT 1";
    let head: Option<String> = sqlx::query_scalar(sql).fetch_optional(tx.conn()).await?;
    tx.commit().await?;
    Ok(Chain { next: writer << NUMBER_BITS, head: head.unwrap_or_default(), head_id: None, at })
}

/// Which writer made a batch.
#[must_use]
pub fn writer_of(batch_id: i64) -> i64 {
    batch_id >> NUMBER_BITS
}

/// The first id that a writer's batches may have.
#[must_use]
pub fn first_of(writer: i64) -> i64 {
    writer << NUMBER_BITS
}

/// The digest of rows of one table, whatever their order.
#[must_use]
pub fn digest_of<'a>(fixed: usize, rows: impl Iterator<Item = &'a Row>) -> String {
    let mut digests: Vec<[u8; 32]> = rows.map(|row| digest_row(&row[..fixed])).collect();
    digests.sort_unstable();
    let mut hash = Sha256::new();
    for digest in digests {
        hash.update(digest);
    }
    hex::encode(hash.finalize())
}

fn digest_row(cells: &[Cell]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for cell in cells {
        match cell {
            Cell::Text(None) | Cell::Int(None) => hash.update("N"),
            Cell::Text(Some(text)) => {
                hash.update("T");
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
            Cell::Int(Some(number)) => {
                hash.update("I");
                hash.update(number.to_be_bytes());
            }
        }
    }
    hash.finalize().into()
}

/// The hash of a batch's seal.
#[must_use]
pub fn seal_hash(previous: &str, id: i64, digests: &str, created_at: Moment) -> String {
    let mut hash = Sha256::new();
    for part in [previous, &id.to_string(), digests, &created_at.micros().to_string()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// Seals what a batch inserts: answers the batch's own row, whose id goes into every row of a
/// sealed table.
pub(super) fn seal<'a>(
    chain: &Chain,
    now: Moment,
    inserts: impl Iterator<Item = (&'a dyn Shape, &'a [Row])>,
) -> Batch {
    let id = chain.next;
    let mut digests = BTreeMap::new();
    for (shape, rows) in inserts.filter(|(shape, rows)| shape.is_sealed() && !rows.is_empty()) {
        digests.insert(shape.table(), digest_of(shape.fixed(), rows.iter()));
    }
    if digests.is_empty() {
        return Batch { id, created_at: now, ..Batch::default() };
    }
    let digests = serde_json::to_string(&digests).unwrap_or_default();
    let previous = chain.head.clone();
    let hash = seal_hash(&previous, id, &digests, now);
    Batch { id, previous, digests, hash, created_at: now }
}

/// A tombstone as a row of [`TOMBSTONES`].
pub(super) fn tombstone(id: i64, now: Moment) -> Row {
    TOMBSTONES.row(&Batch { id, created_at: now, ..Batch::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, number: i64) -> Row {
        [Cell::Text(Some(text.into())), Cell::Int(Some(number)), Cell::Text(None)].into()
    }

    #[test]
    fn a_digest_covers_every_cell_and_no_order() {
        let (a, b) = (row("a", 1), row("b", 2));
        let digest = |rows: &[&Row]| digest_of(3, rows.iter().copied());
        assert_eq!(digest(&[&a, &b]), digest(&[&b, &a]));
        for other in [row("a", 2), row("ab", 1), b.clone()] {
            assert_ne!(digest(&[&a]), digest(&[&other]));
        }
        assert_ne!(digest(&[&a]), digest(&[&a, &a]));
    }
}
