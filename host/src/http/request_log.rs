//! Requests of merchants and what became of them, on their way to where they are kept: what a
//! developer looks at when a call does not do what it should. Never a body, a query or a secret.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::counter::Counter;
use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits::REQUEST_LOG_WAITING_MAX;
use crate::id::RequestId;

/// Where the log is read.
pub const PATH: &str = "/v1/request_logs";

/// A request and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = RequestLog)]
pub struct Entry {
    /// Always `request_log`.
    #[schema(example = "request_log")]
    pub object: &'static str,
    /// The request's id, which its answer carries as X-Request-Id.
    #[schema(value_type = String, example = "req_01ygvhgtj8v3y2tpl4icsgxq")]
    pub id: RequestId,
    /// GET, POST, PATCH or DELETE.
    #[schema(example = "POST")]
    pub method: String,
    /// The path without its query.
    #[schema(example = "/v1/payouts")]
    pub path: String,
    /// HTTP status; null if the caller went away first, or the deadline passed.
    pub status: Option<u16>,
    /// How long it took.
    pub duration_ms: u64,
    /// The beginning of the key that it was made with.
    #[schema(example = "sk_test_ab12")]
    pub key_prefix: String,
    /// The refusal, if it is one.
    #[schema(value_type = Option<String>, example = "insufficient_funds")]
    pub error_code: Option<Cow<'static, str>>,
    /// When it arrived.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// An entry, and whose it is: merchant and environment in one.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// Merchant and environment in one.
    pub owner: String,
    /// The request.
    pub entry: Entry,
}

/// What is on its way to where it is kept. It is seen by whoever reads the log all the while.
#[derive(Default)]
pub struct RequestLog {
    state: Mutex<State>,
    /// Entries for which there was no room.
    pub lost: Counter,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Owned>,
    /// Those that are being written.
    leaving: Vec<Owned>,
}

impl RequestLog {
    /// Takes a request in. Where they come faster than they are written for long, the newest is
    /// lost, and counted.
    pub fn add(&self, owner: String, entry: Entry) {
        let mut state = self.lock();
        match state.waiting.len() < REQUEST_LOG_WAITING_MAX {
            true => state.waiting.push_back(Owned { owner, entry }),
            false => {
                self.lost.inc();
            }
        }
    }

    /// Some of those that wait, to be written: whoever takes them says how that went, before
    /// anybody takes more.
    #[must_use]
    pub fn take(&self, most: usize) -> Vec<Owned> {
        let mut state = self.lock();
        if state.leaving.is_empty() {
            let count = state.waiting.len().min(most);
            state.leaving = state.waiting.drain(..count).collect();
        }
        state.leaving.clone()
    }

    /// Those that were taken are written.
    pub fn written(&self) {
        self.lock().leaving.clear();
    }

    /// An owner's entries that are not known to be written, in no order.
    #[must_use]
    pub fn waiting_of(&self, owner: &str) -> Vec<Entry> {
        let state = self.lock();
        let all = state.leaving.iter().chain(&state.waiting);
        all.filter(|owned| owned.owner == owner).map(|owned| owned.entry.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::id::IdGenerator;

    fn entry(ids: &IdGenerator) -> Entry {
        Entry {
            object: "request_log",
            id: ids.id(),
            method: "GET".into(),
            path: "/v1/payouts".into(),
            status: Some(200),
            duration_ms: 1,
            key_prefix: "sk_test_ab12".into(),
            error_code: None,
            created_at: Moment::default(),
        }
    }

    #[test]
    fn what_is_not_written_is_seen_and_taken_again() {
        let (log, ids) = (RequestLog::default(), IdGenerator::seeded(Clock::System, 1));
        for owner in ["a", "b", "a"] {
            log.add(owner.to_owned(), entry(&ids));
        }
        let first = log.take(2);
        assert_eq!(first.len(), 2);
        assert_eq!(log.waiting_of("a").len(), 2);
        // It was not written: the same once more.
        assert_eq!(log.take(9), first);
        log.written();
        assert_eq!((log.waiting_of("a").len(), log.waiting_of("b").len()), (1, 0));
        assert_eq!(log.take(9).len(), 1);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let (log, ids) = (RequestLog::default(), IdGenerator::seeded(Clock::System, 1));
        for _ in 0..REQUEST_LOG_WAITING_MAX + 3 {
            log.add("a".to_owned(), entry(&ids));
        }
        assert_eq!((log.waiting_of("a").len(), log.lost.get()), (REQUEST_LOG_WAITING_MAX, 3));
    }
}
