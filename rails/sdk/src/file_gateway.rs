//! A bank's gateway for files: delivering one under its name, looking for it, and fetching what
//! lies ready from a list with cursors. The calls are named `deliver`, `look`, `list` and `fetch`,
//! the secret `api_key`.

use serde::Deserialize;

use crate::host;
use crate::imports::http::{Failure, Response};
use crate::request::{self, Parameter, Request, parameter, secret, text};
use crate::strict::Object;
use crate::types::{Arrival, Delivery, File, Finding, Presence, Refusal};
use crate::wording::{plain, speaks_of_a_copy};

/// The feed of what the bank has for us.
pub const FEED: &str = "incoming";

/// Files that one call fetches. With the list before them these stay below the four requests that
/// the host lets a call make.
const FETCHES_MAX: usize = 2;

/// What stands in place of a file that is listed and cannot be had. It is read as nothing, so that
/// a person looks, and what comes after it does not wait.
const UNFETCHABLE: &[u8] = b"unfetchable";

/// The longest name of a file of the bank's that is fetched.
const SEGMENT_MAX: usize = 200;

/// The longest cursor that is kept.
const CURSOR_MAX: usize = 200;

/// The longest code, and the longest message, that are shown.
const CODE_MAX: usize = 40;
const MESSAGE_MAX: usize = 300;

/// Why an answer proves nothing that does not name the file.
const OTHER: &str = "the gateway speaks of another file, or of none";

/// What one bank's gateway has of its own.
#[derive(Clone, Copy, Debug)]
pub struct FileGateway {
    /// The type of a file's content.
    pub content_type: &'static str,
    /// The codes with which it refuses a file: nothing of it is carried out.
    pub refuses: &'static [&'static str],
    /// Whether an answer that it took a file, or has it, names this one.
    pub names: fn(&File, &[u8]) -> bool,
}

/// How a gateway says what is wrong, in its own words. They are for comparing: what is shown is
/// made [`plain`] first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// A word for machines.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

#[derive(Debug, Deserialize)]
struct Listing {
    files: Vec<Object<Listed>>,
}

/// A file that lies ready.
#[derive(Debug, Deserialize)]
struct Listed {
    cursor: String,
    name: String,
}

impl FileGateway {
    /// Delivers a file. The same bytes under the same name may be delivered again: the gateway says
    /// that it has them. Another file of ours under the name or the number is for a person to look
    /// at, and so is what the gateway says in words that are not documented. Only the gateway
    /// itself is believed: what stands in front of it may have passed the file on.
    #[must_use]
    pub fn deliver(&self, file: &File) -> Delivery {
        let mut headers = authorization();
        headers.push(parameter("Content-Type", [text(self.content_type)]));
        let request = Request {
            path: file.name.clone(),
            headers,
            body: vec![text(file.content.clone())],
            ..request::call("deliver")
        };
        let response = match host::send(&request) {
            Ok(response) => response,
            Err(Failure::NotSent(why)) => return Delivery::NotTaken(why),
            Err(Failure::NoAnswer(why)) => return Delivery::Unknown(why),
        };
        let fault = fault(&response);
        let said = sentence(response.status, fault.as_ref());
        match (response.status, fault) {
            (200 | 201, _) if (self.names)(file, &response.body) => Delivery::Taken,
            (200 | 201, _) => Delivery::Unknown(OTHER.to_owned()),
            (401 | 403 | 429 | 503, Some(_)) => Delivery::NotTaken(said),
            (413 | 422, Some(fault)) => match refusal(self.refuses, &fault.code, &fault.message) {
                Some(why) => Delivery::Refused(why),
                None => Delivery::Unknown(said),
            },
            _ => Delivery::Unknown(said),
        }
    }

    /// Looks for a file. Only the gateway itself is believed: a path that is not there is no answer.
    #[must_use]
    pub fn look(&self, file: &File) -> Presence {
        let request =
            Request { path: file.name.clone(), headers: authorization(), ..request::call("look") };
        let response = match host::send(&request) {
            Ok(response) => response,
            Err(failure) => return Presence::Unknown(request::why(failure)),
        };
        match (response.status, fault(&response)) {
            (200, _) if (self.names)(file, &response.body) => Presence::Present,
            (200, _) => Presence::Unknown(OTHER.to_owned()),
            (404, Some(_)) => Presence::Absent,
            (status, fault) => Presence::Unknown(sentence(status, fault.as_ref())),
        }
    }
}

/// What lies ready after a cursor, in order: as many files as one call can fetch.
///
/// # Errors
/// The list or its first file could not be fetched. What comes after a file that could not be
/// fetched waits for it; not so where the gateway itself does not have it, or where no path can
/// hold its name.
pub fn poll(feed: &str, after: &str) -> Result<Vec<Arrival>, String> {
    check_feed(feed)?;
    let mut arrivals = Vec::new();
    for Object(listed) in list(after)?.into_iter().take(FETCHES_MAX) {
        match fetch(listed, after) {
            Ok(arrival) => arrivals.push(arrival),
            Err(why) if arrivals.is_empty() => return Err(why),
            Err(why) => {
                host::warn(&format!("fetching stopped: {why}"));
                break;
            }
        }
    }
    Ok(arrivals)
}

