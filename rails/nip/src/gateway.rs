//! One request to the gateway, and which of its answers are answers at all.

use railhead_rail::host;
use railhead_rail::request::{self, Request, parameter};

use crate::codes::{self, Class, Code};
use crate::xml::{self, Element};

/// The call that asks who holds an account.
pub const NAME_ENQUIRY: &str = "name_enquiry";
/// The call that moves money.
pub const TRANSFER: &str = "transfer";
/// The call that asks what became of a transfer.
pub const STATUS_QUERY: &str = "status_query";

/// A readable answer to one of our messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    element: Element,
    /// Two digits, if the network keeps to its own rules.
    pub code: String,
    is_success: bool,
}

/// Sends a message and reads the answer, a document with this root, to the message with
/// this SessionID.
///
/// # Errors
/// A sentence on why there is no usable answer. The message may have been received and
/// carried out all the same. It holds nothing of the answer's content.
pub fn ask(call: &str, body: Vec<u8>, root: &str, session: &str) -> Result<Answer, String> {
    let response = host::send(&request(call, body)).map_err(request::why)?;
    let status = response.status;
    if !may_carry_answer(status) {
        return Err(format!("the gateway answered HTTP {status}"));
    }
    let element = xml::read(&response.body, root)
        .map_err(|reason| format!("the gateway answered HTTP {status} and {reason}"))?;
    // Whatever an answer about another message says, it says nothing about ours.
    if element.get("SessionID") != session {
        return Err("the answer is not to this message: its SessionID differs".into());
    }
    let code = element.get("ResponseCode").to_owned();
    Ok(Answer { element, code, is_success: (200..300).contains(&status) })
}

fn request(call: &str, body: Vec<u8>) -> Request {
    let token = [request::text("Bearer "), request::secret("gateway_token")];
    Request {
        headers: vec![
            parameter("Authorization", token),
            parameter("Content-Type", [request::text("application/xml")]),
        ],
        body: vec![request::text(body)],
        ..request::call(call)
    }
}

/// A gateway that fails (5xx), is overloaded (429) or gave up waiting (408) may have passed
/// the message on before, whatever its body says. Any other 4xx may be a front that turned
/// the message away or a gateway that puts NIP's refusals under such a status; the body
/// decides, and without a NIP code in it the outcome stays unknown.
fn may_carry_answer(status: u16) -> bool {
    matches!(status, 200..=299 | 400..=499) && !matches!(status, 408 | 429)
}

impl Answer {
    /// The value of this element; an empty string without one.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.element.get(name)
    }

    /// What the answer's code proves, for the call that the column belongs to.
    pub fn class(&self, column: impl Fn(&Code) -> Class) -> Class {
        let class = codes::find(&self.code).map_or(Class::Unclear, column);
        // "Done" under an error status contradicts itself.
        let is_contradiction = !self.is_success && matches!(class, Class::Done | Class::Pending);
        if is_contradiction { Class::Unclear } else { class }
    }

    /// The answer in a sentence for the operator.
    #[must_use]
    pub fn sentence(&self) -> String {
        let plain: String = self.code.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
        let meaning = codes::meaning(&self.code);
        let status = if self.is_success { "" } else { " under an HTTP error" };
        format!("NIP answered {plain:?}{status}: {meaning}")
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::imports::http::Failure;
    use railhead_rail::request::{secret, text};

    use super::{Class, STATUS_QUERY, ask};
    use crate::fixtures;

    fn class_of(status: u16, body: &str) -> Result<Class, String> {
        fixtures::gateway(Ok((status, body.to_owned())));
        ask(STATUS_QUERY, Vec::new(), "A", "1").map(|answer| answer.class(|code| code.transfer))
    }

    #[test]
    fn the_request() {
        let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
        let reason = ask(STATUS_QUERY, b"<A/>".to_vec(), "A", "1").expect_err("no answer");
        assert_eq!(reason, "no answer: timeout");
        let request = &sent.borrow()[0];
        assert_eq!(request.call, STATUS_QUERY);
        let header = |name| request.headers.iter().find(|header| header.name == name);
        let value = |name| header(name).map(|header| header.value.as_slice());
        let token = [text("Bearer "), secret("gateway_token")];
        assert_eq!(value("Authorization"), Some(token.as_slice()));
        assert_eq!(value("Content-Type"), Some([text("application/xml")].as_slice()));
        assert_eq!(fixtures::body(&sent), "<A/>");
    }

    #[test]
    fn status_and_code_together() {
        let body =
            |code| format!("<A><SessionID>1</SessionID><ResponseCode>{code}</ResponseCode></A>");
        assert_eq!(class_of(200, &body("00")), Ok(Class::Done));
        assert_eq!(class_of(202, &body("09")), Ok(Class::Pending));
        assert_eq!(class_of(200, &body("")), Ok(Class::Unclear));
        assert_eq!(class_of(200, &body("ZZ")), Ok(Class::Unclear));
        for status in [400, 403, 404, 409, 422] {
            assert_eq!(class_of(status, &body("57")), Ok(Class::Refused), "{status}");
            assert_eq!(class_of(status, &body("00")), Ok(Class::Unclear), "{status}");
            assert_eq!(class_of(status, &body("09")), Ok(Class::Unclear), "{status}");
            assert!(class_of(status, "").is_err(), "{status}");
        }
        for status in [100, 301, 408, 429, 500, 502, 503, 504, 599] {
            assert!(class_of(status, &body("57")).is_err(), "{status}");
        }
    }

    #[test]
    fn answers_to_other_messages() {
        for session in ["", "<SessionID>2</SessionID>", "<SessionID>11</SessionID>"] {
            let body = format!("<A>{session}<ResponseCode>57</ResponseCode></A>");
            assert!(class_of(200, &body).is_err(), "{session}");
        }
        let other = "<B><SessionID>1</SessionID><ResponseCode>57</ResponseCode></B>";
        assert!(class_of(200, other).is_err());
    }

    #[test]
    fn a_sentence_holds_no_more_of_the_answer_than_a_code() {
        let code = "<b>22212345678</b> and more".replace('<', "&lt;");
        let body = format!("<A><SessionID>1</SessionID><ResponseCode>{code}</ResponseCode></A>");
        fixtures::gateway(Ok((200, body)));
        let answer = ask(STATUS_QUERY, Vec::new(), "A", "1").expect("an answer");
        assert_eq!(answer.sentence(), "NIP answered \"b2221234\": a code that NIP does not list");
    }
}
