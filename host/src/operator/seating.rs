//! Who decides: trying a pack in shadow, activating it, going back, taking it out.
//!
//! Every change takes the next generation, under its lock: two people who change seats at once
//! are put in order, and every host sees the same order. The change is open to be seen before
//! it is made: a pack that this host cannot open is not seated.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::http::body::OptionalBody;
use crate::id::MerchantId;
use crate::ledger::Guard;
use crate::rules::sql::{self, Seating, Version};
use crate::rules::{Pack, PackKind, Role, Scope};

use super::rule_packs::find;
use super::{Done, invalid, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("shadow_rule_pack", SEAT_ERRORS),
    ("activate_rule_pack", SEAT_ERRORS),
    ("rollback_rule_pack", SEAT_ERRORS),
    ("retire_rule_pack", SEAT_ERRORS),
];

const SEAT_ERRORS: &[ErrorCode] =
    &[ErrorCode::NotFound, ErrorCode::InvalidField, ErrorCode::StateConflict];

/// For whom.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct SeatRequest {
    /// One merchant; the whole platform if left out.
    pub merchant_id: Option<String>,
}

/// Who decides from now on, or what is still needed.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeatView {
    /// Always `rule_seat`.
    #[schema(example = "rule_seat")]
    pub object: &'static str,
    /// `fees` or `fraud`.
    pub kind: &'static str,
    /// `platform`, or a merchant's id.
    pub scope: String,
    /// `active` or `shadow`.
    pub role: &'static str,
    /// The pack.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `done`, or `awaiting_second_person`.
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
    request_body(content = Option<SeatRequest>),
    responses((status = 200, description = "It is asked too from now on", body = SeatView)),
)]
pub async fn shadow(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(body): OptionalBody<SeatRequest>,
) -> Result<Response, Problem> {
    seat(&app, &operator, (name, Want::Shadow), body).await
}

/// Activate a rule pack
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/activate",
    operation_id = "activate_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body(content = Option<SeatRequest>),
    responses(
        (status = 200, description = "It decides from now on", body = SeatView),
        (status = 202, description = "A second person has to ask for the same", body = SeatView),
    ),
)]
pub async fn activate(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(body): OptionalBody<SeatRequest>,
) -> Result<Response, Problem> {
    seat(&app, &operator, (name, Want::Activate), body).await
}

/// Go back to an earlier version of a rule pack
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/rollback",
    operation_id = "rollback_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "The version to go back to"),
    ),
    request_body(content = Option<SeatRequest>),
    responses(
        (status = 200, description = "It decides again", body = SeatView),
        (status = 202, description = "A second person has to ask for the same", body = SeatView),
    ),
)]
pub async fn rollback(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(body): OptionalBody<SeatRequest>,
) -> Result<Response, Problem> {
    seat(&app, &operator, (name, Want::Rollback), body).await
}

/// Take a rule pack out
///
/// It neither decides nor is tried any more. Where a fraud pack decided, everything is allowed
/// from now on; where a fee pack did, the one that came with the host decides again; a merchant
/// goes back to the platform's pack.
#[utoipa::path(
    post, path = "/admin/v1/rule-packs/{name}/versions/{version}/retire",
    operation_id = "retire_rule_pack", tag = "Operator",
    params(
        ("name" = String, Path, description = "The pack"),
        ("version" = String, Path, description = "Its version"),
    ),
    request_body(content = Option<SeatRequest>),
    responses(
        (status = 200, description = "It is out", body = SeatView),
        (status = 202, description = "A second person has to ask for the same", body = SeatView),
    ),
)]
pub async fn retire(
    State(app): State<App>,
    operator: Operator,
    Path(name): Path<(String, String)>,
    OptionalBody(body): OptionalBody<SeatRequest>,
) -> Result<Response, Problem> {
    seat(&app, &operator, (name, Want::Retire), body).await
}

