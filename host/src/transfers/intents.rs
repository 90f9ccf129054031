//! The intent journal: what is about to leave, on a disk of its own choosing, outside the
//! database.
//!
//! A database that is restored from a backup has forgotten what was sent since. The journal has
//! not: each line was synced before its payment could leave. A host that finds lines which the
//! database does not know starts in quarantine and names them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
}

impl IntentJournal {
    /// Opens the journal in this folder, which is made if it is not there, and forgets what is
    /// older than a database would be restored from.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn open(folder: &Path, now: Moment) -> std::io::Result<Self> {
        private_folder(folder)?;
        for (day, path) in files(folder)? {
            if day < file_day(now.before(limits::INTENTS_KEPT)) {
                std::fs::remove_file(path)?;
            }
        }
        let (lines, waiting) = mpsc::channel(limits::QUEUE_MAX);
        let folder = folder.to_owned();
        std::thread::Builder::new()
            .name("intents".to_owned())
            .spawn(move || write(&folder, waiting))?;
        Ok(Self { lines })
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
        written.await.map_err(|_| gone())?
    }
}

/// The intents in a folder that are younger than `since`, oldest first. A line that was cut off
/// by a crash was never acted on.
///
/// # Errors
/// The folder is there and cannot be read.
pub fn read(folder: &Path, since: Moment) -> std::io::Result<Vec<Intent>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut intents = Vec::new();
    for (day, path) in files(folder)? {
        // A file of the day before may hold intents of the first instants.
        if day < file_day(since.before(Duration::from_secs(86_400))) {
            continue;
        }
        for line in BufReader::new(File::open(path)?).split(b'\n') {
            if let Ok(intent) = serde_json::from_slice::<Intent>(&line?)
                && intent.at_us >= since.micros()
            {
                intents.push(intent);
            }
        }
    }
    Ok(intents)
}

const ENDING: &str = ".jsonl";

/// Journal files by day, oldest first.
fn files(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
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

/// The day that an instant falls on, as files are named.
fn file_day(at: Moment) -> String {
    at.day_in(&jiff::tz::TimeZone::UTC)
}

/// Writes what waits and syncs it once for all.
fn write(
    folder: &Path,
    mut waiting: mpsc::Receiver<(String, oneshot::Sender<std::io::Result<()>>)>,
) {
    let mut open: Option<DayFile> = None;
    while let Some(first) = waiting.blocking_recv() {
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
    let day = first_day(text);
    let mut file = match open.take() {
        Some(file) if file.day == day => file,
        before => {
            if let Some(before) = before {
                before.close();
            }
            DayFile::open(folder, day)?
        }
    };
    // Where it fails, the next batch opens it anew, whatever state it is in.
    file.append(text.as_bytes())?;
    *open = Some(file);
    Ok(())
}

/// How much room is made at a time. Syncing what is written where there is room already costs the
/// disk the bytes alone; a file that grows with each line costs its filesystem a transaction.
const ROOM: u64 = 1 << 20;

/// The journal of a day, which is nobody else's while it is open. What follows the last line, as
/// far as there is room, is NULs.
struct DayFile {
    day: String,
    file: File,
    /// Where the next line goes.
    end: u64,
    /// Where the room ends.
    room: u64,
}

impl DayFile {
    fn open(folder: &Path, day: String) -> std::io::Result<Self> {
        let mut names = (2..).map(|number| format!("{day}.{number}{ENDING}"));
        let mut name = format!("{day}{ENDING}");
        let file = loop {
            let path = folder.join(&name);
            let is_new = !path.exists();
            let mut options = OpenOptions::new();
            let options = options.create(true).truncate(false).read(true).write(true);
            let file = options.mode(0o600).open(&path)?;
            if is_new {
                // The file's name is only as durable as its folder.
                File::open(folder)?.sync_all()?;
            }
            match file.try_lock() {
                Ok(()) => break file,
                // Whoever shares the folder writes where this host wrote: it takes another file.
                Err(TryLockError::WouldBlock) => name = names.next().unwrap_or_default(),
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
        };
        let room = file.metadata()?.len();
        let mut file = Self { day, end: end_of(&file, room)?, file, room };
        if file.end > 0 {
            // After a crash the last line may be half a one.
            file.append(b"\n")?;
        }
        Ok(file)
    }

    /// Gives back what is left of the room.
    fn close(self) {
        // Nothing hangs on it: it is read as nothing.
        let _ = self.file.set_len(self.end);
    }

    /// Writes this after the last line; once answered, it is on the disk.
    fn append(&mut self, text: &[u8]) -> std::io::Result<()> {
        let end = self.end + text.len() as u64;
        if end > self.room {
            let room = end.next_multiple_of(ROOM);
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

/// What comes after the last byte of a file of this length that is none of the room.
fn end_of(file: &File, len: u64) -> std::io::Result<u64> {
    let mut end = len;
    let mut portion = vec![0; 1 << 16];
    while end > 0 {
        let from = end.saturating_sub(portion.len() as u64);
        let part = &mut portion[..usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(part, from)?;
        match part.iter().rposition(|byte| *byte != 0) {
            Some(last) => return Ok(from + last as u64 + 1),
            None => end = from,
        }
    }
    Ok(0)
}

/// The day of the first line, by which its file is named.
fn first_day(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let intent: Option<Intent> = serde_json::from_str(first).ok();
    file_day(Moment::from_micros(intent.map_or(0, |intent| intent.at_us)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let file = OpenOptions::new().read(true).write(true).open(&torn).expect("a file");
        // Until whoever wrote it has let it go.
        file.lock().expect("its turn");
        let len = file.metadata().expect("its length").len();
        let end = end_of(&file, len).expect("its end");
        file.write_all_at(b"{\"at_us\":179", end).expect("half a line");
        file.set_len(ROOM).expect("room");
        drop(file);
        let journal = IntentJournal::open(folder.path(), now).expect("a journal");
        journal.record(&two).await.expect("written");
        let again = intent("2026-11-21T23:59:31Z", "3");
        journal.record(&again).await.expect("written");
        let read = |since: &str| {
            let since = Moment::parse(since).expect("an instant");
            read(folder.path(), since).expect("read")
        };
        assert_eq!(read("2026-11-21"), [one, again, two.clone()]);
        assert_eq!(read("2026-11-22"), [two]);
        assert_eq!(super::read(Path::new("/nowhere"), now).expect("none"), []);
        let over = folder.path().join("2026-11-22.jsonl");
        let kept = std::fs::read(over).expect("the journal of a day that is over");
        assert_eq!(kept.last(), Some(&b'\n'), "its room is given back");
    }

    /// Room is made again and again, and what is written meets none of what was there before.
    #[test]
    fn lines_go_on_where_the_last_one_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |number: usize| format!("{number:0999}\n").into_bytes();
        let mut written = Vec::new();
        for portion in [0..1_500, 1_500..1_501, 1_501..3_000] {
            let mut file = DayFile::open(folder.path(), "day".into()).expect("a file");
            let other = DayFile::open(folder.path(), "day".into()).expect("another file");
            assert_eq!(other.end, 0, "two never write to one");
            for number in portion {
                file.append(&line(number)).expect("written");
                written.push(number);
            }
            assert_eq!(file.room % ROOM, 0);
        }
        let text = std::fs::read_to_string(folder.path().join("day.jsonl")).expect("a file");
        let lines = text.trim_end_matches('\0').lines().filter(|line| !line.is_empty());
        let read: Vec<usize> = lines.map(|line| line.parse().expect("a number")).collect();
        assert_eq!(read, written);
    }
}
