//! Anchors: what the books were, kept where whoever can change the database cannot reach.
//!
//! An anchor names the last sealed batch of each writer. A copy of the books that lacks one of
//! them, or has it otherwise, is not these books: `railhead verify --against`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::clock::Moment;
use crate::config::limits;
use crate::db;
use crate::ledger::verify::{Anchor, heads};

/// An anchor as it is kept.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    /// When it was taken.
    pub taken_at: String,
    /// The last sealed batch of each writer, and its hash.
    pub heads: BTreeMap<i64, String>,
}

impl Kept {
    /// An anchor that is taken now.
    #[must_use]
    pub fn of(anchor: &Anchor, now: Moment) -> Self {
        Self { taken_at: now.to_string(), heads: anchor.heads.clone() }
    }

    /// As text.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// Anchors the books in a folder every so often, until the host stops.
pub async fn keep(app: App, folder: PathBuf) {
    loop {
        if let Err(why) = db::within(limits::JOB_DEADLINE, keep_one(&app, &folder)).await {
            tracing::error!(%why, folder = %folder.display(), "the books are not anchored");
        }
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(limits::ANCHOR_POLL) => {}
        }
    }
}

/// For how long the books have not been anchored, where that is too long by now: by more than an
/// hour. Nothing where no anchors are wanted.
pub(crate) async fn missed(app: &App) -> Option<Option<Moment>> {
    let folder = app.config.anchors.dir.clone()?;
    let now = app.now();
    let looked = tokio::task::spawn_blocking(move || newest(&folder, now)).await;
    let newest = looked.ok().and_then(Result::ok).flatten();
    let late = every(app) + Duration::from_secs(3600);
    newest.is_none_or(|at| now.since(at) > late).then_some(newest)
}

fn every(app: &App) -> Duration {
    Duration::from_secs(u64::from(app.config.anchors.every_hours) * 3600)
}

async fn keep_one(
    app: &App,
    folder: &Path,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (now, wanted) = (app.now(), folder.to_owned());
    let newest = tokio::task::spawn_blocking(move || newest(&wanted, now)).await??;
    if newest.is_some_and(|at| now.since(at) < every(app)) {
        return Ok(());
    }
    let mut snapshot = app.db.snapshot().await?;
    let anchor = Anchor { heads: heads(&mut snapshot).await? };
    snapshot.rollback().await?;
    let (text, path) = (Kept::of(&anchor, now).text()?, folder.join(name(now)));
    tokio::task::spawn_blocking(move || write(&path, &text)).await??;
    tracing::info!(folder = %folder.display(), "the books are anchored");
    Ok(())
}

const PREFIX: &str = "anchor-";
/// How far the clocks of two hosts may be apart.
const CLOCKS_DIFFER: Duration = Duration::from_secs(300);

/// What an anchor's file is called: by the second in which it was taken.
fn name(at: Moment) -> String {
    let second = Moment::from_micros(at.seconds() * 1_000_000).to_string();
    let digits: String = second.chars().filter(|c| !matches!(c, ':' | '.')).collect();
    format!("{PREFIX}{digits}.json")
}

/// When the last anchor was taken that lies there. One from the future, which a host with a wrong clock
/// has written, stands for nothing.
fn newest(folder: &Path, now: Moment) -> io::Result<Option<Moment>> {
    fs::create_dir_all(folder)?;
    let last = name(now.after(CLOCKS_DIFFER));
    let mut newest: Option<PathBuf> = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let is_anchor = name
            .to_str()
            .is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(".json") && n <= last.as_str());
        if is_anchor && newest.as_ref().is_none_or(|newest| newest.as_os_str() < name.as_os_str()) {
            newest = Some(name.into());
        }
    }
    let Some(newest) = newest else { return Ok(None) };
    let text = fs::read_to_string(folder.join(newest))?;
    let kept: Kept = serde_json::from_str(&text)?;
    Ok(Moment::parse(&kept.taken_at))
}

/// Whoever looks finds the whole file, or none.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_the_anchors_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("anchors");
        let first = Moment::parse("2026-11-24T15:00:00Z").expect("an instant");
        let last = first.after(Duration::from_secs(25 * 3600));
        assert_eq!(newest(&place, last).expect("empty"), None);
        let heads = BTreeMap::from([(1, "a".to_owned())]);
        for hours in [25, 0, 9] {
            let at = first.after(Duration::from_secs(3600 * hours));
            let text = Kept::of(&Anchor { heads: heads.clone() }, at).text().expect("text");
            write(&place.join(name(at)), &text).expect("written");
        }
        fs::write(place.join("other.txt"), "x").expect("written");
        assert_eq!(newest(&place, last).expect("there"), Some(last));
        // To whoever lives before it, the last one is from the future.
        let before = Some(first.after(Duration::from_secs(9 * 3600)));
        assert_eq!(
            newest(&place, first.after(Duration::from_secs(10 * 3600))).expect("there"),
            before
        );
        assert_eq!(fs::read_dir(&place).expect("there").count(), 4);
    }
}
