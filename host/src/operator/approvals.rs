//! Acts that take two operators, where the policy (`approvals` in the configuration) says so: the
//! first one asks, and a second one who asks for the same within a day has it carried out.
//!
//! There is one request at a time for each act on each subject: who asks for something else takes
//! the place of the first. The act itself removes the request, in its own transaction and only as
//! it was read, so that of two who agree at once one carries it out. The queries are here too.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::{Lookup, Removal, RowChange, Table, int, text};
use crate::db::cell::Kind::Int;
use crate::error::{ErrorCode, Problem};
use crate::http::Page;
use crate::id::{ApprovalId, Id as _};
use crate::ledger::{Command, Effects, Guard, Reply, Reservation};

use super::{Done, answer, change};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[("list_approval_requests", &[])];

/// What waits for a second operator.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalView {
    /// Always `approval_request`.
    #[schema(example = "approval_request")]
    pub object: &'static str,
    /// The request's id.
    pub id: String,
    /// Always `awaiting_second_person`.
    #[schema(example = "awaiting_second_person")]
    pub status: &'static str,
    /// The word of the policy that asks for two: `credit`, `limits`, `live_route`, `mark`,
    /// `reverse`, `key`, `redeliver`, `close_window`, `recall` or `rate`.
    #[schema(example = "credit")]
    pub act: String,
    /// What would be done, as the audit log will call it.
    #[schema(example = "wallet.credit")]
    pub action: String,
    /// To which object.
    pub subject_id: String,
    /// What a second operator has to ask for as well.
    #[schema(value_type = Object)]
    pub wanted: Value,
    /// Who asked.
    pub requested_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// Until when a second operator may ask for the same.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Moment,
}

