//! Finding batches.

use crate::app::App;
use crate::caller::Caller;
use crate::error::{ErrorCode, Problem};
use crate::id::BatchId;
use crate::payouts::model::Payout;

use super::model::{Batch, Counts};
use super::sql;

/// The caller's batch of this id or `bat_` reference, and what its payouts come to.
///
/// # Errors
/// `batch_not_found`, the same for one that is not there and one that is somebody else's.
pub(super) async fn find(app: &App, caller: &Caller, id: &str) -> Result<(Batch, Counts), Problem> {
    let missing = || Problem::new(ErrorCode::BatchNotFound);
    let (batch, counts) = get(app, id).await?;
    let (merchant, env) = caller.owner();
    match (&batch.merchant_id, batch.env) == (merchant, env) {
        true => Ok((batch, counts)),
        false => Err(missing()),
    }
}

/// Any batch of this id or `bat_` reference; for the operator.
///
/// # Errors
/// `batch_not_found`.
pub async fn get(app: &App, id: &str) -> Result<(Batch, Counts), Problem> {
    let missing = || Problem::new(ErrorCode::BatchNotFound);
    let id = BatchId::parse_either(id).ok_or_else(missing)?;
    let batch = sql::get(app.db.pool(), &id).await?.ok_or_else(missing)?;
    let mut counts = sql::count(&app.db, &[&batch.id]).await?;
    let counts = counts.remove(batch.id.as_str()).unwrap_or_default();
    Ok((batch, counts))
}

/// All payouts of a batch, in the order of its rows.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn all_items(app: &App, batch: &Batch) -> Result<Vec<Payout>, Problem> {
    let wanted = sql::Items { limit: batch.total_count, ..sql::Items::default() };
    let mut payouts = sql::list_items(app.db.pool(), &batch.id, &wanted).await?;
    payouts.reverse();
    Ok(payouts)
}
