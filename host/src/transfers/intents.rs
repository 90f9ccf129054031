//! The intent journal: what is about to leave, on a disk of its own choosing, outside the
//! database.
//!
//! A database that is restored from a backup has forgotten what was sent since. The journal has
//! not: each line was synced before its payment could leave. A host that finds lines which the
//! database does not know starts in quarantine and names them.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::clock::Moment;
use crate::config::limits;

use super::attempt::Attempt;
use super::order::Order;

/// A payment that is about to leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// When, in microseconds since 1970.
    pub at_us: i64,
    /// The object that is paid out.
    pub transfer_id: String,
    /// The attempt.
    pub attempt_id: String,
    /// The route's name.
    pub route: String,
    /// The rail.
    pub rail: String,
    /// The network's reference.
    pub reference: String,
    /// The currency.
    pub currency: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Whose money it is.
    pub merchant_id: String,
}

impl Intent {
    /// That an attempt is about to carry out an order.
    pub(super) fn of(order: &Order, attempt: &Attempt, at: Moment) -> Self {
        Self {
            at_us: at.micros(),
            transfer_id: order.id.clone(),
            attempt_id: attempt.id.to_string(),
            route: attempt.route.clone(),
            rail: attempt.rail.clone(),
            reference: attempt.rail_reference.clone(),
            currency: order.currency.to_string(),
            amount_minor: order.amount.units(),
            merchant_id: order.merchant_id.to_string(),
        }
    }
}

/// Makes a folder that nobody else on this machine reads.
pub(super) fn private_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Where intents are written; cheap to clone.
#[derive(Clone)]
pub struct IntentJournal {
    lines: mpsc::Sender<(String, oneshot::Sender<std::io::Result<()>>)>,
    /// The last intent, where it could not be written.
    unwritten: Arc<Mutex<Option<Intent>>>,
}

impl IntentJournal {
    /// Opens the journal in this folder, which is made if it is not there, and forgets what is
    /// older than a database would be restored from.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(folder: &Path, now: Moment) -> std::io::Result<Self> {
        private_folder(folder)?;
        forget(folder, now)?;
        let (lines, waiting) = mpsc::channel(limits::QUEUE_MAX);
        let folder = folder.to_owned();
        std::thread::Builder::new()
            .name("intents".to_owned())
            .spawn(move || write(&folder, waiting))?;
        Ok(Self { lines, unwritten: Arc::default() })
    }

    /// Writes once more the last intent that could not be written; why it still cannot be. A line that
    /// is repeated says nothing new.
    pub async fn retry_unwritten(&self, now: Moment) -> Option<std::io::Error> {
        let unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let again = Intent { at_us: now.micros(), ..unwritten? };
        let written = tokio::time::timeout(RETRY_MAX, self.record(&again)).await;
        let silent = || Err(std::io::Error::other("the disk does not answer"));
        written.unwrap_or_else(|_| silent()).err()
    }

    /// Leaves what could not be written as it is.
    pub fn forget_unwritten(&self) {
        *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Writes an intent and waits until it is on the disk.
    ///
    /// # Errors
    /// It is not, and so the payment must not leave.
    pub async fn record(&self, intent: &Intent) -> std::io::Result<()> {
        let gone = || std::io::Error::other("the intent journal has stopped");
        let line = serde_json::to_string(intent)?;
        let (answer, written) = oneshot::channel();
        self.lines.send((line, answer)).await.map_err(|_| gone())?;
        let written = written.await.unwrap_or_else(|_| Err(gone()));
        let unwritten = written.is_err().then(|| intent.clone());
        *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = unwritten;
        written
    }
}

/// How long a disk has for a line on which nothing waits.
const RETRY_MAX: Duration = Duration::from_secs(2);
const ENDING: &str = ".jsonl";
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// Journal files by day, oldest first.
pub(super) fn files(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(day) = name.and_then(|name| name.strip_suffix(ENDING)) {
            files.push((day.to_owned(), path.clone()));
        }
    }
    files.sort();
    Ok(files)
}

