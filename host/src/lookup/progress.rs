//! How far a stream of events is, and what it has shown of what it meets again.
//!
//! Nothing here reads a clock. The host's may be set back while a stream is open, and be behind a
//! cursor that was made while some clock was ahead: a stream looks from where the clock is now.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::clock::Moment;
use crate::config::limits;
use crate::id::EventId;

const LOOK_BACK: Duration = limits::STREAM_LOOK_BACK;

/// How far a stream is. A look goes through the feed from `low` on, page by page.
pub(super) struct Progress {
    /// Everything up to here is known: nothing more can become visible.
    low: String,
    /// How far the present look is, and when it began.
    after: String,
    began_at: Moment,
    /// Where `low` was before it was lowered, until the look that begins lower is done.
    ahead: Option<String>,
    /// What was met beyond `low`, and when for the last time.
    known: BTreeMap<String, Instant>,
}

impl Progress {
    /// A stream that goes on from an instant.
    pub(super) fn new(from: Moment) -> Self {
        let low = low_at(from);
        let known = BTreeMap::new();
        Self { after: low.clone(), low, began_at: from, ahead: None, known }
    }

    /// What the next page comes after. Where the clock was set back, or is behind the cursor, a
    /// look begins lower. One that has fallen behind what is certain by now begins anew: what it
    /// has to remember would grow for as long as it takes.
    pub(super) fn begin(&mut self, now: Moment) -> &str {
        let low = low_at(now);
        if !(&self.low..=&self.after).contains(&&low) {
            self.began_at = now;
            if low < self.low {
                let ahead = std::mem::replace(&mut self.low, low);
                self.ahead = self.ahead.take().max(Some(ahead));
            }
            self.after.clone_from(&self.low);
        }
        &self.after
    }

    /// Once `low` was lowered, takes for known what a page has from between the clock and where it
    /// was: that was made while some clock was ahead, and shown then, here or to whoever has the
    /// cursor. What is no further ahead than clocks may differ may be new.
    pub(super) fn pass(&mut self, ids: &[String], now: Moment, at: Instant) {
        let Some(ahead) = &self.ahead else { return };
        let from = EventId::first_at(now.after(LOOK_BACK)).to_string();
        let shown = ids.iter().filter(|id| (&from..=ahead).contains(id));
        self.known.extend(shown.map(|id| (id.clone(), at)));
    }

    /// The first and the last of each run of ids that are not known.
    pub(super) fn unknown(&self, ids: &[String]) -> Vec<(String, String)> {
        let is_known = |id: &String| self.known.contains_key(id);
        let runs = ids.chunk_by(|a, b| is_known(a) == is_known(b));
        let runs = runs.filter_map(|run| Some((run.first()?, run.last()?)));
        let runs = runs.filter(|(first, _)| !is_known(first));
        runs.map(|(first, last)| (first.clone(), last.clone())).collect()
    }

    /// Remembers what the next look may meet again.
    pub(super) fn note(&mut self, ids: impl IntoIterator<Item = String>, at: Instant) {
        let low = low_at(self.began_at);
        let ids = ids.into_iter().filter(|id| *id > low);
        self.known.extend(ids.map(|id| (id, at)));
    }

    /// A page was read, and what was not known is sent; whether it was the last one for now.
    pub(super) fn read(&mut self, ids: Vec<String>, at: Instant) -> bool {
        let is_done = i64::try_from(ids.len()).unwrap_or(i64::MAX) < limits::STREAM_PAGE;
        let certain = low_at(self.began_at);
        let last = ids.last().filter(|_| !is_done).cloned();
        self.note(ids, at);
        if is_done {
            self.ahead = None;
        }
        self.after = last.unwrap_or_else(|| certain.clone());
        let low = certain.min(self.after.clone());
        if low != self.low {
            self.low = low;
            self.forget(at);
        }
        is_done
    }

    /// Forgets what no look meets again. Where the clock is set back, one meets what was met within
    /// [`LOOK_BACK`], by a clock that nobody sets.
    fn forget(&mut self, at: Instant) {
        let low = &self.low;
        self.known.retain(|id, met| id > low || at.duration_since(*met) < LOOK_BACK);
    }
}

