//! One request to Daraja, and which of its answers are answers at all.

use railhead_rail::document::Document;
use railhead_rail::host;
use railhead_rail::json::Object;
use railhead_rail::request::{self, Request, parameter, text, token};

/// The call that moves money.
pub const PAYMENT: &str = "payment";
/// The call that asks what became of a payment.
pub const STATUS: &str = "status";

/// A readable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    body: Document,
}

/// Sends a message and reads the answer.
///
/// # Errors
/// A sentence on why there is no usable answer. The message may have been carried out all the
/// same.
pub fn ask(call: &str, body: Object) -> Result<Answer, String> {
    let request = Request {
        headers: vec![
            parameter("Authorization", [text("Bearer "), token("daraja")]),
            parameter("Content-Type", [text("application/json")]),
        ],
        body: body.finish(),
        ..request::call(call)
    };
    let response = host::send(&request).map_err(request::why)?;
    let status = response.status;
    match Document::read(&response.body) {
        Ok(body @ Document::Object(_)) => Ok(Answer { status, body }),
        _ => Err(format!("Daraja answered HTTP {status} and no JSON object")),
    }
}

impl Answer {
    /// The value of this member as text; an empty one without it.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.body.text(name).trim()
    }

    /// Whether the message was taken on.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        (200..300).contains(&self.status) && self.get("ResponseCode") == "0"
    }

    /// The answer in a sentence for the operator. It holds codes, and no text of the answer.
    #[must_use]
    pub fn sentence(&self) -> String {
        let code = match self.get("errorCode") {
            "" => self.get("ResponseCode"),
            code => code,
        };
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let code: String = code.chars().filter(plain).take(20).collect();
        format!("Daraja answered HTTP {} with the code {code:?}", self.status)
    }
}
