//! Statements about rule packs and who decides.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::bulk::Kind::{Int, Text};
use crate::db::bulk::{Lookup, Row, Table, Update};

use super::assignment::{Role, Scope};
use super::pack::{Pack, PackKind};

/// New versions. The first to push a name and version wins.
pub const PACKS: Table = Table {
    name: "rule_packs",
    columns: &[
        ("id", Text),
        ("name", Text),
        ("version", Text),
        ("kind", Text),
        ("digest", Text),
        ("title", Text),
        ("contract", Text),
        ("facts", Text),
        ("component", Text),
        ("report", Text),
        ("is_checked", Int),
        ("pushed_by", Text),
        ("created_at", Int),
    ],
    on_conflict: None,
};

/// The component of a built-in pack, once it is used: a later binary may carry another one.
pub const PACK_COMPONENTS: Update = Update {
    name: "rule_packs",
    key: "id",
    columns: &[("component", Text)],
    only_where: Some("t.component IS NULL"),
};

/// The history of assignments: a pack was assigned, or the last one was unassigned.
pub const ASSIGNMENTS: Table = Table {
    name: "rule_assignments",
    columns: &[
        ("generation", Int),
        ("kind", Text),
        ("scope", Text),
        ("role", Text),
        ("name", Text),
        ("version", Text),
        ("actor", Text),
        ("created_at", Int),
    ],
    on_conflict: None,
};

/// The generation, under lock.
pub const GENERATION: Lookup =
    Lookup { name: "rule_generation", key: "id", columns: &[("generation", Int)], lock: true };

/// The next generation.
pub const NEXT_GENERATION: Update = Update {
    name: "rule_generation",
    key: "id",
    columns: &[("generation", Int)],
    only_where: None,
};

/// The one row of [`GENERATION`].
pub const RULES: &str = "rules";

/// Activations that wait for a second person.
pub const REQUESTS: Table = Table {
    name: "rule_requests",
    columns: &[("id", Text), ("actor", Text), ("created_at", Int)],
    on_conflict: Some(
        "(id) DO UPDATE SET actor = excluded.actor, created_at = excluded.created_at",
    ),
};

/// For taking a request away.
pub const REQUEST_KEYS: Update =
    Update { name: "rule_requests", key: "id", columns: &[], only_where: None };

/// A version of a pack as it is kept.
#[derive(Clone, Debug)]
pub struct Version {
    /// The name in its rules.
    pub name: String,
    /// The version in its rules.
    pub version: String,
    /// What it decides.
    pub kind: PackKind,
    /// SHA-256 of its file.
    pub digest: String,
    /// A title to show; it decides nothing.
    pub title: String,
    /// The contract that it was built against.
    pub contract: String,
    /// Facts that it wants to know.
    pub facts: Vec<String>,
    /// What its checks found, as JSON.
    pub report: String,
    /// Whether it passed.
    pub is_checked: bool,
    /// Who pushed it.
    pub pushed_by: String,
    /// When it was pushed, or first listed by a host.
    pub created_at: Moment,
}

/// A pack assigned, or none from then on.
#[derive(Clone, Debug)]
pub struct AssignmentRow {
    /// The number of the change; every change takes the next one.
    pub generation: i64,
    /// What is decided there.
    pub kind: PackKind,
    /// Whose payouts are decided.
    pub scope: Scope,
    /// Whether the pack decides or is tried.
    pub role: Role,
    /// Name and version of the pack; none if it was unassigned.
    pub pack: Option<(String, String)>,
    /// Who wanted it so.
    pub actor: String,
    /// When the change was made.
    pub created_at: Moment,
}

/// The key of a version.
#[must_use]
pub fn version_id(name: &str, version: &str) -> String {
    format!("{name}/{version}")
}

/// A version as a row of [`PACKS`].
#[must_use]
pub fn version_row(
    pack: &Pack,
    component: Option<String>,
    (report, is_checked): (String, bool),
    (pushed_by, now): (&str, Moment),
) -> Row {
    let about = &pack.about;
    vec![
        version_id(&about.name, &about.version).into(),
        about.name.as_str().into(),
        about.version.as_str().into(),
        about.kind.as_str().into(),
        pack.digest.as_str().into(),
        about.title.as_str().into(),
        about.contract.as_str().into(),
        serde_json::to_string(&about.facts).unwrap_or_default().into(),
        component.into(),
        report.into(),
        i64::from(is_checked).into(),
        pushed_by.into(),
        now.micros().into(),
    ]
}

