//! Rule packs: every version that was pushed, where it stands, and how it fared in shadow.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::conformance::packs::{PackReport, check};
use crate::decisions::shadow::{Difference, Tally, has_difference, list_differences, list_tallies};
use crate::error::{ErrorCode, Problem};
use crate::http::body::Upload;
use crate::http::{Page, PageQuery, Query};
use crate::ledger::Command;
use crate::rules::sql::{self, AssignmentRow, NewVersion, Version};
use crate::rules::store::PackStoreError;
use crate::rules::{OpenError, Pack, PackKind, Role, Scope};
use crate::wasm::pack::PackRefused;

use super::assignments::{Place, before, taken_out};
use super::write;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_rule_packs", &[]),
    (
        "push_rule_pack",
        &[
            ErrorCode::BodyTooLarge,
            ErrorCode::UnsupportedMediaType,
            ErrorCode::InvalidBody,
            ErrorCode::ValidationFailed,
            ErrorCode::StateConflict,
        ],
    ),
    ("get_rule_pack", &[ErrorCode::NotFound]),
    ("list_differences", &[ErrorCode::NotFound, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
];

/// A version of a rule pack.
#[derive(Debug, Serialize, ToSchema)]
pub struct PackView {
    /// Always `rule_pack`.
    #[schema(example = "rule_pack")]
    pub object: &'static str,
    /// The name in its rules.
    #[schema(example = "fraud")]
    pub name: String,
    /// The version in its rules; a pushed one never changes.
    #[schema(example = "1.0.0")]
    pub version: String,
    /// `fees` or `fraud`.
    pub kind: &'static str,
    /// A title to show; it decides nothing.
    pub title: String,
    /// The contract that it was built against.
    pub contract: String,
    /// SHA-256 of its file.
    pub digest: String,
    /// `uploaded` (it failed its checks), `checked`, `shadow`, `active`, `retired` or `taken_out`
    /// (it kept failing, and payouts are held).
    #[schema(example = "active")]
    pub state: &'static str,
    /// Where it decides: `platform`, or merchants' ids.
    pub active_for: Vec<String>,
    /// Where it was taken out because it kept failing, and payouts are held since.
    pub held_for: Vec<String>,
    /// Where it decided last of the versions of its name that do not now, and was neither retired nor
    /// gone back from: going back without a version means this one there.
    pub previous_for: Vec<String>,
    /// When it was last made to decide.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub activated_at: Option<Moment>,
    /// Where it is tried.
    pub shadow_for: Vec<String>,
    /// How it fared in shadow.
    pub shadow: Option<Tally>,
    /// Facts that it wants to know.
    pub facts: Vec<String>,
    /// What its checks found; null for a built-in pack, which was checked when it was built.
    pub conformance: Option<PackReport>,
    /// Who pushed it.
    pub pushed_by: String,
    /// When it was pushed, or first listed by a host.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// List rule packs
#[utoipa::path(
    get, path = "/admin/v1/rule-packs", operation_id = "list_rule_packs", tag = "Operator",
    responses((status = 200, description = "Every version, by name, newest first", body = inline(Page<PackView>))),
)]
pub async fn list(State(app): State<App>, _operator: Operator) -> Result<Page<PackView>, Problem> {
    let versions = sql::list_versions(app.db.pool()).await?;
    let standing = Standing::read(&app).await?;
    Ok(Page::whole(versions.into_iter().map(|version| standing.view(version)).collect()))
}