async fn seat(
    app: &App,
    operator: &Operator,
    ((name, number), want): ((String, String), Want),
    body: SeatRequest,
) -> Result<Response, Problem> {
    let version = find(app, (&name, &number)).await?;
    let scope = scope(app, body.merchant_id).await?;
    let seatings = sql::list_seatings(app.db.pool()).await?;
    let role = role(want, &version, &scope, &seatings)?;
    let view = |status, generation| SeatView {
        object: "rule_seat",
        kind: version.kind.as_str(),
        scope: scope.as_str().to_owned(),
        role: role.as_str(),
        name: name.clone(),
        version: number.clone(),
        status,
        generation,
    };
    let mut rows = Vec::new();
    if role == Role::Active && app.config.rules.two_people {
        let id = format!("{}/{want:?}/{name}/{number}", scope.as_str());
        if !is_second(app, operator, &id).await? {
            let waiting = request(app, operator, id).await?;
            return Ok((StatusCode::ACCEPTED, Json(view("awaiting_second_person", waiting)))
                .into_response());
        }
        rows.push(RowChange::Delete(&sql::REQUEST_KEYS, id));
    }
    let pack = (want != Want::Retire).then(|| (name.clone(), number.clone()));
    if pack.is_some() {
        app.shelf.pack(&version.digest).await.map_err(Problem::internal)?;
        rows.extend(app.shelf.keep(&version));
    }
    let change = Change { kind: version.kind, scope: scope.clone(), role, pack };
    let generation = carry_out(app, operator, (want.action(), change), rows).await?;
    Ok(Json(view("done", generation)).into_response())
}

/// A change of one seat.
struct Change {
    kind: PackKind,
    scope: Scope,
    role: Role,
    pack: Option<(String, String)>,
}

