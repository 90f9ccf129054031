//! Sending a payroll: checked first, then batch by batch, then followed to its end.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::account::{Account, Api, Trouble, say};
use crate::cli::{new_private, warn};
use crate::clock::Clock;
use crate::config::Config;
use crate::id::IdGenerator;
use crate::reports::{harmless, quoted};
use crate::start::StartError;

use super::journal::{Journal, Sending, Taken};
use super::sheet::{self, Row};

/// Rows of a batch.
const ROWS_MAX: usize = 150;
/// How often a batch is looked at until it is over.
const LOOK: Duration = Duration::from_secs(1);
/// How long a host that fails is left alone at first, twice as long each time, and how often.
const PAUSE: (Duration, u32) = (Duration::from_secs(2), 10);
/// And for how long at most, unless it says otherwise.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Arguments of `railhead batch send`.
#[derive(Args)]
pub(in crate::cli) struct Send {
    /// The payroll: .csv or .xlsx.
    file: PathBuf,
    /// Only check the file, and say what would be sent.
    #[arg(long)]
    dry_run: bool,
    /// Send without asking.
    #[arg(long)]
    yes: bool,
    /// Do not wait until everybody is paid.
    #[arg(long)]
    no_wait: bool,
    /// The wallet that pays; that of the currency if left out.
    #[arg(long, value_name = "ID")]
    wallet: Option<String>,
    /// What the sandbox plays for every row.
    #[arg(long, value_name = "SCENARIO")]
    scenario: Option<String>,
    /// Where it is written down how each row ended; FILE.results.csv if left out.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    #[command(flatten)]
    account: Account,
}

/// Arguments of `railhead batch show`.
#[derive(Args)]
pub(in crate::cli) struct Show {
    /// The batch's id or bat_ reference.
    id: String,
    #[command(flatten)]
    account: Account,
}

/// Arguments of `railhead batch cancel`.
#[derive(Args)]
pub(in crate::cli) struct Cancel {
    /// The batch's id or bat_ reference.
    id: String,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    account: Account,
}

impl Show {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let api = self.account.open(config)?;
        let batch = api.get(&format!("/v1/batches/{}", self.id)).await?;
        Ok(say(&serde_json::to_string_pretty(&batch.body)?)?)
    }
}

impl Cancel {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let api = self.account.open(config)?;
        let path = format!("/v1/batches/{}/cancel", self.id);
        let cancelled = api.post(&path, &[], &json!({ "reason": self.reason })).await?;
        Ok(say(&serde_json::to_string_pretty(&cancelled)?)?)
    }
}

impl Send {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let rows = sheet::read(&self.file)?;
        if self.dry_run {
            return Ok(say(&format!("{}. Nothing was sent.", summary(&rows, "would be sent")))?);
        }
        let results = self.results.clone().unwrap_or_else(|| beside(&self.file, ".results.csv"));
        if !self.no_wait {
            // Before anything leaves: it would be known only when everybody is paid.
            writable(&results)?;
        }
        let api = self.account.open(config)?;
        let mut journal = Journal::open(&self.file, &api.name())?;
        let sending = Sender {
            api: &api,
            wallet: self.wallet,
            scenario: self.scenario,
            ids: IdGenerator::new(Clock::System)?,
        };
        for open in journal.open_ones() {
            say("A batch was on its way when this was interrupted: sending the very same again.")?;
            sending.settle(&mut journal, (&open, Before::Unknown), &rows).await?;
        }
        let left = journal.left(&rows);
        if left.len() < rows.len() {
            say(&format!("{} of {} rows were sent before.", rows.len() - left.len(), rows.len()))?;
        }
        if !left.is_empty() {
            if !self.yes {
                confirm(&summary(&left, "will be sent"))?;
            }
            let bar = bar(left.len(), "sent");
            for part in left.chunks(ROWS_MAX) {
                let sent = sending.next(part);
                journal.sending(sent.clone())?;
                bar.suspend(|| ());
                sending.settle(&mut journal, (&sent, Before::Nothing), &rows).await?;
                bar.inc(u64::try_from(part.len())?);
            }
            bar.finish_and_clear();
        }
        if self.no_wait {
            for Taken { batch, .. } in journal.taken() {
                let shown = asked(&api, &format!("/v1/batches/{batch}")).await?;
                if let Some(reference) = waits_for_a_person(&shown) {
                    say(&format!("{reference} waits for a second person."))?;
                }
            }
            return Ok(say("Everything was sent; how it ends was not waited for.")?);
        }
        let paid = follow(&api, journal.taken(), &results).await?;
        let all = journal.taken().iter().map(|taken| taken.items.len()).sum::<usize>();
        say(&format!("{paid} of {all} are paid. How each row ended: {}", results.display()))?;
        match paid == all {
            true => Ok(()),
            false => Err(format!("{} rows are not paid", all - paid).into()),
        }
    }
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// What a payroll comes to, in words.
fn summary(rows: &[Row], what: &str) -> String {
    let total: i128 = rows.iter().map(|row| i128::from(row.amount)).sum();
    let batches = rows.len().div_ceil(ROWS_MAX);
    let batches = if batches == 1 { "one batch".to_owned() } else { format!("{batches} batches") };
    let payouts = if rows.len() == 1 { "payout" } else { "payouts" };
    format!(
        "{} {payouts} of {}.{:02} naira together {what}, in {batches}",
        rows.len(),
        total / 100,
        total % 100
    )
}

