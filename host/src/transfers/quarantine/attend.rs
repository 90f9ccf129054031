//! How a host looks after the gate: one look at a time, at what one connection leads to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::{Identity, Moves, in_time};
use crate::ledger::Writer;

use super::epoch::{Epoch, Found, Marks};
use super::forgotten::{self, Reading};
use super::state::{QuarantineState, add_reasons, telling};
use super::{Quarantine, QuarantineError};
use crate::transfers::intents::Intent;

/// What a host finds in its own journal of intents.
const FORGOTTEN: &str = "payments that left are not in the database";
const UNREADABLE: &str = "a host cannot read what it has sent (data.dir, intents)";

/// What a host has seen of its database since it last trusted it.
#[derive(Default)]
pub(super) struct Sightings {
    /// The stretches of the database's life in which it was last trusted, and those in which it was
    /// found without that since. What a release begins follows on one of them, and is none.
    pub(super) incarnations: Vec<String>,
    /// Why it is not trusted. The database is told again wherever it does not say so.
    reasons: Vec<String>,
    /// The last time that this host's intents were compared with the database since the gate was shut.
    compared: Option<Comparison>,
    /// When a mark was last left.
    beaten_at: Option<Instant>,
}

/// That this host's intents were compared with a database.
struct Comparison {
    /// Where it was.
    here: Identity,
    /// Where connections led: the same place may be put back meanwhile.
    moves: Moves,
    /// When it began.
    at: Moment,
}

impl Quarantine {
    /// Looks at the database that connections lead to now, and shuts the gate or opens it: it is
    /// open where the database is trusted, and from time to time a mark is left there then; it is
    /// shut where a quarantine lasts, or has to begin.
    ///
    /// # Errors
    /// It cannot be told how things stand, and the gate stays as it is; or they cannot be written
    /// down, and it is shut.
    pub async fn attend(&self, writer: &Writer) -> Result<(), QuarantineError> {
        let mut seen = self.0.seen.lock().await;
        let found = in_time(Found::read(&self.0.db)).await?;
        // In this order: what a release has written is known before the gate opens.
        let until = found.ask_first_until.unwrap_or(i64::MIN);
        self.0.ask_first_until.fetch_max(until, Ordering::SeqCst);
        if let Some(state) = QuarantineState::parse(&found.quarantine) {
            return self.keep_shut(writer, &mut seen, (&found, state)).await;
        }
        if self.is_closed() {
            if found.is_where_it_was_released() && seen.is_followed_by(&found.marks) {
                return self.trust_again(writer, &mut seen, found).await;
            }
            let reasons = self.reasons(&seen, &found)?;
            return self.suspect(writer, &mut seen, (&found, reasons)).await;
        }
        if seen.beaten_at.is_none_or(|at| at.elapsed() >= limits::EPOCH_EVERY) {
            return self.beat(writer, &mut seen, &found).await;
        }
        Ok(())
    }

