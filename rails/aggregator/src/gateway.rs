//! One request to the aggregator.

use railhead_rail::host;
use railhead_rail::request::{self, Part, Request, parameter, secret, text};
use railhead_rail::strict::Object;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::codes;

/// The call that moves money.
pub const PAYOUT: &str = "payout";
/// The call that asks what became of a payout.
pub const STATUS: &str = "status";
/// The call that asks in whose name a wallet is.
pub const NAME: &str = "name";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What stands in it.
    pub body: Vec<u8>,
}

/// What the aggregator says where it does not do what it was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Problem {
    /// The reference that the request named, where it is about a payout.
    #[serde(default)]
    pub reference: String,
    /// The wallet that the request named, where it is about a wallet.
    #[serde(default)]
    pub account: String,
    /// One of [`codes`].
    pub code: String,
    /// It has none: what has one says how a payout stands, and may say that it is paid.
    status: Option<IgnoredAny>,
}

/// Asks about what the path names.
///
/// # Errors
/// A sentence on why there is no answer.
pub fn get(call: &str, path: &str) -> Result<Answer, String> {
    let headers = vec![parameter("Authorization", bearer())];
    send(&Request { path: path.to_owned(), headers, ..request::call(call) })
}

/// Sends a JSON body; under a key by which it is done once, where one is given.
///
/// # Errors
/// A sentence on why there is no answer. The request may have been carried out all the same.
pub fn post(call: &str, key: Option<&str>, body: Vec<Part>) -> Result<Answer, String> {
    let mut headers = vec![
        parameter("Authorization", bearer()),
        parameter("Content-Type", [text("application/json")]),
    ];
    headers.extend(key.map(|key| parameter("Idempotency-Key", [text(key)])));
    send(&Request { headers, body, ..request::call(call) })
}

fn bearer() -> [Part; 2] {
    [text("Bearer "), secret("api_key")]
}

fn send(request: &Request) -> Result<Answer, String> {
    let response = host::send(request).map_err(request::why)?;
    Ok(Answer { status: response.status, body: response.body })
}

impl Answer {
    /// What is said to be wrong; an empty code where the answer is not such a document.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let read = serde_json::from_slice::<Object<Problem>>(&self.body);
        let problem = read.ok().map(|Object(problem)| problem);
        problem.filter(|problem| problem.status.is_none()).unwrap_or_default()
    }

    /// The answer in a sentence for the operator. It holds the code, and no text of the answer.
    #[must_use]
    pub fn sentence(&self) -> String {
        let code = codes::shown(&self.problem().code);
        format!("the aggregator answered HTTP {} and {code:?}", self.status)
    }
}
