//! What waits for more people, as it is shown.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::clock::Moment;

use super::Request;

/// What waits for more people.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalView {
    /// Always `approval_request`.
    #[schema(example = "approval_request")]
    pub object: &'static str,
    /// The request's id.
    pub id: String,
    /// Always `awaiting_approval`.
    #[schema(example = "awaiting_approval")]
    pub status: &'static str,
    /// The word of the policy that asks for more than one: `credit`, `limits`, `live_route`, `mark`,
    /// `reverse`, `key`, `redeliver`, `close_window`, `recall`, `rate`, `rule_pack`, `case`,
    /// `member` or `adjust`; `payout` and `batch` for what a merchant's own team decides.
    #[schema(example = "credit")]
    pub act: String,
    /// What would be done, as the audit log will call it.
    #[schema(example = "wallet.credit")]
    pub action: String,
    /// The id of the object that it is about.
    pub subject_id: String,
    /// The merchant whose own people may agree, too.
    pub merchant_id: Option<String>,
    /// What others have to ask for as well.
    #[schema(value_type = Object)]
    pub wanted: Value,
    /// How many people it takes.
    #[schema(example = 2)]
    pub people: u32,
    /// Who asked first.
    pub requested_by: String,
    /// Everybody who asked, the first one first.
    pub approvals: Vec<ApprovalVote>,
    /// When it was asked for first.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// Until when others may ask for the same.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Moment,
}

/// Somebody who asked.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalVote {
    /// An operator's name, or a member's id.
    pub by: String,
    /// When they asked for it.
    #[schema(value_type = String, format = DateTime)]
    pub at: Moment,
}

impl ApprovalView {
    /// A request, as it is shown.
    #[must_use]
    pub fn of(request: Request) -> Self {
        let votes = request.votes.into_iter();
        let approvals: Vec<ApprovalVote> = votes
            .map(|vote| ApprovalVote { by: vote.by, at: Moment::from_micros(vote.at) })
            .collect();
        Self {
            object: "approval_request",
            id: request.id.to_string(),
            status: "awaiting_approval",
            act: request.act,
            action: request.action,
            subject_id: request.subject_id,
            merchant_id: request.merchant_id.map(|id| id.to_string()),
            wanted: serde_json::from_str(&request.wanted).unwrap_or_default(),
            people: request.people,
            requested_by: approvals.first().map(|vote| vote.by.clone()).unwrap_or_default(),
            approvals,
            created_at: request.created_at,
            expires_at: request.expires_at,
        }
    }
}
