//! `railhead logs`: recent requests and webhook deliveries, as they happen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::config::Config;
use crate::start::StartError;

use super::account::{Account, Answered, Api, Trouble, say};
use super::serve;

/// How often requests are asked for. Deliveries are every third time: following takes a third of
/// the smallest budget that a key has.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const DELIVERIES_EVERY: u32 = 3;
/// Requests and deliveries that are remembered as shown: more than are asked for at a time.
const SHOWN_MAX: usize = 1_000;
/// Items on a page.
const PAGE: usize = 100;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Logs {
    /// Go on and show what happens.
    #[arg(long, short)]
    follow: bool,
    /// How many requests and how many deliveries of the past are shown, at most 100.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
    limit: u8,
    #[command(flatten)]
    account: Account,
}

impl Logs {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let mut log = Log { api: self.account.open(config)?, shown: Shown::default() };
        let limit = usize::from(self.limit);
        let mut lines = log.requests(limit).await?;
        lines.extend(log.deliveries(limit).await?);
        show(lines)?;
        if !self.follow {
            return Ok(());
        }
        tokio::select! {
            () = serve::told_to_stop()? => Ok(()),
            ended = log.follow() => ended,
        }
    }
}

/// A line and the instant that it is sorted by.
type Line = (String, String);

struct Log {
    api: Api,
    shown: Shown,
}

/// What was shown.
#[derive(Default)]
struct Shown {
    requests: BTreeSet<String>,
    /// How each delivery stood.
    deliveries: BTreeMap<String, (String, i64)>,
}

impl Log {
    async fn follow(&mut self) -> Result<(), StartError> {
        let (mut turn, mut pause, mut is_away) = (0_u32, LOOK_EVERY, false);
        loop {
            tokio::time::sleep(pause).await;
            turn = turn.wrapping_add(1);
            match self.look(turn).await {
                Ok(lines) => {
                    (pause, is_away) = (LOOK_EVERY, false);
                    show(lines)?;
                }
                Err(trouble) if trouble.may_pass() => {
                    if !is_away {
                        say(&trouble.to_string())?;
                    }
                    (pause, is_away) = (LOOK_EVERY.max(trouble.retry_after()), true);
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
    }

    async fn look(&mut self, turn: u32) -> Result<Vec<Line>, Trouble> {
        let mut lines = self.requests(PAGE).await?;
        if turn.is_multiple_of(DELIVERIES_EVERY) {
            lines.extend(self.deliveries(PAGE).await?);
        }
        Ok(lines)
    }

    /// Requests that were not shown yet; beyond one page, until one that was.
    async fn requests(&mut self, limit: usize) -> Result<Vec<Line>, Trouble> {
        let mut lines = Vec::new();
        let mut path = format!("/v1/request_logs?limit={limit}");
        loop {
            let page = match self.api.get(&path).await {
                Ok(page) => page.body,
                // The page before has made room for newer requests.
                Err(Trouble::Refused { status: 400, .. }) if !lines.is_empty() => break,
                Err(trouble) => return Err(trouble),
            };
            let is_first = self.shown.requests.is_empty();
            let entries = items(&page);
            let new: Vec<&Value> =
                entries.iter().filter(|e| self.shown.requests.insert(text(&e["id"]))).collect();
            lines.extend(new.iter().map(|entry| request_line(entry)));
            let is_all_new = new.len() == entries.len() && !new.is_empty();
            match new.last().filter(|_| is_all_new && !is_first && page["has_more"] == true) {
                Some(last) => {
                    let after = text(&last["id"]);
                    path = format!("/v1/request_logs?limit={PAGE}&starting_after={after}");
                }
                None => break,
            }
        }
        while self.shown.requests.len() > SHOWN_MAX {
            self.shown.requests.pop_first();
        }
        Ok(lines)
    }

    /// Deliveries that stand otherwise than when they were shown.
    async fn deliveries(&mut self, limit: usize) -> Result<Vec<Line>, Trouble> {
        let path = format!("/v1/webhook_deliveries?limit={limit}");
        let Answered { id, body } = self.api.get(&path).await?;
        // This command's own question is nothing to look at.
        self.shown.requests.insert(id);
        let mut lines = Vec::new();
        for delivery in items(&body) {
            let stands =
                (text(&delivery["status"]), delivery["attempts"].as_i64().unwrap_or_default());
            let before = self.shown.deliveries.insert(text(&delivery["id"]), stands.clone());
            if before != Some(stands) {
                lines.push(delivery_line(delivery));
            }
        }
        while self.shown.deliveries.len() > SHOWN_MAX {
            self.shown.deliveries.pop_first();
        }
        Ok(lines)
    }
}

/// Oldest first.
fn show(mut lines: Vec<Line>) -> Result<(), StartError> {
    lines.reverse();
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(lines.iter().try_for_each(|(_, line)| say(line))?)
}

fn request_line(entry: &Value) -> Line {
    let at = text(&entry["created_at"]);
    let line = format!(
        "{at}  {} {} {}  {} ms  {}  {}  {}",
        entry["status"].as_i64().map_or("cut".to_owned(), |status| status.to_string()),
        text(&entry["method"]),
        text(&entry["path"]),
        entry["duration_ms"],
        text(&entry["id"]),
        text(&entry["key_prefix"]),
        text(&entry["error_code"]),
    );
    (at, line.trim_end().to_owned())
}

fn delivery_line(delivery: &Value) -> Line {
    let made = text(&delivery["created_at"]);
    let at = delivery["delivered_at"].as_str().map_or(made, str::to_owned);
    let line = format!(
        "{at}  {} webhook {} {} to {}  attempt {}  {}  {}",
        delivery["response_status"].as_i64().map_or("---".to_owned(), |status| status.to_string()),
        text(&delivery["event_type"]),
        text(&delivery["status"]),
        text(&delivery["endpoint_id"]),
        delivery["attempts"],
        text(&delivery["id"]),
        text(&delivery["error_message"]),
    );
    (at, line.trim_end().to_owned())
}

fn items(page: &Value) -> &[Value] {
    page["data"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
