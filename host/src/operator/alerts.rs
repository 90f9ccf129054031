//! What operators have to look at, and what people were told.

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::alerts::{self, Alert, AlertKind, AlertView, Telling, sql};
use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query, filter};
use crate::id::{AlertId, NotificationId};
use crate::ledger::Command;
use crate::notifications;

use super::write;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_alerts", &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    ("acknowledge_alert", &[ErrorCode::NotFound, ErrorCode::StateConflict]),
    ("test_alerts", &[ErrorCode::StateConflict]),
    (
        "list_notifications",
        &[ErrorCode::InvalidFilter, ErrorCode::InvalidLimit, ErrorCode::InvalidField],
    ),
];

/// Filters of alerts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct AlertQuery {
    /// `open`, somebody looking after it or not, or `ended`; both if left out.
    pub status: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List alerts
///
/// What an operator has to look at, each with what to do about it, and what was over within the
/// last 400 days.
#[utoipa::path(
    get, path = "/admin/v1/alerts", operation_id = "list_alerts", tag = "Operator",
    params(AlertQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<AlertView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<AlertQuery>,
) -> Result<Page<AlertView>, Problem> {
    let status = filter("status", query.status, ["open", "ended"])?;
    let is_over = (!status.is_empty()).then_some(status == "ended");
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let (limit, cursor) = (page.limit()?, page.cursor(AlertId::parse)?);
    let found = sql::list(app.db.pool(), is_over, (cursor.as_ref(), limit)).await?;
    Ok(Page::of(found.iter().map(AlertView::of).collect(), limit))
}

/// How often it is tried again where a host has the turn.
const TRIES: u32 = 5;

/// Look after an alert
///
/// Nobody is reminded of it any more, but of more of the same.
#[utoipa::path(
    post, path = "/admin/v1/alerts/{id}/acknowledge", operation_id = "acknowledge_alert",
    tag = "Operator", params(("id" = String, Path, description = "The alert")),
    responses((status = 200, description = "Somebody looks after it", body = AlertView)),
)]
pub async fn acknowledge(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<AlertView>, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such alert.");
    let id = AlertId::parse(&id).ok_or_else(missing)?;
    let mut tries = 0;
    loop {
        let version = sql::get_turn(app.db.pool()).await?;
        let alert = sql::get(app.db.pool(), &id).await?.ok_or_else(missing)?;
        if alert.ended_at.is_some() {
            return Err(Problem::because(ErrorCode::StateConflict, "The alert is over."));
        }
        if alert.acknowledged.is_some() {
            return Ok(Json(AlertView::of(&alert)));
        }
        let acknowledged = Some((operator.name.clone(), app.now()));
        let alert = Alert { acknowledged, ..alert };
        let rows = vec![sql::TURN.change(&(version + 1)), sql::ALERTS.insert(&alert)];
        let done = Done {
            action: "alert.acknowledge",
            subject: ("alert", id.as_str()),
            before: None,
            after: Some(json!({ "summary": alert.summary, "count": alert.count })),
        };
        let command = Command::rows(rows).guards([sql::guard(version)]);
        tries += 1;
        match write(&app, &operator, done, command).await {
            Err(problem) if problem.code() == ErrorCode::StateConflict && tries < TRIES => {}
            Err(problem) => return Err(problem),
            Ok(()) => return Ok(Json(AlertView::of(&alert))),
        }
    }
}

/// A try whether word arrives.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertTestView {
    /// Always `alert_test`.
    #[schema(example = "alert_test")]
    pub object: &'static str,
    /// How many messages leave: one for the receiver of alerts, one for each address.
    pub queued: usize,
}

