//! The seals of the writer's batches: each follows from the one before, and covers what is there.

use std::collections::{BTreeMap, HashSet};

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{BATCH_ID, Shape};
use crate::db::cell::{Cell, Kind, Row};

use super::super::seal::{digest_of, first_of, seal_hash, writer_of};
use super::{Anchor, Faults, Fresh, Proven, Scope};

/// Every batch's seal covers what is there: no row was changed, added, moved or taken away. There
/// may be very many batches, so that nothing is kept of any: what each says comes with its rows.
pub(super) async fn compare(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    (batches, fresh): (BatchesByTable, &Fresh),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for shape in &scope.sealed {
        let (table, kept) = (shape.table(), kept_since(scope, shape.table()));
        let found = rows_as_sealed(db, (*shape, fresh, kept), faults).await?;
        let missing = batches.get(table).map_or(0, |batches| batches.saturating_sub(found));
        if missing > 0 {
            batches_without_rows(db, (table, missing), (fresh, kept), faults).await?;
        }
    }
    Ok(())
}

/// How many batches say that they wrote to each table, but for those whose rows may have been swept
/// away.
pub(super) type BatchesByTable = BTreeMap<String, u64>;

/// How long before its batch a row may say that it was made.
const ROW_BEFORE_BATCH: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Of batches from when on all rows of a table must be there.
fn kept_since(scope: &Scope<'_>, table: &str) -> Moment {
    let swept = scope.swept.get(table).map(|before| before.after(ROW_BEFORE_BATCH));
    swept.unwrap_or(Moment::from_micros(i64::MIN))
}

/// Every seal follows from the one before, and the anchor's are there.
pub(super) async fn chain(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<BatchesByTable, sqlx::Error> {
    let (mut heads, mut firsts) = (BTreeMap::new(), BTreeMap::new());
    if let Some(anchor) = scope.against {
        anchored(db, anchor, faults).await?;
        if scope.is_since {
            proven.fresh = Fresh::after(db, anchor).await?;
            proven.fresh.find_rows(db, (scope.engine, &scope.sealed)).await?;
            let of_writers = |(id, hash): (&i64, &String)| (writer_of(*id), (*id, hash.clone()));
            heads.extend(anchor.heads.iter().map(of_writers));
        }
    }
    let kept = scope.sealed.iter().map(|shape| (shape.table(), kept_since(scope, shape.table())));
    let kept: BTreeMap<&str, Moment> = kept.collect();
    let mut batches = BatchesByTable::new();
    let sql = format!(
        "SELECT id, previous, digests, hash, created_at FROM writer_batches \
         WHERE (hash <> '' OR digests <> '' OR previous <> '') AND {} ORDER BY id",
        proven.fresh.batches("id")
    );
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(&mut *db);
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        let (previous, said, hash): (String, String, String) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let at = Moment::from_micros(row.try_get(4)?);
        if seal_hash(&previous, id, &said, at) != hash {
            faults.add("seal-chain", format!("batch {id}: its seal does not fit it"));
        }
        for table in digests(&said).into_keys() {
            match kept.get(table.as_str()) {
                Some(since) => *batches.entry(table).or_default() += u64::from(at >= *since),
                None => {
                    faults.add(
                        "seal",
                        format!("batch {id} wrote to {table}, which is no sealed table"),
                    );
                }
            }
        }
        match heads.insert(writer_of(id), (id, hash)) {
            Some((_, head)) if head != previous => {
                faults.add("seal-chain", format!("batch {id} does not follow the one before"));
            }
            Some(_) => {}
            None if previous.is_empty() => {}
            None => {
                firsts.insert(id, previous);
            }
        }
        proven.batches += 1;
    }
    drop(rows);
    // A writer's first batch follows the last one that there was when the writer began: the
    // anchor's, one since, or one from long before.
    if let Some(anchor) = scope.against {
        firsts.retain(|_, previous| !anchor.heads.values().any(|head| head == previous));
    }
    retain_missing(db, &mut firsts, &proven.fresh).await?;
    if !proven.fresh.is_all() {
        retain_missing(db, &mut firsts, &Fresh::default()).await?;
    }
    for id in firsts.keys() {
        faults.add("seal-chain", format!("batch {id} follows one that is not there"));
    }
    proven.anchor.heads = heads.into_values().collect();
    Ok(batches)
}

/// What a batch says that it wrote: digests by table.
fn digests(said: &str) -> BTreeMap<String, String> {
    serde_json::from_str(said).unwrap_or_default()
}

/// Of batches, each with the hash of the one that it follows, retains those that follow none of
/// these. There is no index of hashes: all are looked for in one go.
async fn retain_missing(
    db: &mut AnyConnection,
    firsts: &mut BTreeMap<i64, String>,
    among: &Fresh,
) -> Result<(), sqlx::Error> {
    if firsts.is_empty() {
        return Ok(());
    }
    let mut wanted: HashSet<String> = firsts.values().cloned().collect();
    let sql =
        format!("SELECT hash FROM writer_batches WHERE hash <> '' AND {}", among.batches("id"));
    let mut rows = sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).fetch(db);
    while let Some(hash) = rows.try_next().await? {
        if wanted.remove(&hash) && wanted.is_empty() {
            break;
        }
    }
    firsts.retain(|_, previous| wanted.contains(previous));
    Ok(())
}