/// Up to where everything is visible at an instant.
fn low_at(now: Moment) -> String {
    EventId::first_at(now.before(LOOK_BACK)).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::Bound;

    use super::*;

    const DAY_S: u64 = 86_400;
    const PAGE: usize = 500;

    /// A feed, and a stream of it.
    struct Played {
        feed: BTreeSet<String>,
        progress: Progress,
        sent: Vec<String>,
        begun: Instant,
        /// What has really gone by, and how far the clock is ahead of that.
        at_s: u64,
        ahead_ms: u64,
        /// The most ids that were ever known.
        most: usize,
    }

    fn moment(at_ms: u64) -> Moment {
        Moment::from_micros(1_795_000_000_000_000).after(Duration::from_millis(at_ms))
    }

    fn id(at_s: u64) -> String {
        EventId::first_at(moment(at_s * 1_000 + 500)).to_string()
    }

    impl Played {
        /// A stream that goes on from an instant, at another one.
        fn new(cursor_s: u64, at_s: u64) -> Self {
            Self {
                feed: BTreeSet::new(),
                progress: Progress::new(moment(cursor_s * 1_000)),
                sent: Vec::new(),
                begun: Instant::now(),
                at_s,
                ahead_ms: 0,
                most: 0,
            }
        }

        fn look(&mut self) -> bool {
            let now = moment(self.at_s * 1_000 + self.ahead_ms);
            let at = self.begun + Duration::from_secs(self.at_s);
            let after = self.progress.begin(now).to_owned();
            let later = self.feed.range((Bound::Excluded(after), Bound::Unbounded));
            let ids: Vec<String> = later.take(PAGE).cloned().collect();
            self.progress.pass(&ids, now, at);
            for (first, last) in self.progress.unknown(&ids) {
                self.sent.extend(self.feed.range(first..=last).cloned());
            }
            let is_done = self.progress.read(ids, at);
            self.most = self.most.max(self.progress.known.len());
            is_done
        }

        fn happen(&mut self) {
            self.at_s += 1;
            let at = moment(self.at_s * 1_000 + self.ahead_ms + 500);
            self.feed.insert(EventId::first_at(at).to_string());
        }

        /// Something happens each second, and is shown at once.
        fn run(&mut self, seconds: u64) {
            for _ in 0..seconds {
                self.happen();
                while !self.look() {}
                assert_eq!(self.sent.len(), self.feed.len(), "at {} s", self.at_s);
            }
        }

        /// Everything was shown once.
        fn check(&self) {
            assert_eq!(self.sent.len(), self.feed.len());
            assert!(self.sent.iter().collect::<BTreeSet<_>>().into_iter().eq(&self.feed));
        }
    }

    #[test]
    fn a_stream_from_long_ago_remembers_what_it_meets_again() {
        assert_eq!((limits::STREAM_PAGE, LOOK_BACK.as_secs()), (500, 120));
        let mut played = Played::new(0, 5_000);
        played.feed.extend((0..5_000).map(id));
        while !played.look() {}
        assert!(played.sent.iter().eq(&played.feed), "everything in its order");
        assert_eq!(played.most, 120);
        played.run(500);
        played.check();
        assert!(played.most <= 2 * 120 + 1, "{}", played.most);
    }

    #[test]
    fn whoever_reads_slower_than_things_happen_costs_no_memory() {
        let mut played = Played::new(0, 0);
        for _ in 0..20 {
            // More than a page.
            for _ in 0..510 {
                played.happen();
            }
            assert!(!played.look());
        }
        while !played.look() {}
        assert!(played.sent.iter().eq(&played.feed), "everything in its order");
        assert!(played.most <= PAGE + 2 * 120, "{}", played.most);
    }

    #[test]
    fn a_clock_that_is_set_back_silences_nothing_and_repeats_nothing() {
        for (ahead_ms, seconds) in [
            (DAY_S * 1_000 + 250, 5),
            (DAY_S * 1_000 + 250, 100),
            (DAY_S * 1_000 + 250, 900),
            (3_600_250, 900),
            (90_250, 900),
            (250, 900),
        ] {
            let mut played = Played::new(0, 0);
            played.run(200);
            played.ahead_ms = ahead_ms;
            played.run(seconds);
            played.ahead_ms = 0;
            played.run(300);
            played.check();
        }
    }

    #[test]
    fn a_cursor_that_is_ahead_is_gone_on_from_now() {
        let mut played = Played::new(DAY_S + 300, 1_000);
        let (recent, cursor, elsewhere) = (id(950), id(DAY_S + 300), id(1_000 + 3_600));
        played.feed.extend([id(10), recent.clone(), id(DAY_S), id(DAY_S + 60), cursor.clone()]);
        while !played.look() {}
        assert_eq!(played.sent, [recent, cursor], "what came long before it was shown");
        played.happen();
        let fresh = played.feed.iter().nth(2).cloned().expect("what happened");
        assert!(played.look());
        // A host whose clock is ahead as well.
        played.feed.insert(elsewhere.clone());
        assert!(played.look());
        assert_eq!(played.sent[2..], [fresh, elsewhere]);
    }
}