async fn carry_out(
    app: &App,
    operator: &Operator,
    (action, change): (&'static str, Change),
    mut rows: Vec<RowChange>,
) -> Result<i64, Problem> {
    let seatings = sql::list_seatings(app.db.pool()).await?;
    let before = sql::generation(app.db.pool()).await?;
    let held = seatings.iter().rev().find(|seating| {
        (seating.kind, &seating.scope, seating.role) == (change.kind, &change.scope, change.role)
    });
    let held = held.and_then(|seating| seating.pack.clone());
    let tried = seatings.iter().rev().find(|seating| {
        (seating.kind, &seating.scope, seating.role) == (change.kind, &change.scope, Role::Shadow)
    });
    // Whoever decides need not be tried any more.
    let is_tried = change.role == Role::Active
        && tried.is_some_and(|seating| seating.pack.is_some() && seating.pack == change.pack);
    let seating = Seating {
        generation: before + 1,
        kind: change.kind,
        scope: change.scope,
        role: change.role,
        pack: change.pack,
        actor: operator.name.clone(),
        created_at: app.now(),
    };
    rows.push(RowChange::Insert(&sql::SEATINGS, sql::seating_row(&seating)));
    let mut last = seating.generation;
    if is_tried {
        last += 1;
        let vacated =
            Seating { generation: last, role: Role::Shadow, pack: None, ..seating.clone() };
        rows.push(RowChange::Insert(&sql::SEATINGS, sql::seating_row(&vacated)));
    }
    rows.push(RowChange::Update(&sql::NEXT_GENERATION, vec![sql::RULES.into(), last.into()]));
    let guard =
        Guard { on: &sql::GENERATION, id: sql::RULES.to_owned(), version: before, next: last };
    let told = |pack: &Option<(String, String)>| {
        json!({
            "scope": seating.scope.as_str(),
            "role": seating.role.as_str(),
            "pack": pack.as_ref().map(|(name, version)| sql::version_id(name, version)),
        })
    };
    let done = Done {
        action,
        subject: ("rule_seat", seating.kind.as_str()),
        before: Some(told(&held)),
        after: Some(told(&seating.pack)),
    };
    write(app, operator, done, (vec![guard], rows)).await?;
    app.shelf.refresh(&app.packs).await.map_err(Problem::internal)?;
    Ok(last)
}

/// Which seat is meant, if what is wanted is possible.
fn role(
    want: Want,
    version: &Version,
    scope: &Scope,
    seatings: &[Seating],
) -> Result<Role, Problem> {
    let conflict = |message: &'static str| Err(Problem::because(ErrorCode::StateConflict, message));
    if !version.is_checked {
        return conflict(
            "This pack failed its checks: see its conformance. Push a better version.",
        );
    }
    let name = Some((version.name.clone(), version.version.clone()));
    let newest = |role| {
        seatings.iter().rev().find(|seating| {
            (seating.kind, &seating.scope, seating.role) == (version.kind, scope, role)
        })
    };
    let holds = |role| newest(role).is_some_and(|seating| seating.pack == name);
    match want {
        Want::Shadow => Ok(Role::Shadow),
        Want::Activate => Ok(Role::Active),
        Want::Rollback => {
            let was_active = seatings.iter().any(|seating| {
                (seating.role, &seating.scope, &seating.pack) == (Role::Active, scope, &name)
            });
            match was_active && !holds(Role::Active) {
                true => Ok(Role::Active),
                false => conflict("This version was not active there before; activate it instead."),
            }
        }
        Want::Retire if holds(Role::Shadow) => Ok(Role::Shadow),
        Want::Retire if holds(Role::Active) => Ok(Role::Active),
        Want::Retire => conflict("This version neither decides nor is tried there."),
    }
}

async fn scope(app: &App, merchant: Option<String>) -> Result<Scope, Problem> {
    let Some(text) = merchant else { return Ok(Scope::Platform) };
    let unknown = || invalid("merchant_id", "is not the id of a merchant");
    let id = MerchantId::parse(&text).ok_or_else(unknown)?;
    app.directory.merchant(&id).await?.ok_or_else(unknown)?;
    Ok(Scope::Merchant(id))
}

/// Whether somebody else has asked for the same, not too long ago.
async fn is_second(app: &App, operator: &Operator, id: &str) -> Result<bool, Problem> {
    let Some((actor, at)) = sql::get_request(app.db.pool(), id).await? else { return Ok(false) };
    let is_valid = at.after(limits::RULES_REQUEST_VALID) > app.now();
    Ok(is_valid && actor != operator.name)
}

async fn request(app: &App, operator: &Operator, id: String) -> Result<i64, Problem> {
    let row = vec![id.as_str().into(), operator.name.as_str().into(), app.now().micros().into()];
    let done = Done {
        action: "rule_pack.request",
        subject: ("rule_seat", &id),
        before: None,
        after: None,
    };
    write(app, operator, done, (Vec::new(), vec![RowChange::Insert(&sql::REQUESTS, row)])).await?;
    Ok(app.packs.now().generation)
}

/// Takes out a pack that keeps failing wherever it decides, and puts back whoever decided
/// before it. Where nobody did, a fraud pack stays: the setting for failures decides.
///
/// # Errors
/// The database cannot be read or written.
pub async fn take_out(app: &App, pack: &Pack) -> Result<(), Problem> {
    let host = Operator::host();
    let seatings = sql::list_seatings(app.db.pool()).await?;
    let mut newest: std::collections::HashMap<_, &Seating> = std::collections::HashMap::new();
    for seating in seatings.iter().filter(|seating| seating.role == Role::Active) {
        newest.insert((seating.kind, &seating.scope), seating);
    }
    for ((kind, scope), seating) in newest {
        let Some(seated) = &seating.pack else { continue };
        let found = sql::get_version(app.db.pool(), (&seated.0, &seated.1)).await?;
        if found.is_none_or(|found| found.digest != pack.digest) {
            continue;
        }
        let before = seatings.iter().rev().find(|earlier| {
            (earlier.kind, &earlier.scope, earlier.role) == (kind, scope, Role::Active)
                && earlier.pack.as_ref().is_some_and(|other| other != seated)
        });
        let pack = match (before, kind) {
            (Some(before), _) => before.pack.clone(),
            // Without a seat, the fee pack decides that came with the host.
            (None, PackKind::Fees) => None,
            (None, PackKind::Fraud) => continue,
        };
        let change = Change { kind, scope: scope.clone(), role: Role::Active, pack };
        carry_out(app, &host, ("rule_pack.take_out", change), Vec::new()).await?;
    }
    Ok(())
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
