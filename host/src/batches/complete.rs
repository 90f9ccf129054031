//! Telling that all payouts of a batch have ended.
//!
//! The last of them may end anywhere: on any host, by a bank's message, or by a person. So nobody
//! who ends a payout looks at its batch; every host looks for batches none of whose payouts is under
//! way, and whoever comes first tells it.

use crate::app::App;
use crate::config::limits;
use crate::db;
use crate::error::{ErrorCode, Problem};
use crate::ledger::Command;

use super::model::{Batch, Change, Counts};
use super::sql;
use super::view::BatchView;

/// Tells of every batch that has come to its end, until the app is told to stop.
pub async fn tell(app: App) {
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::BATCHES_POLL) => {}
        }
        if let Err(problem) = db::within(limits::JOB_DEADLINE, tell_all(&app)).await {
            tracing::warn!(%problem, "telling that batches are complete");
        }
    }
}

async fn tell_all(app: &App) -> Result<(), Problem> {
    let ended = sql::list_ended(app.db.pool(), limits::BATCHES_ENDED_AT_ONCE).await?;
    if ended.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = ended.iter().map(|batch| &batch.id).collect();
    let mut counts = sql::count(&app.db, &ids).await?;
    for batch in &ended {
        let counts = counts.remove(batch.id.as_str()).unwrap_or_default();
        match complete(app, batch, &counts).await {
            // Another host told it.
            Err(problem) if problem.code() == ErrorCode::StateConflict => {}
            other => other?,
        }
    }
    Ok(())
}

async fn complete(app: &App, batch: &Batch, counts: &Counts) -> Result<(), Problem> {
    let now = app.now();
    let ended_at = counts.ended_at().unwrap_or(now);
    let after = batch.after(Change::Complete, (None, ended_at))?;
    let told = BatchView::whole(&after, counts).json();
    let event = after.event(app.ids.id(), (Change::Complete.event(), now), Some(told));
    let rows = vec![sql::BATCH_STATES.change(&after), event.row()];
    app.writer.work(Command::rows(rows).guards([sql::version(batch)])).await?;
    Ok(())
}
