//! `railhead rules`: rule packs from the command line. What changes a host goes through the
//! operator's API, as anybody's own program could.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::config::Config;
use crate::rules::PackKind;
use crate::start::{Sources, StartError};

use super::{admin, rules_authoring, say};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Rules {
    /// The host's address; that of the configuration if left out.
    #[arg(long, global = true, value_name = "URL", value_parser = crate::cli::account::http_url)]
    url: Option<String>,
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Fraud,
    Fees,
}

#[derive(Subcommand)]
enum RulesCommand {
    /// Write a new pack: a folder with rules, cases and, for Rust, sources.
    New {
        /// Its name, and that of the folder.
        name: String,
        /// Rules as text for a built-in pack, instead of a pack in Rust.
        #[arg(long)]
        toml: bool,
        /// What it decides.
        #[arg(long, value_enum, default_value = "fraud", requires = "toml")]
        kind: Kind,
    },
    /// Check a pack: a folder, a rules.toml or a component.
    Check {
        /// Where it is. Sources in Rust are built.
        path: PathBuf,
        /// Write the packed component here.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check a pack and give it to a host. It decides nothing yet.
    Push {
        /// The folder, rules.toml or component.
        path: PathBuf,
    },
    /// List every version and where it stands.
    List,
    /// Ask a version too, without its answers counting.
    Shadow(Which),
    /// Have a version decide from now on.
    Activate(Which),
    /// Go back to an earlier version.
    Rollback {
        /// The pack's name.
        name: String,
        /// The version to go back to; the one that decided before if left out.
        version: Option<String>,
        /// The id of the one merchant that is meant; the platform if left out.
        #[arg(long, value_name = "ID")]
        merchant: Option<String>,
    },
    /// Unassign a version: it neither decides nor is tried any more.
    Retire(Which),
    /// Show where the version in shadow would have decided otherwise.
    Differences {
        /// The pack's name.
        name: String,
        /// At most this many, newest first.
        #[arg(long, default_value = "20")]
        limit: u8,
    },
    /// Try a version on past decisions.
    Backtest {
        /// The pack's name.
        name: String,
        /// The version that is asked.
        version: String,
        /// How far back: 30d, 12h or 45m.
        #[arg(long, value_name = "SPAN", default_value = "30d", value_parser = span)]
        from: Duration,
        /// Of one merchant only.
        #[arg(long, value_name = "ID")]
        merchant: Option<String>,
    },
    /// Make the decision about a payout again.
    Explain {
        /// The payout, or `decision_id` of one that was blocked.
        payout: String,
    },
}

#[derive(Args)]
struct Which {
    /// The pack's name.
    name: String,
    /// The version that is meant.
    version: String,
    /// The id of the one merchant that is meant; the platform if left out.
    #[arg(long, value_name = "ID")]
    merchant: Option<String>,
}

impl Rules {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let base = self.url.unwrap_or_else(|| config.operators_url());
        let host = || admin::token(config).map(|token| Host { base, token });
        match self.command {
            RulesCommand::New { name, toml: false, .. } => rules_authoring::new_in_rust(&name),
            RulesCommand::New { name, kind, .. } => {
                rules_authoring::new_as_text(&name, kind.into())
            }
            RulesCommand::Check { path, output } => {
                rules_authoring::check(&path, output.as_deref())
            }
            RulesCommand::Push { path } => {
                let host = host()?;
                host.push(rules_authoring::checked(&path)?).await
            }
            RulesCommand::List => host()?.list().await,
            RulesCommand::Shadow(which) => host()?.assign("shadow", which).await,
            RulesCommand::Activate(which) => host()?.assign("activate", which).await,
            RulesCommand::Rollback { name, version, merchant } => {
                let host = host()?;
                let version = match version {
                    Some(version) => version,
                    None => {
                        let scope = merchant.as_deref().unwrap_or("platform");
                        host.version_before(&name, scope).await?
                    }
                };
                host.assign("rollback", Which { name, version, merchant }).await
            }
            RulesCommand::Retire(which) => host()?.assign("retire", which).await,
            RulesCommand::Differences { name, limit } => host()?.differences(&name, limit).await,
            RulesCommand::Backtest { name, version, from, merchant } => {
                host()?.backtest((&name, &version), from, merchant).await
            }
            RulesCommand::Explain { payout } => host()?.explain(&payout).await,
        }
    }
}

/// A host, as its operator speaks to it.
struct Host<'a> {
    base: String,
    token: &'a SecretString,
}