/// Every batch of an anchor is there, as it was.
async fn anchored(
    db: &mut AnyConnection,
    anchor: &Anchor,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for (id, hash) in &anchor.heads {
        let sql = "SELECT hash FROM writer_batches WHERE id = $1";
        let found: Option<String> =
            sqlx::query_scalar(sql).bind(*id).fetch_optional(&mut *db).await?;
        if found.as_ref() != Some(hash) {
            faults.add("anchor", format!("batch {id} is not the one that was anchored"));
        }
    }
    Ok(())
}

/// The last sealed batch of each writer, and its hash: what an anchor holds on to. `db` must be in
/// one snapshot: what a writer saw of another one must be anchored as well.
///
/// # Errors
/// The database cannot be read.
pub async fn heads(db: &mut AnyConnection) -> Result<BTreeMap<i64, String>, sqlx::Error> {
    let sql = "SELECT id, hash FROM writer_batches WHERE id < $1 AND hash <> '' \
               ORDER BY id DESC LIMIT 1";
    let (mut heads, mut before) = (BTreeMap::new(), i64::MAX);
    // From writer to writer: there are few of them, and many batches of each.
    loop {
        let last: Option<(i64, String)> =
            sqlx::query_as(sql).bind(before).fetch_optional(&mut *db).await?;
        let Some((id, hash)) = last else { return Ok(heads) };
        before = first_of(writer_of(id));
        heads.insert(id, hash);
    }
}

/// What a batch says of the rows of one table that name it.
struct Sealed {
    batch: i64,
    /// The digest, where it says that it wrote any.
    said: Option<String>,
    /// Whether all of them must be there.
    is_kept: bool,
    rows: Vec<Row>,
}

/// The rows of a table are those that their batches say they wrote; answers how many batches have
/// any, of those of which all must be there.
async fn rows_as_sealed(
    db: &mut AnyConnection,
    (shape, fresh, kept): (&dyn Shape, &Fresh, Moment),
    faults: &mut Faults,
) -> Result<u64, sqlx::Error> {
    let table = shape.table();
    let columns = &shape.columns()[..shape.fixed()];
    let names: Vec<String> = columns.iter().map(|(name, _)| format!("t.{name}")).collect();
    let batch = BATCH_ID.0;
    let sql = format!(
        "SELECT t.{batch}, b.digests, b.created_at, {} FROM {table} t \
         LEFT JOIN writer_batches b ON b.id = t.{batch} AND {} WHERE {} ORDER BY t.{batch}",
        names.join(", "),
        fresh.batches("b.id"),
        fresh.rows(table, "t")
    );
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(db);
    let (mut group, mut found) = (None::<Sealed>, 0);
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        if let Some(ended) = group.take_if(|group| group.batch != id) {
            found += ended.check((table, columns.len()), faults);
        }
        let cells = cells(&row, columns)?;
        if let Some(group) = &mut group {
            group.rows.push(cells);
            continue;
        }
        let (said, at): (Option<String>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
        group = Some(Sealed {
            batch: id,
            said: said.and_then(|said| digests(&said).remove(table)),
            is_kept: at.is_some_and(|at| Moment::from_micros(at) >= kept),
            rows: vec![cells],
        });
    }
    if let Some(ended) = group {
        found += ended.check((table, columns.len()), faults);
    }
    Ok(found)
}

impl Sealed {
    /// Answers how many batches this is that wrote to the table, and of which all must be there.
    fn check(&self, (table, fixed): (&str, usize), faults: &mut Faults) -> u64 {
        let id = self.batch;
        match &self.said {
            Some(said) if !self.is_kept || *said == digest_of(fixed, self.rows.iter()) => {}
            Some(_) => {
                faults.add("seal", format!("batch {id}: rows of {table} are not as written"));
            }
            None => faults.add("seal", format!("batch {id} did not write to {table}")),
        }
        u64::from(self.is_kept && self.said.is_some())
    }
}

/// Tells of the batches that say they wrote to a table, and of which nothing is there: so many.
async fn batches_without_rows(
    db: &mut AnyConnection,
    (table, mut missing): (&str, u64),
    (fresh, kept): (&Fresh, Moment),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SELECT b.id FROM writer_batches b WHERE b.digests LIKE '%\"{table}\":%' \
         AND b.created_at >= $1 AND {} \
         EXCEPT SELECT t.{} FROM {table} t WHERE {} ORDER BY 1",
        fresh.batches("b.id"),
        BATCH_ID.0,
        fresh.rows(table, "t")
    );
    let mut ids = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql)).bind(kept.micros()).fetch(db);
    while let Some(id) = ids.try_next().await? {
        missing = missing.saturating_sub(1);
        faults.add("seal", format!("batch {id} wrote to {table}, and its rows are gone"));
    }
    // What says so in another spelling than the writer's is not found by it.
    if missing > 0 {
        faults.add("seal", format!("{missing} batches wrote to {table}, and their rows are gone"));
    }
    Ok(())
}

/// Columns that stand before a row's own.
const BESIDE: usize = 3;

fn cells(row: &AnyRow, columns: &[(&'static str, Kind)]) -> Result<Row, sqlx::Error> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Text => Cell::Text(row.try_get(at + BESIDE)?),
            Kind::Int => Cell::Int(row.try_get(at + BESIDE)?),
        })
    };
    columns.iter().enumerate().map(cell).collect()
}
