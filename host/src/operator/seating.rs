//! Who decides: trying a pack in shadow, activating it, going back, taking it out.
//!
//! Every change takes the next generation, under its lock: two people who change seats at once
//! are put in order, and every host sees the same order. A pack is opened before it is given a
//! seat: one that this host cannot open gets none.

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
    let changes = changes(want, &version, &scope, &seatings)?;
    let role = changes.first().map_or(Role::Active, |change| change.role);
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
    if want != Want::Retire {
        app.shelf.pack(&version.digest).await.map_err(Problem::internal)?;
        rows.extend(app.shelf.keep(&version));
    }
    let of = Of { seatings: &seatings, place: (version.kind, &scope) };
    let generation = carry_out(app, operator, of, (want.action(), changes), rows).await?;
    Ok(Json(view("done", generation)).into_response())
}

/// Who has a seat from now on; nobody if it is vacated.
struct Change {
    role: Role,
    pack: Option<(String, String)>,
}

/// What is decided, and for whom.
type Place<'a> = (PackKind, &'a Scope);

/// The seats of one kind and scope, as they were when it was decided to change them.
#[derive(Clone, Copy)]
struct Of<'a> {
    seatings: &'a [Seating],
    place: Place<'a>,
}

/// Changes seats, if all seats are still as they were.
async fn carry_out(
    app: &App,
    operator: &Operator,
    Of { seatings, place }: Of<'_>,
    (action, changes): (&'static str, Vec<Change>),
    mut rows: Vec<RowChange>,
) -> Result<i64, Problem> {
    let (kind, scope) = place;
    let before = seatings.last().map_or(0, |seating| seating.generation);
    let mut generation = before;
    let (mut was, mut is) =
        (json!({ "scope": scope.as_str() }), json!({ "scope": scope.as_str() }));
    for Change { role, pack } in changes {
        let told = |pack: Option<&(String, String)>| {
            pack.map(|(name, version)| sql::version_id(name, version))
        };
        was[role.as_str()] = told(seated(seatings, place, role)).into();
        is[role.as_str()] = told(pack.as_ref()).into();
        generation += 1;
        let (actor, created_at) = (operator.name.clone(), app.now());
        let seating =
            Seating { generation, kind, scope: scope.clone(), role, pack, actor, created_at };
        rows.push(RowChange::Insert(&sql::SEATINGS, sql::seating_row(&seating)));
    }
    let next = vec![sql::RULES.into(), generation.into()];
    rows.push(RowChange::Update(&sql::NEXT_GENERATION, next));
    let guard = Guard {
        on: &sql::GENERATION,
        id: sql::RULES.to_owned(),
        version: before,
        next: generation,
    };
    let subject = ("rule_seat", kind.as_str());
    let done = Done { action, subject, before: Some(was), after: Some(is) };
    write(app, operator, done, (vec![guard], rows)).await?;
    // The change is durable; this host takes it over at the next look if it cannot now.
    if let Err(why) = app.shelf.refresh(&app.packs).await {
        tracing::error!(%why, "the seats are not refreshed");
    }
    Ok(generation)
}

/// Seatings of one seat, oldest first.
fn of_seat<'a>(
    seatings: &'a [Seating],
    (kind, scope): Place<'a>,
    role: Role,
) -> impl DoubleEndedIterator<Item = &'a Seating> {
    let is = move |seating: &&Seating| {
        (seating.kind, &seating.scope, seating.role) == (kind, scope, role)
    };
    seatings.iter().filter(is)
}

/// Who has a seat.
fn seated<'a>(
    seatings: &'a [Seating],
    place: Place<'a>,
    role: Role,
) -> Option<&'a (String, String)> {
    of_seat(seatings, place, role).next_back()?.pack.as_ref()
}

