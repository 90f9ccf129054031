//! Cases about payouts against the ledger: what stands in suspense, and how it left it.

use std::collections::HashMap;

use sqlx::AnyConnection;

use crate::cases::sql::{StoredCase, list_all_cases};
use crate::cases::{CaseKind, Resolution};
use crate::ledger::SystemAccount;
use crate::ledger::verify::{Check, Faults, StoredJournal, These, read_journals};
use crate::money::Minor;

use super::{Looked, PORTION};

const CHECKS: &[Check] = &[
    Check {
        name: "journal-without-case",
        means: "is in the ledger and no case",
        finds: "SELECT j.ref_id FROM journals j LEFT JOIN cases c ON c.id = j.ref_id \
                WHERE j.ref_type = 'Case' AND c.id IS NULL AND {fresh journals j}",
    },
    Check {
        name: "case-opened",
        means: "is a case that was opened by nobody",
        finds: "SELECT c.id FROM cases c LEFT JOIN audit a ON a.subject_id = c.id \
                AND a.action = 'case.open' WHERE a.id IS NULL",
    },
    Check {
        name: "case-resolved",
        means: "is a case that was resolved, or is open, against the audit log",
        finds: "SELECT c.id FROM cases c LEFT JOIN audit a ON a.subject_id = c.id \
                AND a.action = 'case.resolve' WHERE (c.status = 'resolved' AND a.id IS NULL \
                AND NOT (c.resolved_by = 'host' AND c.kind IN ('outcome_unknown', \
                'unknown_reference', 'file_unacknowledged', 'file_forgotten', 'file_stuck'))) \
                OR (c.status = 'open' AND a.id IS NOT NULL) \
                OR (a.id IS NOT NULL AND a.actor <> c.resolved_by)",
    },
];

/// Compares every case with what was booked for it.
pub(super) async fn verify(
    db: &mut AnyConnection,
    looked: Looked<'_>,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, looked.fresh, faults).await?;
    }
    for cases in list_all_cases(db).await?.chunks(PORTION) {
        let these = These::some(looked.engine, cases.iter().map(|case| case.case.id.as_str()));
        let mut booked: HashMap<(String, String), i64> = HashMap::new();
        let each = |journal: StoredJournal| {
            if let Some(moved) = journal.moved_into(&SystemAccount::Suspense) {
                booked.insert((journal.ref_id, journal.kind), moved);
            }
        };
        let about = format!("{} AND j.ref_type = 'Case'", these.named_by("j.ref_id"));
        read_journals(db, (&about, these.parameters()), each).await?;
        for case in cases {
            let id = case.case.id.to_string();
            let found = |kind: &str| booked.get(&(id.clone(), kind.to_owned())).copied();
            if found("case_opened") != opened(case) || found("case_resolved") != resolved(case) {
                let what = format!("case {id} does not stand in the suspense account as it says");
                faults.add("case-suspense", what);
            }
        }
    }
    Ok(())
}

/// What a case put into suspense.
fn opened(case: &StoredCase) -> Option<i64> {
    let amount = case.case.amount.map_or(Minor::ZERO, |(_, amount)| amount).units();
    match case.case.kind {
        CaseKind::PaidAfterFailure | CaseKind::PaidTwice => Some(-amount),
        CaseKind::RefusedAfterPayment | CaseKind::PartialReturn => Some(amount),
        _ => None,
    }
}

/// What its resolution took out again, where that was booked under the case itself.
fn resolved(case: &StoredCase) -> Option<i64> {
    if case.status != "resolved" {
        return None;
    }
    let resolution = Resolution::parse(case.resolution.as_deref().unwrap_or_default());
    match resolution {
        Some(Resolution::Charge | Resolution::GiveBack | Resolution::Acknowledge) | None => None,
        Some(_) => opened(case).map(|amount| -amount),
    }
}
