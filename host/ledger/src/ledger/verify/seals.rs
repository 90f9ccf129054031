//! The seals of the writer's batches: each follows from the one before, and covers what is there.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::TryStreamExt as _;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::clock::Moment;
use crate::db::bulk::{BATCH_ID, Shape};
use crate::db::cell::{Cell, Kind, Row};

use super::super::seal::{digest_of, first_of, seal_hash, writer_of};
use super::{Anchor, Faults, Fresh, Proven, Scope};

/// Every batch's seal covers what is there: no row was changed, added, moved or taken away.
pub(super) async fn compare(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    (mut seals, fresh): (Seals, &Fresh),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for shape in &scope.sealed {
        let swept = scope.swept.get(shape.table()).copied();
        seals_of(db, (*shape, swept), (&mut seals, fresh), faults).await?;
    }
    for (id, tables) in &seals.digests {
        for table in tables.keys() {
            let swept = scope.swept.get(table).copied();
            if !swept.is_some_and(|before| seals.is_older(*id, before)) {
                faults.add("seal", format!("batch {id} wrote to {table}, and its rows are gone"));
            }
        }
    }
    Ok(())
}

/// What batches say that they wrote.
#[derive(Default)]
pub(super) struct Seals {
    /// By batch and table.
    digests: HashMap<i64, BTreeMap<String, String>>,
    /// When, in microseconds.
    instants: HashMap<i64, i64>,
}

/// How long before its batch a row may say that it was made.
const ROW_BEFORE_BATCH: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

impl Seals {
    /// Whether rows of a batch may have been swept away.
    fn is_older(&self, id: i64, before: Moment) -> bool {
        let at = self.instants.get(&id).map(|at| Moment::from_micros(*at));
        at.is_some_and(|at| at < before.after(ROW_BEFORE_BATCH))
    }
}

/// Every seal follows from the one before, and the anchor's are there.
pub(super) async fn chain(
    db: &mut AnyConnection,
    scope: &Scope<'_>,
    proven: &mut Proven,
    faults: &mut Faults,
) -> Result<Seals, sqlx::Error> {
    let mut seals = Seals::default();
    let (mut heads, mut firsts) = (BTreeMap::new(), Vec::new());
    let mut hashes: HashSet<String> = HashSet::new();
    if let Some(anchor) = scope.against {
        anchored(db, anchor, faults).await?;
        if scope.is_since {
            proven.fresh = Fresh::after(db, anchor).await?;
            proven.fresh.find_rows(db, (scope.engine, &scope.sealed)).await?;
            hashes.extend(anchor.heads.values().cloned());
            let of_writers = |(id, hash): (&i64, &String)| (writer_of(*id), (*id, hash.clone()));
            heads.extend(anchor.heads.iter().map(of_writers));
        }
    }
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
        match heads.insert(writer_of(id), (id, hash.clone())) {
            Some((_, head)) if head != previous => {
                faults.add("seal-chain", format!("batch {id} does not follow the one before"));
            }
            Some(_) => {}
            None => firsts.push((id, previous)),
        }
        hashes.insert(hash);
        seals.digests.insert(id, serde_json::from_str(&said).unwrap_or_default());
        seals.instants.insert(id, at);
        proven.batches += 1;
    }
    drop(rows);
    // A writer's first batch follows the last one that there was when the writer began.
    for (id, previous) in firsts {
        if previous.is_empty() || hashes.contains(&previous) {
            continue;
        }
        // That may have been long before the anchor.
        if proven.fresh.is_all() || !is_there(db, &previous).await? {
            let what = format!("batch {id} follows one that is not there");
            faults.add("seal-chain", what);
        }
    }
    proven.anchor.heads = heads.into_values().collect();
    Ok(seals)
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

/// Whether there is a batch with this hash. There is no index: few writers begin and wait.
async fn is_there(db: &mut AnyConnection, hash: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT id FROM writer_batches WHERE hash = $1";
    let found: Option<i64> = sqlx::query_scalar(sql).bind(hash).fetch_optional(db).await?;
    Ok(found.is_some())
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

async fn seals_of(
    db: &mut AnyConnection,
    (shape, swept): (&dyn Shape, Option<Moment>),
    (seals, fresh): (&mut Seals, &Fresh),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    let table = shape.table();
    let columns = &shape.columns()[..shape.fixed()];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let batch = BATCH_ID.0;
    let (names, fresh) = (names.join(", "), fresh.rows(table, table));
    let sql = format!("SELECT {batch}, {names} FROM {table} WHERE {fresh} ORDER BY {batch}");
    let mut rows = sqlx::query(AssertSqlSafe(sql)).fetch(db);
    let mut group: Option<(i64, Vec<Row>)> = None;
    let mut end = |id: i64, rows: &[Row], faults: &mut Faults| {
        let said = seals.digests.get_mut(&id).and_then(|tables| tables.remove(table));
        let may_be_swept = swept.is_some_and(|before| seals.is_older(id, before));
        match said {
            Some(said) if may_be_swept || said == digest_of(columns.len(), rows.iter()) => {}
            Some(_) => {
                faults.add("seal", format!("batch {id}: rows of {table} are not as written"));
            }
            None => faults.add("seal", format!("batch {id} did not write to {table}")),
        }
    };
    while let Some(row) = rows.try_next().await? {
        let id: i64 = row.try_get(0)?;
        if let Some((known, rows)) = &group
            && *known != id
        {
            end(*known, rows, faults);
            group = None;
        }
        let cells = cells(&row, columns)?;
        group.get_or_insert_with(|| (id, Vec::new())).1.push(cells);
    }
    if let Some((id, rows)) = group {
        end(id, &rows, faults);
    }
    Ok(())
}

fn cells(row: &AnyRow, columns: &[(&'static str, Kind)]) -> Result<Row, sqlx::Error> {
    let cell = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(match kind {
            Kind::Text => Cell::Text(row.try_get(at + 1)?),
            Kind::Int => Cell::Int(row.try_get(at + 1)?),
        })
    };
    columns.iter().enumerate().map(cell).collect()
}