/// Retrieve a rule pack
#[utoipa::path(
    get, path = "/admin/v1/rule-packs/{name}/versions/{version}", operation_id = "get_rule_pack",
    tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    responses((status = 200, description = "The version", body = PackView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    _operator: Operator,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<PackView>, Problem> {
    let version = find(&app, (&name, &version)).await?;
    Ok(Json(Standing::read(&app).await?.view(version)))
}

/// Push a rule pack
///
/// The body is a component (`application/wasm`) that carries its rules and cases, or the text
/// of `rules.toml` (`application/toml`) for the built-in pack of its kind. The pack is checked; one
/// that fails is kept as `uploaded` and cannot be used.
#[utoipa::path(
    post, path = "/admin/v1/rule-packs", operation_id = "push_rule_pack", tag = "Operator",
    request_body(content(
        (Vec<u8> = "application/wasm"),
        (String = "application/toml"),
    )),
    responses(
        (status = 201, description = "Kept, with what its checks found", body = PackView),
        (status = 200, description = "This very pack was pushed before", body = PackView),
    ),
)]
pub async fn push(
    State(app): State<App>,
    operator: Operator,
    upload: Upload,
) -> Result<(StatusCode, Json<PackView>), Problem> {
    let component = match upload {
        Upload::Component(bytes) => bytes.to_vec(),
        Upload::Text(text) => app.pack_store.of_text(text).map_err(refused)?,
    };
    let opened = app.pack_store.open(component.clone()).await.map_err(refused)?;
    let pack = Arc::clone(&opened.pack);
    let name = (pack.about.name.clone(), pack.about.version.clone());
    if let Some(known) = known(&app, &pack).await? {
        return Ok((StatusCode::OK, Json(known)));
    }
    let report = {
        let pack = Arc::clone(&pack);
        tokio::task::spawn_blocking(move || check(&pack)).await.map_err(Problem::internal)?
    };
    let is_checked = report.failures.is_empty();
    let told = serde_json::to_string(&report).map_err(Problem::internal)?;
    let by = (operator.name.as_str(), app.now());
    let version = Version::of(&pack, (told, is_checked), by);
    let component = Some(BASE64_STANDARD.encode(&component));
    let row = sql::PACKS.insert(&NewVersion { version, component });
    let id = sql::version_id(&name.0, &name.1);
    let done = Done {
        action: "rule_pack.push",
        subject: ("rule_pack", &id),
        before: None,
        after: Some(json!({ "digest": pack.digest, "is_checked": is_checked })),
    };
    if let Err(problem) = write(&app, &operator, done, Command::rows(vec![row])).await {
        // Somebody else may have pushed it meanwhile; the first one counts.
        let known = known(&app, &pack).await?.ok_or(problem)?;
        return Ok((StatusCode::OK, Json(known)));
    }
    app.pack_store.keep_code(opened).await;
    let version = find(&app, (&name.0, &name.1)).await?;
    Ok((StatusCode::CREATED, Json(Standing::read(&app).await?.view(version))))
}

