//! The inbox: what networks have sent, stored before they are answered, and taken in after that.
//!
//! A message that cannot have its effect yet (somebody is at the payment, the database is slow,
//! the payment is not known here yet) is due again, on a schedule. Nothing that it says is lost,
//! and nothing keeps out what stands beside it.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;
use sqlx::any::AnyRow;
use tokio::sync::Semaphore;

use crate::cases::{Case, CaseKind};
use crate::clock::Moment;
use crate::config::limits;
use crate::db;
use crate::db::bulk::RowChange;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::id::{Id as _, MessageId, RouteId};
use crate::ledger::Command;
use crate::rails::ReadyRoute;
use crate::wasm::egress::Exchange;
use crate::wasm::rail::{Message, Notice, Reply, Subject};

use self::table::{INBOX, INBOX_TRIED, Stored, Tried};
use super::Transfers;
use super::notice::{Heard, Taken};
use super::order::Feature;
use super::strangers::{named, presentable};

/// Items that are taken in at once.
const TAKEN_AT_ONCE: usize = 8;

/// What a network says of a whole file, which waits for what it says of one payment in it.
const KEPT_BACK: &str = "kept_back";

/// What is said of what no rail can read.
const NOT_UNDERSTOOD: &str = "nobody understands it";

/// What arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(super) enum Arrival {
    /// A message that the network sent by itself.
    Notice {
        method: String,
        path: String,
        query: Vec<(String, String)>,
        headers: Vec<(String, String)>,
        /// In base64.
        body: String,
    },
    /// A file that lay ready.
    File {
        feed: String,
        name: String,
        /// In base64.
        content: String,
    },
    /// What this host cannot open, by its id. Never stored.
    Unopened { id: String },
}

/// Something in the inbox.
#[derive(Clone, Debug)]
pub(super) struct Item {
    id: MessageId,
    env: Env,
    rail: String,
    /// Routes whose network it is from.
    routes: Vec<RouteId>,
    arrival: Arrival,
    received_at: Moment,
    tries: i64,
    /// Which of the things that it says have had their effect: by what each says, as another
    /// version of the rail may read more or less beside it.
    done: BTreeSet<String>,
}

impl Arrival {
    /// A message as it is kept.
    pub(super) fn of(message: &Message) -> Self {
        Self::Notice {
            method: message.method.clone(),
            path: message.path.clone(),
            query: message.query.clone(),
            headers: message.headers.clone(),
            body: BASE64.encode(&message.body),
        }
    }

    const fn source(&self) -> &'static str {
        match self {
            Self::Notice { .. } | Self::Unopened { .. } => "notice",
            Self::File { .. } => "file",
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Notice { method, path, .. } => format!("{method} {path}"),
            Self::File { feed, name, .. } => format!("{feed}/{name}"),
            Self::Unopened { id } => id.clone(),
        }
    }
}

impl Item {
    fn routes_text(&self) -> String {
        routes_text(self.routes.iter())
    }

    fn place(id: &MessageId) -> String {
        format!("inbox/{id}")
    }

    /// Whether what comes to nothing now has done so as often as the schedule goes.
    fn is_at_the_last_try(&self) -> bool {
        usize::try_from(self.tries).is_ok_and(|tries| tries + 1 >= limits::INBOX_SCHEDULE_S.len())
    }
}

fn routes_text<'a>(routes: impl Iterator<Item = &'a RouteId>) -> String {
    let ids: Vec<&str> = routes.map(RouteId::as_str).collect();
    serde_json::to_string(&ids).unwrap_or_default()
}

/// What a rail reads out of an item.
pub(super) enum Read {
    /// What it says, and the answer for whoever sent it.
    Says(Option<Reply>, Vec<Notice>, Box<Heard>),
    /// Nothing that could be understood.
    Nothing(String),
}