impl Host<'_> {
    async fn call(&self, call: (Method, &str), body: Option<Value>) -> Result<Value, StartError> {
        admin::send((&self.base, self.token), call, body).await
    }

    async fn push(&self, packed: Vec<u8>) -> Result<(), StartError> {
        let file = ("application/wasm", packed);
        let pack = admin::push((&self.base, self.token), "rule-packs", file).await?;
        let (name, version) = (word(&pack, "name"), word(&pack, "version"));
        say(format!("Pushed {name} {version} ({}).", &word(&pack, "digest")[..12]));
        // A price is not compared: it is charged, or it is not.
        let next = if word(&pack, "kind") == "fees" { "activate" } else { "shadow" };
        say(format!("Try it: railhead rules {next} {name} {version}"));
        Ok(())
    }

    async fn list(&self) -> Result<(), StartError> {
        let packs = self.call((Method::GET, "rule-packs"), None).await?;
        say(format!("{:<20} {:<16} {:<6} {:<9} decides for", "name", "version", "kind", "state"));
        for pack in items(&packs) {
            let scopes: Vec<String> = items_of(&pack["active_for"])
                .map(|scope| scope.as_str().unwrap_or_default().to_owned())
                .collect();
            let tally = match pack["shadow"].as_object() {
                Some(tally) => format!(
                    "  (in shadow: {} compared, {} differ, {} failed)",
                    tally["compared"], tally["differing"], tally["failed"]
                ),
                None => String::new(),
            };
            let [name, version, kind, state] =
                ["name", "version", "kind", "state"].map(|field| word(pack, field));
            let scopes = scopes.join(", ");
            let held: Vec<&str> = items_of(&pack["held_for"]).filter_map(Value::as_str).collect();
            let tally = match held.is_empty() {
                true => tally,
                false => format!("  (kept failing; payouts are held for {})", held.join(", ")),
            };
            say(format!("{name:<20} {version:<16} {kind:<6} {state:<9} {scopes}{tally}"));
        }
        Ok(())
    }

    async fn assign(&self, verb: &str, which: Which) -> Result<(), StartError> {
        let Which { name, version, merchant } = which;
        let path = format!("rule-packs/{name}/versions/{version}/{verb}");
        let body = merchant.map(|id| json!({ "merchant_id": id }));
        let assignment = self.call((Method::POST, &path), body).await?;
        if word(&assignment, "status") == "awaiting_approval" {
            say("Noted. Somebody else has to give the same command within a day.");
            return Ok(());
        }
        let (scope, role) = (word(&assignment, "scope"), word(&assignment, "role"));
        match verb {
            "retire" => say(format!("{name} {version} is no longer {role} for {scope}.")),
            _ => say(format!(
                "{name} {version} is {role} for {scope} (change {}).",
                assignment["generation"]
            )),
        }
        Ok(())
    }

    /// The version that decided last for a scope among those that no longer do.
    async fn version_before(&self, name: &str, scope: &str) -> Result<String, StartError> {
        let packs = self.call((Method::GET, "rule-packs"), None).await?;
        let is_it = |pack: &&Value| {
            pack["name"] == name && items_of(&pack["previous_for"]).any(|place| place == scope)
        };
        let before = items(&packs).find(is_it);
        let before = before.ok_or_else(|| {
            format!(
                "there is no version of {name} to go back to for {scope}: say which (railhead rules \
                 rollback {name} VERSION), or take the pack out (railhead rules retire)"
            )
        })?;
        Ok(word(before, "version"))
    }

    async fn differences(&self, name: &str, limit: u8) -> Result<(), StartError> {
        let path = format!("rule-packs/{name}/differences?limit={limit}");
        let differences = self.call((Method::GET, &path), None).await?;
        for difference in items(&differences) {
            let verdict = |side: &str| {
                let hits = items_of(&difference[side]["hits"]).map(|hit| word(hit, "label"));
                let hits: Vec<String> = hits.collect();
                format!("{} [{}]", word(&difference[side], "action"), hits.join(", "))
            };
            say(format!(
                "{}  {}  {}: {} -> {} {}: {}",
                word(difference, "created_at"),
                word(difference, "payout_id"),
                difference["active"].as_str().unwrap_or("no pack"),
                verdict("before"),
                word(difference, "name"),
                word(difference, "version"),
                verdict("after"),
            ));
        }
        if items(&differences).next().is_none() {
            say("No differences.");
        }
        Ok(())
    }

    async fn backtest(
        &self,
        (name, version): (&str, &str),
        span: Duration,
        merchant: Option<String>,
    ) -> Result<(), StartError> {
        let now = Sources::system()?.clock.now();
        let (from, before) = (now.before(span).to_string(), now.to_string());
        let path = format!("rule-packs/{name}/versions/{version}/backtest");
        let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(
            "{bar:40} {pos} of {len} decisions, {eta} left",
        )?);
        let mut seen = Seen::default();
        let mut after = Value::Null;
        loop {
            let body = json!({
                "from": from, "before": before, "merchant_id": merchant, "after": after,
            });
            let slice = self.call((Method::POST, &path), Some(body)).await?;
            bar.set_length(bar.position() + slice["remaining"].as_u64().unwrap_or(0));
            bar.inc(slice["examined"].as_u64().unwrap_or(0));
            seen.add(&slice);
            after = slice["next"].clone();
            if after.is_null() {
                break;
            }
        }
        bar.finish_and_clear();
        seen.show((name, version), &from);
        Ok(())
    }

    async fn explain(&self, payout: &str) -> Result<(), StartError> {
        let path = format!("payouts/{payout}/decision");
        let decision = self.call((Method::GET, &path), None).await?;
        let pack = match decision["pack"].as_str() {
            Some(pack) => {
                let digest = &word(&decision, "digest")[..12];
                format!("{pack} {} ({digest})", word(&decision, "version"))
            }
            None => "no pack".to_owned(),
        };
        say(format!("{}  {}", word(&decision, "created_at"), word(&decision, "payout_id")));
        say(format!("  {pack} decided: {}", word(&decision, "action")));
        for hit in items_of(&decision["hits"]) {
            let [label, action, reason] = ["label", "action", "reason"].map(|f| word(hit, f));
            let public = hit["public"].as_str().map(|text| format!(" (To the merchant: {text})"));
            say(format!("    {label}: {action}. {reason}{}", public.unwrap_or_default()));
        }
        if let Some(failure) = decision["failure"].as_str() {
            say(format!("  it failed: {failure}"));
        }
        say("  on these facts");
        for (name, value) in decision["facts"].as_object().into_iter().flatten() {
            say(format!("    {name} = {value}"));
        }
        match (&decision["again"]["same"], decision["again"]["failure"].as_str()) {
            (Value::Bool(true), _) => say("  decided again now: the same"),
            (Value::Bool(false), None) => {
                say(format!("  decided again now: {}", decision["again"]["verdict"]));
            }
            (Value::Bool(false), Some(why)) => say(format!("  cannot be decided again: {why}")),
            _ => {}
        }
        Ok(())
    }
}

