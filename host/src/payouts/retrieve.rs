//! Finding a merchant's payouts.

use crate::app::App;
use crate::caller::Caller;
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