/// Asks whoever sits there; who sends without anybody there says so beforehand.
fn confirm(summary: &str) -> Result<(), StartError> {
    use std::io::IsTerminal as _;
    if !std::io::stdin().is_terminal() {
        return Err(format!("{summary}. Say --yes to send without being asked.").into());
    }
    say(&format!("{summary}. Send? [y/N]"))?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err("nothing was sent".into()),
    }
}

fn bar(length: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    let style = format!("{{bar:30}} {{pos}} of {{len}} {what}");
    match ProgressStyle::with_template(&style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What is known of tries to send a batch before this one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// There was none.
    Nothing,
    /// One was not answered: it may have been taken.
    Unknown,
}

/// What sends batches.
struct Sender<'a> {
    api: &'a Api,
    wallet: Option<String>,
    scenario: Option<String>,
    ids: IdGenerator,
}

impl Sender<'_> {
    /// A batch of these rows, under a key of its own.
    fn next(&self, rows: &[Row]) -> Sending {
        let items: Vec<&Value> = rows.iter().map(|row| &row.payout).collect();
        let mut body = json!({ "currency": "NGN", "items": items });
        if let Some(wallet) = &self.wallet {
            body["wallet_id"] = json!(wallet);
        }
        Sending { key: self.ids.secret(), account: self.api.name(), body }
    }

    /// Sends a batch until it is taken or refused, and writes down which.
    ///
    /// # Errors
    /// It was refused, with the lines of the file that are in the way; or nobody answered in time,
    /// and it is sent again the next time.
    async fn settle(
        &self,
        journal: &mut Journal,
        (sent, mut before): (&Sending, Before),
        rows: &[Row],
    ) -> Result<(), StartError> {
        let mut headers = vec![("idempotency-key", sent.key.as_str())];
        headers.extend(self.scenario.as_deref().map(|name| ("x-sandbox-scenario", name)));
        let mut tries = 0;
        loop {
            match self.api.post("/v1/batches", &headers, &sent.body).await {
                Ok(made) => {
                    let id = made["id"].as_str().ok_or("a batch without an id")?;
                    return journal.took(sent, id);
                }
                Err(trouble) if trouble.may_pass() && tries < PAUSE.1 => {
                    let pause = pause(tries, &trouble);
                    tries += 1;
                    // The host says by itself that it takes nothing now.
                    let is_known = matches!(&trouble, Trouble::Refused { status: 429, error, .. }
                        if error["code"].is_string());
                    before = if is_known { before } else { Before::Unknown };
                    warn(format_args!("{trouble}: again in {} s", pause.as_secs()));
                    tokio::time::sleep(pause).await;
                }
                // Nobody knows whether it was taken: now, or by an earlier try.
                Err(trouble) if trouble.may_pass() => {
                    return Err(format!(
                        "{trouble}. Nobody knows whether the batch was taken: run the same command \
                         again, which finds out and sends nothing twice"
                    )
                    .into());
                }
                Err(trouble) if before == Before::Unknown && !trouble.knows_of_earlier_tries() => {
                    return Err(format!(
                        "{trouble}. As long as that is so nobody can tell whether the batch was taken \
                         before: have it mended, and run the same command again. Or look for the \
                         batch, and only where it is not there move the journal away"
                    )
                    .into());
                }
                Err(trouble) => {
                    journal.refused(sent)?;
                    return Err(told(&trouble, sent, rows).into());
                }
            }
        }
    }
}

