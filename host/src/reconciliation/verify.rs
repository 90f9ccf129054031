//! Proving the adjusting entries: each is in the books as it says, and was made by operators.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::approvals::verify::too_few;
use crate::db::Engine;
use crate::env::Env;
use crate::ledger::verify::{
    Check, Faults, Fresh, StoredJournal, These, read_journals, same_journals,
};

use super::Adjustment;
use super::sql::adjustment;

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[Check {
    name: "journal-without-adjustment",
    means: "is in the ledger and no adjusting entry",
    finds: "SELECT j.ref_id FROM journals j \
                LEFT JOIN settlement_adjustments s ON s.id = j.ref_id \
                WHERE j.ref_type = 'SettlementAdjustment' AND s.id IS NULL \
                AND {fresh journals j}",
}];

/// Proves every adjusting entry.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    (engine, fresh): (Engine, &Fresh),
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, fresh, faults).await?;
    }
    let sql = format!(
        "SELECT * FROM settlement_adjustments s WHERE {} ORDER BY id",
        fresh.rows("settlement_adjustments", "s")
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut *db).await?;
    let adjustments: Vec<Adjustment> = rows.iter().map(adjustment).collect::<Result<_, _>>()?;
    let these = These::some(engine, adjustments.iter().map(|found| found.id.as_str()));
    let mut booked: HashMap<String, Vec<StoredJournal>> = HashMap::new();
    let each = |journal: StoredJournal| {
        booked.entry(journal.ref_id.clone()).or_default().push(journal);
    };
    let about = format!("{} AND j.ref_type = 'SettlementAdjustment'", these.named_by("j.ref_id"));
    read_journals(db, (&about, these.parameters()), each).await?;
    let told = told(db).await?;
    for (row, found) in rows.iter().zip(adjustments) {
        if let Some(why) = objection(row, &found, &told)? {
            let what = format!("adjusting entry {} {why}", found.id);
            faults.add("adjustment-without-operator", what);
        }
        let booked = booked.remove(found.id.as_str()).unwrap_or_default();
        let expected = found.journal();
        if !expected.is_ok_and(|expected| same_journals(&[expected], &booked)) {
            let what = format!("adjusting entry {} is not in the books as it says", found.id);
            faults.add("adjustment-journal", what);
        }
    }
    Ok(())
}

/// A line of the audit log about an adjusting entry.
struct Told {
    batch: i64,
    actor: String,
    after: Value,
}

/// What the audit log says of each.
async fn told(db: &mut AnyConnection) -> Result<HashMap<String, Told>, sqlx::Error> {
    let sql = "SELECT batch_id, actor, after FROM audit WHERE action = 'settlement.adjust'";
    let rows: Vec<(i64, String, Option<String>)> = sqlx::query_as(sql).fetch_all(db).await?;
    let each = rows.into_iter().map(|(batch, actor, after)| {
        let after = serde_json::from_str(after.as_deref().unwrap_or("null")).unwrap_or(Value::Null);
        (after["id"].as_str().unwrap_or_default().to_owned(), Told { batch, actor, after })
    });
    Ok(each.collect())
}

/// What is wrong with who made it, as the audit log tells: in live it takes two.
fn objection(
    row: &AnyRow,
    found: &Adjustment,
    told: &HashMap<String, Told>,
) -> Result<Option<&'static str>, sqlx::Error> {
    let batch: i64 = row.try_get("batch_id")?;
    let (key, difference): (String, String) =
        (row.try_get("unique_key")?, row.try_get("difference")?);
    let Some(told) = told.get(found.id.as_str()).filter(|told| told.batch == batch) else {
        return Ok(Some("was made by nobody"));
    };
    let is_same = (key, difference) == (found.unique_key(), found.difference())
        && told.after["reference"] == found.reference;
    if !is_same {
        return Ok(Some("is another one than the audit log says"));
    }
    let least = if found.env == Env::Live { 2 } else { 1 };
    Ok(too_few(&told.after, &told.actor, least))
}
