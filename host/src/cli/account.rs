//! A merchant's account, as the developer's commands speak to it.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use http::header::RETRY_AFTER;
use reqwest::{RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::auth::key::SHOWN_LENGTH;
use crate::config::Config;
use crate::start::StartError;

/// Longest wait for an ordinary answer: longer than the host's own deadline.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Arguments that say whose account it is, and where.
#[derive(Args)]
pub(super) struct Account {
    /// The merchant's key; `RAILHEAD_API_KEY` if left out.
    #[arg(long)]
    key: Option<SecretString>,
    /// The host's address; that of the configuration if left out.
    #[arg(long, value_name = "URL", value_parser = crate::cli::account::http_url)]
    url: Option<String>,
}

/// The merchants' API, with a key.
pub(super) struct Api {
    base: String,
    key: SecretString,
    client: reqwest::Client,
}

/// An answer and the id of the request for it.
pub(super) struct Answered {
    pub id: String,
    pub body: Value,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The host refuses.
    Refused {
        status: u16,
        code: String,
        message: String,
        retry_after: Option<Duration>,
        /// All that it says.
        error: Value,
    },
    /// The host cannot be reached.
    Unreachable(String),
}

impl Trouble {
    /// Whether asking again makes sense.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Unreachable(_) => true,
        }
    }

    /// Whether this says what became of an earlier try under the same idempotency key as well: the
    /// host has looked it up, and would have answered as it did then. What stands before the host, or
    /// turns a caller away at its door, has not.
    pub(super) fn knows_of_earlier_tries(&self) -> bool {
        match self {
            Self::Refused { status, error, .. } => match error["code"].as_str() {
                // It did not arrive whole, perhaps.
                None | Some("invalid_json") => false,
                Some("wallet_not_found") => true,
                Some(_) => matches!(status, 400 | 402 | 409 | 422),
            },
            Self::Unreachable(_) => false,
        }
    }

    /// How long the host asks to be left alone.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            Self::Unreachable(_) => Duration::ZERO,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, message, .. } => write!(f, "{code}: {message}"),
            Self::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

impl Account {
    /// Reads whose account it is.
    ///
    /// # Errors
    /// There is no key.
    pub(super) fn open(self, config: &Config) -> Result<Api, StartError> {
        let key = self.key.or_else(|| config.api_key.clone());
        let key =
            key.ok_or("give a key: --key sk_test_…, or RAILHEAD_API_KEY in the environment")?;
        if !key.expose_secret().chars().all(|c| c.is_ascii_graphic()) {
            return Err(
                "the key holds a character that no key has, such as a space or a line break".into(),
            );
        }
        let base = self.url.unwrap_or_else(|| config.public_url());
        let base = base.trim_end_matches('/').to_owned();
        Ok(Api { base, key, client: reqwest::Client::new() })
    }
}

impl Api {
    /// Whether the key opens the sandbox only.
    pub(super) fn is_test(&self) -> bool {
        self.key.expose_secret().starts_with("sk_test_")
    }

    /// Whose account it is, in words: the host, and what may be shown of the key.
    pub(super) fn name(&self) -> String {
        let key = self.key.expose_secret();
        format!("{} {}", self.base, key.get(..SHOWN_LENGTH).unwrap_or(key))
    }

    /// Reads something.
    pub(super) async fn get(&self, path: &str) -> Result<Answered, Trouble> {
        self.ask(self.client.get(self.at(path))).await
    }

    /// Makes something.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, Trouble> {
        let mut request = self.client.post(self.at(path)).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(self.ask(request).await?.body)
    }

    /// Opens the stream of events after one, or from now on.
    pub(super) async fn stream(&self, after: Option<&str>) -> Result<Response, Trouble> {
        let mut request = self.client.get(self.at("/v1/events/stream"));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        self.send(request).await
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Answered, Trouble> {
        let response = self.send(request.timeout(ANSWER_MAX)).await?;
        let id = response.headers().get("x-request-id").and_then(|id| id.to_str().ok());
        let id = id.unwrap_or_default().to_owned();
        let body = response.json().await.map_err(|cause| self.unreachable(&cause))?;
        Ok(Answered { id, body })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let sent = request.bearer_auth(self.key.expose_secret()).send().await;
        let response = sent.map_err(|cause| self.unreachable(&cause))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let body: Value = response.json().await.unwrap_or_default();
        let text = |name: &str| body["error"][name].as_str().map(str::to_owned);
        Err(Trouble::Refused {
            status: status.as_u16(),
            code: text("code").unwrap_or_else(|| status.to_string()),
            message: text("message").unwrap_or_default(),
            retry_after,
            error: body["error"].clone(),
        })
    }

    fn unreachable(&self, cause: &reqwest::Error) -> Trouble {
        Trouble::Unreachable(unanswered(&self.base, cause))
    }
}

/// An address that is given to a command.
///
/// # Errors
/// It is none of a host.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    match text.starts_with("http://") || text.starts_with("https://") {
        true => Ok(text.to_owned()),
        false => Err("begin with http:// or https://".to_owned()),
    }
}

/// Why there is no answer from an address, in words for somebody who may have to start a host.
pub(super) fn unanswered(url: &str, cause: &reqwest::Error) -> String {
    match cause.is_connect() {
        true => format!(
            "no host answers at {url} ({}): start one with `railhead serve`, or name another with \
             --url",
            innermost(cause)
        ),
        false => format!("{url}: {}", innermost(cause)),
    }
}

/// What really happened, without the layers around it.
pub(super) fn innermost(cause: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = cause;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Tells the developer something.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn say(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}
