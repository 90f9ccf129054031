//! The intent journal as it is read: backwards, the newest first, however much of it there is. A
//! host that starts looks at the last few and has thirty days behind them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::clock::Moment;

use super::intents::{DAY, Intent, day_of, file_day, files};

/// How much of a file is read at once.
const BLOCK: u64 = 64 * 1024;

/// The intents of a folder, whichever hosts wrote them: a file is in the order of time, and those of
/// one day are merged. A line that was cut off by a crash was never acted on.
pub(super) struct Newest {
    since: Moment,
    /// The files of each day that is still to be read.
    days: BTreeMap<String, Vec<PathBuf>>,
    /// Those of the day that is being read.
    of_day: Vec<Journal>,
    /// Those whose names say no day.
    undated: Vec<Journal>,
}

/// A file with what is next in it.
struct Journal {
    next: Intent,
    before: Backwards,
}

impl Newest {
    /// Those that are not older than `since`.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub(super) fn open(folder: &Path, since: Moment) -> std::io::Result<Self> {
        let mut newest =
            Self { since, days: BTreeMap::new(), of_day: Vec::new(), undated: Vec::new() };
        if !folder.exists() {
            return Ok(newest);
        }
        // A file of the day before may hold intents of the first instants.
        let first = file_day(since.before(DAY));
        for (name, path) in files(folder)? {
            match day_of(&name) {
                Some(day) if day < first.as_str() => {}
                Some(day) => newest.days.entry(day.to_owned()).or_default().push(path),
                None => newest.undated.extend(Journal::open(&path)?),
            }
        }
        Ok(newest)
    }

    /// The next so many.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn take(&mut self, count: usize) -> std::io::Result<Vec<Intent>> {
        let mut some = Vec::new();
        while some.len() < count {
            match self.next()? {
                Some(intent) if intent.at_us >= self.since.micros() => some.push(intent),
                Some(_) => {}
                None => break,
            }
        }
        Ok(some)
    }

    fn next(&mut self) -> std::io::Result<Option<Intent>> {
        while self.of_day.is_empty() {
            let Some((_, paths)) = self.days.pop_last() else { break };
            for path in paths {
                self.of_day.extend(Journal::open(&path)?);
            }
        }
        let newest = |journals: &[Journal]| {
            let all = journals.iter().map(|journal| journal.next.at_us).enumerate();
            all.max_by_key(|(_, at)| *at).map(|(index, at)| (at, index))
        };
        let (of_day, undated) = (newest(&self.of_day), newest(&self.undated));
        let journals = if undated > of_day { &mut self.undated } else { &mut self.of_day };
        let Some((_, index)) = of_day.max(undated) else { return Ok(None) };
        let journal = &mut journals[index];
        Ok(Some(match journal.before.next()? {
            Some(before) => std::mem::replace(&mut journal.next, before),
            None => journals.swap_remove(index).next,
        }))
    }
}

impl Journal {
    /// A file, if anything stands in it.
    fn open(path: &Path) -> std::io::Result<Option<Self>> {
        let file = match File::open(path) {
            // Whoever writes has just forgotten it.
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut before = Backwards::of(file)?;
        Ok(before.next()?.map(|next| Self { next, before }))
    }
}

/// The intents of a file, the last one first.
struct Backwards {
    file: File,
    /// How much of it is still to be read.
    left: u64,
    /// What was read and is still to be looked at.
    read: Vec<u8>,
}

impl Backwards {
    fn of(file: File) -> std::io::Result<Self> {
        let left = file.metadata()?.len();
        Ok(Self { file, left, read: Vec::new() })
    }

    fn next(&mut self) -> std::io::Result<Option<Intent>> {
        while let Some(line) = self.line()? {
            if let Ok(intent) = serde_json::from_slice(&line) {
                return Ok(Some(intent));
            }
        }
        Ok(None)
    }

    fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.read.iter().rposition(|byte| *byte == b'\n') {
                let line = self.read.split_off(end + 1);
                self.read.pop();
                return Ok(Some(line));
            }
            if self.left == 0 {
                return Ok((!self.read.is_empty()).then(|| std::mem::take(&mut self.read)));
            }
            self.block()?;
        }
    }

    /// Puts the block before what was read.
    fn block(&mut self) -> std::io::Result<()> {
        let size = self.left.min(BLOCK);
        self.left -= size;
        let mut block = vec![0; usize::try_from(size).unwrap_or(0)];
        let mut filled = 0;
        while filled < block.len() {
            match self.file.read_at(&mut block[filled..], self.left + filled as u64)? {
                // Whoever writes has just given back its room, in which nothing stood.
                0 => break,
                read => filled += read,
            }
        }
        block.truncate(filled);
        // What follows the last line is room.
        block.retain(|byte| *byte != 0);
        block.append(&mut self.read);
        self.read = block;
        Ok(())
    }
}
