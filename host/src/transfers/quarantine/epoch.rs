//! What a host remembers of its database, in a file beside its data: enough to notice when the
//! database comes back younger than it was, or from another place.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::db::{Db, Identity};
use crate::id::IdGenerator;

/// Marks of the database that a host has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Epoch {
    /// Which stretch of the database's life this is; a new one begins with every release.
    pub(super) incarnation: String,
    /// A number that rises all the time.
    pub(super) epoch: i64,
}

/// What the database says about itself.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The database's name for ever, in every copy of it.
    pub(super) database: String,
    /// Stretches of its life, the present one last.
    pub(super) incarnations: Vec<String>,
    /// The newest epoch.
    pub(super) epoch: i64,
    /// Where it was when it was last released, or made.
    pub(super) identity: Option<Identity>,
}

/// Where a connection leads, and what the database there says.
pub(super) struct Found {
    /// Where it is.
    pub(super) here: Identity,
    /// Its marks.
    pub(super) marks: Marks,
    /// The quarantine that lasts there, in JSON; empty where none does.
    pub(super) quarantine: String,
    /// What was queued there up to then is asked about before it is sent, in microseconds.
    pub(super) ask_first_until: Option<i64>,
}

impl Found {
    /// Looks, over one connection: others may lead elsewhere.
    pub(super) async fn read(db: &Db) -> Result<Self, sqlx::Error> {
        let mut connection = db.pool().acquire().await?;
        let here = db.identity_over(&mut connection).await?;
        let sql = "SELECT key, value FROM meta WHERE key IN ('database', 'incarnations', 'epoch', \
                   'system', 'timeline', 'quarantine', 'ask_first_until')";
        let rows: Vec<(String, String)> = sqlx::query_as(sql).fetch_all(&mut *connection).await?;
        let mut values: HashMap<String, String> = rows.into_iter().collect();
        let mut text = |key| values.remove(key);
        let place = text("system").zip(text("timeline"));
        let identity = place.and_then(|(system, timeline)| {
            Some(Identity { system, timeline: timeline.parse().ok()? })
        });
        let marks = Marks {
            database: text("database").unwrap_or_default(),
            incarnations: serde_json::from_str(&text("incarnations").unwrap_or_default())
                .unwrap_or_default(),
            epoch: text("epoch").and_then(|text| text.parse().ok()).unwrap_or(0),
            identity,
        };
        let quarantine = text("quarantine").unwrap_or_default();
        let ask_first_until = text("ask_first_until").and_then(|text| text.parse().ok());
        Ok(Self { here, marks, quarantine, ask_first_until })
    }

    /// The same; a new database gets its first marks.
    pub(super) async fn read_or_create(db: &Db, ids: &IdGenerator) -> Result<Self, sqlx::Error> {
        let now = db.identity().await?;
        let mut tx = db.write().await?;
        let (database, incarnation) =
            (hex::encode(ids.bytes::<8>()), hex::encode(ids.bytes::<8>()));
        let timeline = now.timeline.to_string();
        let first = serde_json::to_string(&[incarnation]).unwrap_or_default();
        for (key, value) in [
            ("database", database.as_str()),
            ("incarnations", first.as_str()),
            ("epoch", "1"),
            ("system", now.system.as_str()),
            ("timeline", timeline.as_str()),
            // There is something to lock from the first one on.
            ("quarantine", ""),
        ] {
            let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
            sqlx::query(sql).bind(key).bind(value).execute(tx.conn()).await?;
        }
        tx.commit().await?;
        Self::read(db).await
    }
}

impl Found {
    /// Whether it is where its last release found it.
    pub(super) fn is_where_it_was_released(&self) -> bool {
        self.marks.identity.as_ref() == Some(&self.here)
    }
}

impl Marks {
    /// The stretch of its life in which the database is.
    pub(super) fn incarnation(&self) -> &str {
        self.incarnations.last().map_or("", String::as_str)
    }

    /// Why these marks, found at this place, are not those of the database that was seen before.
    pub(super) fn suspicions(&self, here: &Identity, seen: Option<&Epoch>) -> Vec<String> {
        let mut why = Vec::new();
        // They say where it is: the next time that is another place, and another reason.
        match &self.identity {
            Some(Identity { system, .. }) if *system != here.system => why.push(format!(
                "the database is another one than it was: a copy, or restored ({})",
                here.system
            )),
            Some(Identity { timeline, .. }) if *timeline != here.timeline => why.push(format!(
                "the database's history has forked: a failover, or a restore (timeline {})",
                here.timeline
            )),
            _ => {}
        }
        let Some(seen) = seen else { return why };
        if !self.incarnations.contains(&seen.incarnation) {
            why.push(
                "this host has seen the database after a release that it has forgotten".into(),
            );
        } else if self.incarnations.last() == Some(&seen.incarnation) && seen.epoch > self.epoch {
            let behind = seen.epoch - self.epoch;
            why.push(format!(
                "the database is younger than this host has seen it ({behind} heartbeats behind)"
            ));
        }
        why
    }
}

/// The file in which this host keeps the marks of one database.
#[derive(Clone, Debug)]
pub(super) struct EpochFile(PathBuf);

impl EpochFile {
    /// In the data folder, for the database of this name.
    pub(super) fn new(data: &Path, database: &str) -> Self {
        Self(data.join("epochs").join(format!("{database}.json")))
    }

    /// What was last written, if anything.
    pub(super) fn read(&self) -> std::io::Result<Option<Epoch>> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Writes it so that a crash leaves the old or the new one, and not half of it.
    pub(super) fn write(&self, epoch: &Epoch) -> std::io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        crate::transfers::intents::private_folder(folder)?;
        let fresh = self.0.with_extension("new");
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(serde_json::to_string(epoch)?.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.0)?;
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(system: &str, timeline: i64) -> Identity {
        Identity { system: system.into(), timeline }
    }

    fn marks(incarnations: &[&str], epoch: i64) -> Marks {
        Marks {
            database: "d".into(),
            incarnations: incarnations.iter().map(ToString::to_string).collect(),
            epoch,
            identity: Some(here("s", 1)),
        }
    }

    fn seen(incarnation: &str, epoch: i64) -> Epoch {
        Epoch { incarnation: incarnation.into(), epoch }
    }

    #[test]
    fn only_a_database_that_went_on_from_where_it_was_is_trusted() {
        let known = marks(&["a", "b"], 10);
        let is_trusted =
            |here: &Identity, seen: Option<&Epoch>| known.suspicions(here, seen).is_empty();
        let same = here("s", 1);
        assert!(is_trusted(&same, None), "a host that has seen nothing");
        assert!(is_trusted(&same, Some(&seen("b", 10))) && is_trusted(&same, Some(&seen("b", 3))));
        assert!(is_trusted(&same, Some(&seen("a", 99))), "it was away during a release");
        assert!(!is_trusted(&same, Some(&seen("b", 11))), "restored from a backup");
        assert!(!is_trusted(&same, Some(&seen("c", 1))), "an old primary is back");
        assert!(!is_trusted(&here("t", 1), None), "a copy");
        assert!(!is_trusted(&here("s", 2), None), "a failover");
    }

    #[test]
    fn the_file_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = EpochFile::new(folder.path(), "d");
        assert_eq!(file.read().expect("read"), None);
        for epoch in [seen("a", 1), seen("a", 2)] {
            file.write(&epoch).expect("written");
            assert_eq!(file.read().expect("read"), Some(epoch));
        }
    }
}
