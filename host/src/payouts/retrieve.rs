//! Finding a merchant's payouts.

use crate::app::App;
use crate::caller::{Actor, Caller};
use crate::error::{ErrorCode, Problem};
use crate::id::PayoutId;

use super::model::Payout;
use super::sql;

/// The caller's payout of this id or `po_` reference.
///
/// # Errors
/// `payout_not_found`, the same for one that is not there and one that is somebody else's.
pub(super) async fn find(app: &App, caller: &Caller, id: &str) -> Result<Payout, Problem> {
    let missing = || Problem::new(ErrorCode::PayoutNotFound);
    let id = PayoutId::parse_either(id).ok_or_else(missing)?;
    sql::find_payout(app.db.pool(), caller.owner(), &id).await?.ok_or_else(missing)
}

/// Any payout of this id or `po_` reference; for the operator.
///
/// # Errors
/// `payout_not_found`.
pub async fn get(app: &App, id: &str) -> Result<Payout, Problem> {
    let missing = || Problem::new(ErrorCode::PayoutNotFound);
    let id = PayoutId::parse_either(id).ok_or_else(missing)?;
    sql::get_payout(app.db.pool(), &id).await?.ok_or_else(missing)
}

/// The payout of this id or `po_` reference, if whoever asks may see it: an operator, or a member of
/// its merchant's team.
///
/// # Errors
/// `payout_not_found`.
pub async fn seen(app: &App, actor: &Actor, id: &str) -> Result<Payout, Problem> {
    let payout = get(app, id).await?;
    match actor.sees(&payout.merchant_id) {
        true => Ok(payout),
        false => Err(Problem::new(ErrorCode::PayoutNotFound)),
    }
}
