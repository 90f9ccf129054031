//! Who changed what: an append-only log.

use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{RowChange, Table};
use crate::id::{AuditId, IdGenerator};

/// One change, with what it was before and after. Secrets are never part of it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Who: `operator`, or a member's or key's id.
    pub actor: String,
    /// The client's IP address, as text.
    pub address: String,
    /// What was done, such as `wallet.freeze`.
    pub action: &'static str,
    /// To what kind of object.
    pub subject_type: &'static str,
    /// The id of that object.
    pub subject_id: String,
    /// The object before the change, as JSON; none for a new one.
    pub before: Option<Value>,
    /// How it is now.
    pub after: Option<Value>,
}

const ROWS: Table = Table {
    name: "audit",
    columns: &[
        ("id", Text),
        ("actor", Text),
        ("action", Text),
        ("subject_type", Text),
        ("subject_id", Text),
        ("before", Text),
        ("after", Text),
        ("address", Text),
        ("created_at", Int),
    ],
    on_conflict: None,
};

impl Change {
    /// The change as a row for the writer.
    #[must_use]
    pub fn row(&self, ids: &IdGenerator, now: Moment) -> RowChange {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        RowChange::Insert(
            &ROWS,
            vec![
                ids.id::<AuditId>().as_str().into(),
                self.actor.as_str().into(),
                self.action.into(),
                self.subject_type.into(),
                self.subject_id.as_str().into(),
                json(&self.before).into(),
                json(&self.after).into(),
                self.address.as_str().into(),
                now.micros().into(),
            ],
        )
    }
}

/// A line as it was written.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields of a change, and when it was made")]
pub struct Line {
    pub id: String,
    pub actor: String,
    pub action: String,
    pub subject_type: String,
    pub subject_id: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub address: String,
    pub created_at: Moment,
}

/// A page of the log, newest first, before `cursor`.
///
/// # Errors
/// The database cannot be read.
pub async fn list_lines(
    pool: &AnyPool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Vec<Line>, sqlx::Error> {
    let sql = "SELECT * FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2";
    let rows = sqlx::query(sql).bind(cursor.unwrap_or("~")).bind(limit + 1).fetch_all(pool).await?;
    rows.iter().map(line).collect()
}

/// Whether the log has this line.
///
/// # Errors
/// The database cannot be read.
pub async fn has_line(pool: &AnyPool, id: &str) -> Result<bool, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM audit WHERE id = $1";
    let found: i64 = sqlx::query_scalar(sql).bind(id).fetch_one(pool).await?;
    Ok(found == 1)
}

fn line(row: &AnyRow) -> Result<Line, sqlx::Error> {
    let json = |column| {
        let text: Option<String> = row.try_get(column)?;
        Ok::<_, sqlx::Error>(text.and_then(|text| serde_json::from_str(&text).ok()))
    };
    Ok(Line {
        id: row.try_get("id")?,
        actor: row.try_get("actor")?,
        action: row.try_get("action")?,
        subject_type: row.try_get("subject_type")?,
        subject_id: row.try_get("subject_id")?,
        before: json("before")?,
        after: json("after")?,
        address: row.try_get("address")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
