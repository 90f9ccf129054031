//! How requests come to where they are kept.

use crate::app::App;
use crate::config::limits;
use crate::error::Problem;
use crate::ledger::Command;

use super::sql::{CHUNKS, Chunk};

/// Writes down what comes, every so often, until the host stops.
pub async fn keep(app: App) {
    loop {
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::REQUEST_LOG_EVERY) => {}
        }
        if let Err(problem) = flush(&app).await {
            tracing::warn!(?problem, "the log of requests waits");
        }
    }
}

/// Writes down what waits.
///
/// # Errors
/// The database cannot be written; what was not written waits on.
pub async fn flush(app: &App) -> Result<(), Problem> {
    loop {
        let taken = app.requests.take(limits::REQUEST_LOG_AT_ONCE);
        if taken.is_empty() {
            return Ok(());
        }
        let rows = Chunk::all(taken).iter().map(|chunk| CHUNKS.insert(chunk)).collect();
        app.writer.work(Command::rows(rows)).await?;
        app.requests.written();
    }
}
