//! What was about to be sent, and what came of it: a line of JSON for each, beside the payroll.
//!
//! A batch is written down with its key before it leaves. Whoever goes on later sends what has no
//! outcome once more, under the same key and to the byte the same, before anything else: what had
//! arrived is answered as it was the first time. Rows that are in a batch that was taken are never
//! sent again, wherever they stand in the file by then.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::start::StartError;

use super::sheet::Row;

/// A line of the journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A batch is about to be sent.
    Sending(Sending),
    /// It was taken.
    Taken { key: String, batch: String },
    /// It was refused for good: nothing of it was made.
    Refused { key: String },
}

/// A batch that is about to be sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sending {
    /// Its idempotency key.
    pub key: String,
    /// To whom: the host, and the key's first characters.
    pub account: String,
    /// The body.
    pub body: Value,
}

/// A batch that was taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    /// Its id.
    pub batch: String,
    /// Its rows, as they were sent.
    pub items: Vec<Value>,
}

/// The journal of a payroll.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// Without an outcome so far, oldest first.
    open: Vec<Sending>,
    taken: Vec<Taken>,
}

impl Journal {
    /// Opens the journal beside a payroll, for nobody else as long as it is open.
    ///
    /// # Errors
    /// It cannot be read or written, somebody else has it open, or it belongs to another account.
    pub(super) fn open(payroll: &Path, account: &str) -> Result<Self, StartError> {
        let mut path = payroll.as_os_str().to_owned();
        path.push(".journal");
        let path = PathBuf::from(path);
        let said = |cause: std::io::Error| format!("{}: {cause}", path.display());
        // It has names and accounts, as the payroll has.
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(said)?;
        if file.try_lock().is_err() {
            return Err(
                format!("{}: another `railhead batch send` is at it", path.display()).into()
            );
        }
        let (mut open, mut taken): (Vec<Sending>, Vec<Taken>) = (Vec::new(), Vec::new());
        let mut text = String::new();
        (&file).read_to_string(&mut text).map_err(said)?;
        // Whoever wrote half a line was cut off before it was sent, or had learnt nothing new.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        file.set_len(u64::try_from(whole)?).map_err(said)?;
        for line in text[..whole].lines() {
            let read = serde_json::from_str(line);
            match read.map_err(|cause| format!("{}: {cause}", path.display()))? {
                Line::Sending(sending) if sending.account != account => {
                    return Err(format!(
                        "{} belongs to {}: what was sent from there is not known here. Give that \
                         key, or, where nothing of it was paid, move the journal away",
                        path.display(),
                        sending.account
                    )
                    .into());
                }
                Line::Sending(sending) => open.push(sending),
                Line::Taken { key, batch } => {
                    for sent in open.extract_if(.., |sent| sent.key == key) {
                        let items = sent.body["items"].as_array().cloned().unwrap_or_default();
                        taken.push(Taken { batch: batch.clone(), items });
                    }
                }
                Line::Refused { key } => open.retain(|sent| sent.key != key),
            }
        }
        Ok(Self { file, path, open, taken })
    }

    /// Batches whose outcome nobody knows, oldest first.
    pub(super) fn open_ones(&self) -> Vec<Sending> {
        self.open.clone()
    }

    /// Batches that were taken.
    pub(super) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Writes down that a batch is about to be sent, durably.
    pub(super) fn sending(&mut self, sending: Sending) -> Result<(), StartError> {
        self.write(&Line::Sending(sending.clone()))?;
        self.open.push(sending);
        Ok(())
    }

    /// Writes down that it was taken.
    pub(super) fn took(&mut self, sent: &Sending, batch: &str) -> Result<(), StartError> {
        let (key, batch) = (sent.key.clone(), batch.to_owned());
        self.write(&Line::Taken { key, batch: batch.clone() })?;
        self.open.retain(|open| open.key != sent.key);
        let items = sent.body["items"].as_array().cloned().unwrap_or_default();
        self.taken.push(Taken { batch, items });
        Ok(())
    }

    /// Writes down that it was refused for good.
    pub(super) fn refused(&mut self, sent: &Sending) -> Result<(), StartError> {
        self.write(&Line::Refused { key: sent.key.clone() })?;
        self.open.retain(|open| open.key != sent.key);
        Ok(())
    }

    /// The rows of a payroll that are in no batch that was taken. A row that stands there twice was
    /// sent as often as it was taken.
    pub(super) fn left(&self, rows: &[Row]) -> Vec<Row> {
        let mut sent: BTreeMap<String, usize> = BTreeMap::new();
        for item in self.taken.iter().flat_map(|taken| &taken.items) {
            *sent.entry(item.to_string()).or_default() += 1;
        }
        let mut is_left = |row: &&Row| match sent.get_mut(&row.payout.to_string()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        rows.iter().filter(|row| is_left(row)).cloned().collect()
    }

    fn write(&mut self, line: &Line) -> Result<(), StartError> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|cause| format!("{}: {cause}", self.path.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::clock::Clock;
    use crate::id::IdGenerator;

    use super::*;

    fn row(line: usize, name: &str) -> Row {
        Row { line, payout: json!({ "name": name }), amount: 1 }
    }

    fn sending(key: &str, names: &[&str]) -> Sending {
        let items: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        Sending { key: key.into(), account: "here".into(), body: json!({ "items": items }) }
    }

    #[test]
    fn what_was_taken_is_not_left_and_what_is_unknown_is_sent_again() {
        let ids = IdGenerator::new(Clock::System).expect("randomness");
        let payroll = std::env::temp_dir().join(format!("railhead-{}.csv", ids.secret()));
        let mut journal = Journal::open(&payroll, "here").expect("a journal");
        assert!(Journal::open(&payroll, "here").is_err(), "nobody else has it");
        for (key, names) in [("a", vec!["ada", "bo", "bo"]), ("b", vec!["cy"]), ("c", vec!["dee"])]
        {
            journal.sending(sending(key, &names)).expect("written");
        }
        let open = journal.open_ones();
        journal.took(&open[0], "c1").expect("written");
        journal.refused(&open[1]).expect("written");
        drop(journal);
        let path = payroll.with_extension("csv.journal");
        let mut text = std::fs::read_to_string(&path).expect("a journal");
        text.push_str("{\"taken\":{\"key\":\"c\",\"ba");
        std::fs::write(&path, &text).expect("written");
        assert!(Journal::open(&payroll, "there").is_err(), "it belongs to another account");
        let mut journal = Journal::open(&payroll, "here").expect("a journal");
        let open = journal.open_ones();
        assert_eq!(open.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["c"]);
        let rows = [row(2, "bo"), row(3, "ada"), row(4, "bo"), row(5, "bo"), row(6, "cy")];
        let left: Vec<_> = journal.left(&rows).iter().map(|row| row.line).collect();
        assert_eq!(left, [5, 6], "one that stands there once more is new");
        journal.took(&open[0], "c2").expect("written");
        drop(journal);
        assert!(Journal::open(&payroll, "here").expect("a journal").open_ones().is_empty());
        std::fs::remove_file(path).expect("removed");
    }
}
