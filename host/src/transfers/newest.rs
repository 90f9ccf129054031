//! The intent journal as it is read: backwards, the newest first, however much of it there is. A
//! host that starts looks at the last few and has thirty days behind them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::clock::Moment;

use super::intents::{DAY, Intent, file_day, files};

/// How much of a file is read at once.
const BLOCK: u64 = 64 * 1024;

/// The intents of a folder, whichever hosts wrote them: a file is in the order of time, and those of
/// one day are merged. A line that was cut off by a crash was never acted on.
pub(super) struct Newest {
    since: Moment,
    /// The files of each day that is still to be read.
    days: BTreeMap<String, Vec<PathBuf>>,
    /// Those of the day that is being read, each with what is next in it.
    open: Vec<(Intent, Backwards)>,
}

impl Newest {
    /// Those that are not older than `since`.
    ///
    /// # Errors
    /// The folder is there and cannot be read.
    pub(super) fn open(folder: &Path, since: Moment) -> std::io::Result<Self> {
        let mut days: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        if folder.exists() {
            // A file of the day before may hold intents of the first instants.
            let first = file_day(since.before(DAY));
            for (name, path) in files(folder)? {
                let day = name.split('.').next().unwrap_or_default().to_owned();
                if day >= first {
                    days.entry(day).or_default().push(path);
                }
            }
        }
        Ok(Self { since, days, open: Vec::new() })
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
        while self.open.is_empty() {
            let Some((_, paths)) = self.days.pop_last() else { return Ok(None) };
            for path in paths {
                let file = match File::open(path) {
                    // Whoever writes has just forgotten it.
                    Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
                    opened => opened?,
                };
                let mut lines = Backwards::of(file)?;
                if let Some(last) = lines.next()? {
                    self.open.push((last, lines));
                }
            }
        }
        let newest = self.open.iter().enumerate().max_by_key(|(_, (intent, _))| intent.at_us);
        let Some((index, _)) = newest else { return Ok(None) };
        let (_, lines) = &mut self.open[index];
        let intent = match lines.next()? {
            Some(before) => std::mem::replace(&mut self.open[index].0, before),
            None => self.open.swap_remove(index).0,
        };
        Ok(Some(intent))
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
        match self.file.read_exact_at(&mut block, self.left) {
            // Whoever writes has just given back its room, in which nothing stands.
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => block.clear(),
            read => read?,
        }
        // What follows the last line is room.
        block.retain(|byte| *byte != 0);
        block.append(&mut self.read);
        self.read = block;
        Ok(())
    }
}
