//! What networks leave lying ready: acknowledgements, returns, corrections.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use crate::cases::{Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::Db;
use crate::env::Env;
use crate::error::Problem;
use crate::id::RouteId;
use crate::rails::ReadyRoute;
use crate::wasm::rail::{Arrival, Money};

use super::super::Transfers;
use super::super::finding::reached;
use super::super::inbox::{self, Read};
use super::super::order::Feature;
use super::super::strangers::{named, presentable};
use super::transport::{Fetched, LeftOut};
use super::{digest_of, table, transport};

/// After how long a person is told that nothing can be fetched.
const FAILING_MAX: Duration = Duration::from_secs(3600);
/// Questions in a row, each of which may bring several files.
const ROUNDS_MAX: usize = 100;
/// How often a feed is looked for that somebody reads.
const TRIES: u32 = 100;
const TRY_AGAIN: Duration = Duration::from_millis(30);

impl Transfers {
    /// Fetches what lies ready for live routes whose turn it is.
    pub(super) async fn poll_what_is_due<F: Feature>(&self, feature: &F) -> Result<(), Problem> {
        for route in self.routes.all().await?.iter() {
            let is_live = route.route.env == Env::Live;
            let Some(timetable) = route.timetable().filter(|_| is_live) else { continue };
            let every = Duration::from_secs(timetable.terms.poll_s);
            // Of what was never set up nobody expects anything.
            if route.missing().is_some()
                && !table::is_known(self.db.pool(), &route.route.id).await?
            {
                continue;
            }
            let is_due = due(&self.db, &route.route.id, (self.now(), every)).await?;
            // One that has asked for patience has it until the next turn.
            if is_due && self.lanes.patience(&route.route.id).is_none() {
                let (engine, feature, route) = (self.clone(), feature.clone(), Arc::clone(route));
                self.tasks.spawn(async move {
                    if let Err(problem) = engine.poll(&feature, &route).await {
                        tracing::warn!(%problem, route.name = route.route.name, "fetching files");
                    }
                });
            }
        }
        Ok(())
    }

    /// Fetches everything that lies ready for a route, and takes it in.
    pub(super) async fn poll<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
    ) -> Result<(), Problem> {
        let Some(timetable) = route.timetable() else { return Ok(()) };
        for feed in &timetable.terms.feeds {
            self.poll_feed(feature, route, feed).await?;
        }
        Ok(())
    }

    async fn poll_feed<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        feed: &str,
    ) -> Result<(), Problem> {
        let place = (&route.route.id, feed);
        let mut cursor = None;
        for _ in 0..TRIES {
            cursor = claim(&self.db, place).await?;
            // In the sandbox somebody waits for what lies there.
            if cursor.is_some() || route.route.env == Env::Live {
                break;
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
        let Some(cursor) = cursor else { return Ok(()) };
        let read = self.read_feed(feature, route, (feed, cursor)).await;
        let failing = read.err();
        if let Some(why) = &failing {
            tracing::warn!(route.name = route.route.name, feed, why, "fetching files");
        }
        let now = self.now();
        let since = release(&self.db, place, failing.as_ref().map(|_| now)).await?;
        match since.zip(failing) {
            Some((since, why)) if since.after(FAILING_MAX) <= now => {
                let said = since.micros().to_string();
                let summary = format!("Nothing can be fetched from {feed}: {}.", presentable(&why));
                self.feed_fails(route, feed, (&said, summary)).await
            }
            _ => Ok(()),
        }
    }

    /// Reads a feed to its end; answers why that did not go.
    async fn read_feed<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        (feed, mut cursor): (&str, String),
    ) -> Result<(), String> {
        let place = (&route.route.id, feed);
        for _ in 0..ROUNDS_MAX {
            if let Some(missing) = route.missing() {
                return Err(missing.to_owned());
            }
            let grant = route.grant(self.now(), Vec::new(), Money::Stays);
            let called = transport::poll(route, &grant, (feed, &cursor)).await;
            if route.route.env == Env::Live {
                self.lanes.note(&route.route.id, reached(&called));
            }
            let Fetched { arrivals, left_out } = match called.result {
                Ok(Ok(fetched)) => fetched,
                Ok(Err(why)) => return Err(why),
                Err(broken) => return Err(broken.to_string()),
            };
            for LeftOut { name, version, why } in left_out {
                let (shown, why) = (named(&name), presentable(&why));
                let summary = format!("{shown} lies in {feed} and is not fetched: {why}.");
                let said = format!("{name} {version}");
                let told = self.feed_fails(route, feed, (&said, summary)).await;
                told.map_err(|cause| cause.to_string())?;
            }
            if arrivals.is_empty() {
                return Ok(());
            }
            for arrival in arrivals {
                let after = arrival.cursor.clone();
                let stored = self.take_file_in(feature, route, feed, arrival).await;
                stored.map_err(|cause| cause.to_string())?;
                // It is stored: the next question is for what comes after.
                let kept = keep_cursor(&self.db, place, &after).await;
                kept.map_err(|cause| cause.to_string())?;
                cursor = after;
            }
        }
        Ok(())
    }

    /// Tells a person of what cannot be fetched, once for each thing that is said: returns may lie
    /// there.
    async fn feed_fails(
        &self,
        route: &ReadyRoute,
        feed: &str,
        (said, summary): (&str, String),
    ) -> Result<(), Problem> {
        if route.route.env == Env::Test {
            return Ok(());
        }
        let (kind, name) = (CaseKind::FeedUnreachable, &route.route.name);
        let case = Case {
            id: self.ids.id(),
            kind,
            fingerprint: format!("{}/{}/{feed}/{}", kind.as_str(), route.route.id, digest_of(said)),
            env: route.route.env,
            merchant_id: None,
            subject_type: "route",
            subject_id: route.route.id.to_string(),
            route: Some(name.clone()),
            amount: None,
            summary: format!("{name}: {summary}"),
            evidence: serde_json::json!({ "feed": feed }),
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await.map(drop)
    }

    /// Stores a file that lay ready, unless it is known, and takes in what it says.
    async fn take_file_in<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        feed: &str,
        Arrival { name, content, .. }: Arrival,
    ) -> Result<(), Problem> {
        // What is of another route that reads the same place is not taken for a stranger's.
        let all = self.routes.all().await?;
        let others = all.iter().filter(|other| other.route.id != route.route.id);
        let shared = others.filter(|other| route.shares_feed(other, feed, &self.keyring));
        let mut routes: Vec<_> = shared.chain([route]).cloned().collect();
        routes.sort_by(|a, b| a.route.id.cmp(&b.route.id));
        let content = BASE64.encode(&content);
        let arrival = inbox::Arrival::File { feed: feed.to_owned(), name, content };
        let Some(item) = self.store_once(&routes, arrival).await? else { return Ok(()) };
        let taken = match self.read(route, &item).await {
            Ok(Read::Says(_, notices, heard)) => {
                Box::pin(self.take_in(feature, (&routes, item), (notices, heard))).await
            }
            Ok(Read::Nothing(why)) => self.not_understood(item, &why).await,
            Err(problem) => self.not_read(item, &problem).await,
        };
        if let Err(problem) = taken {
            // It lies in the inbox, and keeps nothing out.
            tracing::warn!(%problem, route.name = route.route.name, "taking in a file");
        }
        Ok(())
    }
}

