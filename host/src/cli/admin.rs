//! `railhead admin`: the operator's API from the command line.

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::config::Config;
use crate::id::IdGenerator;
use crate::start::StartError;

use super::account::unanswered;
use super::cases::{self, Alert, Batch, Case, Quarantine};
use super::files::{self, File, Window};
use super::merchants::{Key, Merchant, key, merchant};
use super::rates::{self, Rate};
use super::say;
use super::settlement::{Settlement, settlement};
use super::team::{self, Member};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Admin {
    /// The host's address; that of the configuration if left out.
    #[arg(long, global = true, value_name = "URL", value_parser = crate::cli::account::http_url)]
    url: Option<String>,
    /// Makes a call that moves money safe to repeat: give the same key again. A new one is made
    /// and printed on stderr if left out.
    #[arg(long, global = true, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(subcommand)]
    command: AdminCommand,
}

#[derive(Subcommand)]
enum AdminCommand {
    /// Merchants.
    #[command(subcommand)]
    Merchant(Merchant),
    /// API keys.
    #[command(subcommand)]
    Key(Key),
    /// Members of merchants' teams.
    #[command(subcommand)]
    Member(Member),
    /// Wallets.
    #[command(subcommand)]
    Wallet(Wallet),
    /// Payouts.
    Payout {
        /// What to do.
        action: PayoutAction,
        /// The payout's id or po_ reference.
        id: String,
        /// Why, for the audit log.
        #[arg(long)]
        reason: Option<String>,
        /// What shows how it ended; required for marking.
        #[arg(long)]
        evidence: Option<String>,
        /// What the network is told of a recall, such as `duplicate` or `fraud`.
        #[arg(long)]
        reason_code: Option<String>,
        /// A member's one-time code, where their merchant demands one for approvals.
        #[arg(long)]
        otp: Option<String>,
    },
    /// Batches that wait for a second person.
    #[command(subcommand)]
    Batch(Batch),
    /// Routes.
    #[command(subcommand)]
    Route(Route),
    /// Blacklists.
    #[command(subcommand)]
    Blacklist(Blacklist),
    /// What needs a person.
    #[command(subcommand)]
    Case(Case),
    /// When files of payments close.
    #[command(subcommand)]
    Window(Window),
    /// Files of payments.
    #[command(subcommand)]
    File(File),
    /// What currencies cost in one another, and the platform's positions.
    #[command(subcommand)]
    Rate(Rate),
    /// Whether live payments are held back because the database may have forgotten something.
    #[command(subcommand)]
    Quarantine(Quarantine),
    /// What an operator has to look at.
    #[command(subcommand)]
    Alert(Alert),
    /// What people were told: alerts, invitations, receipts.
    Notifications {
        /// `queued`, `sent` or `given_up`.
        #[arg(long)]
        status: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Differences between banks' statements and the books.
    #[command(subcommand)]
    Settlement(Settlement),
    /// The audit log, newest first.
    Audit(PageArgs),
    /// Payouts that wait for somebody, newest first.
    Waiting {
        /// `draft` or `awaiting_admin_review`.
        #[arg(long)]
        status: Option<String>,
        /// Only those of this merchant.
        #[arg(long)]
        merchant: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Payouts that are queued or processing, oldest first, and what each waits for.
    UnderWay {
        /// `test` or `live`.
        #[arg(long)]
        env: Option<String>,
        /// Only those of this merchant.
        #[arg(long)]
        merchant: Option<String>,
        /// Only those that go over this route, by its name or its id.
        #[arg(long)]
        route: Option<String>,
        /// Only those that were queued before: an instant or a day.
        #[arg(long, value_name = "INSTANT")]
        queued_before: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// What waits for more people, newest first.
    Approvals(PageArgs),
    /// Refuse what waits for more people.
    Refuse {
        /// The approval request's id.
        id: String,
        /// Why, for the audit log.
        #[arg(long)]
        reason: String,
    },
    /// Loaded rails.
    Rails,
    /// Active rule packs.
    RulePacks,
}

/// Which page of a list.
#[derive(Args)]
pub(super) struct PageArgs {
    /// How many, 1 to 100; 50 if left out.
    #[arg(long)]
    limit: Option<String>,
    /// The last id of the page before.
    #[arg(long, value_name = "ID")]
    starting_after: Option<String>,
}

#[derive(Subcommand)]
enum Wallet {
    /// List a merchant's wallets.
    List {
        /// The merchant's id.
        merchant: String,
    },
    /// Show a wallet: whose it is, and what it holds.
    Show {
        /// The wallet's id.
        id: String,
    },
    /// Credit a wallet.
    Credit(Movement),
    /// Debit a wallet.
    Debit(Movement),
    /// Refuse debits of a wallet.
    Freeze {
        /// The wallet's id.
        id: String,
        /// Why, for the audit log.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Allow debits of a wallet again.
    Unfreeze {
        /// The wallet's id.
        id: String,
        /// Why, for the audit log.
        #[arg(long)]
        reason: Option<String>,
    },
}

#[derive(Args)]
struct Movement {
    /// The wallet's id.
    id: String,
    /// How much, in minor units.
    #[arg(long)]
    amount_minor: String,
    /// Why, for the audit log and the wallet's statement.
    #[arg(long)]
    reason: String,
    /// The ledger source, if not the usual one.
    #[arg(long)]
    source: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum PayoutAction {
    Show,
    Timeline,
    Approve,
    Decline,
    Cancel,
    Release,
    Reject,
    MarkPaid,
    MarkFailed,
    Reverse,
    Recall,
}

#[derive(Subcommand)]
enum Route {
    /// List routes.
    List,
    /// Create a route, given as a JSON object.
    Create {
        /// For example '{"name":"ngn_backup","env":"live","currency":"NGN","rail":"nip"}'.
        route: String,
    },
    /// Show a route.
    Show {
        /// The route's id, or the name of a live one.
        id: String,
    },
    /// Delete a route that no payment ever used; pause any other.
    Delete {
        /// The route's id, or the name of a live one.
        id: String,
    },
    /// Change a route, given as a JSON object. Settings are merged; null takes one away.
    Set {
        /// The route's id, or the name of a live one.
        id: String,
        /// For example '{"settings":{"throttle.per_second":"20"}}'.
        changes: String,
    },
    /// Take no new payouts on a route.
    Pause {
        /// The route's id, or the name of a live one.
        id: String,
    },
    /// Take payouts on a route again.
    Resume {
        /// The route's id, or the name of a live one.
        id: String,
    },
}

#[derive(Subcommand)]
enum Blacklist {
    /// List entries, newest first.
    List(PageArgs),
    /// Block a recipient, given as a JSON object.
    Add {
        /// For example '{"scope":"platform","currency":"NGN","bank_code":"058",
        /// "account_number":"0123456785","reason":"fraud"}'.
        entry: String,
    },
    /// Unblock a recipient.
    Remove {
        /// The entry's id.
        id: String,
    },
}

impl Admin {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let base = self.url.unwrap_or_else(|| config.operators_url());
        let token = token(config)?;
        if let AdminCommand::File(File::Content { id, output }) = &self.command {
            let bytes = fetch((&base, token), &format!("files/{id}/content")).await?;
            return files::write(output.as_deref(), &bytes);
        }
        let idempotency_key = match (&self.command, self.idempotency_key) {
            (_, Some(key)) => Some(key),
            (command, None) if command.takes_key() => Some(fresh_key()?),
            _ => None,
        };
        let (method, path, body) = request(self.command)?;
        let answer =
            send_with_key((&base, token), (method, &path), (body, idempotency_key)).await?;
        if answer["status"] == "awaiting_approval" && answer["object"] == "approval_request" {
            let asked = answer["approvals"].as_array().map_or(0, Vec::len);
            super::warn(format_args!(
                "nothing has happened yet: {asked} of {} people have asked for this; the next one \
                 gives the same command before {}",
                answer["people"],
                answer["expires_at"].as_str().unwrap_or_default()
            ));
        }
        say(serde_json::to_string_pretty(&answer)?);
        Ok(())
    }
}

impl AdminCommand {
    /// Whether the call takes an idempotency key.
    fn takes_key(&self) -> bool {
        match self {
            Self::Wallet(command) => matches!(command, Wallet::Credit(_) | Wallet::Debit(_)),
            Self::File(command) => matches!(command, File::Deliver { .. }),
            Self::Batch(command) => {
                matches!(command, Batch::Approve { .. } | Batch::Reject { .. } | Batch::Hold { .. })
            }
            Self::Payout { action, .. } => {
                !matches!(action, PayoutAction::Show | PayoutAction::Timeline)
            }
            _ => false,
        }
    }
}

/// A key of this call's own, said on stderr so that the call can be repeated under it.
fn fresh_key() -> Result<String, StartError> {
    let key = IdGenerator::new(Clock::System)?.secret();
    super::warn(format_args!("to repeat this call safely, add --idempotency-key {key}"));
    Ok(key)
}

pub(super) type Request = (Method, String, Option<Value>);

fn request(command: AdminCommand) -> Result<Request, StartError> {
    Ok(match command {
        AdminCommand::Merchant(command) => merchant(command)?,
        AdminCommand::Key(command) => key(command)?,
        AdminCommand::Wallet(command) => wallet(command),
        AdminCommand::Member(command) => team::member(command)?,
        AdminCommand::Payout { action: PayoutAction::Show, id, .. } => {
            (Method::GET, format!("payouts/{id}"), None)
        }
        AdminCommand::Payout { action: PayoutAction::Timeline, id, .. } => {
            (Method::GET, format!("payouts/{id}/timeline"), None)
        }
        AdminCommand::Payout { action, id, reason, evidence, reason_code, otp } => {
            let action = action.to_possible_value().map(|value| value.get_name().to_owned());
            let path = format!("payouts/{id}/{}", action.unwrap_or_default());
            let body = object([
                ("reason", json!(reason)),
                ("evidence", json!(evidence)),
                ("reason_code", json!(reason_code)),
                ("otp", json!(otp)),
            ]);
            (Method::POST, path, Some(body))
        }
        AdminCommand::Batch(command) => cases::batch(command)?,
        AdminCommand::Route(command) => route(command)?,
        AdminCommand::Blacklist(command) => blacklist(command)?,
        AdminCommand::Case(command) => cases::case(command)?,
        AdminCommand::Rate(command) => rates::rate(command)?,
        AdminCommand::Window(command) => files::window(command),
        AdminCommand::File(command) => files::file(command)?,
        AdminCommand::Quarantine(command) => cases::quarantine(command),
        AdminCommand::Alert(command) => cases::alert(command)?,
        AdminCommand::Notifications { status, page } => {
            (Method::GET, paged("notifications", page, [("status", status)])?, None)
        }
        AdminCommand::Settlement(command) => settlement(command)?,
        AdminCommand::Audit(page) => (Method::GET, paged("audit", page, [])?, None),
        AdminCommand::Waiting { status, merchant, page } => {
            let filters = [("status", status), ("merchant_id", merchant)];
            (Method::GET, paged("payouts", page, filters)?, None)
        }
        AdminCommand::UnderWay { env, merchant, route, queued_before, page } => {
            let filters = [
                ("env", env),
                ("merchant_id", merchant),
                ("route", route),
                ("queued_before", queued_before),
            ];
            (Method::GET, paged("payouts/under_way", page, filters)?, None)
        }
        AdminCommand::Approvals(page) => (Method::GET, paged("approval_requests", page, [])?, None),
        AdminCommand::Refuse { id, reason } => {
            let body = object([("reason", json!(reason))]);
            (Method::POST, format!("approval_requests/{id}/refuse"), Some(body))
        }
        AdminCommand::Rails => (Method::GET, "rails".to_owned(), None),
        AdminCommand::RulePacks => (Method::GET, "rule-packs".to_owned(), None),
    })
}

fn wallet(command: Wallet) -> Request {
    let movement = |action: &str, movement: Movement| {
        let body = object([
            ("amount_minor", json!(movement.amount_minor)),
            ("reason", json!(movement.reason)),
            ("source", json!(movement.source)),
        ]);
        (Method::POST, format!("wallets/{}/{action}", movement.id), Some(body))
    };
    let freezing = |action: &str, id: String, reason: Option<String>| {
        let body = object([("reason", json!(reason))]);
        (Method::POST, format!("wallets/{id}/{action}"), Some(body))
    };
    match command {
        Wallet::List { merchant } => (Method::GET, format!("merchants/{merchant}/wallets"), None),
        Wallet::Show { id } => (Method::GET, format!("wallets/{id}"), None),
        Wallet::Credit(credit) => movement("credit", credit),
        Wallet::Debit(debit) => movement("debit", debit),
        Wallet::Freeze { id, reason } => freezing("freeze", id, reason),
        Wallet::Unfreeze { id, reason } => freezing("unfreeze", id, reason),
    }
}

fn route(command: Route) -> Result<Request, StartError> {
    let paused = |id: String, is_paused: Value| {
        let body = object([("is_paused", is_paused)]);
        (Method::PATCH, format!("routes/{id}"), Some(body))
    };
    Ok(match command {
        Route::List => (Method::GET, "routes".to_owned(), None),
        Route::Show { id } => (Method::GET, format!("routes/{id}"), None),
        Route::Delete { id } => (Method::DELETE, format!("routes/{id}"), None),
        Route::Create { route } => (Method::POST, "routes".to_owned(), Some(json_object(&route)?)),
        Route::Set { id, changes } => {
            (Method::PATCH, format!("routes/{id}"), Some(json_object(&changes)?))
        }
        Route::Pause { id } => paused(id, json!(true)),
        Route::Resume { id } => paused(id, json!(false)),
    })
}

fn blacklist(command: Blacklist) -> Result<Request, StartError> {
    Ok(match command {
        Blacklist::List(page) => (Method::GET, paged("blacklist", page, [])?, None),
        Blacklist::Add { entry } => {
            (Method::POST, "blacklist".to_owned(), Some(json_object(&entry)?))
        }
        Blacklist::Remove { id } => (Method::DELETE, format!("blacklist/{id}"), None),
    })
}

/// A list's path, with the filters that were given.
pub(super) fn filtered<'a>(
    list: &str,
    filters: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> Result<String, StartError> {
    let given = filters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let url = reqwest::Url::parse_with_params("http://host", given)?;
    Ok(format!("{list}?{}", url.query().unwrap_or_default()))
}

/// A page of a list, with the filters that were given.
pub(super) fn paged<const N: usize>(
    list: &str,
    page: PageArgs,
    filters: [(&str, Option<String>); N],
) -> Result<String, StartError> {
    let page = [("limit", page.limit), ("starting_after", page.starting_after)];
    filtered(list, page.into_iter().chain(filters))
}

/// An object of the values that were given.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// An object that was given as JSON.
///
/// # Errors
/// It is none.
pub(super) fn json_object(text: &str) -> Result<Value, StartError> {
    let read: Result<Map<String, Value>, _> = serde_json::from_str(text);
    let why = |cause| format!("give a JSON object, such as '{{\"name\":\"value\"}}': {cause}");
    Ok(Value::Object(read.map_err(why)?))
}

/// Calls the operator's API.
///
/// # Errors
/// The host cannot be reached, or refuses; with its message.
pub(super) async fn send(
    (base, token): (&str, &SecretString),
    (method, path): (Method, &str),
    body: Option<Value>,
) -> Result<Value, StartError> {
    send_with_key((base, token), (method, path), (body, None)).await
}

/// The same with an idempotency key, if there is one.
async fn send_with_key(
    (base, token): (&str, &SecretString),
    (method, path): (Method, &str),
    (body, key): (Option<Value>, Option<String>),
) -> Result<Value, StartError> {
    let url = address(base, path);
    let mut request = reqwest::Client::new().request(method, &url);
    if let Some(body) = &body {
        request = request.json(body);
    }
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    answer(&url, request.bearer_auth(token.expose_secret())).await
}

/// Pushes a file to the operator's API.
///
/// # Errors
/// As for [`send`].
pub(super) async fn push(
    (base, token): (&str, &SecretString),
    path: &str,
    (content_type, file): (&str, Vec<u8>),
) -> Result<Value, StartError> {
    let url = address(base, path);
    let request = reqwest::Client::new().post(&url).header("content-type", content_type);
    answer(&url, request.body(file).bearer_auth(token.expose_secret())).await
}

/// Fetches what is no JSON from the operator's API.
async fn fetch(host: (&str, &SecretString), path: &str) -> Result<Vec<u8>, StartError> {
    Ok(open(host, (Method::GET, path)).await?.bytes().await?.to_vec())
}

/// Calls the operator's API for what is read as it comes.
///
/// # Errors
/// As for [`send`].
pub(super) async fn open(
    (base, token): (&str, &SecretString),
    (method, path): (Method, &str),
) -> Result<reqwest::Response, StartError> {
    let url = address(base, path);
    let request = reqwest::Client::new().request(method, &url).bearer_auth(token.expose_secret());
    let response = request.send().await.map_err(|cause| unanswered(&url, &cause))?;
    match response.status().is_success() {
        true => Ok(response),
        false => Err(refusal(&url, response).await),
    }
}

/// The operator's token.
///
/// # Errors
/// It is not configured.
pub(super) fn token(config: &Config) -> Result<&SecretString, StartError> {
    let token = config.operator_token.as_ref();
    let token = token.filter(|token| !token.expose_secret().is_empty());
    token.ok_or_else(|| {
        "set RAILHEAD_OPERATOR_TOKEN to the operator's token, as `railhead serve` printed it".into()
    })
}

fn address(base: &str, path: &str) -> String {
    format!("{}/admin/v1/{path}", base.trim_end_matches('/'))
}

async fn answer(url: &str, request: reqwest::RequestBuilder) -> Result<Value, StartError> {
    let response = request.send().await.map_err(|cause| unanswered(url, &cause))?;
    match response.status().is_success() {
        true => Ok(response.json().await.map_err(|cause| format!("{url}: {cause}"))?),
        false => Err(refusal(url, response).await),
    }
}

/// What a refusal says.
async fn refusal(url: &str, response: reqwest::Response) -> StartError {
    let answer: Value = match response.json().await {
        Ok(answer) => answer,
        Err(cause) => return format!("{url}: {cause}").into(),
    };
    let error = &answer["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    let field = error["field"].as_str().map(|f| format!(" ({f})")).unwrap_or_default();
    let problems = error["detail"]["problems"].as_array().into_iter().flatten();
    let problems: String = problems
        .map(|p| {
            let part = |name: &str| p[name].as_str().unwrap_or_default().to_owned();
            format!("\n  {}: {}", part("at"), part("message"))
        })
        .collect();
    format!("{}: {}{field}{problems}", text("code"), text("message")).into()
}