/// Which seats change, the one that is meant first, if what is wanted is possible.
fn changes(
    want: Want,
    version: &Version,
    scope: &Scope,
    seatings: &[Seating],
) -> Result<Vec<Change>, Problem> {
    let conflict = |message: &'static str| Err(Problem::because(ErrorCode::StateConflict, message));
    if !version.is_checked {
        return conflict(
            "This pack failed its checks: see its conformance. Push a better version.",
        );
    }
    let (name, place) = ((version.name.clone(), version.version.clone()), (version.kind, scope));
    let holds = |role| seated(seatings, place, role) == Some(&name);
    let vacate = |role| holds(role).then_some(Change { role, pack: None });
    let give = |role| Change { role, pack: Some(name.clone()) };
    match want {
        Want::Shadow if version.kind == PackKind::Fees => {
            conflict("Only fraud packs can be tried in shadow: a price is not compared.")
        }
        Want::Shadow if holds(Role::Active) => conflict("This version decides there already."),
        Want::Shadow => Ok(vec![give(Role::Shadow)]),
        Want::Rollback => {
            let mut earlier = of_seat(seatings, place, Role::Active);
            if holds(Role::Active) || !earlier.any(|seating| seating.pack.as_ref() == Some(&name)) {
                return conflict("This version was not active there before; activate it instead.");
            }
            Ok([give(Role::Active)].into_iter().chain(vacate(Role::Shadow)).collect())
        }
        // What decides is not tried any more.
        Want::Activate => {
            Ok([give(Role::Active)].into_iter().chain(vacate(Role::Shadow)).collect())
        }
        Want::Retire => {
            let vacated: Vec<_> =
                [Role::Active, Role::Shadow].into_iter().filter_map(vacate).collect();
            match vacated.is_empty() {
                true => conflict("This version neither decides nor is tried there."),
                false => Ok(vacated),
            }
        }
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
/// before it; answers whether it was taken out anywhere. Where nobody decided before, a fraud
/// pack stays: the setting for failures decides.
///
/// # Errors
/// The database cannot be read or written.
pub async fn take_out(app: &App, pack: &Pack) -> Result<bool, Problem> {
    let host = Operator::host();
    let mut is_out = false;
    let places: std::collections::HashSet<(PackKind, Scope)> = {
        let seatings = sql::list_seatings(app.db.pool()).await?;
        seatings.into_iter().map(|seating| (seating.kind, seating.scope)).collect()
    };
    for (kind, scope) in places {
        let seatings = sql::list_seatings(app.db.pool()).await?;
        let place = (kind, &scope);
        let Some((name, version)) = seated(&seatings, place, Role::Active) else { continue };
        let found = sql::get_version(app.db.pool(), (name, version)).await?;
        if found.is_none_or(|found| found.digest != pack.digest) {
            continue;
        }
        let before = before(&seatings, place, &host.name);
        // Without a seat of its own, the platform's pack decides for a merchant, and the fee
        // pack that came with the host for everybody.
        let is_covered =
            kind == PackKind::Fees || (scope != Scope::Platform && app.packs.now().decides(kind));
        if before.is_none() && !is_covered {
            continue;
        }
        let of = Of { seatings: &seatings, place };
        let change = vec![Change { role: Role::Active, pack: before.cloned() }];
        carry_out(app, &host, of, ("rule_pack.take_out", change), Vec::new()).await?;
        is_out = true;
    }
    Ok(is_out)
}

/// Who decided before the one that does now, and was not taken out since somebody wanted it:
/// two packs that both fail would put each other back for ever.
fn before<'a>(
    seatings: &'a [Seating],
    place: Place<'a>,
    host: &str,
) -> Option<&'a (String, String)> {
    let mut trusted: Vec<&(String, String)> = Vec::new();
    let mut now = None;
    for seating in of_seat(seatings, place, Role::Active) {
        let seated = seating.pack.as_ref();
        let distrusted = if seating.actor == host { now } else { seated };
        trusted.retain(|pack| Some(*pack) != distrusted);
        if seating.actor != host {
            trusted.extend(seated);
        }
        now = seated;
    }
    trusted.into_iter().rev().find(|pack| Some(*pack) != now)
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
