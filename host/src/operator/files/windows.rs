//! Windows: when files of payments close next, and how much waits for it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page};
use crate::ledger::{Command, Decided, Effects, LockedState};
use crate::rails::ReadyRoute;
use crate::rails::files::{Planned, Timetable};
use crate::transfers::files::closing;
use crate::transfers::files::table::{self, FileState, PaymentFile};

use super::super::write;
use super::acts::{Act, FileRequest, Now, conflict, set_held};
use super::{FileView, sql, view};
use crate::approvals::{self, Agreement, ApprovalView, Asked, Verdict};

/// A closing of a window: of each window the next one, and those before whose files still collect.
#[derive(Debug, Serialize, ToSchema)]
pub struct WindowView {
    /// Always `window`.
    #[schema(example = "window")]
    pub object: &'static str,
    /// The id of this closing.
    pub id: String,
    /// `test` or `live`; payments of the sandbox leave at once, whatever the clock shows.
    pub env: &'static str,
    /// The route, by id.
    pub route_id: String,
    /// The name of that route.
    #[schema(example = "usd_ach")]
    pub route: String,
    /// The window's name.
    #[schema(example = "next-day")]
    pub window: String,
    /// When it closes.
    #[schema(value_type = String, format = DateTime)]
    pub closes_at: Moment,
    /// On which day, where the network is.
    #[schema(value_type = String, format = Date)]
    pub business_date: String,
    /// On which day recipients shall have the money.
    #[schema(value_type = String, format = Date)]
    pub value_date: String,
    /// From when its payments count as paid, if the network carries them out.
    #[schema(value_type = String, format = DateTime)]
    pub settles_at: Moment,
    /// Payments so far: those that wait for the closing, and those that have joined its file.
    pub payments: i64,
    /// The file that collects them; payments join it when the window closes.
    pub file: Option<WindowFile>,
}

/// The file of a closing.
#[derive(Debug, Serialize, ToSchema)]
pub struct WindowFile {
    /// The file's id.
    pub id: String,
    /// Payments that have joined it.
    pub payments: i64,
    /// Whether an operator holds it back.
    pub is_held: bool,
}

/// List the windows of routes that pay by file
#[utoipa::path(
    get, path = "/admin/v1/windows", operation_id = "list_windows", tag = "Operator",
    responses((status = 200, description = "Soonest first", body = inline(Page<WindowView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
) -> Result<Page<WindowView>, Problem> {
    let mut views = Vec::new();
    for closing in closings(&app).await? {
        views.push(closing.view(&app).await?);
    }
    Ok(Page::whole(views))
}

/// Close a window before its time
///
/// What waits for it leaves now; its value date stays what it is. What comes afterwards waits for
/// the closing after that.
#[utoipa::path(
    post, path = "/admin/v1/windows/{id}/close", operation_id = "close_window", tag = "Operator",
    params(("id" = String, Path, description = "A closing of the list")),
    request_body = FileRequest,
    responses(
        (status = 200, description = "Its file, which payments join", body = FileView),
        (status = 202, description = "A second operator has to ask for the same", body = ApprovalView),
    ),
)]
pub async fn close(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<FileRequest>,
) -> Result<Response, Problem> {
    let closing = find(&app, &id).await?;
    let (reason, now) = (body.value.reason()?, app.now());
    let (route, closes_at) = (closing.route(), closing.key().1);
    if route.route.env == Env::Test {
        return Err(conflict("Payments of the sandbox wait for no window."));
    }
    if route.route.is_paused || route.missing().is_some() {
        return Err(conflict("Nothing joins a file over this route now: resume or repair it."));
    }
    let file = match &closing {
        Closing::Collects(_, file) => (**file).clone(),
        Closing::Ahead(route, planned) => {
            closing::of_closing((&app.db, &app.ids), (route, planned), now).await?
        }
    };
    app.transfers.refuse_in_doubt(&file).await?;
    if file.is_held {
        return Err(conflict("This file is held back: release it first."));
    }
    if closes_at <= now {
        return Err(conflict("This window closes already."));
    }
    let done = ("window.close", ("file", file.id.as_str()));
    let asked = Asked::by_policy(&app, (ApprovalAct::CloseWindow, None), done)
        .wanting(json!({ "window": file.window, "closes_at": closes_at }))
        .saying(json!({ "reason": reason }), None);
    let agreement = match approvals::agree(&app, &operator, asked).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let done = Done {
        action: "window.close",
        subject: ("file", file.id.as_str()),
        before: Some(json!({ "closes_at": closes_at })),
        after: Some(agreement.told(json!({ "closes_at": now, "reason": reason }))),
    };
    let local = route.timetable().map(|timetable| timetable.local(now)).unwrap_or_default();
    let (business_date, local_time) = local;
    let closed = PaymentFile { closes_at: now, due_at: now, ..file.clone() };
    let closed = PaymentFile { business_date, local_time, ..closed };
    let (before, after) = (file.clone(), closed.clone());
    let command = Command::new(move |locked| close_if_unchanged(locked, &before, &after));
    let command = command.row(&sql::FILES, closed.id.as_str()).guards(agreement.guards);
    write(&app, &operator, done, command.and_rows(agreement.rows)).await?;
    Ok(Json(view(&closed)).into_response())
}

