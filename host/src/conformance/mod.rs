//! Conformance of rails: the cases that a rail ships with, and the sandbox's scenarios, run
//! against the very component that would be loaded.

mod cases;
mod exchange;
mod files;
pub mod packs;
mod scenarios;
mod stage;

use std::path::Path;

use crate::rails::Rail;

pub use cases::Cases;

/// What a run found.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases that were run.
    pub run: usize,
    /// What did not hold, in words.
    pub failures: Vec<String>,
}

impl Report {
    fn note(&mut self, case: &str, result: Result<(), String>) {
        self.run += 1;
        if let Err(why) = result {
            self.failures.push(format!("{case}: {why}"));
        }
    }
}

/// Runs every case in a folder, then every scenario, against a rail.
///
/// # Errors
/// A file of cases cannot be read.
pub async fn check(rail: &Rail, folder: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    let cases = Cases::read(folder)?;
    for case in &cases.recipients {
        report.note(&case.name, exchange::recipient(rail, case).await);
    }
    for case in &cases.exchanges {
        report.note(&case.name, twice(async || exchange::run(rail, case).await).await);
    }
    for case in cases.codes() {
        let name = format!("response code {} on {}", case.name, case.call);
        report.note(&name, exchange::run(rail, &case).await);
    }
    files::run(rail, &cases, &mut report).await;
    scenarios::run(rail, &cases, &mut report).await;
    Ok(report)
}

/// Runs a case twice: it has to come to the same.
async fn twice(run: impl AsyncFn() -> Result<(), String>) -> Result<(), String> {
    let (once, again) = (run().await, run().await);
    match once == again {
        true => once,
        false => Err(format!("not the same twice: {once:?}, then {again:?}")),
    }
}