/// Whether it is a route's turn, which it is once.
async fn due(
    db: &Db,
    route: &RouteId,
    (now, every): (Moment, Duration),
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT due_at FROM feed_turns WHERE route_id = $1";
    let found: Option<i64> =
        sqlx::query_scalar(sql).bind(route.as_str()).fetch_optional(db.pool()).await?;
    if found.is_some_and(|due_at| due_at > now.micros()) {
        return Ok(false);
    }
    let mut tx = db.write().await?;
    let sql = "INSERT INTO feed_turns (route_id, due_at) VALUES ($1, $2) \
               ON CONFLICT (route_id) DO UPDATE SET due_at = $2 WHERE feed_turns.due_at <= $3";
    let done = sqlx::query(sql)
        .bind(route.as_str())
        .bind(now.after(every).micros())
        .bind(now.micros())
        .execute(tx.conn())
        .await?;
    tx.commit().await?;
    Ok(done.rows_affected() == 1)
}

/// Makes it a route's turn: its network has something to say.
pub(super) async fn due_soon(db: &Db, route: &RouteId, at: Moment) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE feed_turns SET due_at = $2 WHERE route_id = $1 AND due_at > $2";
    sqlx::query(sql).bind(route.as_str()).bind(at.micros()).execute(tx.conn()).await?;
    tx.commit().await
}

/// Claims a feed; answers how far it was read, or nothing where somebody reads it.
async fn claim(db: &Db, (route, feed): (&RouteId, &str)) -> Result<Option<String>, sqlx::Error> {
    let mut tx = db.write().await?;
    let now = tx.now(db.engine()).await?;
    let sql = "INSERT INTO feeds (route_id, feed, cursor, lease_until) VALUES ($1, $2, '', $3) \
               ON CONFLICT (route_id, feed) DO UPDATE SET lease_until = $3 \
               WHERE feeds.lease_until < $4 RETURNING cursor";
    let cursor = sqlx::query_scalar(sql)
        .bind(route.as_str())
        .bind(feed)
        .bind(now.after(limits::FILE_LEASE).micros())
        .bind(now.micros())
        .fetch_optional(tx.conn())
        .await?;
    tx.commit().await?;
    Ok(cursor)
}

async fn keep_cursor(
    db: &Db,
    (route, feed): (&RouteId, &str),
    cursor: &str,
) -> Result<(), sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = "UPDATE feeds SET cursor = $3 WHERE route_id = $1 AND feed = $2";
    let query = sqlx::query(sql).bind(route.as_str()).bind(feed).bind(cursor);
    query.execute(tx.conn()).await?;
    tx.commit().await
}

/// Ends a claim; answers since when nothing could be fetched, if that is so.
async fn release(
    db: &Db,
    (route, feed): (&RouteId, &str),
    failing: Option<Moment>,
) -> Result<Option<Moment>, sqlx::Error> {
    let mut tx = db.write().await?;
    let sql = match failing {
        Some(_) => {
            "UPDATE feeds SET lease_until = 0, failing_since = COALESCE(failing_since, $3) \
             WHERE route_id = $1 AND feed = $2 RETURNING failing_since"
        }
        None => {
            "UPDATE feeds SET lease_until = 0, failing_since = NULL \
             WHERE route_id = $1 AND feed = $2 AND CAST($3 AS BIGINT) = 0 RETURNING failing_since"
        }
    };
    let since: Option<Option<i64>> = sqlx::query_scalar(sql)
        .bind(route.as_str())
        .bind(feed)
        .bind(failing.map_or(0, Moment::micros))
        .fetch_optional(tx.conn())
        .await?;
    tx.commit().await?;
    Ok(since.flatten().map(Moment::from_micros))
}
