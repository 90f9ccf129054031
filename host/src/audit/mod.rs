//! Who changed what: an append-only log.

use serde_json::Value;

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{RowChange, Table};
use crate::id::{AuditId, Mint};

/// One change, with what it was before and after. Secrets are never part of it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Who: `operator`, or a member's or key's id.
    pub actor: String,
    /// From which address.
    pub address: String,
    /// What was done, such as `wallet.freeze`.
    pub action: &'static str,
    /// To what kind of object.
    pub subject_type: &'static str,
    /// To which one.
    pub subject_id: String,
    /// How it was.
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
    pub fn row(&self, mint: &Mint, now: Moment) -> RowChange {
        let json = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        RowChange::Insert(
            &ROWS,
            vec![
                mint.id::<AuditId>().as_str().into(),
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
