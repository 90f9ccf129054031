//! Proving saved recipients and blacklists against whatever else is stored about them.
//!
//! To make an identity anew takes the host's keys and its rails, and whoever proves a copy may
//! have neither: here the fields of a recipient are held to what follows from them, and to the
//! audit log. A host makes the identity anew before it pays
//! ([`super::RecipientDirectory::has_its_account`]).

use std::collections::{BTreeMap, HashMap};

use futures::TryStreamExt as _;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use crate::audit::masked_fields;
use crate::ledger::verify::{Check, Faults, Fresh};
use crate::rails::RecipientFields;

use super::identity::ACCOUNT_LENGTH;
use super::sql::searched;

/// Recipients that are looked at together.
const PORTION: i64 = 1_000;

/// Each query answers with ids; none is right.
const CHECKS: &[Check] = &[
    Check {
        name: "recipient-identity",
        means: "is a recipient with an identity that no host made",
        finds: "SELECT id FROM beneficiaries \
                WHERE (deleted_at IS NULL) <> (deleted_identity IS NULL) \
                OR (deleted_at IS NOT NULL AND identity <> 'deleted:' || id) \
                OR (LENGTH(COALESCE(deleted_identity, identity)) <> 22 \
                AND SUBSTR(COALESCE(deleted_identity, identity), 23, 1) <> '/')",
    },
    Check {
        name: "blacklist-entry",
        means: "is on the blacklist, and blocks no account",
        finds: "SELECT id FROM blacklist WHERE LENGTH(identity) <> 22",
    },
];
const _: () = assert!(ACCOUNT_LENGTH == 22, "identities begin with accounts");

/// Checks every saved recipient, and every entry of a blacklist.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(
    db: &mut AnyConnection,
    fresh: &Fresh,
    faults: &mut Faults,
) -> Result<(), sqlx::Error> {
    for check in CHECKS {
        check.run(&mut *db, fresh, faults).await?;
    }
    blocks(&mut *db, faults).await?;
    let mut after = String::new();
    loop {
        let saved = list_saved(&mut *db, &after).await?;
        let (Some(first), Some(last)) = (saved.first(), saved.last()) else { return Ok(()) };
        let told = list_told(&mut *db, (&first.id, &last.id)).await?;
        for recipient in &saved {
            recipient.check(told.get(&recipient.id), faults);
        }
        after.clone_from(&last.id);
    }
}

/// Whether an account is among the fields of a recipient, whatever its rail calls it.
#[must_use]
pub fn has_account(fields: &RecipientFields, account: &str) -> bool {
    fields.own().any(|(_, value)| value == account)
}

/// Whom an entry of a blacklist blocks has the account that the entry names.
async fn blocks(db: &mut AnyConnection, faults: &mut Faults) -> Result<(), sqlx::Error> {
    let sql = "SELECT x.id, x.subject, b.recipient FROM beneficiaries b JOIN blacklist x \
               ON x.currency = b.currency \
               AND x.identity = SUBSTR(COALESCE(b.deleted_identity, b.identity), 1, 22)";
    let mut rows = sqlx::query(sql).fetch(db);
    while let Some(row) = rows.try_next().await? {
        let (id, subject): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let saved: String = row.try_get(2)?;
        let (subject, saved) =
            (RecipientFields::from_json(&subject), RecipientFields::from_json(&saved));
        if !has_account(&saved, subject.account()) {
            let what =
                format!("{id} is on the blacklist, and blocks another account than it names");
            faults.add("blacklist-entry", what);
        }
    }
    Ok(())
}

/// A saved recipient as it is proved.
struct Saved {
    id: String,
    /// By its merchant, and not by a payout: the audit log has a line about it.
    is_by_hand: bool,
    /// The fields as the log would show them.
    shown: String,
    /// What it is looked for in.
    search: String,
    /// The same, as it follows from the rest.
    searched: String,
}

/// What the lines of the audit log about a recipient come to: for each block of fields, how often
/// it was saved, less how often something else took its place. That is the same in whichever order
/// the clocks of several hosts have put the lines.
type Told = BTreeMap<String, i64>;

impl Saved {
    fn check(&self, told: Option<&Told>, faults: &mut Faults) {
        let id = &self.id;
        if self.search != self.searched {
            let what = format!("{id} is a recipient who is looked for by what it does not have");
            faults.add("recipient-fields", what);
        }
        if !self.is_as_told(told) {
            let what = format!("{id} is a recipient whose fields were changed by nobody");
            faults.add("recipient-fields", what);
        }
    }

    /// Whether the fields are what is left of the lines. Nobody wrote down what a payout saved:
    /// then they may be what the lines begin with, too.
    fn is_as_told(&self, told: Option<&Told>) -> bool {
        match told {
            None => !self.is_by_hand,
            Some(told) if told.values().all(|count| *count == 0) => told.contains_key(&self.shown),
            Some(told) => told.get(&self.shown).is_some_and(|count| *count > 0),
        }
    }
}

/// The next saved recipients, whoever's they are, deleted ones included.
async fn list_saved(db: &mut AnyConnection, after: &str) -> Result<Vec<Saved>, sqlx::Error> {
    let sql = "SELECT id, source, name, account_name, external_reference, recipient, search \
               FROM beneficiaries WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = sqlx::query(sql).bind(after).bind(PORTION).fetch_all(db).await?;
    rows.iter().map(saved).collect()
}

fn saved(row: &AnyRow) -> Result<Saved, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column).map(Option::unwrap_or_default);
    let recipient = text("recipient")?;
    let fields = RecipientFields::from_json(&recipient);
    let (name, account_name) = (text("name")?, maybe("account_name")?);
    let reference = maybe("external_reference")?;
    Ok(Saved {
        id: text("id")?,
        is_by_hand: text("source")? == "manual",
        shown: masked_fields(&recipient).to_string(),
        search: text("search")?,
        searched: searched([&name, &account_name, fields.account(), &reference]),
    })
}

/// What the audit log says of recipients whose ids are in this range.
async fn list_told(
    db: &mut AnyConnection,
    (first, last): (&str, &str),
) -> Result<HashMap<String, Told>, sqlx::Error> {
    let sql = "SELECT subject_id, before, after FROM audit WHERE subject_id >= $1 \
               AND subject_id <= $2 AND subject_type = 'beneficiary'";
    let mut told: HashMap<String, Told> = HashMap::new();
    let mut lines = sqlx::query(sql).bind(first).bind(last).fetch(db);
    while let Some(line) = lines.try_next().await? {
        let of_it = told.entry(line.try_get(0)?).or_default();
        for (column, step) in [("before", -1_i64), ("after", 1)] {
            let side: Option<String> = line.try_get(column)?;
            let side = side.and_then(|text| serde_json::from_str::<Value>(&text).ok());
            if let Some(side) = side {
                *of_it.entry(side["recipient"].to_string()).or_default() += step;
            }
        }
    }
    Ok(told)
}
