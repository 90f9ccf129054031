//! Quarantine: what was noticed, and letting live payments go again.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::{Done, Operator};
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::transfers::QuarantineState;

use super::{required, write};

/// How long whoever releases it waits for this host to see what that changes.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("get_quarantine", &[]),
    ("release_quarantine", &[ErrorCode::MissingField, ErrorCode::StateConflict]),
];

/// Whether live payments are held back, and why.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuarantineView {
    /// Always `quarantine`.
    #[schema(example = "quarantine")]
    pub object: &'static str,
    /// Whether nothing live is sent now.
    pub is_active: bool,
    /// Since when nothing live is sent; null if it is.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Moment>,
    /// What was noticed about the database.
    pub reasons: Vec<String>,
    /// Payments that left and that the database does not know; each has a case.
    pub forgotten: usize,
}

/// Show the quarantine
#[utoipa::path(
    get, path = "/admin/v1/quarantine", operation_id = "get_quarantine", tag = "Operator",
    responses((status = 200, description = "Whether live payments are held back", body = QuarantineView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    _operator: Operator,
) -> Result<Json<QuarantineView>, Problem> {
    let state = app.transfers.quarantine.state().await?;
    Ok(Json(view(state)))
}

/// Why the quarantine ends.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReleaseRequest {
    /// For the audit log. Required.
    #[schema(example = "failover of 21 November; the bank's statement was compared")]
    pub reason: Option<String>,
}

/// End the quarantine
///
/// Live payments go out again. Those that were queued before are asked about first, under the
/// reference that they had, and sent only where the bank has never received it.
#[utoipa::path(
    post, path = "/admin/v1/quarantine/release", operation_id = "release_quarantine",
    tag = "Operator", request_body = ReleaseRequest,
    responses((status = 200, description = "Over", body = QuarantineView)),
)]
pub async fn release(
    State(app): State<App>,
    operator: Operator,
    body: Body<ReleaseRequest>,
) -> Result<Json<QuarantineView>, Problem> {
    let reason = required("reason", body.value.reason)?;
    let quarantine = &app.transfers.quarantine;
    let Some(state) = quarantine.state().await? else {
        let message = "There is no quarantine.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    };
    let command = quarantine.release(&state).await?;
    let done = Done {
        action: "quarantine.release",
        subject: ("quarantine", "live"),
        before: Some(json!({ "reasons": state.reasons, "forgotten": state.forgotten })),
        after: Some(json!({ "reason": reason })),
    };
    write(&app, &operator, done, command).await?;
    // It is over, whatever this host makes of that now: it looks again and again.
    match tokio::time::timeout(LOOK_MAX, quarantine.attend(&app.writer)).await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            tracing::warn!(%why, "the quarantine was released, and the gate stays shut");
        }
        Err(_) => tracing::warn!("the quarantine was released, and what left is still looked into"),
    }
    app.transfers.wake();
    Ok(Json(view(quarantine.state().await?)))
}

fn view(state: Option<QuarantineState>) -> QuarantineView {
    let is_active = state.is_some();
    let QuarantineState { since_us, reasons, forgotten, .. } = state.unwrap_or_default();
    let since = is_active.then(|| Moment::from_micros(since_us));
    QuarantineView { object: "quarantine", is_active, since, reasons, forgotten }
}
