//! Who decides: trying a pack in shadow, activating it, going back, taking it out.
//!
//! Every change takes the next generation, under its lock: two people who change assignments at
//! once are put in order, and every host sees the same order. A pack is opened before it is
//! assigned: one that this host cannot open is refused.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};
use crate::caller::{Done, Operator};
use crate::config::{AfterFailures, ApprovalAct};
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::http::body::OptionalBody;
use crate::id::MerchantId;
use crate::ledger::{Command, Guard};
use crate::rules::sql::{self, Assigned, AssignmentRow, Version};
use crate::rules::{Pack, PackKind, Role, Scope};

use super::rule_packs::find;
use super::{invalid, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("shadow_rule_pack", ASSIGN_ERRORS),
    ("activate_rule_pack", ASSIGN_ERRORS),
    ("rollback_rule_pack", ASSIGN_ERRORS),
    ("retire_rule_pack", ASSIGN_ERRORS),
];

const ASSIGN_ERRORS: &[ErrorCode] =
    &[ErrorCode::NotFound, ErrorCode::InvalidField, ErrorCode::StateConflict];

/// The scope of the change.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AssignmentRequest {
    /// One merchant; the whole platform if left out.
    pub merchant_id: Option<String>,
}

/// Who decides from now on.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssignmentView {
    /// Always `rule_assignment`.
    #[schema(example = "rule_assignment")]
    pub object: &'static str,
    /// `fees` or `fraud`.
    pub kind: &'static str,
    /// `platform`, or a merchant's id.
    pub scope: String,
    /// `active` or `shadow`.
    pub role: &'static str,
    /// The pack's name.
    pub name: String,
    /// The pack's version.
    pub version: String,
    /// Always `done`.
    #[schema(example = "done")]
    pub status: &'static str,
    /// The number of this change; every host has taken it over within a second.
    pub generation: i64,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Shadow,
    Activate,
    Rollback,
    Retire,
}

/// Try a rule pack in shadow
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/shadow",
    operation_id = "shadow_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body(content = Option<AssignmentRequest>),
    responses((status = 200, description = "It is asked too from now on", body = AssignmentView)),
)]
pub async fn shadow(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(Body { value: body, .. }): OptionalBody<AssignmentRequest>,
) -> Result<Response, Problem> {
    assign(&app, &operator, (name, Want::Shadow), body).await
}

