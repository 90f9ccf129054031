//! The seals of the writer's batches: each follows from the one before, and covers what is there.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{BATCH_ID, Shape};
use crate::db::cell::{Cell, Kind, Row};

use super::super::seal::{digest_of, first_of, seal_hash, writer_of};
use super::{Anchor, Faults, Fresh, Proven, Scope};

/// Every batch's seal covers what is there: no row was changed, added, moved or taken away. There may
/// be very many batches, so that nothing is kept of any: what each says comes with its rows.
pub(super) async fn compare(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for shape in &scope.sealed {
        let swept = scope.swept.get(shape.table()).copied();
        let swept = swept.map(|before| before.after(ROW_BEFORE_BATCH));
        rows_as_sealed(db, (*shape, fresh, swept), faults).await?;
        batches_without_rows(db, (shape.table(), fresh, swept), faults).await?;
    }
    Ok(())
}

/// How long before its batch a row may say that it was made.
const ROW_BEFORE_BATCH: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Every seal follows from the one before, and the anchor's are there.
pub(super) async fn chain(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
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
    let tables: BTreeSet<&str> = scope.sealed.iter().map(|shape| shape.table()).collect();
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
        let at: i64 = row.try_get(4)?;
        if seal_hash(&previous, id, &said, Moment::from_micros(at)) != hash {
            faults.add("seal-chain", format!("batch {id}: its seal does not fit it"));
        }
        for table in digests(&said).keys().filter(|table| !tables.contains(table.as_str())) {
            faults.add("seal", format!("batch {id} wrote to {table}, and its rows are gone"));
        }
        match heads.insert(writer_of(id), (id, hash)) {
            Some((_, head)) if head != previous => {
                faults.add("seal-chain", format!("batch {id} does not follow the one before"));
            }
            Some(_) => {}
            None if previous.is_empty() => {}
            None => drop(firsts.insert(id, previous)),
        }
        proven.batches += 1;
    }
    drop(rows);
    // A writer's first batch follows the last one that there was when the writer began: that may
    // have been long before the anchor.
    forget_those_there(db, &mut firsts, &proven.fresh).await?;
    if !proven.fresh.is_all() {
        forget_those_there(db, &mut firsts, &Fresh::default()).await?;
    }
    for id in firsts.keys() {
        faults.add("seal-chain", format!("batch {id} follows one that is not there"));
    }
    proven.anchor.heads = heads.into_values().collect();
    Ok(())
}

/// What a batch says that it wrote: digests by table.
fn digests(said: &str) -> BTreeMap<String, String> {
    serde_json::from_str(said).unwrap_or_default()
}

/// Leaves of batches, each with the hash of the one that it follows, those that follow none of
/// these. There is no index of hashes: one look at all of them is for all.
async fn forget_those_there(
    db: &mut AnyConnection,
    firsts: &mut BTreeMap<i64, String>,
    among: &Fresh,
) -> Result<(), sqlx::Error> {
    if firsts.is_empty() {
        return Ok(());
    }
    let wanted: HashSet<String> = firsts.values().cloned().collect();
    let mut found: HashSet<String> = HashSet::new();
    let sql =
        format!("SELECT hash FROM writer_batches WHERE hash <> '' AND {}", among.batches("id"));
    let mut rows = sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).fetch(db);
    while let Some(hash) = rows.try_next().await? {
        if wanted.contains(&hash) {
            found.insert(hash);
        }
    }
    firsts.retain(|_, previous| !found.contains(previous));
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
    /// Whether some of them may have been swept away.
    may_lack_some: bool,
    rows: Vec<Row>,
}

/// The rows of a table are those that their batches say they wrote.
async fn rows_as_sealed(
    db: &mut AnyConnection,
    (shape, fresh, swept): (&dyn Shape, &Fresh, Option<Moment>),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
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
    let mut group: Option<Sealed> = None;
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        if let Some(ended) = group.take_if(|group| group.batch != id) {
            ended.check((table, columns.len()), faults);
        }
        let cells = cells(&row, columns)?;
        if let Some(group) = &mut group {
            group.rows.push(cells);
            continue;
        }
        let (said, at): (Option<String>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
        let at = at.map(Moment::from_micros);
        group = Some(Sealed {
            batch: id,
            said: said.and_then(|said| digests(&said).remove(table)),
            may_lack_some: swept.is_some_and(|before| at.is_some_and(|at| at < before)),
            rows: vec![cells],
        });
    }
    if let Some(ended) = group {
        ended.check((table, columns.len()), faults);
    }
    Ok(())
}

impl Sealed {
    fn check(&self, (table, fixed): (&str, usize), faults: &mut Faults) {
        let id = self.batch;
        match &self.said {
            Some(said) if self.may_lack_some || *said == digest_of(fixed, self.rows.iter()) => {}
            Some(_) => {
                faults.add("seal", format!("batch {id}: rows of {table} are not as written"));
            }
            None => faults.add("seal", format!("batch {id} did not write to {table}")),
        }
    }
}

/// Of what a batch says that it wrote to a table, something is there, unless it may have been swept.
async fn batches_without_rows(
    db: &mut AnyConnection,
    (table, fresh, swept): (&str, &Fresh, Option<Moment>),
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
    let since = swept.map_or(i64::MIN, Moment::micros);
    let mut ids = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql)).bind(since).fetch(db);
    while let Some(id) = ids.try_next().await? {
        faults.add("seal", format!("batch {id} wrote to {table}, and its rows are gone"));
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
