//! `railhead serve` and `railhead migrate`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::db::Db;
use crate::rules::PackKind;
use crate::start::{Host, Sources, StartError, shown, start};

use super::say;

/// Runs the service until it is told to stop.
pub(super) async fn serve(config: Config) -> Result<(), StartError> {
    log(&config);
    let told_to_stop = told_to_stop()?;
    let host = start(config, Sources::system()?).await?;
    tracing::info!(address = %host.address, "serving");
    if let Some(token) = &host.unshown_token {
        say(format_args!("Operator token (shown once): {}", shown(token)));
        // Only now: of a start that fails before, nobody has seen it.
        if let Err(problem) = host.remember_shown_token().await {
            tracing::warn!(%problem, "the next start shows the operator's token again");
        }
    }
    warn_of_missing_packs(&host);
    host.run(told_to_stop).await
}

fn warn_of_missing_packs(host: &Host) {
    let assignments = host.app.packs.now();
    if !assignments.decides(PackKind::Fees) {
        tracing::warn!("no fee pack is active: payouts cannot be priced");
    }
    if !assignments.decides(PackKind::Fraud) {
        tracing::warn!("no fraud pack is active: every payout is allowed");
    }
}

/// Brings the schema up to date.
pub(super) async fn migrate(config: &Config) -> Result<(), StartError> {
    log(config);
    let db = Db::open(&config.database_url(), 1).await?;
    db.migrate().await?;
    db.close().await;
    say("The database is up to date.");
    Ok(())
}

/// Sends logs to stderr, as text or JSON, filtered by `RUST_LOG`.
pub(super) fn log(config: &Config) {
    log_with(config, "info,sqlx=warn,wasmtime=warn,cranelift=warn");
}

/// The same with warnings only, for a command whose output is the point.
pub(super) fn log_quietly(config: &Config) {
    log_with(config, "warn");
}

fn log_with(config: &Config, default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // Nobody reading the log any more is no reason to panic.
        .log_internal_errors(false);
    // A second subscriber, as in tests, is refused; the first one stays.
    let _ = match config.log.json {
        true => log.json().try_init(),
        false => log.with_target(false).try_init(),
    };
}

/// Listens for SIGTERM and Ctrl-C from now on; the future waits for one.
///
/// # Errors
/// The system refuses.
pub(super) fn told_to_stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}
