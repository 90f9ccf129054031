//! One request to the sponsor bank's gateway. The host shows the certificate that it asks for.

use railhead_rail::host;
use railhead_rail::imports::http::Response;
use railhead_rail::request::{self, Request, parameter, secret, text};

/// The call that moves money.
pub const WIRE: &str = "wire";
/// The call that asks what became of a wire.
pub const STATUS: &str = "status";
/// The call that asks for a wire back.
pub const RECALL: &str = "recall";

/// Sends a message.
///
/// # Errors
/// A sentence on why there is no answer. The message may have been carried out all the same.
pub fn post(call: &str, message: String) -> Result<Response, String> {
    let request = Request {
        headers: vec![
            parameter("Authorization", [text("Bearer "), secret("api_key")]),
            parameter("Content-Type", [text("application/xml; charset=utf-8")]),
        ],
        body: vec![text(message)],
        ..request::call(call)
    };
    host::send(&request).map_err(request::why)
}