/// Activate a rule pack
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/activate",
    operation_id = "activate_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body(content = Option<AssignmentRequest>),
    responses(
        (status = 200, description = "It decides from now on", body = AssignmentView),
        (status = 202, description = "A second person has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn activate(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(Body { value: body, .. }): OptionalBody<AssignmentRequest>,
) -> Result<Response, Problem> {
    assign(&app, &operator, (name, Want::Activate), body).await
}

/// Go back to an earlier version of a rule pack
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/rollback",
    operation_id = "rollback_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "The version to go back to"),
    ),
    request_body(content = Option<AssignmentRequest>),
    responses(
        (status = 200, description = "It decides again", body = AssignmentView),
        (status = 202, description = "A second person has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn rollback(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(Body { value: body, .. }): OptionalBody<AssignmentRequest>,
) -> Result<Response, Problem> {
    assign(&app, &operator, (name, Want::Rollback), body).await
}

/// Take a rule pack out
///
/// It neither decides nor is tried any more. Where a fraud pack decided, everything is allowed
/// from now on; where a fee pack did, the one that came with the host decides again; a merchant
/// goes back to the platform's pack. Where a pack was taken out because it kept failing, payouts
/// are no longer held.
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/retire",
    operation_id = "retire_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body(content = Option<AssignmentRequest>),
    responses(
        (status = 200, description = "It is out", body = AssignmentView),
        (status = 202, description = "A second person has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn retire(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(Body { value: body, .. }): OptionalBody<AssignmentRequest>,
) -> Result<Response, Problem> {
    assign(&app, &operator, (name, Want::Retire), body).await
}

async fn assign(
    app: &App,
    operator: &Operator,
    ((name, number), want): ((String, String), Want),
    body: AssignmentRequest,
) -> Result<Response, Problem> {
    let version = find(app, (&name, &number)).await?;
    let scope = scope(app, body.merchant_id).await?;
    let history = sql::list_assignments(app.db.pool()).await?;
    let changes = changes(want, &version, &scope, &history)?;
    let role = changes.first().map_or(Role::Active, |change| change.role);
    let agreement = match role {
        Role::Active => match agree(app, operator, (&version, &scope), (want, &history)).await? {
            Verdict::Go(agreement) => agreement,
            Verdict::Wait(response) => return Ok(response),
        },
        Role::Shadow => Agreement::default(),
    };
    let mut agreement = agreement;
    if want != Want::Retire {
        app.pack_store.pack(&version.digest).await.map_err(Problem::internal)?;
        agreement.rows.extend(app.pack_store.keep(&version));
    }
    let seen = Seen { history: &history, place: (version.kind, &scope) };
    let generation = carry_out(app, operator, seen, (want.action(), changes), agreement).await?;
    let view = AssignmentView {
        object: "rule_assignment",
        kind: version.kind.as_str(),
        scope: scope.as_str().to_owned(),
        role: role.as_str(),
        name,
        version: number,
        status: "done",
        generation,
    };
    Ok(Json(view).into_response())
}

/// Whether one operator is enough for what decides about payouts, or this completes their number.
async fn agree(
    app: &App,
    operator: &Operator,
    (version, scope): (&Version, &Scope),
    (want, history): (Want, &[AssignmentRow]),
) -> Result<Verdict, Problem> {
    let id = format!("{}/{}", scope.as_str(), sql::version_id(&version.name, &version.version));
    let done = (want.action(), ("rule_assignment", id.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::RulePack, None), done);
    let wanted = json!({
        "scope": scope.as_str(),
        "name": version.name,
        "version": version.version,
        "digest": version.digest,
        // Whoever asked for it asked for it in the place of what decided then.
        "after": history_of(history, (version.kind, scope), Role::Active)
            .next_back()
            .map(|row| row.generation),
    });
    approvals::agree(app, operator, asked.wanting(wanted)).await
}

/// What is assigned from now on.
struct Change {
    role: Role,
    assigned: Assigned,
}

/// What is decided, and for whom.
pub(super) type Place<'a> = (PackKind, &'a Scope);

/// The assignments as they were when it was decided to change those of one kind and scope.
#[derive(Clone, Copy)]
struct Seen<'a> {
    history: &'a [AssignmentRow],
    place: Place<'a>,
}

/// Changes assignments, if all of them are still as they were.
async fn carry_out(
    app: &App,
    operator: &Operator,
    Seen { history, place }: Seen<'_>,
    (action, changes): (&'static str, Vec<Change>),
    mut agreement: Agreement,
) -> Result<i64, Problem> {
    let (kind, scope) = place;
    let before = history.last().map_or(0, |row| row.generation);
    let mut generation = before;
    let (mut was, mut is) =
        (json!({ "scope": scope.as_str() }), json!({ "scope": scope.as_str() }));
    for Change { role, assigned } in changes {
        was[role.as_str()] = told(newest(history, place, role));
        is[role.as_str()] = told(Some(&assigned));
        generation += 1;
        let row = AssignmentRow {
            generation,
            kind,
            scope: scope.clone(),
            role,
            assigned,
            actor: operator.name.clone(),
            created_at: app.now(),
        };
        agreement.rows.push(sql::ASSIGNMENTS.insert(&row));
    }
    agreement.rows.push(sql::NEXT_GENERATION.change(&generation));
    let guard = Guard { on: &sql::GENERATION, id: sql::RULES.to_owned(), version: before };
    let subject = ("rule_assignment", kind.as_str());
    let done = Done { action, subject, before: Some(was), after: Some(agreement.told(is)) };
    let Agreement { rows, guards, .. } = agreement;
    write(app, operator, done, Command::rows(rows).guards([guard]).guards(guards)).await?;
    // The change is durable; this host takes it over at the next look if it cannot now.
    if let Err(why) = app.pack_store.refresh(&app.packs).await {
        tracing::error!(%why, "the assignments are not refreshed");
    }
    Ok(generation)
}

/// What was assigned to one place and role, oldest first.
fn history_of<'a>(
    history: &'a [AssignmentRow],
    (kind, scope): Place<'a>,
    role: Role,
) -> impl DoubleEndedIterator<Item = &'a AssignmentRow> {
    let is = move |row: &&AssignmentRow| (row.kind, &row.scope, row.role) == (kind, scope, role);
    history.iter().filter(is)
}

