//! The bank's file gateway: delivering a file, looking for it, and fetching what lies ready.

use railhead_rail::host;
use railhead_rail::imports::http::{Failure, Response};
use railhead_rail::request::{self, Parameter, Request, parameter, secret, text};
use railhead_rail::types::{Arrival, Delivery, File, Presence, Refusal};
use serde::Deserialize;

/// The feed of what the bank has for us.
pub const FEED: &str = "incoming";

/// Files that one call fetches. With the list before them these stay below the four requests that
/// the host lets a call make.
const FETCHES_MAX: usize = 2;

/// The longest name of a file.
pub const NAME_MAX: usize = 80;

/// What stands in place of a file that is listed and cannot be had. It is no report that can be
/// read, so that a person looks, and what comes after it does not wait.
const UNFETCHABLE: &str = "{\"report\":\"unfetchable\"}";

/// The longest name of a file of the bank's that is fetched.
const SEGMENT_MAX: usize = 200;

/// The longest cursor that is kept.
const CURSOR_MAX: usize = 200;

/// How the gateway says what is wrong.
#[derive(Debug, Deserialize)]
struct Fault {
    code: String,
    message: String,
}

/// What it knows of a file that was delivered.
#[derive(Debug, Deserialize)]
struct Known {
    name: String,
    reference_code: String,
}

#[derive(Debug, Deserialize)]
struct Listing {
    files: Vec<Listed>,
}

/// A file that lies ready.
#[derive(Debug, Deserialize)]
struct Listed {
    cursor: String,
    name: String,
}

/// Delivers a file. The same bytes under the same name may be delivered again: the gateway says
/// that it has them. Another file of ours under the name or the number is for a person to look at.
/// Only the gateway itself is believed: what stands in front of it may have passed the file on.
#[must_use]
pub fn deliver(file: &File) -> Delivery {
    let mut headers = authorization();
    headers.push(parameter("Content-Type", [text("text/plain; charset=us-ascii")]));
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
    match (response.status, fault(&response)) {
        (200 | 201, _) if is_known(file, &response) => Delivery::Taken,
        (200 | 201, _) => Delivery::Unknown(OTHER.to_owned()),
        (status @ (401 | 403 | 429 | 503), Some(fault)) => {
            Delivery::NotTaken(sentence(status, Some(fault)))
        }
        (413 | 422, Some(fault)) if !is_duplicate(&fault.code) => {
            Delivery::Refused(Refusal { code: fault.code, message: fault.message })
        }
        (status, fault) => Delivery::Unknown(sentence(status, fault)),
    }
}

/// Looks for a file. Only the gateway itself is believed: a path that is not there is no answer.
#[must_use]
pub fn look(file: &File) -> Presence {
    let request =
        Request { path: file.name.clone(), headers: authorization(), ..request::call("look") };
    let response = match host::send(&request) {
        Ok(response) => response,
        Err(failure) => return Presence::Unknown(request::why(failure)),
    };
    match (response.status, fault(&response)) {
        (200, _) if is_known(file, &response) => Presence::Present,
        (200, _) => Presence::Unknown(OTHER.to_owned()),
        (404, Some(_)) => Presence::Absent,
        (status, fault) => Presence::Unknown(sentence(status, fault)),
    }
}

/// Why an answer proves nothing that does not name the file.
const OTHER: &str = "the gateway speaks of another file, or of none";

/// Whether the gateway names this file, and its number.
fn is_known(file: &File, response: &Response) -> bool {
    let known = serde_json::from_slice::<Known>(&response.body);
    known.is_ok_and(|it| (it.name, it.reference_code) == (file.name.clone(), file.identity.clone()))
}

/// Whether a code of the bank's is one of those for what it has already: they refuse nothing.
#[must_use]
pub fn is_duplicate(code: &str) -> bool {
    code.to_ascii_lowercase().starts_with("duplicate")
}

/// What lies ready after a cursor, in order: as many files as one call can fetch.
///
/// # Errors
/// The list or its first file could not be fetched. What comes after a file that could not be
/// fetched waits for it; not so where the gateway itself does not have it, or where no path can
/// hold its name.
pub fn poll(feed: &str, after: &str) -> Result<Vec<Arrival>, String> {
    if feed != FEED {
        return Err(format!("there is no feed {feed}"));
    }
    let mut arrivals = Vec::new();
    for listed in list(after)?.into_iter().take(FETCHES_MAX) {
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

fn list(after: &str) -> Result<Vec<Listed>, String> {
    let request = Request {
        query: vec![parameter("after", [text(after)])],
        headers: authorization(),
        ..request::call("list")
    };
    let response = host::send(&request).map_err(request::why)?;
    if response.status != 200 {
        return Err(sentence(response.status, fault(&response)));
    }
    let listing: Listing = serde_json::from_slice(&response.body)
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
    match (response.status, fault(&response)) {
        (200, _) => Ok(Arrival { cursor, name, content: response.body }),
        (404, Some(fault)) => Ok(unfetchable(cursor, &name, &sentence(404, Some(fault)))),
        (status, fault) => Err(format!("{name}: {}", sentence(status, fault))),
    }
}

fn unfetchable(cursor: String, name: &str, why: &str) -> Arrival {
    let name = plain(name, SEGMENT_MAX);
    host::warn(&format!("{name} is listed and cannot be fetched: {why}"));
    Arrival { cursor, name, content: UNFETCHABLE.into() }
}

fn authorization() -> Vec<Parameter> {
    vec![parameter("Authorization", [text("Bearer "), secret("api_key")])]
}

/// Whether a name can be the last segment of a path: of what stands in one as it is (RFC 3986,
/// section 3.3), and no way out of the folder. The host takes nothing that is encoded.
fn is_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte);
    let is_short = (1..=SEGMENT_MAX).contains(&text.len());
    is_short && text.bytes().all(is_plain) && text != "." && !text.contains("..")
}

