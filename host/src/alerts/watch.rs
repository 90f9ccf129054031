//! The job that looks what is the matter.

use std::time::{Duration, Instant};

use crate::app::App;
use crate::config::limits;
use crate::db;
use crate::error::{ErrorCode, Problem};
use crate::ledger::Command;

use super::matters::{self, Lasting};
use super::sql;
use super::steps::{Eye, Step, steps};

/// How long there is between two looks.
const BETWEEN: (Duration, Duration) = (limits::ALERTS_POLL, limits::JOB_DEADLINE);

/// Looks what is the matter and tells it, until the host stops.
pub async fn watch(app: App) {
    let host = name(app.config.server.address.port());
    let mut lasting = Lasting::default();
    loop {
        let begun = Instant::now();
        let looking = db::within(limits::JOB_DEADLINE, look(&app, &host, &mut lasting));
        if let Err(problem) = looking.await {
            tracing::warn!(%problem, "looking what is the matter");
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            // Where so much is the matter that it takes long to count, it is counted less often.
            () = tokio::time::sleep(limits::rest_after(begun.elapsed(), BETWEEN)) => {}
        }
    }
}

/// What this host is called among those that share a database.
fn name(port: u16) -> String {
    let name = rustix::system::uname();
    format!("{}:{port}", name.nodename().to_string_lossy())
}

async fn look(app: &App, host: &str, lasting: &mut Lasting) -> Result<(), Problem> {
    let version = sql::get_turn(app.db.pool()).await?;
    let open = sql::list_open(app.db.pool()).await?;
    let matters = matters::collect(app, host, lasting).await?;
    let hours = u64::from(app.config.alerts.remind_hours);
    let eye = Eye {
        host,
        now: app.now(),
        remind: Duration::from_secs(hours * 3600),
        has_receivers: super::has_receivers(app),
    };
    let steps = steps(&eye, (matters, open), || app.ids.id());
    if steps.is_empty() {
        return Ok(());
    }
    let mut rows = vec![sql::TURN.change(&(version + 1))];
    for Step { alert, telling } in &steps {
        rows.push(sql::ALERTS.insert(alert));
        if let Some(telling) = telling {
            tracing::warn!(alert.id = %alert.id, ?telling, alert.summary, "an alert");
            rows.extend(super::tell(app, alert, *telling)?);
        }
    }
    match app.writer.work(Command::rows(rows).guards([sql::guard(version)])).await {
        // Somebody else had the turn.
        Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(()),
        done => done.map(drop),
    }
}