/// What is assigned now, if anything ever was.
fn newest<'a>(history: &'a [AssignmentRow], place: Place<'a>, role: Role) -> Option<&'a Assigned> {
    Some(&history_of(history, place, role).next_back()?.assigned)
}

/// The pack that is assigned now.
fn assigned<'a>(
    history: &'a [AssignmentRow],
    place: Place<'a>,
    role: Role,
) -> Option<&'a (String, String)> {
    newest(history, place, role)?.pack()
}

/// The pack that was taken out, where payouts are held since.
pub(super) fn taken_out<'a>(
    history: &'a [AssignmentRow],
    place: Place<'a>,
) -> Option<&'a (String, String)> {
    let mut rows = history_of(history, place, Role::Active).rev();
    match rows.next()?.assigned {
        Assigned::Held => rows.next()?.assigned.pack(),
        Assigned::Pack(_) | Assigned::Nothing => None,
    }
}

/// What is assigned, for the audit log.
fn told(assigned: Option<&Assigned>) -> Value {
    match assigned {
        Some(Assigned::Pack((name, version))) => sql::version_id(name, version).into(),
        Some(Assigned::Held) => "hold".into(),
        Some(Assigned::Nothing) | None => Value::Null,
    }
}

/// Which assignments change, the one that is meant first, if what is wanted is possible.
fn changes(
    want: Want,
    version: &Version,
    scope: &Scope,
    history: &[AssignmentRow],
) -> Result<Vec<Change>, Problem> {
    let conflict = |message: &'static str| Err(Problem::because(ErrorCode::StateConflict, message));
    if !version.is_checked {
        return conflict(
            "This pack failed its checks: see its conformance. Push a better version.",
        );
    }
    let (name, place) = ((version.name.clone(), version.version.clone()), (version.kind, scope));
    let holds = |role| assigned(history, place, role) == Some(&name);
    let was_taken_out = |role| role == Role::Active && taken_out(history, place) == Some(&name);
    let unassign = |role| holds(role).then_some(Change { role, assigned: Assigned::Nothing });
    let assign = |role| Change { role, assigned: Assigned::Pack(name.clone()) };
    match want {
        Want::Shadow if version.kind == PackKind::Fees => {
            conflict("Only fraud packs can be tried in shadow: a price is not compared.")
        }
        Want::Shadow if holds(Role::Active) => conflict("This version decides there already."),
        Want::Shadow => Ok(vec![assign(Role::Shadow)]),
        Want::Rollback => {
            let mut earlier = history_of(history, place, Role::Active);
            if holds(Role::Active) || !earlier.any(|row| row.assigned.pack() == Some(&name)) {
                return conflict("This version was not active there before; activate it instead.");
            }
            Ok([assign(Role::Active)].into_iter().chain(unassign(Role::Shadow)).collect())
        }
        // What decides is not tried any more.
        Want::Activate => {
            Ok([assign(Role::Active)].into_iter().chain(unassign(Role::Shadow)).collect())
        }
        Want::Retire => {
            // A pack that was taken out is retired to let go of what is held since.
            let is_there = |role: &Role| holds(*role) || was_taken_out(*role);
            let roles = [Role::Active, Role::Shadow].into_iter().filter(is_there);
            let unassigned: Vec<_> =
                roles.map(|role| Change { role, assigned: Assigned::Nothing }).collect();
            match unassigned.is_empty() {
                true => conflict("This version neither decides nor is tried there."),
                false => Ok(unassigned),
            }
        }
    }
}