/// Closes the window of a file, if it stands as it was read. Whoever closes files lets everything
/// join that waits for it.
fn close_if_unchanged(
    locked: &LockedState<'_>,
    before: &PaymentFile,
    after: &PaymentFile,
) -> Result<Decided<()>, Problem> {
    let is = Now::read(locked, before.id.as_str())?;
    if (is.state, is.is_held, is.fence) != (before.state.as_str(), false, before.fence) {
        return Err(conflict("Something has become of this window meanwhile: look again."));
    }
    let closed = sql::Closed {
        id: before.id.clone(),
        at: after.closes_at,
        business_date: after.business_date.clone(),
        local_time: after.local_time.clone(),
        fence: before.fence + 1,
    };
    Ok(Effects { rows: vec![sql::CLOSED.change(&closed)], ..Effects::default() }.and(()))
}

/// Hold the file of a window back
///
/// Payments join it when the window closes, and none of them leaves until it is released.
#[utoipa::path(
    post, path = "/admin/v1/windows/{id}/hold", operation_id = "hold_window", tag = "Operator",
    params(("id" = String, Path, description = "A closing of the list")),
    request_body = FileRequest,
    responses((status = 200, description = "Its file, which is held back", body = FileView)),
)]
pub async fn hold(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<FileRequest>,
) -> Result<Json<FileView>, Problem> {
    let closing = find(&app, &id).await?;
    let reason = body.value.reason()?;
    let file = match closing {
        Closing::Collects(_, file) => *file,
        Closing::Ahead(route, _) if route.route.env == Env::Test => {
            return Err(conflict("Payments of the sandbox wait for no window."));
        }
        Closing::Ahead(route, planned) => {
            closing::of_closing((&app.db, &app.ids), (&route, &planned), app.now()).await?
        }
    };
    set_held(&app, &operator, file, (Act::Hold, reason, Agreement::default())).await
}

/// Release the file of a window
#[utoipa::path(
    post, path = "/admin/v1/windows/{id}/release", operation_id = "release_window",
    tag = "Operator", params(("id" = String, Path, description = "A closing of the list")),
    request_body = FileRequest,
    responses((status = 200, description = "Its file, which is let go", body = FileView)),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
    body: Body<FileRequest>,
) -> Result<Json<FileView>, Problem> {
    let closing = find(&app, &id).await?;
    let reason = body.value.reason()?;
    match closing {
        Closing::Collects(_, file) if file.may_have_left => {
            Err(conflict("The bank may have this file: release the file itself."))
        }
        Closing::Collects(_, file) => {
            set_held(&app, &operator, *file, (Act::Release, reason, Agreement::default())).await
        }
        Closing::Ahead(..) => Err(conflict("Nothing is held back there.")),
    }
}

/// A closing that payments are in time for.
enum Closing {
    /// Nobody has opened its file yet.
    Ahead(Arc<ReadyRoute>, Planned),
    /// Its file collects.
    Collects(Arc<ReadyRoute>, Box<PaymentFile>),
}

impl Closing {
    fn route(&self) -> &ReadyRoute {
        match self {
            Self::Ahead(route, _) | Self::Collects(route, _) => route,
        }
    }

    /// The window and when it closes.
    fn key(&self) -> (&str, Moment) {
        match self {
            Self::Ahead(_, planned) => (&planned.closing.window, planned.closing.closes_at),
            Self::Collects(_, file) => (&file.window, file.closes_at),
        }
    }