/// The gateway's own error, if the answer is one.
fn fault(response: &Response) -> Option<Fault> {
    let fault: Fault = serde_json::from_slice(&response.body).ok()?;
    let fault = Fault { code: plain(&fault.code, 40), message: plain(&fault.message, 300) };
    (!fault.code.is_empty()).then_some(fault)
}

/// A text of the bank's for people: printable, and not longer than this.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(most).collect::<String>().trim().to_owned()
}

fn sentence(status: u16, fault: Option<Fault>) -> String {
    match fault {
        Some(fault) => format!("the gateway answered HTTP {status}, {}", fault.code),
        None => format!("the gateway answered HTTP {status} without a reason"),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double;
    use railhead_rail::imports::http::{Failure, Response};
    use railhead_rail::request::{plain as bytes, secret, text};
    use railhead_rail::types::{Delivery, File, Presence};

    use super::{deliver, look, plain, poll};
    use crate::arrivals::read;
    use crate::fixtures;

    fn file() -> File {
        File {
            name: "ACH-20260306-00000042.ach".into(),
            identity: "00000042".into(),
            content: b"101 \n".to_vec(),
        }
    }

    fn fault(code: &str) -> String {
        format!("{{\"code\":\"{code}\",\"message\":\"why\"}}")
    }

    const KNOWN: &str = "{\"name\":\"ACH-20260306-00000042.ach\",\
                         \"reference_code\":\"00000042\",\"status\":\"received\"}";

    #[test]
    fn a_file_leaves_as_it_was_stored() {
        let sent = fixtures::gateway(Ok((201, KNOWN.to_owned())));
        assert_eq!(deliver(&file()), Delivery::Taken);
        let request = &sent.borrow()[0];
        assert_eq!((&*request.call, &*request.path), ("deliver", "ACH-20260306-00000042.ach"));
        assert_eq!(bytes(&request.body).as_deref(), Some(&b"101 \n"[..]));
        assert_eq!(request.headers[0].value, [text("Bearer "), secret("api_key")]);
        assert_eq!(request.headers[1].value, [text("text/plain; charset=us-ascii")]);
    }

    #[test]
    fn only_the_gateways_own_refusal_is_one() {
        let came = |status, body: String| {
            let _sent = fixtures::gateway(Ok((status, body)));
            deliver(&file())
        };
        assert_eq!(came(200, KNOWN.to_owned()), Delivery::Taken);
        let Delivery::Refused(why) = came(422, fault("invalid_file")) else { panic!("refused") };
        assert_eq!((&*why.code, &*why.message), ("invalid_file", "why"));
        for status in [401, 403, 429, 503] {
            let own = came(status, fault("later"));
            assert!(matches!(own, Delivery::NotTaken(_)), "{status}");
            for body in ["", "<html>", "{\"code\":\"later\"}"] {
                let came = came(status, body.to_owned());
                assert!(matches!(came, Delivery::Unknown(_)), "{status} {body}");
            }
        }
        for (status, body) in [
            (200, String::new()),
            (201, "{}".into()),
            (201, "{\"status\":\"received\"}".into()),
            (200, KNOWN.replace("00000042\",", "00000043\",")),
            (201, KNOWN.replace("ACH-20260306-00000042", "ACH-20260306-00000041")),
            (409, fault("duplicate_name")),
            (409, fault("duplicate_file")),
            (422, fault("duplicate_file")),
            (422, "<html>".into()),
            (422, "{\"code\":\"x\"}".into()),
            (422, fault("")),
            (400, fault("invalid_file")),
            (404, fault("invalid_file")),
            (500, fault("invalid_file")),
            (502, String::new()),
            (202, String::new()),
            (301, String::new()),
        ] {
            let came = came(status, body.clone());
            assert!(matches!(came, Delivery::Unknown(_)), "{status} {body}");
        }
        let _sent = fixtures::gateway(Err(Failure::NotSent("refused".into())));
        assert!(matches!(deliver(&file()), Delivery::NotTaken(_)));
        let _sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
        assert!(matches!(deliver(&file()), Delivery::Unknown(_)));
    }

    #[test]
    fn looking_believes_what_names_our_file() {
        let came = |status, body: &str| {
            let _sent = fixtures::gateway(Ok((status, body.to_owned())));
            look(&file())
        };
        assert_eq!(came(200, KNOWN), Presence::Present);
        assert_eq!(came(404, &fault("not_found")), Presence::Absent);
        for (status, body) in [
            (200, KNOWN.replace("00000042\",\"status", "00000043\",\"status")),
            (200, KNOWN.replace("ACH-20260306-00000042", "ACH-20260306-00000041")),
            (200, String::new()),
            (404, "not here".to_owned()),
            (403, fault("not_found")),
            (500, KNOWN.to_owned()),
        ] {
            assert!(matches!(came(status, &body), Presence::Unknown(_)), "{status} {body}");
        }
        let _sent = fixtures::gateway(Err(Failure::NotSent("refused".into())));
        assert!(matches!(look(&file()), Presence::Unknown(_)));
    }

    /// A gateway with files of these names; it does not have `gone`, and
    /// `down` stands for a gateway that cannot be reached.
    fn lying_ready(names: &[&str]) {
        let listed = names.iter().enumerate();
        let listed =
            listed.map(|(at, name)| format!("{{\"cursor\":\"c{at}\",\"name\":\"{name}\"}}"));
        let listing = format!("{{\"files\":[{}]}}", listed.collect::<Vec<_>>().join(","));
        let mut host = fixtures::host();
        host.send = Box::new(move |request| {
            let (status, body) = match &*request.call {
                "list" => (200, listing.clone()),
                _ if request.path == "gone" => (404, fault("not_found")),
                _ if request.path == "down" => (404, "no such site".to_owned()),
                _ => (200, format!("content of {}", request.path)),
            };
            Ok(Response { status, headers: Vec::new(), body: body.into_bytes() })
        });
        double::install(host);
    }

    #[test]
    fn what_lies_ready_comes_in_order_and_ends_where_one_fails() {
        lying_ready(&["a.ach", "b.json", "c.ach"]);
        let arrivals = poll("incoming", "").expect("files");
        let names: Vec<_> = arrivals.iter().map(|one| (&*one.cursor, &*one.name)).collect();
        assert_eq!(names, [("c0", "a.ach"), ("c1", "b.json")]);
        assert_eq!(arrivals[1].content, b"content of b.json");

        lying_ready(&["a.ach", "down"]);
        assert_eq!(poll("incoming", "").expect("the first").len(), 1);
        lying_ready(&["down", "a.ach"]);
        assert!(poll("incoming", "").is_err());
        lying_ready(&[]);
        assert_eq!(poll("incoming", "c9").as_deref(), Ok(&[][..]));
        assert!(poll("outgoing", "").is_err());
    }

    #[test]
    fn what_cannot_be_fetched_is_passed_over_and_reported() {
        let odd = ["gone", "../x", "a/b", "", "a b", "a?b", "a%b", "a@b", ".", "..", "café"];
        for name in odd.into_iter().chain([&*"x".repeat(201)]) {
            lying_ready(&[name, "a.ach"]);
            let arrivals = poll("incoming", "").expect("both");
            assert_eq!((&*arrivals[0].cursor, &*arrivals[1].cursor), ("c0", "c1"), "{name}");
            assert_eq!(arrivals[0].content, b"{\"report\":\"unfetchable\"}", "{name}");
            assert_eq!(arrivals[1].content, b"content of a.ach", "{name}");
            assert!(read("incoming", &arrivals[0].name, &arrivals[0].content).is_err());
        }
        for name in ["ACH(1)+2,a;b=c:d~!$&'*", &"x".repeat(200)] {
            lying_ready(&[name]);
            let arrivals = poll("incoming", "").expect("one");
            assert_eq!(arrivals[0].content, format!("content of {name}").into_bytes());
        }
    }

    #[test]
    fn cursors_that_lead_nowhere_are_not_followed() {
        lying_ready(&["a.ach"]);
        assert!(poll("incoming", "c0").is_err());
        for body in ["", "[]", "{\"files\":{}}", "{\"files\":[{\"name\":\"a\"}]}"] {
            let _sent = fixtures::gateway(Ok((200, body.into())));
            assert!(poll("incoming", "").is_err(), "{body}");
        }
        let _sent = fixtures::gateway(Ok((500, "{\"files\":[]}".into())));
        assert!(poll("incoming", "").is_err());
    }

    #[test]
    fn the_list_is_asked_for_with_the_cursor_as_it_came() {
        let sent = fixtures::gateway(Ok((200, "{\"files\":[]}".into())));
        poll("incoming", "a=b&c").expect("nothing");
        let request = &sent.borrow()[0];
        assert_eq!((&*request.call, &*request.query[0].name), ("list", "after"));
        assert_eq!(request.query[0].value, [text("a=b&c")]);
    }

    #[test]
    fn texts_of_the_banks_are_printable_and_short() {
        assert_eq!(plain(" a\nb\u{7}c ", 4), "a b");
    }
}
