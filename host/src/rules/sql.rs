//! Statements about rule packs, who decides, and tariffs.

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::db::Written;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;

use super::assignment::{Role, Scope};
use super::pack::{Pack, PackKind};
use super::tariff::Tariff;

/// A version as it is written down.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// The version.
    pub version: Version,
    /// Its component as base64; none for a built-in pack that was never used.
    pub component: Option<String>,
}

/// New versions. The first to push a name and version wins.
pub static PACKS: Table<NewVersion> = Table {
    name: "rule_packs",
    fixed: &[
        text("id", |new| new.version.id().into()),
        text("name", |new| (&new.version.name).into()),
        text("version", |new| (&new.version.version).into()),
        text("kind", |new| new.version.kind.as_str().into()),
        text("digest", |new| (&new.version.digest).into()),
        text("title", |new| (&new.version.title).into()),
        text("contract", |new| (&new.version.contract).into()),
        text("facts", |new| serde_json::to_string(&new.version.facts).unwrap_or_default().into()),
        text("report", |new| (&new.version.report).into()),
        int("is_checked", |new| new.version.is_checked.into()),
        text("pushed_by", |new| (&new.version.pushed_by).into()),
        int("created_at", |new| new.version.created_at.into()),
    ],
    changing: &[text("component", |new| (&new.component).into())],
    on_conflict: None,
    is_sealed: false,
};

/// The component of a built-in pack, once it is used: a later binary may carry another one.
pub static PACK_COMPONENTS: Update<KeptComponent> = Update {
    name: "rule_packs",
    key: text("id", |kept| (&kept.id).into()),
    columns: &[text("component", |kept| (&kept.component).into())],
    only_where: Some("t.component IS NULL"),
};

/// A component to be kept with its version.
#[derive(Clone, Debug)]
pub struct KeptComponent {
    /// The version's key.
    pub id: String,
    /// The component as base64.
    pub component: String,
}

/// The history of assignments: a pack was assigned, unassigned, or taken out.
pub static ASSIGNMENTS: Table<AssignmentRow> = Table {
    name: "rule_assignments",
    fixed: &[
        int("generation", |row| row.generation.into()),
        text("kind", |row| row.kind.as_str().into()),
        text("scope", |row| row.scope.as_str().into()),
        text("role", |row| row.role.as_str().into()),
        text("name", |row| row.assigned.pack().map(|(name, _)| name.as_str()).into()),
        text("version", |row| row.assigned.pack().map(|(_, version)| version.as_str()).into()),
        int("is_held", |row| (row.assigned == Assigned::Held).into()),
        text("actor", |row| (&row.actor).into()),
        int("created_at", |row| row.created_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: false,
};

/// The generation, under lock.
pub static GENERATION: Lookup =
    Lookup { name: "rule_generation", key: "id", columns: &[("generation", Int)], lock: true };

/// The next generation.
pub static NEXT_GENERATION: Update<i64> = Update {
    name: "rule_generation",
    key: text("id", |_| RULES.into()),
    columns: &[int("generation", |generation| (*generation).into())],
    only_where: None,
};

/// The one row of [`GENERATION`].
pub const RULES: &str = "rules";

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

/// What decides, or is tried, from some change on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// The pack of this name and version.
    Pack((String, String)),
    /// None.
    Nothing,
    /// None, and payouts are held: the pack that decided kept failing.
    Held,
}

impl Assigned {
    /// Name and version of the pack, if it is one.
    #[must_use]
    pub const fn pack(&self) -> Option<&(String, String)> {
        match self {
            Self::Pack(pack) => Some(pack),
            Self::Nothing | Self::Held => None,
        }
    }
}

/// A change of what is assigned to one kind, scope and role.
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
    /// What counts from then on.
    pub assigned: Assigned,
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

impl Version {
    /// Its key.
    #[must_use]
    pub fn id(&self) -> String {
        version_id(&self.name, &self.version)
    }

    /// A version of this pack, pushed now.
    #[must_use]
    pub fn of(
        pack: &Pack,
        (report, is_checked): (String, bool),
        (pushed_by, now): (&str, Moment),
    ) -> Self {
        let about = &pack.about;
        Self {
            name: about.name.clone(),
            version: about.version.clone(),
            kind: about.kind,
            digest: pack.digest.clone(),
            title: about.title.clone(),
            contract: about.contract.clone(),
            facts: about.facts.clone(),
            report,
            is_checked,
            pushed_by: pushed_by.to_owned(),
            created_at: now,
        }
    }
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

/// For which kind of pack, and whom, payouts are held because the pack that decided was taken out.
///
/// # Errors
/// The database cannot be read.
pub async fn list_held(pool: &AnyPool) -> Result<Vec<(String, String)>, sqlx::Error> {
    let sql = "SELECT a.kind, a.scope FROM rule_assignments a WHERE a.is_held = 1 \
               AND a.role = 'active' AND NOT EXISTS (SELECT 1 FROM rule_assignments b \
               WHERE b.kind = a.kind AND b.scope = a.scope AND b.role = a.role \
               AND b.generation > a.generation) ORDER BY a.kind, a.scope";
    sqlx::query_as(sql).fetch_all(pool).await
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
        assigned: match (name.zip(version), row.try_get::<i64, _>("is_held")?) {
            (Some(pack), _) => Assigned::Pack(pack),
            (None, 0) => Assigned::Nothing,
            (None, _) => Assigned::Held,
        },
        actor: row.try_get("actor")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}

fn word<T>(row: &AnyRow, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, sqlx::Error> {
    let text: String = row.try_get(column)?;
    parse(&text).ok_or_else(|| sqlx::Error::Decode(format!("{column} is {text:?}").into()))
}

/// New tariffs.
pub static TARIFFS: Table<Tariff> = Table {
    name: "tariffs",
    fixed: &[
        text("id", |it| (&it.id).into()),
        text("pack", |it| (&it.pack).into()),
        text("version", |it| (&it.version).into()),
        text("digest", |it| (&it.digest).into()),
        text("lines", |it| it.lines_as_json().into()),
    ],
    changing: &[],
    on_conflict: Some("(id) DO NOTHING"),
    is_sealed: false,
};

/// Columns of a tariff `t` under which [`tariff`] finds it beside others.
pub const TARIFF: &str = "t.id AS tariff_id, t.pack AS tariff_pack, t.version AS tariff_version, \
    t.digest AS tariff_digest, t.lines AS tariff_lines";

/// The tariff of this id, if there is one.
///
/// # Errors
/// The database cannot be read.
pub async fn get_tariff(pool: &AnyPool, id: &str) -> Result<Option<Tariff>, sqlx::Error> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT {TARIFF} FROM tariffs t WHERE t.id = $1"));
    let row = sqlx::query(sql).bind(id).fetch_optional(pool).await?;
    row.map_or(Ok(None), |row| tariff(&row))
}

/// Reads a tariff out of a row with [`TARIFF`]; none where there was nothing to join.
///
/// # Errors
/// It is not what this program writes.
pub fn tariff(row: &AnyRow) -> Result<Option<Tariff>, sqlx::Error> {
    let Some(id) = row.try_get("tariff_id")? else { return Ok(None) };
    let lines: String = row.try_get("tariff_lines")?;
    let lines = serde_json::from_str(&lines);
    Ok(Some(Tariff {
        id,
        pack: row.try_get("tariff_pack")?,
        version: row.try_get("tariff_version")?,
        digest: row.try_get("tariff_digest")?,
        lines: lines.map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?,
        written: Written::default(),
    }))
}
