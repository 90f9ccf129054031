//! Recent requests, per merchant and environment: what a developer looks at when a call does not
//! do what it should. Kept in this process's memory, never with a body, a query or a secret.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::config::limits::{REQUEST_LOG_MAX, REQUEST_LOG_OWNERS_MAX};
use crate::id::RequestId;

/// Where the log is read.
pub const PATH: &str = "/v1/request_logs";

/// A request and how it ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
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
    #[schema(example = "insufficient_funds")]
    pub error_code: Option<&'static str>,
    /// When it arrived.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// The requests that this process remembers, each owner's in a ring of its own.
#[derive(Default)]
pub struct RequestLog(Mutex<HashMap<String, VecDeque<Entry>>>);

impl RequestLog {
    /// Remembers a request of an owner; the oldest makes room for it.
    pub fn add(&self, owner: &str, entry: Entry) {
        let mut rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = rings.get_mut(owner) {
            ring.truncate(REQUEST_LOG_MAX - 1);
            ring.push_front(entry);
            return;
        }
        if rings.len() >= REQUEST_LOG_OWNERS_MAX {
            let last = |ring: &VecDeque<Entry>| ring.front().map(|entry| entry.created_at);
            let quietest = rings.iter().min_by_key(|(_, ring)| last(ring));
            if let Some(owner) = quietest.map(|(owner, _)| owner.clone()) {
                rings.remove(&owner);
            }
        }
        rings.insert(owner.to_owned(), VecDeque::from([entry]));
    }

    /// An owner's requests, newest first, at most `most` of them after the one with this id;
    /// none, if there is no such request.
    #[must_use]
    pub fn list(&self, owner: &str, after: Option<&str>, most: usize) -> Option<Vec<Entry>> {
        let rings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = rings.get(owner).into_iter().flatten();
        let Some(after) = after else { return Some(entries.take(most).cloned().collect()) };
        let mut rest = entries.skip_while(|entry| entry.id.as_str() != after);
        rest.next()?;
        Some(rest.take(most).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::id::IdGenerator;

    fn entry(ids: &IdGenerator, at: i64) -> Entry {
        Entry {
            object: "request_log",
            id: ids.id(),
            method: "GET".into(),
            path: "/v1/payouts".into(),
            status: Some(200),
            duration_ms: 1,
            key_prefix: "sk_test_ab12".into(),
            error_code: None,
            created_at: Moment::from_micros(at),
        }
    }

    #[test]
    fn the_oldest_request_and_the_quietest_owner_are_forgotten() {
        let (log, ids) = (RequestLog::default(), IdGenerator::seeded(Clock::System, 1));
        let entries: Vec<Entry> = (0..=REQUEST_LOG_MAX).map(|_| entry(&ids, 5)).collect();
        entries.iter().for_each(|entry| log.add("busy", entry.clone()));
        let kept = log.list("busy", None, usize::MAX).expect("a list");
        assert_eq!(kept.len(), REQUEST_LOG_MAX);
        assert_eq!(kept[0].id, entries[REQUEST_LOG_MAX].id);
        assert!(log.list("busy", Some(entries[0].id.as_str()), 1).is_none(), "forgotten");
        let rest = log.list("busy", Some(entries[2].id.as_str()), 9).expect("a list");
        assert_eq!(rest.iter().map(|e| &e.id).collect::<Vec<_>>(), [&entries[1].id]);
        log.add("quiet", entry(&ids, 1));
        for number in 0..REQUEST_LOG_OWNERS_MAX {
            log.add(&number.to_string(), entry(&ids, 9));
        }
        assert!(log.list("quiet", None, 1).expect("a list").is_empty());
    }
}
