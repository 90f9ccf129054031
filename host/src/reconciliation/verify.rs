//! Proving the adjusting entries: each is in the books as it says, and was made by operators.

use std::collections::HashMap;

use sqlx::AnyConnection;

use crate::ledger::verify::{Check, Faults, StoredJournal, read_journals, same_journals};

use super::sql::adjustment;

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-adjustment",
        means: "is in the ledger and no adjusting entry",
        finds: "SELECT j.ref_id FROM journals j \
                LEFT JOIN settlement_adjustments s ON s.id = j.ref_id \
                WHERE j.ref_type = 'SettlementAdjustment' AND s.id IS NULL",
    },
    Check {
        name: "adjustment-without-operator",
        means: "is an adjusting entry that no two operators made",
        finds: "SELECT s.id FROM settlement_adjustments s LEFT JOIN audit a \
                ON a.batch_id = s.batch_id AND a.subject_id = s.route || '/' || s.reference \
                AND a.action = 'settlement.adjust' WHERE a.id IS NULL \
                OR (s.env = 'live' AND a.after NOT LIKE '%\"requested_by\":\"%')",
    },
];

/// Proves every adjusting entry.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, faults).await?;
    }
    let mut booked: HashMap<String, Vec<StoredJournal>> = HashMap::new();
    let condition = "j.ref_type = 'SettlementAdjustment'";
    let each = |journal: StoredJournal| {
        booked.entry(journal.ref_id.clone()).or_default().push(journal);
    };
    read_journals(db, (condition, &[]), each).await?;
    let sql = "SELECT * FROM settlement_adjustments ORDER BY id";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let found = adjustment(&row)?;
        let booked = booked.remove(found.id.as_str()).unwrap_or_default();
        let expected = found.journal();
        if !expected.is_ok_and(|expected| same_journals(&[expected], &booked)) {
            let what = format!("adjusting entry {} is not in the books as it says", found.id);
            faults.add("adjustment-journal", what);
        }
    }
    Ok(())
}