/// Try whether alerts arrive
///
/// Everybody who is told of alerts is told that nothing is the matter: `alert.test`. The list of
/// notifications says what came of it.
#[utoipa::path(
    post, path = "/admin/v1/alerts/test", operation_id = "test_alerts", tag = "Operator",
    responses((status = 200, description = "On its way", body = AlertTestView)),
)]
pub async fn test(
    State(app): State<App>,
    operator: Operator,
) -> Result<Json<AlertTestView>, Problem> {
    let now = app.now();
    let alert = Alert {
        id: app.ids.id(),
        key: "test".to_owned(),
        kind: AlertKind::Test,
        summary: format!("Nothing is the matter: {} tries whether alerts arrive", operator.name),
        advice: "Nothing is to be done.".to_owned(),
        count: 0,
        host: None,
        opened_at: now,
        seen_at: now,
        told_at: now,
        told_count: 0,
        acknowledged: None,
        ended_at: Some(now),
    };
    let rows = alerts::tell(&app, &alert, Telling::Test)?;
    let queued = rows.len();
    if queued == 0 {
        let message = "Nobody is told of alerts: set alerts.webhook_url or alerts.email_to.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let done = Done {
        action: "alert.test",
        subject: ("alert", alert.id.as_str()),
        before: None,
        after: Some(json!({ "queued": queued })),
    };
    write(&app, &operator, done, Command::rows(rows)).await?;
    Ok(Json(AlertTestView { object: "alert_test", queued }))
}

/// Something that people were told, or are to be. What it said is not kept.
#[derive(Debug, Serialize, ToSchema)]
pub struct NotificationView {
    /// Always `notification`.
    #[schema(example = "notification")]
    pub object: &'static str,
    /// Its id: the receiver of alerts finds it in `webhook-id`, a letter in its `Message-ID`.
    #[schema(example = "ntf_01kaz3v8d1f7wq5n2x4y6z8ab9")]
    pub id: String,
    /// `email` or `webhook`.
    #[schema(example = "email")]
    pub channel: String,
    /// `alert`, `invitation` or `receipt`.
    #[schema(example = "receipt")]
    pub kind: String,
    /// What it is about: an alert, a member or a payout.
    pub subject_id: String,
    /// `queued`, `sent` or `given_up`.
    #[schema(example = "sent")]
    pub status: String,
    /// How often it was tried.
    pub tries: i64,
    /// Why the last try came to nothing.
    pub error: Option<String>,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When it is tried next.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_try_at: Option<Moment>,
    /// When it was sent or given up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Moment>,
}

/// Filters of notifications.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationQuery {
    /// `queued`, `sent` or `given_up`; any if left out.
    pub status: Option<String>,
    /// Items on the page, 1 to 100; 50 if left out.
    #[param(value_type = Option<i64>)]
    pub limit: Option<String>,
    /// The last id of the page before.
    pub starting_after: Option<String>,
}

/// List what people were told
///
/// Alerts, invitations and receipts: whether they left, and why not. For 90 days.
#[utoipa::path(
    get, path = "/admin/v1/notifications", operation_id = "list_notifications", tag = "Operator",
    params(NotificationQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<NotificationView>))),
)]
pub async fn list_notifications(
    State(app): State<App>,
    _operator: Operator,
    Query(query): Query<NotificationQuery>,
) -> Result<Page<NotificationView>, Problem> {
    let status = filter("status", query.status, ["queued", "sent", "given_up"])?;
    let page = PageQuery { limit: query.limit, starting_after: query.starting_after };
    let (limit, cursor) = (page.limit()?, page.cursor(NotificationId::parse)?);
    let before = (cursor.as_ref(), limit);
    let found = notifications::sql::list(app.db.pool(), &status, before).await?;
    let view = |it: notifications::sql::Stored| NotificationView {
        object: "notification",
        id: it.id.to_string(),
        next_try_at: it.ended_at.is_none().then_some(it.due_at),
        channel: it.channel,
        kind: it.kind,
        subject_id: it.subject_id,
        status: it.status,
        tries: it.tries,
        error: it.error,
        created_at: it.created_at,
        ended_at: it.ended_at,
    };
    Ok(Page::of(found.into_iter().map(view).collect(), limit))
}