/// List what waits for a second operator
#[utoipa::path(
    get, path = "/admin/v1/approval_requests", operation_id = "list_approval_requests",
    tag = "Operator",
    responses((status = 200, description = "Newest first, the last hundred", body = inline(Page<ApprovalView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
) -> Result<Page<ApprovalView>, Problem> {
    let requests = list_requests(app.db.pool(), app.now()).await?;
    Ok(Page::of(requests.into_iter().map(view).collect(), limits::PAGE_MAX))
}

/// What somebody asks for.
pub(super) struct Asked<'a> {
    /// What the policy calls it.
    pub act: ApprovalAct,
    /// What the audit log calls it.
    pub action: &'static str,
    /// The kind and the id of what it is done to.
    pub subject: (&'static str, &'a str),
    /// What a second operator has to ask for as well: not the reasons, which are each one's own.
    pub wanted: Value,
    /// Why, in the words of the one who asks; the audit log keeps the first one's.
    pub said: Value,
    /// The idempotency key of the call: a repeat of the first request is answered as it was.
    pub once: Option<Reservation>,
}

/// Whether it may be done now.
pub(super) enum Verdict {
    /// It may; this goes with it.
    Go(Agreement),
    /// Somebody else has to ask for the same; this is the answer.
    Wait(Response),
}

/// What goes with an act that two have asked for; nothing, where one is enough.
#[derive(Default)]
pub(super) struct Agreement {
    /// Rows of the same transaction.
    pub rows: Vec<RowChange>,
    /// What must be as it was.
    pub guard: Option<Guard>,
    /// Who asked first.
    pub first: Option<String>,
}

impl Agreement {
    /// What the audit log says about the act, with who asked for it first.
    pub(super) fn told(&self, mut after: Value) -> Value {
        if let Some(first) = &self.first {
            after["requested_by"] = json!(first);
        }
        after
    }
}

/// Whether an operator may do this now: the policy says nothing about it, or somebody else has
/// asked for the same. Otherwise the request is written down.
///
/// # Errors
/// `state_conflict` where somebody else asked at the same moment; the database cannot be read or
/// written.
pub(super) async fn agree(
    app: &App,
    operator: &Operator,
    asked: Asked<'_>,
) -> Result<Verdict, Problem> {
    if !app.config.approvals.two_people.contains(&asked.act) {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let place = format!("{}/{}", asked.action, asked.subject.1);
    let known = get_request(app.db.pool(), &place).await?;
    let wanted = asked.wanted.to_string();
    if let Some(first) = &known
        && first.expires_at() > app.now()
        && first.actor != operator.name
        && first.wanted == wanted
    {
        let guard = Guard { on: &VERSIONS, id: place.clone(), version: first.created_at.micros() };
        return Ok(Verdict::Go(Agreement {
            rows: vec![MET.of(place)],
            guard: Some(guard),
            first: Some(first.actor.clone()),
        }));
    }
    ask(app, operator, (asked, place), known).await.map(Verdict::Wait)
}

/// Writes down that the first of two asks, in the place of whoever asked before.
async fn ask(
    app: &App,
    operator: &Operator,
    (asked, place): (Asked<'_>, String),
    known: Option<Request>,
) -> Result<Response, Problem> {
    let seen = known.as_ref().map(|known| known.created_at.micros());
    // Never twice the same: it is the version.
    let later = known.map(|known| known.created_at.after(Duration::from_micros(1)));
    let request = Request {
        place: place.clone(),
        id: app.ids.id(),
        act: asked.act.as_str().to_owned(),
        action: asked.action.to_owned(),
        subject_id: asked.subject.1.to_owned(),
        wanted: asked.wanted.to_string(),
        actor: operator.name.clone(),
        created_at: later.map_or(app.now(), |later| later.max(app.now())),
    };
    let done = Done {
        action: "approval.request",
        subject: asked.subject,
        before: None,
        after: Some(json!({
            "action": asked.action,
            "wanted": asked.wanted,
            "said": asked.said,
        })),
    };
    let line = change(operator, done).row(&app.ids, app.now());
    let (row, at) = (REQUESTS.insert(&request), place.clone());
    // Of two who ask at once, one is refused and looks again.
    let command = Command::new(move |locked| {
        let held = locked.row(&VERSIONS, &at).map(|row| row.int("created_at")).transpose()?;
        match held == seen {
            true => Ok(Effects { rows: vec![row.clone()], ..Effects::default() }.and(())),
            false => Err(Problem::new(ErrorCode::StateConflict)),
        }
    });
    let reply = Reply {
        status: StatusCode::ACCEPTED.as_u16(),
        body: serde_json::to_string(&view(request)).map_err(Problem::internal)?,
    };
    let reply = move |(): &()| reply.clone();
    let command = command.row(&VERSIONS, place).and_rows(vec![line]);
    let command = command.reserve(asked.once).replying(reply.clone());
    answer(app.writer.work(command).await?, reply)
}

fn view(request: Request) -> ApprovalView {
    ApprovalView {
        object: "approval_request",
        id: request.id.to_string(),
        status: "awaiting_second_person",
        expires_at: request.expires_at(),
        act: request.act,
        action: request.action,
        subject_id: request.subject_id,
        wanted: serde_json::from_str(&request.wanted).unwrap_or_default(),
        requested_by: request.actor,
        created_at: request.created_at,
    }
}

/// A request as it is kept.
struct Request {
    /// The act and its subject in one.
    place: String,
    id: ApprovalId,
    act: String,
    action: String,
    subject_id: String,
    /// As JSON.
    wanted: String,
    actor: String,
    created_at: Moment,
}

impl Request {
    fn expires_at(&self) -> Moment {
        self.created_at.after(limits::APPROVAL_VALID)
    }
}

static REQUESTS: Table<Request> = Table {
    name: "approval_requests",
    fixed: &[text("place", |request| (&request.place).into())],
    changing: &[
        text("id", |request| request.id.as_str().into()),
        text("act", |request| (&request.act).into()),
        text("action", |request| (&request.action).into()),
        text("subject_id", |request| (&request.subject_id).into()),
        text("wanted", |request| (&request.wanted).into()),
        text("actor", |request| (&request.actor).into()),
        int("created_at", |request| request.created_at.into()),
    ],
    on_conflict: Some(
        "(place) DO UPDATE SET id = excluded.id, act = excluded.act, action = excluded.action, \
         subject_id = excluded.subject_id, wanted = excluded.wanted, actor = excluded.actor, \
         created_at = excluded.created_at",
    ),
    is_sealed: false,
};

static MET: Removal = Removal { name: "approval_requests", key: "place" };

static VERSIONS: Lookup =
    Lookup { name: "approval_requests", key: "place", columns: &[("created_at", Int)], lock: true };

async fn get_request(pool: &AnyPool, place: &str) -> Result<Option<Request>, sqlx::Error> {
    let sql = "SELECT * FROM approval_requests WHERE place = $1";
    let row = sqlx::query(sql).bind(place).fetch_optional(pool).await?;
    row.map(|row| request(&row)).transpose()
}

/// Those that may still be agreed to, newest first; one more than a page holds at most.
async fn list_requests(pool: &AnyPool, now: Moment) -> Result<Vec<Request>, sqlx::Error> {
    let sql = "SELECT * FROM approval_requests WHERE created_at > $1 \
               ORDER BY created_at DESC LIMIT $2";
    let since = now.before(limits::APPROVAL_VALID).micros();
    let rows = sqlx::query(sql).bind(since).bind(limits::PAGE_MAX + 1).fetch_all(pool).await?;
    rows.iter().map(request).collect()
}

fn request(row: &AnyRow) -> Result<Request, sqlx::Error> {
    Ok(Request {
        place: row.try_get("place")?,
        id: ApprovalId::from_text(row.try_get("id")?),
        act: row.try_get("act")?,
        action: row.try_get("action")?,
        subject_id: row.try_get("subject_id")?,
        wanted: row.try_get("wanted")?,
        actor: row.try_get("actor")?,
        created_at: Moment::from_micros(row.try_get("created_at")?),
    })
}