/// All slices of a backtest together.
#[derive(Default)]
struct Seen {
    examined: i64,
    skipped: i64,
    failed: i64,
    missing: Vec<String>,
    moves: BTreeMap<String, i64>,
    rules: BTreeMap<String, [i64; 2]>,
    examples: Vec<String>,
}

impl Seen {
    fn add(&mut self, slice: &Value) {
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        self.examined += number(&slice["examined"]);
        self.skipped += number(&slice["skipped"]);
        self.failed += number(&slice["failed"]);
        for fact in items_of(&slice["missing_facts"]).filter_map(Value::as_str) {
            if !self.missing.iter().any(|known| known == fact) {
                self.missing.push(fact.to_owned());
            }
        }
        for (step, count) in slice["moves"].as_object().into_iter().flatten() {
            *self.moves.entry(step.clone()).or_default() += number(count);
        }
        for (label, rule) in slice["rules"].as_object().into_iter().flatten() {
            let [then, now] = self.rules.entry(label.clone()).or_default();
            *then += number(&rule["then"]);
            *now += number(&rule["now"]);
        }
        for example in items_of(&slice["examples"]) {
            let [payout, before, after] =
                ["payout_id", "before", "after"].map(|field| word(example, field));
            self.examples.push(format!("{payout}  {before} -> {after}"));
        }
    }

    fn show(&self, (name, version): (&str, &str), from: &str) {
        say(format!("{name} {version} on {} decisions since {from}", self.examined));
        if self.skipped > 0 {
            let missing = self.missing.join(", ");
            say(format!("  {} skipped: {missing} was not stored with them", self.skipped));
        }
        if self.failed > 0 {
            say(format!("  {} on which the pack failed", self.failed));
        }
        say(format!("  {:<24} {:>10}", "decision", "payouts"));
        for (step, count) in &self.moves {
            let (before, after) = step.split_once('>').unwrap_or((step, ""));
            let shown = match before == after {
                true => format!("{before}, as it was"),
                false => format!("{before} -> {after}"),
            };
            say(format!("  {shown:<24} {count:>10}"));
        }
        say(format!("  {:<24} {:>10} {:>10}", "rule", "then", "now"));
        for (label, [then, now]) in &self.rules {
            say(format!("  {label:<24} {then:>10} {now:>10}"));
        }
        for example in self.examples.iter().take(10) {
            say(format!("  for example {example}"));
        }
    }
}

impl From<Kind> for PackKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Fraud => Self::Fraud,
            Kind::Fees => Self::Fees,
        }
    }
}

/// Reads 30d, 12h or 45m.
fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a span such as 30d, 12h or 45m");
    let unit_s = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        Some('m') => 60,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_s).map(Duration::from_secs).ok_or_else(wrong)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    items_of(&list["data"])
}

fn items_of(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn word(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}
