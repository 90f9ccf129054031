//! One request to MTN.

use railhead_rail::document::Document;
use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::request::{self, Parameter, Part, Request, parameter, secret, text, token};

use crate::reasons;
use crate::settings::Settings;

/// The call that moves money.
pub const TRANSFER: &str = "transfer";
/// The call that asks what became of a transfer.
pub const STATUS: &str = "status";
/// The call that asks in whose name a wallet is.
pub const NAME: &str = "name";

/// An answer: its status, and the JSON object in it, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What stands in the body; nothing where that is no JSON object.
    pub body: Document,
}

/// Sends a request.
///
/// # Errors
/// A sentence on why there is no answer. The request may have been carried out all the same.
pub fn send(
    call: &str,
    path: &str,
    headers: Vec<Parameter>,
    body: Vec<Part>,
) -> Result<Answer, String> {
    let common = [
        parameter("Authorization", [text("Bearer "), token("momo")]),
        parameter("Ocp-Apim-Subscription-Key", [secret("subscription_key")]),
        parameter("X-Target-Environment", [text(Settings::read().target_environment)]),
    ];
    let request = Request {
        path: path.to_owned(),
        headers: common.into_iter().chain(headers).collect(),
        body,
        ..request::call(call)
    };
    let response = host::send(&request).map_err(request::why)?;
    Ok(Answer::read(&response))
}

impl Answer {
    fn read(response: &Response) -> Self {
        let body = match Document::read(&response.body) {
            Ok(body @ Document::Object(_)) => body,
            _ => Document::Nothing,
        };
        Self { status: response.status, body }
    }

    /// MTN's word for what is wrong with a request; empty where it gives none.
    #[must_use]
    pub fn code(&self) -> &str {
        self.body.text("code")
    }

    /// The answer in a sentence for the operator. It holds MTN's word, and no text of the answer.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("MTN answered HTTP {} and {:?}", self.status, reasons::shown(self.code()))
    }
}
