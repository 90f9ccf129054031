//! Holding a file back, letting it go, and delivering it once more. Whoever has the file loses it:
//! what he had decided before counts no more, so that a file that is held does not leave.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::repeat::{answer, before, once};
use crate::caller::{Done, Operator};
use crate::config::ApprovalAct;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey};
use crate::ledger::{Command, Effects, LockedState, Reply, Reservation};
use crate::transfers::attempt;
use crate::transfers::files::table::{FileState, PaymentFile};

use super::super::{invalid, required, write};
use super::sql::{self, Taken};
use super::{FileView, find, view};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// Why a file is held back, let go or delivered again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileRequest {
    /// For the audit log, 3 to 500 characters. Required.
    #[schema(example = "the bank asks us to wait, ticket 4711")]
    pub reason: Option<String>,
}

impl FileRequest {
    pub(super) fn reason(self) -> Result<String, Problem> {
        let reason = required("reason", self.reason)?;
        match (3..=500).contains(&reason.chars().count()) {
            true => Ok(reason),
            false => Err(invalid("reason", "must have 3 to 500 characters")),
        }
    }
}

/// Hold a file back
///
/// It does not leave until it is released. Its window stays open for payments that were in time,
/// and its value date stays what it is: a file that is released late may be refused for it.
#[utoipa::path(
    post, path = "/admin/v1/files/{id}/hold", operation_id = "hold_file", tag = "Operator",
    params(("id" = String, Path, description = "A file that collects, is closed or assembled")),
    request_body = FileRequest,
    responses((status = 200, description = "Held back", body = FileView)),
)]
pub async fn hold(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<FileRequest>,
) -> Result<Json<FileView>, Problem> {
    let (file, reason) = (find(&app, &id).await?, body.value.reason()?);
    set_held(&app, &operator, file, (Act::Hold, reason, Agreement::default())).await
}

/// Release a file that is held back
#[utoipa::path(
    post, path = "/admin/v1/files/{id}/release", operation_id = "release_file", tag = "Operator",
    params(("id" = String, Path, description = "A file that is held back")),
    request_body = FileRequest,
    responses(
        (status = 200, description = "Let go", body = FileView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<FileRequest>,
) -> Result<Response, Problem> {
    let reason = body.value.reason()?;
    for _ in 1..TRIES {
        match try_to_release(&app, &operator, (&id, &reason)).await {
            // A host looks at what is held back now and then, which changes nothing about it.
            Err(problem) if problem.message() == CHANGED => {}
            done => return done,
        }
    }
    try_to_release(&app, &operator, (&id, &reason)).await
}

async fn try_to_release(
    app: &App,
    operator: &Operator,
    (id, reason): (&str, &str),
) -> Result<Response, Problem> {
    let file = find(app, id).await?;
    app.transfers.refuse_in_doubt(&file).await?;
    refuse_ended(app, &file).await?;
    let agreement = match file.may_have_left {
        false => Agreement::default(),
        // The bank may have it, as after a restore.
        true => {
            let seen = Seen { state: file.state, may_have_left: true };
            match agree(app, operator, &file, (&seen, reason, None)).await? {
                Verdict::Go(agreement) => agreement,
                Verdict::Wait(response) => return Ok(response),
            }
        }
    };
    let said = (Act::Release, reason.to_owned(), agreement);
    let let_go = set_held(app, operator, file, said).await?;
    Ok(let_go.into_response())
}

/// How often a file is looked at again that a host looks at meanwhile.
const TRIES: u32 = 4;

/// Somebody was faster.
const CHANGED: &str = "Something has become of this file meanwhile: look again.";

/// What an operator does with a file that has not left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Hold,
    Release,
}