    /// A quarantine lasts that the database tells of. What else this host knows is added to it.
    async fn keep_shut(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, state): (&Found, QuarantineState),
    ) -> Result<(), QuarantineError> {
        if !self.0.is_active.swap(true, Ordering::SeqCst) {
            tracing::error!(reasons = ?state.reasons, "quarantine: nothing live is sent");
        }
        seen.meet(&found.marks);
        if !seen.has_compared((&found.here, self.0.db.moves())) {
            seen.add(found.marks.suspicions(&found.here, self.0.file.read()?.as_ref()));
        } else if seen.reasons.iter().all(|reason| state.reasons.contains(reason)) {
            return Ok(());
        }
        self.write_down(writer, seen, (found, &state.reasons)).await
    }

    /// Somebody has released the database since it was last trusted, or first was not. From now on it
    /// is trusted where it is, unless something else is forgotten there.
    async fn trust_again(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: Found,
    ) -> Result<(), QuarantineError> {
        // New connections are compared with this one, and those from before are let go of: whoever
        // leads elsewhere is noticed meanwhile.
        self.0.is_active.store(true, Ordering::SeqCst);
        let is_compared = seen.has_compared((&found.here, self.0.db.moves()));
        self.0.db.expect_epoch(found.marks.epoch);
        self.0.db.expect(found.here.clone());
        seen.reasons.clear();
        // It is still the place that was compared.
        let moves = self.0.db.moves();
        seen.compared =
            seen.compared.take().filter(|_| is_compared).map(|it| Comparison { moves, ..it });
        // Another host may have noticed, and the operator let go, before this one came to look; or
        // something left just as the gate was shut.
        if !self.compare(writer, seen, (&found, &[])).await? {
            return Ok(());
        }
        self.remember(&found.marks, found.marks.epoch).await?;
        // Nothing is waited for any more, so that nobody is left half way.
        if !self.0.db.has_moved() {
            seen.trust(&found.marks);
            self.0.is_active.store(false, Ordering::SeqCst);
            tracing::warn!("the quarantine is over");
        }
        Ok(())
    }

    /// Why the gate is shut although the database says nothing of it.
    fn reasons(&self, seen: &Sightings, found: &Found) -> Result<Vec<String>, QuarantineError> {
        if self.0.db.has_moved() {
            let Identity { system, timeline } = &found.here;
            return Ok(vec![format!(
                "connections lead to another database than before ({system}, timeline {timeline})"
            )]);
        }
        if !seen.reasons.is_empty() {
            return Ok(Vec::new());
        }
        let reasons = found.marks.suspicions(&found.here, self.0.file.read()?.as_ref());
        Ok(match reasons.is_empty() {
            true => vec!["the database has forgotten a quarantine that lasted".to_owned()],
            false => reasons,
        })
    }

    /// Leaves a mark in the database and beside it, unless this host does not trust it.
    async fn beat(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: &Found,
    ) -> Result<(), QuarantineError> {
        let reasons = found.marks.suspicions(&found.here, self.0.file.read()?.as_ref());
        if !reasons.is_empty() {
            return self.suspect(writer, seen, (found, reasons)).await;
        }
        if !self.knows_what_left(writer, seen, found).await? {
            return Ok(());
        }
        seen.trust(&found.marks);
        // Sessions in which nothing can be written are let go of by this.
        in_time(self.0.db.ping()).await?;
        let epoch = in_time(self.0.raise_epoch()).await?;
        if epoch <= found.marks.epoch {
            // It is not what was looked at a moment ago any more.
            let why = "the database is younger than it was a moment ago".to_owned();
            return self.suspect(writer, seen, (found, vec![why])).await;
        }
        self.remember(&found.marks, epoch).await?;
        seen.beaten_at = Some(Instant::now());
        Ok(())
    }

    /// Whether the database knows what this host has sent: all of it as the host starts, and later on
    /// the newest, which would be forgotten first. Where it does not, it is told.
    async fn knows_what_left(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        found: &Found,
    ) -> Result<bool, QuarantineError> {
        if seen.beaten_at.is_none() {
            return self.compare(writer, seen, (found, &[])).await;
        }
        let since = self.0.clock.now().before(limits::INTENTS_KEPT);
        let newest = match Reading::open(&self.0.intents, since).await {
            Ok(mut reading) => reading.next(&self.0.db).await,
            Err(why) => Err(why.into()),
        };
        match newest {
            Ok(None) => return Ok(true),
            Ok(Some(forgotten)) if forgotten.is_empty() => return Ok(true),
            Ok(Some(_)) => {}
            // The mark protects as well, and has to be left.
            Err(QuarantineError::File(why)) => {
                tracing::error!(%why, "the journal of intents cannot be read");
                return Ok(true);
            }
            Err(why) => return Err(why),
        }
        self.suspect(writer, seen, (found, vec![FORGOTTEN.to_owned()])).await?;
        Ok(false)
    }

    /// Shuts the gate, and says so to every host.
    async fn suspect(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, reasons): (&Found, Vec<String>),
    ) -> Result<(), QuarantineError> {
        self.0.is_active.store(true, Ordering::SeqCst);
        seen.meet(&found.marks);
        seen.add(reasons);
        // What it has not been told it has not been compared with, either.
        seen.compared = None;
        self.write_down(writer, seen, (found, &[])).await
    }

    /// Tells the database, and with it every host, what this one has noticed and is not `told` there;
    /// and opens a case for each payment that is forgotten.
    async fn write_down(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, told): (&Found, &[String]),
    ) -> Result<(), QuarantineError> {
        // Why it is shut comes first: whoever is to open it has to hear of it, however long the rest
        // takes.
        if seen.reasons.iter().any(|reason| !told.contains(reason)) {
            self.tell(writer, seen, (found, &[])).await?;
        }
        self.compare(writer, seen, (found, told)).await.map(drop)
    }

    /// Compares what has left here with what the database knows, as far as that was not done before;
    /// answers whether it knows all of it. Where it does not, the gate is shut, and it is told.
    async fn compare(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, told): (&Found, &[String]),
    ) -> Result<bool, QuarantineError> {
        let (moves, begun) = (self.0.db.moves(), self.0.clock.now());
        let since = match &seen.compared {
            Some(before) if seen.has_compared((&found.here, moves)) => {
                before.at.before(limits::CLOCKS_APART)
            }
            _ => begun.before(limits::INTENTS_KEPT),
        };
        let mut is_known = true;
        let mut reading = match Reading::open(&self.0.intents, since).await {
            Ok(reading) => reading,
            Err(why) => return self.cannot_read(writer, seen, (found, told, why)).await,
        };
        // Each portion by itself: whoever is interrupted finds the rest again.
        loop {
            match reading.next(&self.0.db).await {
                Ok(None) => break,
                Ok(Some(forgotten)) if forgotten.is_empty() => {}
                Ok(Some(forgotten)) => {
                    self.0.is_active.store(true, Ordering::SeqCst);
                    is_known = false;
                    seen.add(vec![FORGOTTEN.to_owned()]);
                    self.tell(writer, seen, (found, &forgotten)).await?;
                }
                Err(QuarantineError::File(why)) => {
                    return self.cannot_read(writer, seen, (found, told, why)).await;
                }
                Err(why) => return Err(why),
            }
        }
        seen.compared = Some(Comparison { here: found.here.clone(), moves, at: begun });
        Ok(is_known)
    }

    /// Nobody knows what has left here: that shuts the gate as well.
    async fn cannot_read(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, told, why): (&Found, &[String], std::io::Error),
    ) -> Result<bool, QuarantineError> {
        // A host that does not start shuts the gate of no other.
        if seen.beaten_at.is_none() && !self.0.is_active.load(Ordering::SeqCst) {
            return Err(why.into());
        }
        self.0.is_active.store(true, Ordering::SeqCst);
        seen.add(vec![UNREADABLE.to_owned()]);
        if !told.iter().any(|reason| reason == UNREADABLE) {
            self.tell(writer, seen, (found, &[])).await?;
        }
        Err(why.into())
    }

    async fn tell(
        &self,
        writer: &Writer,
        seen: &mut Sightings,
        (found, forgotten): (&Found, &[Intent]),
    ) -> Result<(), QuarantineError> {
        // In this stretch it is not trusted: whatever is released comes after it.
        seen.meet(&found.marks);
        let (now, reasons) = (self.0.clock.now(), seen.reasons.clone());
        tracing::error!(?reasons, forgotten = forgotten.len(), "quarantine: nothing live is sent");
        let known = self.0.file.read().ok().flatten();
        let known = known.map_or_else(String::new, |known| known.incarnation);
        let Identity { system, timeline } = &found.here;
        let at = format!("{system}/{timeline}/{}/{known}", found.marks.incarnation());
        let until_us = in_time(forgotten::skip_numbers(&self.0.db, &at, now)).await?;
        let new = QuarantineState { since_us: now.micros(), until_us, reasons, forgotten: 0 };
        let case = |intent| forgotten::case(&self.0.ids, intent, now);
        let cases = forgotten.iter().map(case).collect();
        writer.work(telling(found, new, (cases, Arc::clone(&self.0.ids)))).await?;
        Ok(())
    }

    /// Writes the side file: this is the database that this host works with.
    async fn remember(&self, marks: &Marks, epoch: i64) -> Result<(), QuarantineError> {
        self.0.db.expect_epoch(epoch);
        let epoch = Epoch { incarnation: marks.incarnation().to_owned(), epoch };
        let file = self.0.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&epoch)).await;
        Ok(written.map_err(std::io::Error::other)??)
    }
}