impl Transfers {
    /// Stores what arrived over these routes. It is held by the caller, who takes it in.
    ///
    /// # Errors
    /// The database cannot be written; the network has to say it again.
    pub(super) async fn store(
        &self,
        routes: &[Arc<ReadyRoute>],
        arrival: Arrival,
    ) -> Result<Item, Problem> {
        let now = self.now();
        let item = Item {
            id: self.ids.id(),
            env: routes[0].route.env,
            rail: routes[0].route.rail.clone(),
            routes: routes.iter().map(|route| route.route.id.clone()).collect(),
            arrival,
            received_at: now,
            tries: 0,
            done: BTreeSet::new(),
        };
        let row = self.stored(&item).await?;
        self.writer.work(Command::rows(vec![row])).await?;
        Ok(item)
    }

    /// Stores a file that lay ready, unless it was stored before.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn store_once(
        &self,
        routes: &[Arc<ReadyRoute>],
        arrival: Arrival,
    ) -> Result<Option<Item>, Problem> {
        let content = serde_json::to_vec(&arrival).map_err(Problem::internal)?;
        let digest = hex::encode(Sha256::digest(&content));
        let routes_text = routes_text(routes.iter().map(|route| &route.route.id));
        let file = (routes_text, arrival.name(), digest);
        if table::is_stored(&self.db, &file).await? {
            table::read_again(&self.db, &file, self.now()).await?;
            return Ok(None);
        }
        match self.store(routes, arrival).await {
            Ok(item) => Ok(Some(item)),
            // Another route that reads the same place was faster.
            Err(_) if table::is_stored(&self.db, &file).await? => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    async fn stored(&self, item: &Item) -> Result<RowChange, Problem> {
        let content = serde_json::to_vec(&item.arrival).map_err(Problem::internal)?;
        let digest = hex::encode(Sha256::digest(&content));
        let content = self.keyring.seal(&self.ids, &Item::place(&item.id), &content);
        let lease_until = self.db.now().await?.after(limits::LEASE);
        Ok(INBOX.insert(&Stored {
            item: item.clone(),
            digest,
            content: content.map_err(Problem::internal)?,
            due_at: item.received_at,
            lease_until,
        }))
    }

    /// Has the rail read an item.
    ///
    /// # Errors
    /// The rail failed.
    pub(super) async fn read(&self, route: &ReadyRoute, item: &Item) -> Result<Read, Problem> {
        let grant = route.pure_grant(item.received_at);
        let decoded = |text: &str| BASE64.decode(text).map_err(Problem::internal);
        match &item.arrival {
            Arrival::Notice { method, path, query, headers, body } => {
                let message = Message {
                    method: method.clone(),
                    path: path.clone(),
                    query: query.clone(),
                    headers: headers.clone(),
                    body: decoded(body)?,
                };
                let called = route.rail.code.receive(&grant, &message).await;
                let heard = Exchange::heard(&message.method, &message.path, &message.body)
                    .without(&route.door_tokens);
                let (result, called) = called.apart(heard);
                Ok(match result? {
                    Ok((reply, notices)) => Read::Says(
                        Some(reply),
                        notices,
                        Box::new(Heard::message(route, (&message, item.received_at), called)),
                    ),
                    Err(why) => Read::Nothing(why),
                })
            }
            Arrival::File { feed, name, content } => {
                let content = decoded(content)?;
                let called = route.rail.code.read(&grant, (feed, name), &content).await;
                let heard = Exchange::heard("FILE", &item.arrival.name(), &[]);
                let (result, called) = called.apart(heard);
                Ok(match result? {
                    Ok(notices) => {
                        let heard = Heard::file((&content, item.received_at), called);
                        Read::Says(None, notices, Box::new(heard))
                    }
                    Err(why) => Read::Nothing(why),
                })
            }
            // It may be money that came back.
            Arrival::Unopened { .. } => {
                let why = "no key of this host opens it, or it is not what was stored";
                Err(Problem::because(ErrorCode::ApiError, why))
            }
        }
    }

    /// Gives everything that an item says its effect, and writes down how far that went.
    ///
    /// # Errors
    /// What the first thing that had no effect came to.
    pub(super) async fn take_in<F: Feature>(
        &self,
        feature: &F,
        (routes, mut item): (&[Arc<ReadyRoute>], Item),
        (notices, heard): (Vec<Notice>, Box<Heard>),
    ) -> Result<(), Problem> {
        let (mut first, mut is_known, mut is_retryable) = (Ok(()), true, false);
        let (mut is_strange, mut is_kept_back) = (false, false);
        let mut written_at = Instant::now();
        // That a file is carried out counts for what nobody has said anything else of.
        let (of_files, of_payments): (Vec<_>, Vec<_>) = told_apart(notices)?
            .into_iter()
            .partition(|(_, notice)| matches!(notice.about, Subject::File(_)));
        for (key, notice) in of_payments.into_iter().chain(of_files) {
            let is_of_file = matches!(notice.about, Subject::File(_));
            if item.done.contains(&key) {
                continue;
            }
            // Of a file of thousands the others would begin anew, each of them, and from its beginning.
            if written_at.elapsed() >= limits::LEASE / 4 {
                if let Err(cause) = db::in_time(table::go_on(&self.db, &item)).await {
                    tracing::warn!(%cause, message.id = %item.id, "keeping a message");
                }
                written_at = Instant::now();
            }
            // Of a payment that nobody knows something else may be said than of the whole, until a
            // person has looked. What makes no sense of one keeps it back for no other.
            if is_of_file && (is_retryable || is_strange) {
                is_kept_back = true;
                continue;
            }
            // One that cannot be taken now keeps none of the others out.
            match Box::pin(self.take(feature, routes, notice, &heard)).await {
                Ok(Taken::Acted) => drop(item.done.insert(key)),
                // Of another file it may say what it likes.
                Ok(Taken::Unknown) => {
                    is_known = false;
                    is_strange |= !is_of_file;
                }
                Ok(Taken::LookedAt) => is_known = false,
                Err(problem) => {
                    is_retryable |= problem.code() != ErrorCode::InvalidBody;
                    first = first.and(Err(problem));
                }
            }
        }
        let why = first.as_ref().err().map(ToString::to_string);
        match (&item.arrival, &why) {
            (_, Some(why)) if is_retryable && item.is_at_the_last_try() => {
                self.tell_of_unreadable(&item, ("it has no effect", why)).await?;
            }
            (Arrival::File { .. }, Some(why)) if !is_retryable => {
                self.tell_of_unreadable(&item, (NOT_UNDERSTOOD, why)).await?;
            }
            _ => {}
        }
        let is_odd = |problem: &Problem| problem.code() == ErrorCode::InvalidBody;
        let state = match &first {
            // What may come true another time counts for more than what makes no sense.
            Err(_) if is_retryable => "new",
            _ if is_kept_back => KEPT_BACK,
            Err(problem) if is_odd(problem) && is_known => "unreadable",
            Err(problem) if is_odd(problem) => "unmatched",
            Err(_) => "new",
            Ok(()) if is_known => "taken",
            Ok(()) => "unmatched",
        };
        self.put_away(item, (state, why)).await?;
        first
    }

    /// Writes down that nobody understands an item.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn not_understood(&self, item: Item, why: &str) -> Result<(), Problem> {
        let why = &presentable(why);
        tracing::warn!(rail.name = item.rail, message.id = %item.id, why, "a message of a network");
        // Whoever sent a message is told so in the answer. Nobody is told of a file.
        if matches!(item.arrival, Arrival::File { .. }) {
            self.tell_of_unreadable(&item, (NOT_UNDERSTOOD, why)).await?;
        }
        self.put_away(item, ("unreadable", Some(why.to_owned()))).await
    }

    /// The rail has failed over an item: it is tried again, and not for ever.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn not_read(&self, item: Item, problem: &Problem) -> Result<(), Problem> {
        let was_read = problem.code() != ErrorCode::ServiceOverloaded;
        match was_read && item.is_at_the_last_try() {
            true => {
                let why = problem.message().to_owned();
                self.tell_of_unreadable(&item, (NOT_UNDERSTOOD, &why)).await?;
                match item.arrival {
                    // With its key it is read like any other.
                    Arrival::Unopened { .. } => self.put_away(item, ("new", Some(why))).await,
                    _ => self.not_understood(item, &why).await,
                }
            }
            false => self.put_away(item, ("new", Some(problem.to_string()))).await,
        }
    }

    /// What nobody understands may be money that came back: a person is told.
    async fn tell_of_unreadable(
        &self,
        item: &Item,
        (what, why): (&str, &str),
    ) -> Result<(), Problem> {
        if item.env == Env::Test {
            return Ok(());
        }
        let (name, why) = (named(&item.arrival.name()), presentable(why));
        let digest = serde_json::to_vec(&item.arrival).map_err(Problem::internal)?;
        let digest = hex::encode(Sha256::digest(digest));
        // Of what cannot be opened it would be its name's.
        let sha256 = (!matches!(item.arrival, Arrival::Unopened { .. })).then_some(&digest);
        let kind = CaseKind::UnreadableMessage;
        let case = Case {
            id: self.ids.id(),
            kind,
            fingerprint: format!("{}/{}/{digest}", kind.as_str(), item.rail),
            env: item.env,
            merchant_id: None,
            subject_type: "route",
            subject_id: item.routes.first().map(ToString::to_string).unwrap_or_default(),
            route: None,
            amount: None,
            summary: format!("{} sent {name}, and {what}: {why}.", item.rail),
            evidence: serde_json::json!({ "message": item.id.to_string(), "sha256": sha256 }),
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await.map(drop)
    }

    async fn put_away(
        &self,
        item: Item,
        (state, why): (&'static str, Option<String>),
    ) -> Result<(), Problem> {
        let now = self.now();
        let schedule = limits::INBOX_SCHEDULE_S;
        let tries = usize::try_from(item.tries).unwrap_or(usize::MAX);
        let again = schedule.get(tries).unwrap_or(&schedule[schedule.len() - 1]);
        // What nobody knows may be known a moment later; but not for ever.
        let state = match state {
            "unmatched" if tries < schedule.len() => "new",
            state => state,
        };
        let (state, again) = match state {
            KEPT_BACK => ("new", limits::INBOX_KEPT_BACK_S.min(*again)),
            state => (state, *again),
        };
        let row = INBOX_TRIED.change(&Tried {
            id: item.id,
            state,
            done: serde_json::to_string(&item.done).unwrap_or_default(),
            tries: item.tries + 1,
            due_at: now.after(Duration::from_secs(again)),
            taken_at: (state == "taken").then_some(now),
            why: why.as_deref().map(presentable),
            read_by: self.routes.rails().get(&item.rail).map(|rail| rail.digest.clone()),
        });
        self.writer.work(Command::rows(vec![row])).await.map(drop)
    }

    /// What could not be read so far is read again by rails that are others now, here or after
    /// another host has tried it with its own.
    async fn read_by_others(&self) -> Result<(), sqlx::Error> {
        for rail in self.routes.rails().all() {
            let name = rail.declaration.rail.name.as_str();
            let found = table::read_by_another(&self.db, (name, &rail.digest), self.now()).await?;
            if found > 0 {
                tracing::info!(rail.name = name, found, "what was unreadable is read again");
            }
        }
        Ok(())
    }

    /// Takes in what is left in the inbox, until the host is told to stop.
    pub async fn take_in_what_is_left<F: Feature>(self, feature: F) {
        let mut read_by_others_at = None;
        let places = Arc::new(Semaphore::new(TAKEN_AT_ONCE));
        while !self.stopping.is_cancelled() {
            let is_long_ago = |at: tokio::time::Instant| at.elapsed() >= limits::INBOX_READ_AGAIN;
            if read_by_others_at.is_none_or(is_long_ago) {
                if let Err(cause) = db::in_time(self.read_by_others()).await {
                    tracing::warn!(%cause, "what was unreadable");
                }
                read_by_others_at = Some(tokio::time::Instant::now());
            }
            // One that takes long keeps no other one out, nor do many large ones fill the memory.
            let (wanted, mut has_more) = (places.available_permits(), false);
            match db::in_time(table::claim(&self.db, self.now(), wanted)).await {
                Ok(items) => {
                    has_more = wanted > 0 && items.len() == wanted;
                    for id in items {
                        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { break };
                        let (engine, feature) = (self.clone(), feature.clone());
                        self.tasks.spawn(async move {
                            let _place = place;
                            let taking = engine.take_in_claimed(&feature, id);
                            if let Err(problem) = db::within(limits::TAKE_IN_MAX, taking).await {
                                tracing::warn!(%problem, "a message of a network, again");
                            }
                        });
                    }
                }
                Err(cause) => tracing::warn!(%cause, "looking into the inbox"),
            }
            tokio::select! {
                () = self.stopping.cancelled() => return,
                () = tokio::time::sleep(limits::INBOX_POLL) => {}
                // What waits behind others need not wait for the next look.
                _ = places.acquire(), if has_more => {}
            }
        }
    }

    async fn take_in_claimed<F: Feature>(&self, feature: &F, id: MessageId) -> Result<(), Problem> {
        let sql = "SELECT id, env, rail, routes, content, received_at, tries, done FROM inbox \
                   WHERE id = $1";
        let row = sqlx::query(sql).bind(id.as_str()).fetch_one(self.db.pool()).await?;
        let engine = self.clone();
        let opening = tokio::task::spawn_blocking(move || engine.item(&row)).await;
        let item = opening.map_err(Problem::internal)??;
        self.take_in_again(feature, item).await
    }

    async fn take_in_again<F: Feature>(&self, feature: &F, item: Item) -> Result<(), Problem> {
        let all = self.routes.all().await?;
        let its = |route: &&Arc<ReadyRoute>| item.routes.contains(&route.route.id);
        let routes: Vec<_> = all.iter().filter(its).cloned().collect();
        let Some(route) = routes.first() else {
            // Another host may have its rail, or this one again in a moment.
            let gone = Problem::internal("its routes, or their rails, are not there");
            return self.not_read(item, &gone).await;
        };
        let read = match self.read(route, &item).await {
            Ok(read) => read,
            Err(problem) => return self.not_read(item, &problem).await,
        };
        match read {
            Read::Nothing(why) => self.not_understood(item, &why).await,
            Read::Says(_, notices, mut heard) => {
                heard.was_unknown = true;
                self.take_in(feature, (&routes, item), (notices, heard)).await
            }
        }
    }

    fn item(&self, row: &AnyRow) -> Result<Item, Problem> {
        let text = |column| row.try_get::<String, _>(column);
        let id = MessageId::from_text(text("id")?);
        let opened = self.keyring.open(&Item::place(&id), &text("content")?).ok();
        let arrival = opened.and_then(|opened| serde_json::from_slice(&opened).ok());
        let routes: Vec<String> =
            serde_json::from_str(&text("routes")?).map_err(Problem::internal)?;
        let env = Env::parse(&text("env")?);
        Ok(Item {
            env: env.ok_or_else(|| Problem::internal("an item of no environment"))?,
            rail: text("rail")?,
            routes: routes.into_iter().map(RouteId::from_text).collect(),
            arrival: arrival.unwrap_or_else(|| Arrival::Unopened { id: id.to_string() }),
            received_at: Moment::from_micros(row.try_get("received_at")?),
            tries: row.try_get("tries")?,
            done: serde_json::from_str(&text("done")?).unwrap_or_default(),
            id,
        })
    }
}

/// What an item says, each by what it is about and says itself; the second of two that are the
/// same by its number.
fn told_apart(notices: Vec<Notice>) -> Result<Vec<(String, Notice)>, Problem> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let keyed = notices.into_iter().map(|notice| {
        let text = serde_json::to_vec(&notice).map_err(Problem::internal)?;
        let digest = hex::encode(&Sha256::digest(text)[..16]);
        let number = seen.entry(digest.clone()).or_default();
        *number += 1;
        Ok((format!("{digest}/{number}"), notice))
    });
    keyed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm::rail::News;

    #[test]
    fn what_is_said_is_known_again_wherever_it_stands() {
        let about = |name: &str| Notice { about: Subject::Reference(name.into()), news: News::Ask };
        let keys = |names: &[&str]| -> Vec<String> {
            let notices = names.iter().map(|name| about(name)).collect();
            told_apart(notices).expect("keys").into_iter().map(|(key, _)| key).collect()
        };
        let (before, after) = (keys(&["a", "b", "a"]), keys(&["x", "a", "b", "a"]));
        assert_eq!(before, after[1..]);
        assert_ne!(before[0], before[2]);
    }
}
