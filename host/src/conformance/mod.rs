//! Conformance of rails: the cases that a rail ships with, and the sandbox's scenarios, run
//! against the very component that would be loaded.

mod cases;
mod exchange;
mod files;
pub mod packs;
mod scenarios;
mod stage;

use std::collections::BTreeSet;
use std::path::Path;

use crate::calendar::Calendar;
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
    let unknown = calendars(rail).into_iter().filter(|name| !is_at_hand(rail, name));
    report.failures.extend(unknown.map(|name| {
        format!("calendar {name}: it is not packed into the rail, and no host has it by itself")
    }));
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

/// The calendars by which it works.
fn calendars(rail: &Rail) -> BTreeSet<&str> {
    let hours = rail.declaration.methods.iter().filter_map(|terms| terms.hours.as_ref());
    let files = rail.declaration.files.iter().map(|files| files.calendar.as_str());
    hours.map(|hours| hours.calendar.as_str()).chain(files).collect()
}

/// A route that has no calendar does nothing.
fn is_at_hand(rail: &Rail, name: &str) -> bool {
    rail.calendars.contains_key(name) || Calendar::names().any(|known| known == name)
}

/// Runs a case twice: it has to come to the same.
async fn twice(run: impl AsyncFn() -> Result<(), String>) -> Result<(), String> {
    let (once, again) = (run().await, run().await);
    match once == again {
        true => once,
        false => Err(format!("not the same twice: {once:?}, then {again:?}")),
    }
}