/// A refusal, with the lines of the file that it is about.
fn told(trouble: &Trouble, sent: &Sending, rows: &[Row]) -> String {
    let items = sent.body["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |index: usize| {
        let item = items.get(index);
        let row = rows.iter().find(|row| Some(&row.payout) == item);
        row.map_or_else(|| format!("row {index} of the batch"), |row| format!("line {}", row.line))
    };
    let mut text = format!("nothing of this batch was made: {trouble}");
    let Trouble::Refused { error, .. } = trouble else { return text };
    let found = ["violations", "unresolved"].into_iter().filter_map(|key| error[key].as_array());
    for entry in found.flatten() {
        let index = entry["row_index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let Some(index) = index else { continue };
        let said = ["message", "kind", "missing", "rule_labels"];
        let why = said.iter().map(|name| &entry[*name]).find(|value| !value.is_null());
        let why = why.map_or_else(String::new, |why| match why {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        text.push_str(&format!("\n  {}: {why}", line(index)));
    }
    let field = error["field"].as_str().and_then(|field| field.strip_prefix("items["));
    let index = field.and_then(|rest| rest.split(']').next()?.parse().ok());
    if let Some(index) = index {
        text.push_str(&format!("\n  {}", line(index)));
    }
    text
}

/// Whether the results can be written down here later; what an earlier run wrote stays meanwhile.
fn writable(results: &Path) -> Result<(), StartError> {
    let is_new = !results.exists();
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(results)
        .and_then(|_| if is_new { std::fs::remove_file(results) } else { Ok(()) })
        .map_err(|cause| format!("--results {}: {cause}", results.display()).into())
}

/// Follows batches until they are over, and writes down how each row ended; answers how many are
/// paid.
async fn follow(api: &Api, taken: &[Taken], results: &Path) -> Result<usize, StartError> {
    let all: usize = taken.iter().map(|taken| taken.items.len()).sum();
    let bar = bar(all, "have ended");
    let mut waits = None;
    loop {
        let (mut ended, mut open) = (0, 0);
        for Taken { batch, .. } in taken {
            let shown = asked(api, &format!("/v1/batches/{batch}")).await?;
            let in_flight = shown["in_flight_count"].as_u64().unwrap_or_default();
            ended += shown["total_count"].as_u64().unwrap_or_default() - in_flight;
            match waits_for_a_person(&shown) {
                Some(reference) => waits = Some(reference),
                None => open += in_flight,
            }
        }
        bar.set_position(ended);
        if open == 0 {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    bar.finish_and_clear();
    let paid = write_results(api, taken, results).await?;
    match waits {
        Some(batch) => Err(format!(
            "{batch} waits for a second person; run the same command again when it is approved"
        )
        .into()),
        None => Ok(paid),
    }
}

/// How long a host that has failed so often before is left alone.
fn pause(tries: u32, trouble: &Trouble) -> Duration {
    trouble.retry_after().max((PAUSE.0 * 2_u32.pow(tries)).min(PAUSE_MAX))
}

/// The reference of a batch that goes on only when somebody has looked at it.
fn waits_for_a_person(shown: &Value) -> Option<String> {
    let waits = matches!(shown["status"].as_str(), Some("awaiting_approval" | "flagged_held"));
    shown["reference"].as_str().filter(|_| waits).map(str::to_owned)
}

/// Reads something, whoever is in the way for a moment.
async fn asked(api: &Api, path: &str) -> Result<Value, StartError> {
    let mut tries = 0;
    loop {
        match api.get(path).await {
            Ok(answered) => return Ok(answered.body),
            Err(trouble) if trouble.may_pass() && tries < PAUSE.1 => {
                tokio::time::sleep(pause(tries, &trouble)).await;
                tries += 1;
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
}

const RESULTS: [&str; 10] = [
    "batch_id",
    "id",
    "merchant_reference",
    "recipient_account",
    "recipient_bank_code",
    "recipient_name",
    "amount_minor",
    "status",
    "failure_code",
    "failure_message",
];

async fn write_results(api: &Api, taken: &[Taken], results: &Path) -> Result<usize, StartError> {
    let file = new_private(results).map_err(|cause| format!("{}: {cause}", results.display()))?;
    let mut writer = quoted(file);
    writer.write_record(RESULTS)?;
    let mut paid = 0;
    for Taken { batch, .. } in taken {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/batches/{batch}/items?limit=100{after}");
            let page = asked(api, &path).await?;
            let data = page["data"].as_array().cloned().unwrap_or_default();
            if let Some(id) = data.last().and_then(|item| item["id"].as_str()) {
                after = format!("&starting_after={id}");
            }
            let is_last = data.is_empty() || page["has_more"] != true;
            items.extend(data);
            if is_last {
                break;
            }
        }
        // Lists begin with the last one.
        for item in items.iter().rev() {
            let is_paid = matches!(item["status"].as_str(), Some("paid" | "paid_manual"));
            paid += usize::from(is_paid);
            // Banks, networks and others wrote some of it.
            let cells =
                RESULTS.map(|name| harmless(item[name].as_str().unwrap_or_default().to_owned()));
            writer.write_record(&cells)?;
        }
    }
    writer.flush()?;
    Ok(paid)
}