/// The whole platform, or one merchant.
///
/// # Errors
/// `invalid_field` for the id of nobody.
pub(super) async fn scope(app: &App, merchant: Option<String>) -> Result<Scope, Problem> {
    let Some(text) = merchant else { return Ok(Scope::Platform) };
    let unknown = || invalid("merchant_id", "is not the id of a merchant");
    let id = MerchantId::parse(&text).ok_or_else(unknown)?;
    app.directory.merchant(&id).await?.ok_or_else(unknown)?;
    Ok(Scope::Merchant(id))
}

/// Takes out a fraud pack that keeps failing wherever it decides; answers whether it was taken
/// out anywhere. From then on payouts are held there, or, if the operator set it so, the version
/// before decides. A fee pack stays: there is no price to fall back on.
///
/// # Errors
/// The database cannot be read or written.
pub async fn take_out(app: &App, pack: &Pack) -> Result<bool, Problem> {
    if pack.about.kind != PackKind::Fraud {
        return Ok(false);
    }
    let host = Operator::host();
    let mut is_out = false;
    let places: std::collections::HashSet<(PackKind, Scope)> = {
        let history = sql::list_assignments(app.db.pool()).await?;
        history.into_iter().map(|row| (row.kind, row.scope)).collect()
    };
    for (kind, scope) in places {
        let history = sql::list_assignments(app.db.pool()).await?;
        let place = (kind, &scope);
        let Some((name, version)) = assigned(&history, place, Role::Active) else { continue };
        let found = sql::get_version(app.db.pool(), (name, version)).await?;
        if found.is_none_or(|found| found.digest != pack.digest) {
            continue;
        }
        let change = Change { role: Role::Active, assigned: instead(app, &history, place) };
        let now = told(Some(&change.assigned));
        let seen = Seen { history: &history, place };
        let nobody = Agreement::default();
        carry_out(app, &host, seen, ("rule_pack.take_out", vec![change]), nobody).await?;
        let scope = scope.as_str();
        tracing::error!(name, version, scope, %now, "a rule pack that kept failing is taken out");
        is_out = true;
    }
    Ok(is_out)
}

/// What takes the place of a pack that is taken out.
fn instead(app: &App, history: &[AssignmentRow], place: Place<'_>) -> Assigned {
    let (kind, scope) = place;
    match app.config.rules.after_failures {
        AfterFailures::Hold => Assigned::Held,
        AfterFailures::Previous => match before(history, place, |_| true) {
            Some(name) => Assigned::Pack(name.clone()),
            // The platform's pack decides for a merchant who has none.
            None if *scope != Scope::Platform && app.packs.now().decides(kind) => Assigned::Nothing,
            None => Assigned::Held,
        },
    }
}

/// Who of these decided last before the one that does now, and was only replaced by something newer:
/// not what was taken out since somebody wanted it (two packs that both fail would put each other
/// back for ever), nor what an operator has retired or gone back from.
pub(super) fn before<'a>(
    history: &'a [AssignmentRow],
    place: Place<'a>,
    is_meant: impl Fn(&(String, String)) -> bool,
) -> Option<&'a (String, String)> {
    let host = Operator::host();
    let mut trusted: Vec<&(String, String)> = Vec::new();
    let mut now = None;
    for row in history_of(history, place, Role::Active) {
        let assigned = row.assigned.pack();
        if row.actor == host.name {
            trusted.retain(|pack| Some(*pack) != now);
        } else if let Some(wanted) = assigned {
            // Going back leaves behind what came after.
            let known = trusted.iter().position(|pack| *pack == wanted);
            trusted.truncate(known.unwrap_or(trusted.len()));
            trusted.push(wanted);
        } else {
            trusted.clear();
        }
        now = assigned;
    }
    trusted.into_iter().rev().find(|pack| Some(*pack) != now && is_meant(pack))
}

impl Want {
    /// For the audit log.
    const fn action(self) -> &'static str {
        match self {
            Self::Shadow => "rule_pack.shadow",
            Self::Activate => "rule_pack.activate",
            Self::Rollback => "rule_pack.rollback",
            Self::Retire => "rule_pack.retire",
        }
    }
}
