//! Who changed what: an append-only log. What the writer's batches insert is sealed, batch by batch
//! in a chain for each writer, and the seals are anchored: no line is changed, moved, added or
//! taken away without `railhead verify` noticing.

mod refusals;

pub use refusals::{Refusals, Refused};

use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{RowChange, Table, int, text};
use crate::id::{AuditId, IdGenerator};

/// One change, with what it was before and after. Secrets are never part of it, and accounts of
/// recipients are masked: the log outlives what they were needed for.
#[derive(Clone, Debug)]
pub struct Change {
    /// Who: an operator's name, the id of a member of a team, or that of the key with which a
    /// merchant made the change; `host` where it acted by itself, `unknown` for a log-in that failed.
    pub actor: String,
    /// The client's IP address, as text.
    pub address: String,
    /// What was done, such as `wallet.freeze`.
    pub action: &'static str,
    /// To what kind of object.
    pub subject_type: &'static str,
    /// The id of that object, or what somebody wrote in its place; the log keeps its beginning.
    pub subject_id: String,
    /// The object before the change, as JSON; none for a new one.
    pub before: Option<Value>,
    /// How it is now.
    pub after: Option<Value>,
}

/// The beginning of what a caller wrote, which may be of any length: logs keep no more of it.
/// PostgreSQL refuses a line of which more than 2,704 bytes are to stand in an index.
#[must_use]
pub fn shortened(text: &str) -> String {
    text.chars().take(limits::LOGGED_TEXT_MAX).collect()
}

/// A path with a star for each part that may be an id, which somebody may make up.
#[must_use]
pub fn without_ids(path: &str) -> String {
    let is_word = |part: &str| !part.bytes().any(|byte| byte.is_ascii_digit());
    let parts = path.split('/').map(|part| if is_word(part) { part } else { "*" });
    parts.collect::<Vec<_>>().join("/")
}

/// The last four characters of what identifies a person or an account; the others are hidden.
#[must_use]
pub fn masked(text: &str) -> String {
    let length = text.chars().count();
    // Of a short text, four characters would be all.
    let hidden = if length < 8 { length } else { length - 4 };
    text.chars().enumerate().map(|(at, char)| if at < hidden { '*' } else { char }).collect()
}

/// The same for every text of a JSON object, such as a recipient's fields.
#[must_use]
pub fn masked_fields(json: &str) -> Value {
    let mut fields = serde_json::from_str(json).unwrap_or_default();
    if let Value::Object(fields) = &mut fields {
        for value in fields.values_mut() {
            let shown = value.as_str().map(masked);
            *value = shown.map_or(Value::Null, Value::String);
        }
    }
    fields
}

/// New lines.
pub static AUDIT: Table<Line> = Table {
    name: "audit",
    fixed: &[
        text("id", |line| (&line.id).into()),
        text("actor", |line| (&line.actor).into()),
        text("action", |line| (&line.action).into()),
        text("subject_type", |line| (&line.subject_type).into()),
        text("subject_id", |line| (&line.subject_id).into()),
        text("before", |line| line.before.as_ref().map(Value::to_string).into()),
        text("after", |line| line.after.as_ref().map(Value::to_string).into()),
        text("address", |line| (&line.address).into()),
        int("created_at", |line| line.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: true,
};

impl Change {
    /// The change as a row for the writer.
    #[must_use]
    pub fn row(&self, ids: &IdGenerator, now: Moment) -> RowChange {
        AUDIT.insert(&Line {
            id: ids.id::<AuditId>().to_string(),
            actor: self.actor.clone(),
            action: self.action.to_owned(),
            subject_type: self.subject_type.to_owned(),
            subject_id: shortened(&self.subject_id),
            before: self.before.clone(),
            after: self.after.clone(),
            address: self.address.clone(),
            created_at: now,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_fits_into_an_index() {
        let longest = shortened(&"\u{1f980}".repeat(300));
        assert_eq!((longest.chars().count(), longest.len()), (256, 1_024));
        assert_eq!(shortened("/admin/v1/audit"), "/admin/v1/audit");
    }

    #[test]
    fn the_end_of_a_short_text_would_be_all_of_it() {
        for (text, shown) in [
            ("", ""),
            ("1234", "****"),
            ("1234567", "*******"),
            ("12345678", "****5678"),
            ("0123456785", "******6785"),
            ("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", "****\u{e9}\u{e9}\u{e9}\u{e9}"),
        ] {
            assert_eq!(masked(text), shown);
        }
        let fields = masked_fields(r#"{ "account_number": "0123456785", "bank_code": "058" }"#);
        let shown = serde_json::json!({ "account_number": "******6785", "bank_code": "***" });
        assert_eq!(fields, shown);
    }
}
