//! Telling that all payouts of a batch have ended.
//!
//! The last of them may end anywhere: on any host, by a bank's message, or by a person. So nobody
//! who ends a payout looks at its batch; every host looks for batches none of whose payouts is under
//! way, and whoever comes first tells it. Where they were all cancelled before anybody had decided
//! about their batch, it is cancelled as well.

use crate::app::App;
use crate::approvals;
use crate::config::limits;
use crate::db;
use crate::error::{ErrorCode, Problem};
use crate::ledger::Command;

use super::model::{Batch, Change, Counts};
use super::review::ACTS_OF_SEVERAL;
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
    if let Err(problem) = lapse_all(app).await {
        tracing::warn!(%problem, "letting batches lapse of which nothing is left");
    }
    let ended = sql::list_ended(app.db.pool(), limits::BATCHES_ENDED_AT_ONCE).await?;
    if ended.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = ended.iter().map(|batch| &batch.id).collect();
    let mut counts = sql::count(&app.db, &ids).await?;
    for batch in &ended {
        let counts = counts.remove(batch.id.as_str()).unwrap_or_default();
        unless_changed(complete(app, batch, &counts).await)?;
    }
    Ok(())
}

/// Another host may have come first, or a person.
fn unless_changed(done: Result<(), Problem>) -> Result<(), Problem> {
    match done {
        Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(()),
        other => other,
    }
}

async fn lapse_all(app: &App) -> Result<(), Problem> {
    for batch in sql::list_emptied(app.db.pool(), limits::BATCHES_ENDED_AT_ONCE).await? {
        unless_changed(lapse(app, &batch).await)?;
    }
    Ok(())
}

/// Nobody is asked any more about a batch of which nothing is left.
async fn lapse(app: &App, batch: &Batch) -> Result<(), Problem> {
    let now = app.now();
    let after = batch.after(Change::Lapse, (None, now))?;
    let event = after.event(app.ids.id(), (Change::Lapse.event(), now), None);
    let command = Command::rows(vec![sql::BATCH_STATES.change(&after), event.row()]);
    let command = command.guards([sql::version(batch)]);
    app.writer.work(approvals::ending(command, ACTS_OF_SEVERAL, batch.id.as_str())).await?;
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
