//! Reading the audit log.

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit::{self, Line};
use crate::caller::Operator;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::http::{Page, PageQuery, Query};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] =
    &[("list_audit", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField])];

/// A line of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditView {
    /// Always `audit_entry`.
    #[schema(example = "audit_entry")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// Who made the change: an operator's name, or the id of a member or key.
    pub actor: String,
    /// What was done.
    #[schema(example = "wallet.freeze")]
    pub action: String,
    /// To what kind of object.
    pub subject_type: String,
    /// The id of that object.
    pub subject_id: String,
    /// The object before the change; null for a new one.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// How it was then.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
    /// The client's IP address.
    pub address: String,
    /// When the change was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// Read the audit log
#[utoipa::path(
    get, path = "/admin/v1/audit", operation_id = "list_audit", tag = "Operator",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<AuditView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Page<AuditView>, Problem> {
    let limit = page.limit()?;
    let cursor = page.starting_after.as_deref();
    if let Some(id) = cursor
        && !audit::has_line(app.db.pool(), id).await?
    {
        return Err(PageQuery::unknown_cursor());
    }
    let lines = audit::list_lines(app.db.pool(), cursor, limit).await?;
    Ok(Page::of(lines.into_iter().map(view).collect(), limit))
}

fn view(line: Line) -> AuditView {
    AuditView {
        object: "audit_entry",
        id: line.id,
        actor: line.actor,
        action: line.action,
        subject_type: line.subject_type,
        subject_id: line.subject_id,
        before: line.before,
        after: line.after,
        address: line.address,
        created_at: line.created_at,
    }
}
