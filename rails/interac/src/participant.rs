//! One request to the participant, and its answer.

use railhead_rail::host;
use railhead_rail::request::{self, Parameter, Part, Request, parameter, text, token};
use railhead_rail::strict::Object;

use crate::messages::Answer;

/// The call that moves money.
pub const PAYMENT: &str = "payment";
/// The call that asks what became of a transfer.
pub const STATUS: &str = "status";
/// The call that asks for a transfer to be cancelled.
pub const CANCEL: &str = "cancel";

/// An answer that can be read.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// What it says.
    pub answer: Answer,
}

impl Answered {
    /// An answer of no use, in a sentence for the operator. It holds no text of the answer.
    #[must_use]
    pub fn useless(&self) -> String {
        useless(self.status)
    }

    /// The codes of what is said about the request.
    #[must_use]
    pub fn codes(&self) -> Vec<&str> {
        let said = self.answer.notifications.as_deref().unwrap_or_default();
        said.iter().map(|Object(said)| said.code.as_str()).collect()
    }
}

/// Orders a transfer. The participant takes a reference once.
///
/// # Errors
/// A sentence on why there is no answer. The order may have been carried out all the same.
pub fn order(reference: &str, body: Vec<Part>) -> Result<Answered, String> {
    let once = parameter("Idempotency-Key", [text(reference)]);
    send(&Request { headers: with_body([once]), body, ..request::call(PAYMENT) })
}

/// Asks how a transfer stands.
///
/// # Errors
/// A sentence on why there is no answer.
pub fn ask(reference: &str) -> Result<Answered, String> {
    let path = reference.to_owned();
    send(&Request { path, headers: vec![authorization()], ..request::call(STATUS) })
}

/// Asks for a transfer to be cancelled.
///
/// # Errors
/// A sentence on why there is no answer. It may have been cancelled all the same.
pub fn cancel(reference: &str, body: Vec<Part>) -> Result<Answered, String> {
    let path = format!("{reference}/cancel");
    send(&Request { path, headers: with_body([]), body, ..request::call(CANCEL) })
}

fn with_body(more: impl IntoIterator<Item = Parameter>) -> Vec<Parameter> {
    let media_type = parameter("Content-Type", [text("application/json")]);
    [authorization(), media_type].into_iter().chain(more).collect()
}

fn authorization() -> Parameter {
    parameter("Authorization", [text("Bearer "), token("participant")])
}

fn send(request: &Request) -> Result<Answered, String> {
    let response = host::send(request).map_err(request::why)?;
    let status = response.status;
    let Object(answer) = serde_json::from_slice(&response.body).map_err(|_| useless(status))?;
    Ok(Answered { status, answer })
}

fn useless(status: u16) -> String {
    format!("the participant answered HTTP {status} and nothing that says more")
}
