//! Statements about the log of requests.
//!
//! Requests of one owner that came within [`limits::REQUEST_CHUNK_SPAN`] and were written together
//! are one row, a chunk: whoever looks for what is older than a request need not read chunks whose
//! newest came later by more than that.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Table, int, text};
use crate::http::request_log::{Entry, Owned};
use crate::id::{Id as _, RequestId};

/// Requests of one owner, oldest first; one at least.
pub(super) struct Chunk {
    owner: String,
    entries: Vec<Entry>,
}

/// Requests as they are kept. A chunk that is written twice is there once.
pub(super) static CHUNKS: Table<Chunk> = Table {
    name: "request_logs",
    fixed: &[
        text("owner", |chunk| (&chunk.owner).into()),
        text("id", |chunk| chunk.entries.last().map(|newest| newest.id.as_str()).into()),
        text("first_id", |chunk| chunk.entries.first().map(|oldest| oldest.id.as_str()).into()),
        text("statuses", |chunk| chunk.statuses().into()),
        int("count", |chunk| i64::try_from(chunk.entries.len()).ok().into()),
        text("requests", |chunk| chunk.json().into()),
        int("created_at", |chunk| chunk.entries.last().map(|newest| newest.created_at).into()),
    ],
    changing: &[],
    on_conflict: Some("(owner, id) DO NOTHING"),
    is_sealed: false,
};

/// A request as it stands in its chunk, in the order that the table's comment names.
#[derive(Serialize, Deserialize)]
struct Line<'a>(
    Cow<'a, str>,
    Cow<'a, str>,
    Cow<'a, str>,
    Option<u16>,
    u64,
    Cow<'a, str>,
    Option<Cow<'a, str>>,
    i64,
);

impl Chunk {
    /// Requests, chunk by chunk: always the same for the same requests.
    pub(super) fn all(requests: Vec<Owned>) -> Vec<Self> {
        let mut owners: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for Owned { owner, entry } in requests {
            owners.entry(owner).or_default().push(entry);
        }
        let mut chunks: Vec<Self> = Vec::new();
        for (owner, mut entries) in owners {
            entries.sort_by(|a, b| a.id.cmp(&b.id));
            for entry in entries {
                match chunks.last_mut().filter(|last| last.owner == owner && last.takes(&entry)) {
                    Some(last) => last.entries.push(entry),
                    None => chunks.push(Self { owner: owner.clone(), entries: vec![entry] }),
                }
            }
        }
        chunks
    }

    fn takes(&self, entry: &Entry) -> bool {
        let from = self.entries[0].id.made_at();
        self.entries.len() < limits::REQUEST_CHUNK_MAX
            && entry.id.made_at() <= from.after(limits::REQUEST_CHUNK_SPAN)
    }

    /// Its statuses, each once, between commas.
    fn statuses(&self) -> String {
        let all = self.entries.iter().map(|entry| entry.status.unwrap_or_default());
        let all: BTreeSet<u16> = all.collect();
        all.iter().fold(",".to_owned(), |text, status| format!("{text}{status},"))
    }

    fn json(&self) -> String {
        fn line(entry: &Entry) -> Line<'_> {
            Line(
                entry.id.as_str().into(),
                entry.method.as_str().into(),
                entry.path.as_str().into(),
                entry.status,
                entry.duration_ms,
                entry.key_prefix.as_str().into(),
                entry.error_code.as_deref().map(Cow::Borrowed),
                entry.created_at.micros(),
            )
        }
        let all: Vec<Line<'_>> = self.entries.iter().map(line).collect();
        serde_json::to_string(&all).unwrap_or_default()
    }
}

/// After every chunk that may have this request, or older ones.
fn after_chunks_of(id: &RequestId) -> RequestId {
    RequestId::first_at(id.made_at().after(limits::REQUEST_CHUNK_SPAN + Duration::from_millis(1)))
}