impl Sightings {
    fn add(&mut self, reasons: Vec<String>) {
        add_reasons(&mut self.reasons, reasons);
    }

    fn has_compared(&self, now: (&Identity, Moves)) -> bool {
        self.compared.as_ref().is_some_and(|then| (&then.here, then.moves) == now)
    }

    /// The database is trusted as it is.
    fn trust(&mut self, marks: &Marks) {
        *self = Self {
            incarnations: vec![marks.incarnation().to_owned()],
            reasons: Vec::new(),
            compared: None,
            beaten_at: self.beaten_at,
        };
    }

    /// It is not, and was found in this stretch of its life.
    fn meet(&mut self, marks: &Marks) {
        let incarnation = marks.incarnation();
        if !self.incarnations.iter().any(|known| known == incarnation) {
            self.incarnations.push(incarnation.to_owned());
        }
    }

    /// Whether these marks are those of a release that came after what was met.
    fn is_followed_by(&self, marks: &Marks) -> bool {
        let Some((last, before)) = marks.incarnations.split_last() else { return false };
        let mut known = self.incarnations.iter();
        !self.incarnations.contains(last) && known.any(|known| before.contains(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(incarnations: &[&str]) -> Marks {
        let incarnations = incarnations.iter().map(ToString::to_string).collect();
        Marks { database: "d".into(), incarnations, epoch: 1, identity: None }
    }

    #[test]
    fn only_what_comes_after_all_that_was_met_is_a_release() {
        let mut seen = Sightings::default();
        seen.trust(&marks(&["a", "b"]));
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "nobody has released it");
        seen.meet(&marks(&["a"]));
        assert!(!seen.is_followed_by(&marks(&["a"])), "an old server");
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "back from the old one");
        assert!(seen.is_followed_by(&marks(&["a", "b", "c"])));
        assert!(seen.is_followed_by(&marks(&["a", "c"])), "the old one was released");
        assert!(!seen.is_followed_by(&marks(&["x", "c"])), "another database");
        seen.trust(&marks(&["a", "c"]));
        assert!(!seen.is_followed_by(&marks(&["a", "b"])), "what was left behind");
    }
}
