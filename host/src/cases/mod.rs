//! Cases: what needs a person.
//!
//! A bank that contradicts itself, or an operator; money that came back in part; a message about
//! a payment that nobody here made: none of it is decided by the host. It is written down with
//! its evidence, the money in question stands in the suspense account, and an operator decides.
//!
//! A case has a fingerprint, so that what is told twice opens one case, not two.

mod kind;
pub mod sql;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::audit;
use crate::clock::Moment;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::id::{CaseId, IdGenerator};
use crate::ledger::{Command, Effects, LockedState};
use crate::money::{Currency, Minor};

pub use kind::{CaseKind, Resolution};

/// What needs a person.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// What is the matter.
    pub kind: CaseKind,
    /// What makes it the same case as one that was opened before.
    pub fingerprint: String,
    /// Test or live.
    pub env: Env,
    /// The merchant concerned, if there is one.
    pub merchant_id: Option<String>,
    /// What kind of object it is about: `payout`, `file`, or `route` where no object is known.
    pub subject_type: &'static str,
    /// The object's id.
    pub subject_id: String,
    /// The route concerned, by its name.
    pub route: Option<String>,
    /// The money in question, where there is some.
    pub amount: Option<(Currency, Minor)>,
    /// One sentence for the operator.
    pub summary: String,
    /// What shows it.
    pub evidence: Value,
    /// When it was opened.
    pub opened_at: Moment,
}

impl Case {
    /// The network's reference of the attempt that it is about.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.evidence.get("reference").and_then(Value::as_str)
    }

    /// The rows that open it, unless the same case was opened before. The command must have read
    /// [`sql::CASES_BY_FINGERPRINT`] for it.
    #[must_use]
    pub fn open_once(&self, locked: &LockedState<'_>, ids: &IdGenerator) -> Vec<RowChange> {
        match locked.row(&sql::CASES_BY_FINGERPRINT, &self.fingerprint) {
            Some(_) => Vec::new(),
            None => self.open(ids).into(),
        }
    }

    /// The command that opens it and does nothing else, unless the same case was opened before.
    #[must_use]
    pub fn opening(self, ids: &Arc<IdGenerator>) -> Command<()> {
        let (fingerprint, ids) = (self.fingerprint.clone(), Arc::clone(ids));
        let command = Command::new(move |locked| {
            let rows = self.open_once(locked, &ids);
            Ok(Effects { rows, ..Effects::default() }.and(()))
        });
        command.row(&sql::CASES_BY_FINGERPRINT, fingerprint)
    }

    /// The rows that open it: the case, and a line in the audit log.
    #[must_use]
    pub fn open(&self, ids: &IdGenerator) -> [RowChange; 2] {
        let line = audit::Change {
            actor: "host".to_owned(),
            address: String::new(),
            action: "case.open",
            subject_type: "case",
            subject_id: self.id.to_string(),
            before: None,
            after: Some(json!({ "kind": self.kind.as_str(), "subject_id": self.subject_id })),
        };
        [sql::CASES.insert(self), line.row(ids, self.opened_at)]
    }
}