/// Whether an owner's log has a request.
pub(super) async fn is_known(
    pool: &AnyPool,
    (owner, id): (&str, &RequestId),
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT requests FROM request_logs \
               WHERE owner = $1 AND id >= $2 AND id < $3 AND first_id <= $2";
    let query = sqlx::query(sql).bind(owner).bind(id.as_str());
    for row in query.bind(after_chunks_of(id).as_str()).fetch_all(pool).await? {
        if entries(&row)?.iter().any(|entry| entry.id == *id) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An owner's requests before one of them, newest first; one more than a page has.
pub(super) async fn list(
    pool: &AnyPool,
    (owner, before): (&str, Option<&RequestId>),
    ((least, most), limit): ((i64, i64), usize),
) -> Result<Vec<Entry>, sqlx::Error> {
    let sql = "SELECT id, requests FROM request_logs WHERE owner = $1 AND id < $2 \
               AND first_id < $3 AND statuses LIKE $4 ORDER BY id DESC LIMIT $5";
    let is_wanted = |entry: &Entry| {
        before.is_none_or(|before| entry.id < *before)
            && (least..=most).contains(&i64::from(entry.status.unwrap_or_default()))
    };
    let with = match (least, most) {
        (0, _) => "%".to_owned(),
        _ if least == most => format!("%,{least},%"),
        _ => format!("%,{}__,%", least / 100),
    };
    let mut next = before.map_or_else(|| "~".to_owned(), |id| after_chunks_of(id).to_string());
    let (mut found, mut portion): (Vec<Entry>, i64) = (Vec::new(), limits::REQUEST_CHUNKS_FIRST);
    loop {
        let rows = sqlx::query(sql)
            .bind(owner)
            .bind(next.as_str())
            .bind(before.map_or("~", RequestId::as_str))
            .bind(&with)
            .bind(portion)
            .fetch_all(pool)
            .await?;
        for row in &rows {
            found.extend(entries(row)?.into_iter().filter(is_wanted));
        }
        found.sort_by(|a, b| b.id.cmp(&a.id));
        let last = rows.last().filter(|_| i64::try_from(rows.len()) == Ok(portion));
        let Some(last) = last else { break };
        // Whatever is not read yet is older than that.
        next = last.try_get("id")?;
        if found.iter().take_while(|entry| entry.id.as_str() > next.as_str()).count() > limit {
            break;
        }
        portion = (4 * portion).min(limits::REQUEST_CHUNKS_MAX);
    }
    found.truncate(limit + 1);
    Ok(found)
}

fn entries(row: &AnyRow) -> Result<Vec<Entry>, sqlx::Error> {
    let text: String = row.try_get("requests")?;
    let lines: Vec<Line<'_>> =
        serde_json::from_str(&text).map_err(|cause| sqlx::Error::Decode(Box::new(cause)))?;
    let entry =
        |Line(id, method, path, status, duration_ms, key_prefix, error, at): Line<'_>| Entry {
            object: "request_log",
            id: RequestId::from_text(id.into_owned()),
            method: method.into_owned(),
            path: path.into_owned(),
            status,
            duration_ms,
            key_prefix: key_prefix.into_owned(),
            error_code: error.map(|code| Cow::Owned(code.into_owned())),
            created_at: Moment::from_micros(at),
        };
    Ok(lines.into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use crate::id::RequestId;

    use super::*;

    fn request(owner: &str, at_ms: i64, status: u16) -> Owned {
        let at = Moment::from_micros(at_ms * 1_000);
        let entry = Entry {
            object: "request_log",
            id: RequestId::first_at(at),
            method: "GET".into(),
            path: "/v1/payouts".into(),
            status: Some(status),
            duration_ms: 1,
            key_prefix: "sk_test_ab12".into(),
            error_code: None,
            created_at: at,
        };
        Owned { owner: owner.to_owned(), entry }
    }

    #[test]
    fn a_chunk_is_of_one_owner_and_of_one_second() {
        let requests = vec![
            request("b", 1_500, 200),
            request("a", 2_001, 404),
            request("a", 1_000, 200),
            request("a", 2_000, 500),
        ];
        let chunks = Chunk::all(requests);
        let of = |at: usize| {
            let chunk = &chunks[at];
            (chunk.owner.as_str(), chunk.entries.len(), chunk.statuses())
        };
        assert_eq!(chunks.len(), 3);
        assert_eq!(of(0), ("a", 2, ",200,500,".to_owned()));
        assert_eq!(of(1), ("a", 1, ",404,".to_owned()));
        assert_eq!(of(2), ("b", 1, ",200,".to_owned()));
        let many: Vec<Owned> = (0..130).map(|at| request("a", at, 200)).collect();
        let sizes: Vec<usize> = Chunk::all(many).iter().map(|it| it.entries.len()).collect();
        assert_eq!(sizes, [64, 64, 2]);
    }
}