/// Holds a file back or lets it go.
///
/// # Errors
/// `state_conflict` where it is sent, has ended, or is held back or let go already.
pub(super) async fn set_held(
    app: &App,
    operator: &Operator,
    file: PaymentFile,
    (act, reason, agreement): (Act, String, Agreement),
) -> Result<Json<FileView>, Problem> {
    let is_held = act == Act::Hold;
    let due_at = file.closes_at.max(app.now());
    let done = Done {
        action: if is_held { "file.hold" } else { "file.release" },
        subject: ("file", file.id.as_str()),
        before: Some(json!({ "is_held": !is_held, "state": file.state.as_str() })),
        after: Some(agreement.told(json!({ "is_held": is_held, "reason": reason }))),
    };
    let (id, seen) = (file.id.clone(), file.clone());
    let command = Command::new(move |locked| {
        let now = Now::read(locked, id.as_str())?;
        // Whatever lets it go was decided about the file as it was.
        if act == Act::Release && (now.fence, now.may_have_left) != (seen.fence, seen.may_have_left)
        {
            return Err(conflict(CHANGED));
        }
        let is_early = [FileState::Collecting, FileState::Closed, FileState::Assembled];
        if !is_early.iter().any(|state| state.as_str() == now.state) {
            let message = format!(
                "This file is {}: only one that collects, is closed or assembled is held back.",
                now.state
            );
            return Err(conflict(message));
        }
        match (act, now.is_held) {
            (Act::Hold, true) => return Err(conflict("This file is held back already.")),
            (Act::Release, false) => return Err(conflict("This file is not held back.")),
            (Act::Hold, false) | (Act::Release, true) => {}
        }
        let taken = Taken { id: id.clone(), is_held, due_at, fence: now.fence + 1 };
        let rows = vec![sql::HELD.change(&taken)];
        Ok(Effects { rows, ..Effects::default() }.and(()))
    });
    let command = command.row(&sql::FILES, file.id.as_str()).guards(agreement.guards);
    write(app, operator, done, command.and_rows(agreement.rows)).await?;
    Ok(Json(view(&PaymentFile { is_held, due_at, ..file })))
}

