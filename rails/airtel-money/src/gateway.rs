//! One request to Airtel.

use railhead_rail::document::Document;
use railhead_rail::host;
use railhead_rail::request::{self, Parameter, Part, Request, parameter, text, token};

use crate::codes;

/// The call that moves money.
pub const PAYMENT: &str = "payment";
/// The call that asks what became of a payment.
pub const STATUS: &str = "status";

/// Where the wallets are, by ISO 3166, and what they hold.
const COUNTRY: &str = "KE";
/// ISO 4217.
pub const CURRENCY: &str = "KES";

/// An answer: its status, and the JSON object in it, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// What stands in the body; nothing where that is no JSON object.
    pub body: Document,
}

/// Sends a body.
///
/// # Errors
/// A sentence on why there is no answer. The request may have been carried out all the same.
pub fn post(call: &str, body: Vec<Part>) -> Result<Answer, String> {
    let content = parameter("Content-Type", [text("application/json")]);
    let headers = common().into_iter().chain([content]).collect();
    send(&Request { headers, body, ..request::call(call) })
}

/// Asks about what the path names.
///
/// # Errors
/// A sentence on why there is no answer.
pub fn get(call: &str, path: &str, query: Vec<Parameter>) -> Result<Answer, String> {
    let headers = common().into();
    send(&Request { path: path.to_owned(), query, headers, ..request::call(call) })
}

fn common() -> [Parameter; 4] {
    [
        parameter("Authorization", [text("Bearer "), token("airtel")]),
        parameter("Accept", [text("*/*")]),
        parameter("X-Country", [text(COUNTRY)]),
        parameter("X-Currency", [text(CURRENCY)]),
    ]
}

fn send(request: &Request) -> Result<Answer, String> {
    let response = host::send(request).map_err(request::why)?;
    let body = match Document::read(&response.body) {
        Ok(body @ Document::Object(_)) => body,
        _ => Document::Nothing,
    };
    Ok(Answer { status: response.status, body })
}

impl Answer {
    /// The response code: that of the product or, where there is none, the older one that all
    /// products have. Empty where there is neither.
    #[must_use]
    pub fn code(&self) -> &str {
        let status = self.body.get("status");
        match status.has("response_code") {
            true => status.text("response_code"),
            false => status.text("result_code"),
        }
    }

    /// The answer in a sentence for the operator. It holds Airtel's code, and no text of the answer.
    #[must_use]
    pub fn sentence(&self) -> String {
        let code = self.code();
        let meaning = codes::find(code).map_or("a code that is not known", |(_, meaning)| meaning);
        let code = codes::shown(code);
        format!("Airtel answered HTTP {} and {code:?}: {meaning}", self.status)
    }
}
