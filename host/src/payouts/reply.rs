//! What a repeat of the request that made a payout is answered: the very bytes of the first answer.
//!
//! Those follow from the payout, whatever became of it since: under the key stands only how it
//! began, and how the answer was rendered. Whoever changes what a payout looks like keeps the
//! old way for payouts of before, under its own number. Answers that follow from more (those
//! of the sandbox, given when the payout has been sent) are kept whole.

use crate::app::App;
use crate::error::Problem;
use crate::id::PayoutId;
use crate::ledger::Reply;

use super::model::{Payout, Status};
use super::sql;
use super::view::PayoutView;

/// What stands before the way in which a payout is rendered. No JSON begins like this.
const MARK: char = '@';
/// The present way, before the status in which a payout began.
const RENDERED: &str = "@1 ";

/// The first answer about a payout, to be kept under the request's key.
pub(super) fn kept(payout: &Payout) -> Reply {
    Reply { status: 201, body: format!("{RENDERED}{}", payout.status.as_str()) }
}

/// The status in which a payout began, where its first answer is to be rendered from it.
pub(super) fn began_as(kept: &str) -> Option<Status> {
    Status::parse(kept.strip_prefix(RENDERED)?)
}

/// The answer as it was given.
///
/// # Errors
/// The database cannot be read, has the key and not its payout, or another build of this program
/// rendered it.
pub(super) async fn given(app: &App, reply: Reply, payout: &str) -> Result<Reply, Problem> {
    if !reply.body.starts_with(MARK) {
        return Ok(reply);
    }
    let unknown = || Problem::internal(format!("a reply rendered as {}", reply.body));
    let status = began_as(&reply.body).ok_or_else(unknown)?;
    let id = PayoutId::parse(payout).ok_or_else(|| Problem::internal("an odd id"))?;
    let payout = sql::get_payout(app.db.pool(), &id).await?;
    let payout = payout.ok_or_else(|| Problem::internal("a key without its payout"))?;
    Ok(Reply { body: PayoutView::json(&payout.as_made(status)), ..reply })
}