/// This very pack, if it was pushed before.
async fn known(app: &App, pack: &Pack) -> Result<Option<PackView>, Problem> {
    let name = (pack.about.name.as_str(), pack.about.version.as_str());
    let Some(known) = sql::get_version(app.db.pool(), name).await? else { return Ok(None) };
    if known.digest != pack.digest {
        let message = "This version was pushed before with other contents. Raise pack.version.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    Ok(Some(Standing::read(app).await?.view(known)))
}

/// List differences between a pack in shadow and the active one
#[utoipa::path(
    get, path = "/admin/v1/rule-packs/{name}/differences", operation_id = "list_differences",
    tag = "Operator", params(("name" = String, Path, description = "The pack"), PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<Difference>))),
)]
pub async fn differences(
    State(app): State<App>,
    _operator: Operator,
    Path(name): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Page<Difference>, Problem> {
    let limit = page.limit()?;
    let pool = app.db.pool();
    let versions = sql::list_versions(pool).await?;
    if !versions.iter().any(|version| version.name == name) {
        return Err(unknown());
    }
    let cursor = page.starting_after.as_deref();
    if let Some(cursor) = cursor
        && !has_difference(pool, &name, cursor).await?
    {
        return Err(PageQuery::unknown_cursor());
    }
    let differences = list_differences(pool, &name, (cursor, limit)).await?;
    Ok(Page::of(differences, limit))
}

/// A version of a pack.
///
/// # Errors
/// `not_found`.
pub(super) async fn find(app: &App, name: (&str, &str)) -> Result<Version, Problem> {
    sql::get_version(app.db.pool(), name).await?.ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::because(ErrorCode::NotFound, "There is no rule pack of this name and version.")
}

/// What a pack that cannot be opened is told: where it is wrong, and how.
fn refused(why: PackStoreError) -> Problem {
    let problems = match &why {
        PackStoreError::Refused(_, OpenError::Refused(PackRefused::Rules(problems))) => problems
            .iter()
            .map(|problem| json!({ "at": problem.at, "message": problem.message }))
            .collect(),
        PackStoreError::Refused(_, cause) => {
            vec![json!({ "at": "pack", "message": cause.to_string() })]
        }
        PackStoreError::Busy => {
            return unavailable("Another rule pack is being opened. Try again in a moment.", why);
        }
        PackStoreError::Machine(_) => {
            return unavailable("This host cannot compile a rule pack at present.", why);
        }
        PackStoreError::Database(_)
        | PackStoreError::Missing(_)
        | PackStoreError::Changed(_)
        | PackStoreError::CutOff => {
            return Problem::internal(why);
        }
    };
    let message = "The rule pack is refused: see error.detail.problems.";
    let problem = Problem::because(ErrorCode::ValidationFailed, message);
    problem.detail(json!({ "problems": problems }))
}

fn unavailable(message: &'static str, why: PackStoreError) -> Problem {
    Problem::because(ErrorCode::ServiceUnavailable, message).retry_after(1).caused_by(why)
}

/// Where every version stands.
struct Standing {
    default_fees: Option<String>,
    history: Vec<AssignmentRow>,
    tallies: std::collections::BTreeMap<String, Tally>,
}

impl Standing {
    async fn read(app: &App) -> Result<Self, Problem> {
        let pool = app.db.pool();
        let default_fees = app.pack_store.default_fees().map(|pack| pack.digest.clone());
        let history = sql::list_assignments(pool).await?;
        Ok(Self { default_fees, history, tallies: list_tallies(pool).await? })
    }

    fn view(&self, version: Version) -> PackView {
        let name = (version.name.clone(), version.version.clone());
        let mut newest: HashMap<_, &AssignmentRow> = HashMap::new();
        for row in &self.history {
            newest.insert((row.kind, &row.scope, row.role), row);
        }
        let assigned = |role| {
            let rows = newest.values().filter(|row| row.role == role);
            let rows = rows.filter(|row| row.assigned.pack() == Some(&name));
            let mut scopes: Vec<String> = rows.map(|row| row.scope.as_str().to_owned()).collect();
            scopes.sort();
            scopes
        };
        let (mut active_for, shadow_for) = (assigned(Role::Active), assigned(Role::Shadow));
        let platform = newest.get(&(PackKind::Fees, &Scope::Platform, Role::Active));
        let is_default = self.default_fees.as_ref() == Some(&version.digest);
        if is_default && platform.is_none_or(|row| row.assigned.pack().is_none()) {
            active_for.push(Scope::Platform.as_str().to_owned());
        }
        let activated = self
            .history
            .iter()
            .rev()
            .find(|row| row.role == Role::Active && row.assigned.pack() == Some(&name));
        let activated_at = activated.map(|row| row.created_at);
        let places: BTreeSet<_> = self.history.iter().map(|row| (row.kind, &row.scope)).collect();
        let scopes = |is: &dyn Fn(Place<'_>) -> bool| -> Vec<String> {
            let those = places.iter().filter(|place| place.0 == version.kind && is(**place));
            those.map(|(_, scope)| scope.as_str().to_owned()).collect()
        };
        let held_for = scopes(&|place| taken_out(&self.history, place) == Some(&name));
        let is_named = |pack: &(String, String)| pack.0 == name.0;
        let previous_for = scopes(&|place| before(&self.history, place, is_named) == Some(&name));
        let state = match (version.is_checked, active_for.is_empty(), shadow_for.is_empty()) {
            (false, ..) => "uploaded",
            (true, false, _) => "active",
            _ if !held_for.is_empty() => "taken_out",
            (true, true, false) => "shadow",
            (true, true, true) if activated_at.is_some() => "retired",
            (true, true, true) => "checked",
        };
        PackView {
            object: "rule_pack",
            kind: version.kind.as_str(),
            title: version.title,
            contract: version.contract,
            digest: version.digest,
            state,
            active_for,
            held_for,
            previous_for,
            activated_at,
            shadow_for,
            shadow: self.tallies.get(&sql::version_id(&name.0, &name.1)).copied(),
            facts: version.facts,
            conformance: serde_json::from_str(&version.report).ok(),
            pushed_by: version.pushed_by,
            created_at: version.created_at,
            name: name.0,
            version: name.1,
        }
    }
}
