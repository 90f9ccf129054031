//! `railhead verify`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;

use crate::anchors::Kept;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::Db;
use crate::ledger::verify::Anchor;
use crate::start::StartError;
use crate::verify::{self, Report, Wanted};

use super::say;

/// What to prove, and what to print.
#[derive(Args)]
pub(super) struct Verify {
    /// List every fault instead of the first one.
    #[arg(long)]
    all: bool,
    /// Print an anchor: keep it elsewhere, and compare with it later.
    #[arg(long)]
    anchor: bool,
    /// An anchor from before, whose batches must still be there, unchanged.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// An anchor from before: what it covers is believed, and only what came later is proved.
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    since: Option<PathBuf>,
}

impl Verify {
    /// Proves the books of a running host, a stopped one, or a copy; changes nothing.
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let begun = Instant::now();
        let clock = Clock::System;
        let wanted = Wanted {
            now: clock.now(),
            against: self.against.as_ref().or(self.since.as_ref()).map(|p| read(p)).transpose()?,
            is_since: self.since.is_some(),
        };
        let db = Db::open_for_reading(&config.database_url()).await?;
        let bar = progress();
        let mut told = |what: &'static str, count: u64| {
            let count = if count > 0 { format!(": {count}") } else { String::new() };
            bar.set_message(format!("looking at {what}{count}"));
        };
        let report = verify::verify(&db, &wanted, &mut told).await?;
        bar.finish_and_clear();
        db.close().await;
        let Report { books, payouts, faults } = &report;
        let Some(first) = faults.list.first() else {
            if self.anchor {
                say(Kept::of(&books.anchor, wanted.now).text()?);
                return Ok(());
            }
            let scope = if self.since.is_some() { " since the anchor" } else { "" };
            say(format_args!(
                "The books are in order{scope}: {} journals, {} entries, {} wallets, {payouts} \
                 payouts, {} batches ({:.1?}).",
                books.journals,
                books.entries,
                books.wallets,
                books.batches,
                begun.elapsed()
            ));
            return Ok(());
        };
        if self.all {
            for fault in &faults.list {
                say(format_args!("{}: {}", fault.check, fault.what));
            }
        }
        let counts: Vec<String> =
            faults.counts.iter().map(|(check, count)| format!("{check} {count}")).collect();
        Err(format!("{}: {}\nin total: {}", first.check, first.what, counts.join(", ")).into())
    }
}

/// Says on a terminal what is being looked at.
fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn read(path: &Path) -> Result<Anchor, StartError> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    let kept: Kept = serde_json::from_str(&text)
        .map_err(|cause| format!("{} is not an anchor: {cause}", path.display()))?;
    Ok(Anchor { heads: kept.heads })
}