/// Forgets what is older than a database would be restored from. The clock may be ahead, even by
/// years: whatever it says, of the days on which anything was written the newest stay, as many as
/// are kept. What cannot be deleted is in nobody's way.
///
/// # Errors
/// The folder cannot be read.
fn forget(folder: &Path, now: Moment) -> std::io::Result<()> {
    let files = files(folder)?;
    let days: BTreeSet<&str> = files.iter().filter_map(|(name, _)| day_of(name)).collect();
    let kept = limits::INTENTS_KEPT.as_secs() / DAY.as_secs();
    let kept = usize::try_from(kept).unwrap_or(usize::MAX);
    let Some(last) = days.iter().nth_back(kept) else { return Ok(()) };
    let young = file_day(now.before(limits::INTENTS_KEPT));
    for (name, path) in &files {
        let is_old = day_of(name).is_some_and(|day| day <= *last && day < young.as_str());
        if is_old && let Err(cause) = std::fs::remove_file(path) {
            tracing::warn!(%cause, file = %path.display(), "intents that are too old stay");
        }
    }
    Ok(())
}

/// The day in a file's name, where it is one of ours.
pub(super) fn day_of(name: &str) -> Option<&str> {
    let day = name.split('.').next()?;
    day.parse::<Date>().is_ok().then_some(day)
}

/// The day that an instant falls on, as files are named.
pub(super) fn file_day(at: Moment) -> String {
    at.day_in(&jiff::tz::TimeZone::UTC)
}

/// Writes what waits and syncs it once for all; what follows soon after goes together.
fn write(
    folder: &Path,
    mut waiting: mpsc::Receiver<(String, oneshot::Sender<std::io::Result<()>>)>,
) {
    let mut open: Option<DayFile> = None;
    let mut not_before = Instant::now();
    while let Some(first) = waiting.blocking_recv() {
        std::thread::sleep(not_before.saturating_duration_since(Instant::now()));
        not_before = Instant::now() + limits::INTENTS_EVERY;
        let mut batch = vec![first];
        while let Ok(next) = waiting.try_recv() {
            batch.push(next);
        }
        let text: String = batch.iter().map(|(line, _)| format!("{line}\n")).collect();
        let written = append(folder, &mut open, &text);
        for (_, answer) in batch {
            let answered = match &written {
                Ok(()) => Ok(()),
                Err(cause) => Err(std::io::Error::new(cause.kind(), cause.to_string())),
            };
            // Whoever waited may be gone; the line stays, and does no harm.
            let _ = answer.send(answered);
        }
    }
    if let Some(file) = open {
        file.close();
    }
}

fn append(folder: &Path, open: &mut Option<DayFile>, text: &str) -> std::io::Result<()> {
    let at = first_instant(text);
    let day = file_day(at);
    let mut file = match open.take() {
        Some(file) if file.day == day => file,
        before => {
            if let Some(before) = before {
                before.close();
            }
            // Before anything is made: a disk that is full may have room again.
            if let Err(cause) = forget(folder, at) {
                tracing::warn!(%cause, "looking for intents that are too old");
            }
            DayFile::create(folder, day)?
        }
    };
    match file.append(text.as_bytes()) {
        Ok(()) => *open = Some(file),
        // The next batch begins another one, whatever state this one is in.
        Err(cause) => {
            file.close();
            return Err(cause);
        }
    }
    Ok(())
}

/// A journal of a day, which nobody else ever writes to: whoever begins one makes its file. What
/// follows the last line, as far as there is room, is NULs.
struct DayFile {
    day: String,
    path: PathBuf,
    file: File,
    /// Where the next line goes.
    end: u64,
    /// Where the room ends.
    room: u64,
}

impl DayFile {
    fn create(folder: &Path, day: String) -> std::io::Result<Self> {
        let mut names = (2..).map(|number| format!("{day}.{number}{ENDING}"));
        let mut name = format!("{day}{ENDING}");
        let (path, file) = loop {
            let (path, mut options) = (folder.join(&name), OpenOptions::new());
            match options.write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => break (path, file),
                // Of another host, or of this one before it was started again.
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                    name = names.next().unwrap_or_default();
                }
                Err(cause) => return Err(cause),
            }
        };
        // The file's name is only as durable as its folder.
        File::open(folder)?.sync_all()?;
        Ok(Self { day, path, file, end: 0, room: 0 })
    }

    /// Gives back what is left of the room, and the file if nothing stands in it: a disk that is full
    /// does not fill up with files besides.
    fn close(self) {
        // Nothing hangs on it: what is left is read as nothing.
        let _ = match self.end {
            0 => std::fs::remove_file(&self.path),
            end => self.file.set_len(end),
        };
    }

    /// Writes this after the last line; once answered, it is on the disk.
    fn append(&mut self, text: &[u8]) -> std::io::Result<()> {
        let end = self.end + text.len() as u64;
        if end > self.room {
            let room = end.next_multiple_of(limits::INTENTS_ROOM);
            let zeros = vec![0; usize::try_from(room - self.room).unwrap_or(0)];
            self.file.write_all_at(&zeros, self.room)?;
            self.room = room;
        }
        self.file.write_all_at(text, self.end)?;
        self.file.sync_data()?;
        self.end = end;
        Ok(())
    }
}