/// Whether there is anything to read in what arrived.
///
/// # Errors
/// It is of no feed of the gateway's, or the gateway listed it and did not have it.
pub fn check_readable(feed: &str, content: &[u8]) -> Result<(), String> {
    check_feed(feed)?;
    match content == UNFETCHABLE {
        true => Err("the gateway listed it, and it could not be fetched".to_owned()),
        false => Ok(()),
    }
}

fn check_feed(feed: &str) -> Result<(), String> {
    if feed == FEED { Ok(()) } else { Err(format!("there is no feed {feed}")) }
}

fn list(after: &str) -> Result<Vec<Object<Listed>>, String> {
    let request = Request {
        query: vec![parameter("after", [text(after)])],
        headers: authorization(),
        ..request::call("list")
    };
    let response = host::send(&request).map_err(request::why)?;
    if response.status != 200 {
        return Err(sentence(response.status, fault(&response).as_ref()));
    }
    let Object(listing) = serde_json::from_slice::<Object<Listing>>(&response.body)
        .map_err(|cause| format!("the gateway's list cannot be read: {cause}"))?;
    Ok(listing.files)
}

fn fetch(listed: Listed, after: &str) -> Result<Arrival, String> {
    let Listed { cursor, name } = listed;
    if cursor.is_empty() || cursor.len() > CURSOR_MAX || cursor == after {
        return Err("the gateway's list has a cursor that leads nowhere".to_owned());
    }
    if !is_segment(&name) {
        return Ok(unfetchable(cursor, &name, "no path can hold its name"));
    }
    let request =
        Request { path: name.clone(), headers: authorization(), ..request::call("fetch") };
    let response = host::send(&request).map_err(request::why)?;
    let fault = fault(&response);
    let said = sentence(response.status, fault.as_ref());
    match (response.status, fault) {
        (200, _) => Ok(Arrival { cursor, name, content: response.body }),
        (404, Some(_)) => Ok(unfetchable(cursor, &name, &said)),
        _ => Err(format!("{name}: {said}")),
    }
}

fn unfetchable(cursor: String, name: &str, why: &str) -> Arrival {
    let name = plain(name, SEGMENT_MAX);
    host::warn(&format!("{name} is listed and cannot be fetched: {why}"));
    Arrival { cursor, name, content: UNFETCHABLE.into() }
}

/// Whether a name can be the last segment of a path: of what stands in one as it is (RFC 3986,
/// section 3.3), and no way out of the folder. The host takes nothing that is encoded.
fn is_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte);
    let is_short = (1..=SEGMENT_MAX).contains(&text.len());
    is_short && text.bytes().all(is_plain) && text != "." && !text.contains("..")
}

/// What every request shows.
#[must_use]
pub fn authorization() -> Vec<Parameter> {
    vec![parameter("Authorization", [text("Bearer "), secret("api_key")])]
}

/// The gateway's own error, if the answer is one.
#[must_use]
pub fn fault(response: &Response) -> Option<Fault> {
    let Object(fault) = serde_json::from_slice::<Object<Fault>>(&response.body).ok()?;
    (!plain(&fault.code, CODE_MAX).is_empty()).then_some(fault)
}

/// An answer in a sentence for the operator.
#[must_use]
pub fn sentence(status: u16, fault: Option<&Fault>) -> String {
    let said = fault.map(|it| plain(&it.code, CODE_MAX));
    let said = said.unwrap_or_else(|| "and nothing that says more".to_owned());
    format!("the gateway answered HTTP {status}, {said}")
}

/// The refusal that a code is, if it is one for good: one of these, letter for letter. A bank that
/// has something already, under whatever code and in whatever language, may be carrying it out: a
/// code that is not listed proves nothing, and neither does one beside a word of an earlier copy.
#[must_use]
pub fn refusal(listed: &[&str], code: &str, message: &str) -> Option<Refusal> {
    let refuses = listed.contains(&code) && !speaks_of_a_copy(message);
    refuses.then(|| Refusal { code: code.to_owned(), message: said(message) })
}

/// What a rejection in a report proves: that nothing is carried out, if its code is one of these.
#[must_use]
pub fn rejection(listed: &[&str], code: Option<&str>, message: Option<&str>) -> Finding {
    let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
    if let Some(why) = refusal(listed, code, message) {
        return Finding::Refused(why);
    }
    let shown = plain(code, CODE_MAX);
    let code = if shown.is_empty() { "no code" } else { &shown };
    Finding::Unknown(format!("rejected, which proves nothing with {code}: {}", said(message)))
}

fn said(message: &str) -> String {
    let message = plain(message, MESSAGE_MAX);
    if message.is_empty() { "The bank gave no reason".to_owned() } else { message }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "file_gateway_tests.rs"]
mod tests;
