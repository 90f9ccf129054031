//! Proving that what waited for others was approved by enough of them, and not by whoever made it.

use serde_json::Value;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use crate::ledger::verify::{Faults, Fresh};

/// Looks at every approval of a payout and of a batch.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for (name, sql) in [
        (
            "payout-approval",
            "SELECT p.id, p.env, p.maker, k.created_by, a.actor, a.after FROM audit a \
             JOIN payouts p ON p.id = a.subject_id LEFT JOIN api_keys k ON k.id = p.maker \
             WHERE a.action = 'payout.approve' AND {fresh audit a}",
        ),
        // What the rules hold is let go by others in the sandbox, too.
        (
            "payout-release",
            "SELECT p.id, 'live' AS env, p.maker, k.created_by, a.actor, a.after FROM audit a \
             JOIN payouts p ON p.id = a.subject_id LEFT JOIN api_keys k ON k.id = p.maker \
             WHERE a.action = 'payout.release' AND a.after LIKE '%\"approved\":%' \
             AND {fresh audit a}",
        ),
        (
            "batch-approval",
            "SELECT b.id, b.env, b.maker, k.created_by, a.actor, a.after FROM audit a \
             JOIN batches b ON b.id = a.subject_id LEFT JOIN api_keys k ON k.id = b.maker \
             WHERE a.action = 'batch.approve' AND {fresh audit a}",
        ),
    ] {
        let sql = AssertSqlSafe(fresh.filled_in(sql));
        for row in sqlx::query(sql).fetch_all(&mut *db).await? {
            let approval = Approval {
                env: row.try_get("env")?,
                maker: row.try_get("maker")?,
                made_by: row.try_get("created_by")?,
                actor: row.try_get("actor")?,
                after: row.try_get("after")?,
            };
            if let Some(why) = approval.objection() {
                let id: String = row.try_get("id")?;
                faults.add(name, format!("{id} {why}"));
            }
        }
    }
    Ok(())
}

/// A line of the audit log about an approval, and who made what was approved.
struct Approval {
    env: String,
    maker: String,
    made_by: Option<String>,
    actor: String,
    after: Option<String>,
}

/// What is wrong with who approved something, as [`super::Agreement::approved_by`] has written it:
/// they are fewer than it took, or than `least`, or somebody else than whoever did it.
#[must_use]
pub fn too_few(after: &Value, actor: &str, least: u64) -> Option<&'static str> {
    let approved = &after["approved"];
    let people = approved["people"].as_array().map_or(&[][..], Vec::as_slice);
    let by: Vec<&str> = people.iter().filter_map(|person| person["by"].as_str()).collect();
    let mut distinct = by.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let needed = approved["needed"].as_u64().unwrap_or(u64::MAX).max(least);
    if distinct.len() != by.len() || u64::try_from(by.len()).unwrap_or(0) < needed {
        return Some("was approved by fewer than it takes");
    }
    let is_other = by.last() != Some(&actor);
    is_other.then_some("was approved by somebody else than the audit log says")
}

impl Approval {
    /// What is wrong with it.
    fn objection(&self) -> Option<&'static str> {
        let after = self.after.as_deref().unwrap_or("null");
        let after: Value = serde_json::from_str(after).unwrap_or_default();
        if let Some(why) = too_few(&after, &self.actor, 0) {
            return Some(why);
        }
        let people = after["approved"]["people"].as_array().map_or(&[][..], Vec::as_slice);
        let is_own = |person: &Value| {
            let by = person["by"].as_str();
            by == Some(&self.maker)
                || (self.env == "live"
                    && by == self.made_by.as_deref()
                    && person["role"] != "owner")
        };
        people
            .iter()
            .any(is_own)
            .then_some("was approved by whoever made it, or made the key that it was made with")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_takes_enough_others() {
        let objection = |env: &str, people: &[(&str, Option<&str>)], needed: u64| {
            let people: Vec<Value> =
                people.iter().map(|(by, role)| json!({ "by": by, "role": role })).collect();
            let approval = Approval {
                env: env.to_owned(),
                maker: "key".to_owned(),
                made_by: Some("ada".to_owned()),
                actor: "ben".to_owned(),
                after: Some(
                    json!({ "approved": { "people": people, "needed": needed } }).to_string(),
                ),
            };
            approval.objection().map(|why| why.split(' ').nth(3).unwrap_or_default())
        };
        assert_eq!(objection("live", &[("ben", None)], 1), None);
        assert_eq!(objection("live", &[("cyd", Some("admin")), ("ben", None)], 2), None);
        assert_eq!(objection("live", &[("ben", None)], 2), Some("fewer"));
        assert_eq!(objection("live", &[("ben", None), ("ben", None)], 2), Some("fewer"));
        assert_eq!(objection("live", &[], 0), Some("somebody"));
        assert_eq!(objection("live", &[("cyd", None)], 1), Some("somebody"));
        let ada = |role| [("ada", role), ("ben", None)];
        assert_eq!(objection("live", &ada(Some("admin")), 2), Some("whoever"));
        assert_eq!(objection("live", &ada(None), 2), Some("whoever"));
        assert_eq!(objection("live", &ada(Some("owner")), 2), None);
        assert_eq!(objection("test", &ada(None), 2), None);
        assert_eq!(objection("test", &[("key", None), ("ben", None)], 2), Some("whoever"));
    }
}