/// The instant of the first line, by whose day its file is named.
fn first_instant(text: &str) -> Moment {
    let first = text.lines().next().unwrap_or_default();
    let intent: Option<Intent> = serde_json::from_str(first).ok();
    Moment::from_micros(intent.map_or(0, |intent| intent.at_us))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::newest::Newest;
    use super::*;

    /// All that are not older than `since`, oldest first.
    fn read(folder: &Path, since: Moment) -> std::io::Result<Vec<Intent>> {
        let mut intents = Newest::open(folder, since)?.take(usize::MAX)?;
        intents.reverse();
        Ok(intents)
    }

    fn intent(at: &str, reference: &str) -> Intent {
        Intent {
            at_us: Moment::parse(at).expect("an instant").micros(),
            transfer_id: "c1".into(),
            attempt_id: "c2".into(),
            route: "ngn_nip".into(),
            rail: "nip".into(),
            reference: reference.into(),
            currency: "NGN".into(),
            amount_minor: 100,
            merchant_id: "c3".into(),
        }
    }

    #[tokio::test]
    async fn what_is_written_is_read_back_whatever_a_crash_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let now = Moment::parse("2026-11-21T23:59:00Z").expect("an instant");
        let (one, two) = (intent("2026-11-21T23:59:30Z", "1"), intent("2026-11-22T00:00:30Z", "2"));
        let journal = IntentJournal::open(folder.path(), now).expect("a journal");
        journal.record(&one).await.expect("written");
        drop(journal);
        let torn = folder.path().join("2026-11-21.jsonl");
        let mut file = OpenOptions::new().append(true).open(torn).expect("a file");
        file.write_all(b"{\"at_us\":179").expect("half a line");
        let journal = IntentJournal::open(folder.path(), now).expect("a journal");
        journal.record(&two).await.expect("written");
        let again = intent("2026-11-21T23:59:31Z", "3");
        journal.record(&again).await.expect("written");
        let since =
            |day: &str| read(folder.path(), Moment::parse(day).expect("an instant")).expect("read");
        assert_eq!(since("2026-11-21"), [one, again, two.clone()]);
        assert_eq!(since("2026-11-22"), [two]);
        assert_eq!(read(Path::new("/nowhere"), now).expect("none"), []);
        let over = folder.path().join("2026-11-22.jsonl");
        let kept = std::fs::read(over).expect("the journal of a day that is over");
        assert_eq!(kept.last(), Some(&b'\n'), "its room is given back");
    }

    /// Room is made again and again, and two hosts never write to one file.
    #[test]
    fn each_writes_to_its_own_file_and_all_are_read_in_the_order_of_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files: Vec<DayFile> = (0..3)
            .map(|_| DayFile::create(folder.path(), "2026-11-21".into()).expect("a file"))
            .collect();
        let mut written = Vec::new();
        for portion in 0..500 {
            let some: Vec<Intent> = (30 * portion..30 * (portion + 1))
                .map(|at_us| Intent { at_us, ..intent("2026-11-21T00:00:00Z", &at_us.to_string()) })
                .collect();
            let lines = some.iter().map(|one| serde_json::to_string(one).expect("JSON") + "\n");
            // One of them wrote until a while ago only.
            let which = if portion > 150 { portion % 2 } else { portion % 3 };
            let file = &mut files[usize::try_from(which).expect("small")];
            file.append(lines.collect::<String>().as_bytes()).expect("written");
            written.extend(some);
        }
        assert!(files.iter().any(|file| file.room > limits::INTENTS_ROOM), "room was made again");
        assert!(
            files
                .iter()
                .all(|file| file.room.is_multiple_of(limits::INTENTS_ROOM) && file.end < file.room)
        );
        let since = Moment::from_micros(0);
        assert_eq!(read(folder.path(), since).expect("read"), written);
        // So are those of a file whose name says no day.
        std::fs::rename(folder.path().join("2026-11-21.2.jsonl"), folder.path().join("old.jsonl"))
            .expect("renamed");
        assert_eq!(read(folder.path(), since).expect("read"), written);
        // A few at a time are the same, and more is there than fits into one block.
        let mut newest = Newest::open(folder.path(), since).expect("a folder");
        let mut portions = Vec::new();
        while let Some(portion) = Some(newest.take(7).expect("read")).filter(|it| !it.is_empty()) {
            portions.extend(portion);
        }
        portions.reverse();
        assert_eq!(portions, written);
        let later = Moment::parse("2027-11-21T00:00:00Z").expect("an instant");
        drop(IntentJournal::open(folder.path(), later).expect("a journal"));
        let left = super::files(folder.path()).expect("files").len();
        assert_eq!(left, 3, "nothing newer is there");
    }

    /// In the morning of a day, counted from the first of November.
    fn on(day: u32) -> Moment {
        Moment::parse("2026-10-31T09:00:00Z").expect("an instant").after(DAY * day)
    }

    async fn record_on(journal: &IntentJournal, day: u32) {
        journal.record(&intent(&on(day).to_string(), "1")).await.expect("written");
    }

    /// The days of the files in a folder, oldest first.
    fn days_in(folder: &tempfile::TempDir) -> Vec<String> {
        let files = files(folder.path()).expect("files");
        files.into_iter().map(|(day, _)| day).collect()
    }

    fn named(days: impl IntoIterator<Item = u32>) -> Vec<String> {
        days.into_iter().map(|day| file_day(on(day))).collect()
    }

    /// Nobody has to start a host again for it, and what cannot be deleted stops no payment.
    #[tokio::test]
    async fn what_is_too_old_goes_when_a_day_begins() {
        let folder = tempfile::tempdir().expect("a folder");
        let stays = folder.path().join("2026-10-01.jsonl");
        std::fs::create_dir(stays).expect("what is no file");
        let journal = IntentJournal::open(folder.path(), on(1)).expect("a journal");
        for day in 1..=40 {
            record_on(&journal, day).await;
        }
        let kept = [vec!["2026-10-01".to_owned()], named(10..=40)].concat();
        assert_eq!(days_in(&folder), kept);
    }

    #[tokio::test]
    async fn a_clock_that_is_years_ahead_takes_none_of_the_newest() {
        const AHEAD: u32 = 4_000;
        let folder = tempfile::tempdir().expect("a folder");
        for day in named(1..=35) {
            std::fs::write(folder.path().join(day + ENDING), "").expect("written");
        }
        let journal = IntentJournal::open(folder.path(), on(AHEAD)).expect("a journal");
        assert_eq!(days_in(&folder), named(6..=35), "thirty days");
        record_on(&journal, AHEAD).await;
        assert_eq!(days_in(&folder), named((6..=35).chain([AHEAD])));
        // Once it is put right, what was written meanwhile takes nobody's place.
        record_on(&journal, 36).await;
        assert_eq!(days_in(&folder), named((6..=36).chain([AHEAD])));
        record_on(&journal, 37).await;
        assert_eq!(days_in(&folder), named((7..=37).chain([AHEAD])));
    }

    /// A disk that is full: nothing is said to be written, and nothing piles up.
    #[test]
    fn what_cannot_be_written_leaves_no_file_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = intent("2026-11-21T09:00:00Z", "1");
        let line = format!("{}\n", serde_json::to_string(&one).expect("JSON"));
        for end in [0, line.len() as u64] {
            let mut full = DayFile::create(folder.path(), "2026-11-21".into()).expect("a file");
            full.append(line.as_bytes()).expect("written");
            full.end = end;
            full.room = end;
            full.file = OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
            let mut open = Some(full);
            append(folder.path(), &mut open, &line).expect_err("there is no room");
            assert!(open.is_none(), "the next one begins anew");
            let left = super::files(folder.path()).expect("files").len();
            assert_eq!(left, usize::from(end > 0), "what was written stays");
        }
    }
}
