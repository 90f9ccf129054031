//! `GET /v1/events/stream`: the feed of events, pushed.
//!
//! An event's id is made before the transaction that writes it commits, so one with a smaller id
//! may become visible after one with a larger. Each look therefore begins
//! [`limits::STREAM_LOOK_BACK`] ago and sends what was not sent on this connection. On another
//! connection nobody remembers what was sent: that one begins as long before its cursor, and
//! whoever reads it drops what they know. Where the cursor is ahead of the clock, what is new has
//! smaller ids for as long: that connection begins as long before now.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::Stream;
use http::HeaderMap;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::caller::Caller;
use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::events::{self, EventView, sql};
use crate::http::places::{NoPlace, Place, Share};
use crate::http::{PageQuery, Query};
use crate::id::EventId;
use crate::payouts::event_body;

use super::progress::Progress;

/// What the call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] =
    &[("stream_events", &[ErrorCode::InvalidFilter, ErrorCode::InvalidField])];

/// When a caller that has too many streams may try again, in seconds.
const RETRY_AFTER_S: u64 = 5;

/// What is to be streamed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct StreamQuery {
    /// An event's name.
    #[serde(rename = "type")]
    pub name: Option<String>,
    /// The last event that you know; from now on, if left out. `Last-Event-ID` wins.
    pub starting_after: Option<String>,
}

/// Stream events
///
/// Server-sent events: each message is an event as the list of events shows it, oldest first,
/// under its id. The stream stays open, with a comment now and then while nothing happens, and
/// ends when the host stops or the key does; connect again with `Last-Event-ID`, as every
/// EventSource does. Without a cursor it begins now, with a message that has only an id: where
/// to go on from if nothing happened yet.
///
/// Two transactions may finish in another order than they began, so events come nearly in the
/// order of their ids, and a stream that goes on after an event begins two minutes before it.
/// Drop what you have seen, by its id. At most 8 streams per key are open on a host, and 32 of
/// an environment; beyond that, 429.
#[utoipa::path(
    get, path = "/v1/events/stream", operation_id = "stream_events", tag = "Events",
    params(
        StreamQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that you know"),
    ),
    responses((
        status = 200, description = "Events as they happen",
        body = EventView, content_type = "text/event-stream",
    )),
)]
pub async fn stream_events(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
) -> Result<Response, Problem> {
    let name = events::named("type", query.name.as_deref())?;
    let cursor = cursor(&headers, query.starting_after.as_deref())?;
    let share =
        Share { of_key: limits::STREAMS_PER_KEY_MAX, of_owner: limits::STREAMS_PER_OWNER_MAX };
    let place = app.long_answers.streams.take_for(&caller.key.id, caller.owner(), share);
    let too_many = |it: NoPlace| it.refusal(("stream", "Streams of events"), RETRY_AFTER_S);
    let place = place.map_err(too_many)?;
    let now = app.now();
    let mut feed = Feed {
        app,
        caller,
        headers,
        name,
        progress: Progress::new(cursor.as_ref().map_or(now, EventId::made_at)),
        ready: VecDeque::new(),
        pause: Duration::ZERO,
        _place: place,
    };
    if cursor.is_none() {
        while !feed.look(New::IsPast).await? {}
        feed.ready = VecDeque::from([Event::default().id(EventId::first_at(now).as_str())]);
    }
    let keep_alive = KeepAlive::new().interval(limits::STREAM_KEEP_ALIVE);
    Ok(Sse::new(feed.stream()).keep_alive(keep_alive).into_response())
}

/// Where to go on from. Only the instant in it counts, so it need not be in the feed.
fn cursor(headers: &HeaderMap, starting_after: Option<&str>) -> Result<Option<EventId>, Problem> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let wrong = |field: &str| PageQuery::unknown_cursor().field(field);
    let read = |text, field| EventId::parse(text).ok_or_else(|| wrong(field));
    match (header.filter(|id| !id.is_empty()), starting_after) {
        (Some(id), _) => read(id, "Last-Event-ID").map(Some),
        (None, Some(id)) => read(id, "starting_after").map(Some),
        (None, None) => Ok(None),
    }
}

/// What is done with an event that was not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum New {
    IsSent,
    IsPast,
}

/// A stream and how far it is.
struct Feed {
    app: App,
    caller: Caller,
    headers: HeaderMap,
    name: &'static str,
    progress: Progress,
    ready: VecDeque<Event>,
    pause: Duration,
    _place: Place,
}

impl Feed {
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, |mut feed| async move {
            loop {
                if let Some(event) = feed.ready.pop_front() {
                    return Some((Ok(event), feed));
                }
                feed.wait().await?;
            }
        })
    }

    /// Waits a little and looks again; none, when the stream ends.
    async fn wait(&mut self) -> Option<()> {
        tokio::select! {
            () = self.app.stopping.cancelled() => return None,
            () = tokio::time::sleep(self.pause) => {}
        }
        if !self.caller.is_still_admitted(&self.app, &self.headers).await {
            return None;
        }
        let begun = Instant::now();
        let looked = self.look(New::IsSent).await;
        // Whoever reads goes on from where they are, here or on another host.
        let is_done = looked.inspect_err(|cause| tracing::warn!(%cause, "a stream ends")).ok()?;
        let share = begun.elapsed() * (limits::STREAM_SHARE - 1);
        self.pause = if is_done { limits::STREAM_POLL.max(share) } else { share };
        Some(())
    }

    /// Reads a page of the feed; whether it was the last one for now.
    async fn look(&mut self, new: New) -> Result<bool, Problem> {
        let (now, at) = (self.app.now(), Instant::now());
        let (pool, owner) = (self.app.db.pool(), self.caller.owner());
        let wanted = (self.name, self.progress.begin(now));
        let reads = &self.app.long_answers.reads;
        let permit = reads.acquire_for(&[self.name], owner).await?;
        let ids = sql::list_event_ids(pool, owner, wanted, limits::STREAM_PAGE).await?;
        drop(permit);
        self.progress.pass(&ids, now, at);
        if new == New::IsSent {
            for (first, last) in self.progress.unknown(&ids) {
                let events = sql::list_events_between(pool, owner, self.name, (&first, &last));
                let events = event_body::views(&self.app.db, events.await?).await?;
                // Some may have become visible after the ids were read.
                self.progress.note(events.iter().map(|event| event.id.clone()), at);
                self.ready.extend(events.iter().filter_map(message));
            }
        }
        Ok(self.progress.read(ids, at))
    }
}

/// An event as a message, under its id.
fn message(event: &EventView) -> Option<Event> {
    let id = event.id.clone();
    Event::default().id(id).json_data(event).ok()
}