/// An assignment as a row of [`ASSIGNMENTS`].
#[must_use]
pub fn assignment_row(assignment: &AssignmentRow) -> Row {
    let (name, version) = assignment.pack.clone().unzip();
    vec![
        assignment.generation.into(),
        assignment.kind.as_str().into(),
        assignment.scope.as_str().into(),
        assignment.role.as_str().into(),
        name.into(),
        version.into(),
        assignment.actor.as_str().into(),
        assignment.created_at.micros().into(),
    ]
}

/// How many changes of assignments there have been.
///
/// # Errors
/// The database cannot be read.
pub async fn generation(pool: &AnyPool) -> Result<i64, sqlx::Error> {
    let sql = "SELECT generation FROM rule_generation WHERE id = 'rules'";
    sqlx::query_scalar(sql).fetch_one(pool).await
}

/// Every change of an assignment, oldest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_assignments(pool: &AnyPool) -> Result<Vec<AssignmentRow>, sqlx::Error> {
    let sql = "SELECT * FROM rule_assignments ORDER BY generation";
    sqlx::query(sql).fetch_all(pool).await?.iter().map(assignment).collect()
}

/// Every version, by name, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_versions(pool: &AnyPool) -> Result<Vec<Version>, sqlx::Error> {
    let sql = "SELECT id, name, version, kind, digest, title, contract, facts, report, \
               is_checked, pushed_by, created_at FROM rule_packs ORDER BY name, created_at DESC, id";
    sqlx::query(sql).fetch_all(pool).await?.iter().map(version).collect()
}

/// A version.
///
/// # Errors
/// The database cannot be read.
pub async fn get_version(
    pool: &AnyPool,
    (name, number): (&str, &str),
) -> Result<Option<Version>, sqlx::Error> {
    let sql = "SELECT id, name, version, kind, digest, title, contract, facts, report, \
               is_checked, pushed_by, created_at FROM rule_packs WHERE id = $1";
    let row = sqlx::query(sql).bind(version_id(name, number)).fetch_optional(pool).await?;
    row.as_ref().map(version).transpose()
}

/// The component with this digest, as base64.
///
/// # Errors
/// The database cannot be read.
pub async fn find_component(pool: &AnyPool, digest: &str) -> Result<Option<String>, sqlx::Error> {
    let sql =
        "SELECT component FROM rule_packs WHERE digest = $1 AND component IS NOT NULL LIMIT 1";
    sqlx::query_scalar(sql).bind(digest).fetch_optional(pool).await
}

/// Who asked for something that needs a second person, and when.
///
/// # Errors
/// The database cannot be read.
pub async fn get_request(
    pool: &AnyPool,
    id: &str,
) -> Result<Option<(String, Moment)>, sqlx::Error> {
    let sql = "SELECT actor, created_at FROM rule_requests WHERE id = $1";
    let row = sqlx::query(sql).bind(id).fetch_optional(pool).await?;
    row.map(|row| Ok((row.try_get(0)?, Moment::from_micros(row.try_get(1)?)))).transpose()
}

fn version(row: &AnyRow) -> Result<Version, sqlx::Error> {
    let facts: String = row.try_get("facts")?;
    Ok(Version {
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        kind: word(row, "kind", PackKind::parse)?,
        digest: row.try_get("digest")?,
        title: row.try_get("title")?,
        contract: row.try_get("contract")?,
        facts: serde_json::from_str(&facts).unwrap_or_default(),
        report: row.try_get("report")?,
        is_checked: row.try_get::<i64, _>("is_checked")? == 1,
        pushed_by: row.try_get("pushed_by")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}

fn assignment(row: &AnyRow) -> Result<AssignmentRow, sqlx::Error> {
    let name: Option<String> = row.try_get("name")?;
    let version: Option<String> = row.try_get("version")?;
    Ok(AssignmentRow {
        generation: row.try_get("generation")?,
        kind: word(row, "kind", PackKind::parse)?,
        scope: word(row, "scope", Scope::parse)?,
        role: word(row, "role", Role::parse)?,
        pack: name.zip(version),
        actor: row.try_get("actor")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}

fn word<T>(row: &AnyRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, sqlx::Error> {
    let text: String = row.try_get(column)?;
    parse(&text).ok_or_else(|| sqlx::Error::Decode(format!("{column} is {text:?}").into()))
}
