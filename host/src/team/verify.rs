//! Proving that every member is what somebody made them, and that nothing of theirs stands in clear.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::{AnyConnection, Row as _};

use crate::ledger::verify::{Check, Faults, Fresh};

use super::member::OWNERS_MAX;

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "member-invited",
        means: "is a member whom nobody invited, or somebody else",
        finds: "SELECT m.id FROM members m LEFT JOIN audit a ON a.subject_id = m.id \
                AND a.action = 'member.invite' AND a.actor = m.created_by WHERE a.id IS NULL",
    },
    Check {
        name: "member-merchant",
        means: "is a member of nobody's team",
        finds: "SELECT m.id FROM members m LEFT JOIN merchants t ON t.id = m.merchant_id \
                WHERE t.id IS NULL",
    },
    Check {
        name: "member-clear",
        means: "is a member of whom a secret is kept in clear",
        finds: "SELECT id FROM members WHERE (password IS NOT NULL \
                AND password NOT LIKE '$argon2id$%') OR (otp_secret IS NOT NULL \
                AND otp_secret NOT LIKE 's1.%') OR (otp_pending IS NOT NULL \
                AND otp_pending NOT LIKE 's1.%') OR LENGTH(invitation) <> 64",
    },
    Check {
        name: "session-begun",
        means: "is a session that its member did not begin, or of which more is kept than a hash",
        finds: "SELECT s.id FROM sessions s LEFT JOIN audit a ON a.subject_id = s.id \
                AND a.action = 'session.begin' AND a.actor = s.member_id \
                WHERE a.id IS NULL OR LENGTH(s.hash) <> 64",
    },
];

/// Compares every member with what the audit log says of them.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(db, fresh, faults).await?;
    }
    let said = last_said(db).await?;
    let mut owners: HashMap<String, usize> = HashMap::new();
    let sql = "SELECT id, merchant_id, email, name, role, permissions, status FROM members";
    for row in sqlx::query(sql).fetch_all(db).await? {
        let id: String = row.try_get("id")?;
        let last = said.get(&id);
        let text = |name| row.try_get::<String, _>(name);
        let mut is_as_said = last.is_some();
        for name in ["email", "name", "role", "status"] {
            is_as_said &= last
                .is_some_and(|last| last[name] == Value::String(text(name).unwrap_or_default()));
        }
        let is_there = matches!(text("status")?.as_str(), "active" | "invited");
        if is_there && text("role")? == "owner" {
            *owners.entry(text("merchant_id")?).or_default() += 1;
        }
        let permissions: Value = serde_json::from_str(&text("permissions")?).unwrap_or_default();
        if !is_as_said || last.is_none_or(|last| last["permissions"] != permissions) {
            faults.add("member-standing", format!("member {id} was changed by nobody"));
        }
    }
    for (merchant, _) in owners.into_iter().filter(|(_, count)| *count > OWNERS_MAX) {
        faults
            .add("member-owners", format!("merchant {merchant} has more owners than there may be"));
    }
    Ok(())
}

/// What the last line about each member says.
async fn last_said(db: &mut AnyConnection) -> Result<HashMap<String, Value>, sqlx::Error> {
    let sql = "SELECT subject_id, after FROM audit WHERE action IN ('member.invite', \
               'member.update', 'member.accept', 'member.reset', 'member.remove') ORDER BY id";
    let mut said = HashMap::new();
    for row in sqlx::query(sql).fetch_all(db).await? {
        let after: Option<String> = row.try_get(1)?;
        let after = serde_json::from_str(after.as_deref().unwrap_or("null")).unwrap_or_default();
        said.insert(row.try_get(0)?, after);
    }
    Ok(said)
}