/// Deliver a file once more
///
/// The same bytes under the same name, never others. One that is assembled, and of which nothing
/// has left, is tried at once. One that is unclear or delivered may be with the bank already: if
/// the bank takes it for another file, its payments are made twice. So ask the bank first; where
/// the policy on two operators names `redeliver`, it takes a second one.
#[utoipa::path(
    post, path = "/admin/v1/files/{id}/deliver", operation_id = "deliver_file", tag = "Operator",
    params(
        ("id" = String, Path, description = "A file that is assembled, unclear or delivered"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat"),
    ),
    request_body = FileRequest,
    responses(
        (status = 200, description = "It is delivered in a moment", body = FileView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn deliver(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    key: Option<IdempotencyKey>,
    body: Body<FileRequest>,
) -> Result<Response, Problem> {
    let once = once(&operator, key, &format!("/admin/v1/files/{id}/deliver"), &body);
    let file = find(&app, &id).await?;
    let reason = body.value.reason()?;
    let now = app.now();
    let shown = view(&PaymentFile { state: FileState::Assembled, due_at: now, ..file.clone() });
    let shown = serde_json::to_string(&shown).map_err(Problem::internal)?;
    let reply = move |(): &()| Reply { status: 200, body: shown.clone() };
    if let Some(done) = before::<()>(&app.db, &operator, once.as_ref()).await? {
        return answer(done, reply);
    }
    app.transfers.refuse_in_doubt(&file).await?;
    let seen = Seen::of(&file)?;
    refuse_ended(&app, &file).await?;
    let agreement = match agree(&app, &operator, &file, (&seen, &reason, once.clone())).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let after = json!({
        "state": FileState::Assembled.as_str(),
        "reason": reason,
        "digest": file.digest,
        "may_pay_twice": seen.may_pay_twice(),
    });
    let done = Done {
        action: "file.deliver",
        subject: ("file", file.id.as_str()),
        before: Some(json!({ "state": file.state.as_str(), "deliveries": file.deliveries })),
        after: Some(agreement.told(after)),
    };
    let mut rows = vec![operator.did(done).row(&app.ids, now)];
    rows.extend(agreement.rows);
    let (id, at) = (file.id.clone(), file.fence);
    let command = Command::new(move |locked| {
        let is = Now::read(locked, id.as_str())?;
        let was = (seen.state.as_str(), seen.may_have_left, at);
        if is.is_held || (is.state, is.may_have_left, is.fence) != was {
            return Err(conflict(CHANGED));
        }
        let taken = Taken { id: id.clone(), is_held: false, due_at: now, fence: is.fence + 1 };
        let rows = vec![sql::TO_DELIVER.change(&taken)];
        Ok(Effects { rows, ..Effects::default() }.and(()))
    });
    let command = command.row(&sql::FILES, file.id.as_str()).guards(agreement.guards);
    let command = command.and_rows(rows).reserve(once).replying(reply.clone());
    answer(app.writer.work(command).await?, reply)
}

/// A file that may be delivered, as it was when an operator asked for it.
struct Seen {
    state: FileState,
    may_have_left: bool,
}

impl Seen {
    fn of(file: &PaymentFile) -> Result<Self, Problem> {
        match file.state {
            _ if file.is_held => Err(conflict("This file is held back: release it instead.")),
            FileState::Assembled | FileState::Unclear | FileState::Delivered => {
                Ok(Self { state: file.state, may_have_left: file.may_have_left })
            }
            state => Err(conflict(format!(
                "This file is {}: only one that is assembled, unclear or delivered is delivered \
                 again.",
                state.as_str()
            ))),
        }
    }

    /// Whether the bank may have it: then another copy may be carried out as well.
    fn may_pay_twice(&self) -> bool {
        self.may_have_left || self.state != FileState::Assembled
    }
}

/// Refuses to deliver again what would pay what has been given back. What has not left is made again
/// without it.
async fn refuse_ended(app: &App, file: &PaymentFile) -> Result<(), Problem> {
    if file.state == FileState::Assembled && !file.may_have_left {
        return Ok(());
    }
    match attempt::count_ended_in_file(app.db.pool(), &file.id).await? {
        0 => Ok(()),
        ended => Err(conflict(format!(
            "{ended} of its payments have ended meanwhile: they would be made all the same. Ask the \
             bank what it has, and mark the others."
        ))),
    }
}

/// Whether one operator is enough, or this is the second one.
async fn agree(
    app: &App,
    operator: &Operator,
    file: &PaymentFile,
    (seen, reason, once): (&Seen, &str, Option<Reservation>),
) -> Result<Verdict, Problem> {
    if !seen.may_pay_twice() {
        return Ok(Verdict::Go(Agreement::default()));
    }
    let done = ("file.deliver", ("file", file.id.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::Redeliver, None), done)
        .wanting(json!({
            "state": seen.state.as_str(),
            "digest": file.digest,
            "deliveries": file.deliveries,
            // Whoever agreed to have it delivered did not know why somebody held it back since.
            "is_held": file.is_held,
            "warning": "If the bank has this file, its payments may be made twice.",
        }))
        .saying(json!({ "reason": reason }), once);
    approvals::agree(app, operator, asked).await
}

/// A file as the writer has locked it.
pub(super) struct Now<'a> {
    pub(super) state: &'a str,
    pub(super) is_held: bool,
    may_have_left: bool,
    pub(super) fence: i64,
}

impl<'a> Now<'a> {
    pub(super) fn read(locked: &'a LockedState<'_>, id: &str) -> Result<Self, Problem> {
        let row = locked.row(&sql::FILES, id);
        let row = row.ok_or_else(|| Problem::because(ErrorCode::NotFound, "No such file."))?;
        Ok(Self {
            state: row.text("state")?,
            is_held: row.int("is_held")? != 0,
            may_have_left: row.int("may_have_left")? != 0,
            fence: row.int("fence")?,
        })
    }
}

pub(super) fn conflict(message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::because(ErrorCode::StateConflict, message)
}