    fn id(&self) -> String {
        let (window, closes_at) = self.key();
        format!("{}.{window}.{}", self.route().route.id, closes_at.seconds())
    }

    async fn view(&self, app: &App) -> Result<WindowView, Problem> {
        let (route, (window, closes_at)) = (&self.route().route, self.key());
        let (business_date, value_date, settles_at) = match self {
            Self::Ahead(_, Planned { closing, settles_at }) => {
                (closing.business_date.to_string(), closing.value_date.to_string(), *settles_at)
            }
            Self::Collects(_, file) => {
                (file.business_date.clone(), file.value_date.clone(), file.settles_at)
            }
        };
        // They are due at the closing, give or take how long it took to say so.
        let due = (closes_at, closes_at.after(limits::FILES_POLL));
        let waiting = sql::count_waiting(app.db.pool(), &route.id, due).await?;
        let file = match self {
            Self::Ahead(..) => None,
            Self::Collects(_, file) => {
                let (payments, _) = sql::count_payments(app.db.pool(), &file.id).await?;
                let (id, is_held) = (file.id.to_string(), file.is_held);
                Some(WindowFile { id, payments, is_held })
            }
        };
        Ok(WindowView {
            object: "window",
            id: self.id(),
            env: route.env.as_str(),
            route_id: route.id.to_string(),
            route: route.name.clone(),
            window: window.to_owned(),
            closes_at,
            business_date,
            value_date,
            settles_at,
            payments: waiting + file.as_ref().map_or(0, |file| file.payments),
            file,
        })
    }
}

/// Every closing that there is something to say of, the next one first.
async fn closings(app: &App) -> Result<Vec<Closing>, Problem> {
    let mut closings = Vec::new();
    for route in app.routes.all().await?.iter() {
        let Some(timetable) = route.timetable() else { continue };
        let filter = table::Filter {
            env: route.route.env.as_str().to_owned(),
            route: route.route.name.clone(),
            state: FileState::Collecting.as_str().to_owned(),
            before: "~".to_owned(),
            limit: limits::PAGE_MAX,
        };
        let files = table::list(app.db.pool(), &filter).await?;
        let own = files.into_iter().filter(|file| file.route_id == route.route.id);
        let collecting: Vec<_> =
            own.map(|file| Closing::Collects(Arc::clone(route), Box::new(file))).collect();
        let ahead = match timetable.upcoming(app.now()) {
            Ok(planned) => planned,
            Err(why) => {
                tracing::error!(route.name = route.route.name, %why, "no window closes any more");
                Vec::new()
            }
        };
        let mut open = Vec::new();
        for planned in ahead {
            open.extend(not_closed(app, (route, timetable), planned).await?);
        }
        let ahead = open.into_iter().map(|planned| Closing::Ahead(Arc::clone(route), planned));
        let is_new = |closing: &Closing| !collecting.iter().any(|it| it.key() == closing.key());
        closings.extend(ahead.filter(is_new));
        closings.extend(collecting);
    }
    closings.sort_by_key(|closing| closing.key().1);
    Ok(closings)
}

/// The closing of a window that an operator has not closed before its time; nothing where the
/// calendar ends.
async fn not_closed(
    app: &App,
    (route, timetable): (&ReadyRoute, &Timetable),
    mut planned: Planned,
) -> Result<Option<Planned>, Problem> {
    loop {
        let file = closing::find_of_closing(app.db.pool(), (route, &planned)).await?;
        let is_closed = file.is_some_and(|file| file.closes_at < planned.closing.closes_at);
        if !is_closed {
            return Ok(Some(planned));
        }
        match timetable.following(&planned) {
            Ok(next) if next.closing.closes_at > planned.closing.closes_at => planned = next,
            Ok(_) | Err(_) => return Ok(None),
        }
    }
}

/// The closing of this id.
async fn find(app: &App, id: &str) -> Result<Closing, Problem> {
    let mut found = closings(app).await?.into_iter().filter(|closing| closing.id() == id);
    let first = found.next();
    if found.next().is_some() {
        return Err(conflict("This closing has several files: name one of them."));
    }
    first.ok_or_else(|| {
        let message = "No such closing: list the windows, their next closings have other ids.";
        Problem::because(ErrorCode::NotFound, message)
    })
}
