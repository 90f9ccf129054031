use serde::Deserialize;

use super::{FEED, FileGateway, check_readable, poll, refusal, rejection};
use crate::host::double::{self, Host, Sent};
use crate::imports::http::{Failure, Response};
use crate::request::{plain as bytes, secret, text};
use crate::strict::Object;
use crate::types::{Delivery, File, Finding, Presence};

const GATEWAY: FileGateway =
    FileGateway { content_type: "text/plain", refuses: &["invalid_file", "too_large"], names };

#[derive(Deserialize)]
struct Known {
    name: String,
}

fn names(file: &File, body: &[u8]) -> bool {
    let known = serde_json::from_slice::<Object<Known>>(body);
    known.is_ok_and(|Object(it)| it.name == file.name)
}

fn file() -> File {
    File { name: "a-42.txt".into(), identity: "42".into(), content: b"101 \n".to_vec() }
}

const KNOWN: &str = "{\"name\":\"a-42.txt\",\"status\":\"received\"}";

fn fault(code: &str) -> String {
    said(code, "why")
}

fn said(code: &str, message: &str) -> String {
    format!("{{\"code\":\"{code}\",\"message\":\"{message}\"}}")
}

fn answering(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(Host::default(), answer)
}

fn delivered(status: u16, body: &str) -> Delivery {
    let _sent = answering(Ok((status, body.to_owned())));
    GATEWAY.deliver(&file())
}

#[test]
fn a_file_leaves_as_it_was_stored() {
    let sent = answering(Ok((201, KNOWN.to_owned())));
    assert_eq!(GATEWAY.deliver(&file()), Delivery::Taken);
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.path), ("deliver", "a-42.txt"));
    assert_eq!(bytes(&request.body).as_deref(), Some(&b"101 \n"[..]));
    assert_eq!(request.headers[0].value, [text("Bearer "), secret("api_key")]);
    assert_eq!(request.headers[1].value, [text("text/plain")]);
}

#[test]
fn it_is_taken_where_the_answer_names_it() {
    for status in [200, 201] {
        assert_eq!(delivered(status, KNOWN), Delivery::Taken);
        let other = KNOWN.replace("a-42", "a-41");
        for body in ["", "{}", "[\"a-42.txt\",\"received\"]", &other] {
            assert!(matches!(delivered(status, body), Delivery::Unknown(_)), "{status} {body}");
        }
    }
    assert!(matches!(delivered(202, KNOWN), Delivery::Unknown(_)));
}

#[test]
fn only_a_listed_code_refuses() {
    for (status, code) in [(422, "invalid_file"), (413, "too_large")] {
        let Delivery::Refused(why) = delivered(status, &fault(code)) else { panic!("{code}") };
        assert_eq!((&*why.code, &*why.message), (code, "why"));
    }
    let duplicate_far_on = said("invalid_file", &format!("{:400}duplicate", ""));
    for (status, body) in [
        (400, fault("invalid_file")),
        (404, fault("invalid_file")),
        (409, fault("duplicate_name")),
        (409, fault("invalid_file")),
        (500, fault("invalid_file")),
        (422, fault("invalid_account")),
        (422, fault(" invalid_file")),
        (422, fault("invalid_file ")),
        (422, fault("INVALID_FILE")),
        (422, fault("")),
        (422, fault("duplicate_file")),
        (413, fault("already_received")),
        (422, said("4012", "Duplicate file ID modifier")),
        (422, said("REFERENCE_IN_USE", "that number was used")),
        (422, said("archivo_recibido", "Este archivo ya fue recibido")),
        (422, said("invalid_file", "Duplicate file ID modifier")),
        (422, duplicate_far_on),
        (422, "<html>".into()),
        (422, "{\"code\":\"invalid_file\"}".into()),
        // A list in the right order is no object, and of two members nobody knows which.
        (422, "[\"invalid_file\",\"why\"]".into()),
        (422, "{\"code\":\"too_large\",\"code\":\"invalid_file\",\"message\":\"why\"}".into()),
        (502, String::new()),
        (301, String::new()),
    ] {
        assert!(matches!(delivered(status, &body), Delivery::Unknown(_)), "{status} {body}");
    }
}

#[test]
fn what_is_refused_is_listed_letter_for_letter() {
    let why = refusal(&["limit"], "limit", "Too\nlate").expect("a refusal");
    assert_eq!((&*why.code, &*why.message), ("limit", "Too late"));
    let silent = refusal(&["limit"], "limit", " ").expect("a refusal");
    assert_eq!(silent.message, "The bank gave no reason");
    for code in ["LIMIT", "limit ", "no_limit", "", "R03"] {
        assert_eq!(refusal(&["limit"], code, "why"), None, "{code}");
        let Finding::Unknown(_) = rejection(&["limit"], Some(code), None) else { panic!("{code}") };
    }
    let Finding::Refused(_) = rejection(&["limit"], Some("limit"), None) else { panic!("refused") };
    let Finding::Unknown(why) = rejection(&["limit"], None, None) else { panic!("unknown") };
    assert_eq!(why, "rejected, which proves nothing with no code: The bank gave no reason");
    let Finding::Unknown(why) = rejection(&[], Some("a\u{7}b"), Some("it")) else { panic!() };
    assert_eq!(why, "rejected, which proves nothing with a b: it");
}

#[test]
fn only_the_gateway_itself_turns_a_file_away() {
    for status in [401, 403, 429, 503] {
        let own = delivered(status, &fault("later"));
        assert!(matches!(own, Delivery::NotTaken(_)), "{status}");
        for body in ["", "<html>", "{\"code\":\"later\"}"] {
            let other = delivered(status, body);
            assert!(matches!(other, Delivery::Unknown(_)), "{status} {body}");
        }
    }
    let _sent = answering(Err(Failure::NotSent("refused".into())));
    assert!(matches!(GATEWAY.deliver(&file()), Delivery::NotTaken(_)));
    let _sent = answering(Err(Failure::NoAnswer("timeout".into())));
    assert!(matches!(GATEWAY.deliver(&file()), Delivery::Unknown(_)));
}

#[test]
fn looking_believes_what_names_our_file() {
    let looked = |status, body: &str| {
        let _sent = answering(Ok((status, body.to_owned())));
        GATEWAY.look(&file())
    };
    assert_eq!(looked(200, KNOWN), Presence::Present);
    assert_eq!(looked(404, &fault("not_found")), Presence::Absent);
    for (status, body) in [
        (200, KNOWN.replace("a-42", "a-41")),
        (200, String::new()),
        (404, "not here".to_owned()),
        (404, KNOWN.to_owned()),
        (403, fault("not_found")),
        (500, KNOWN.to_owned()),
    ] {
        assert!(matches!(looked(status, &body), Presence::Unknown(_)), "{status} {body}");
    }
    let _sent = answering(Err(Failure::NotSent("refused".into())));
    assert!(matches!(GATEWAY.look(&file()), Presence::Unknown(_)));
}

/// A gateway with files of these names; it does not have `gone`, and
/// `down` stands for a gateway that cannot be reached.
fn lying_ready(names: &[&str]) {
    let listed = names.iter().enumerate();
    let listed = listed.map(|(at, name)| format!("{{\"cursor\":\"c{at}\",\"name\":\"{name}\"}}"));
    let listing = format!("{{\"files\":[{}]}}", listed.collect::<Vec<_>>().join(","));
    let send: double::Network = Box::new(move |request| {
        let (status, body) = match &*request.call {
            "list" => (200, listing.clone()),
            _ if request.path == "gone" => (404, fault("not_found")),
            _ if request.path == "down" => (404, "no such site".to_owned()),
            _ => (200, format!("content of {}", request.path)),
        };
        Ok(Response { status, headers: Vec::new(), body: body.into_bytes() })
    });
    double::install(Host { send, ..Host::default() });
}

#[test]
fn what_lies_ready_comes_in_order_and_ends_where_one_fails() {
    lying_ready(&["a.txt", "b.json", "c.txt"]);
    let arrivals = poll(FEED, "").expect("files");
    let names: Vec<_> = arrivals.iter().map(|one| (&*one.cursor, &*one.name)).collect();
    assert_eq!(names, [("c0", "a.txt"), ("c1", "b.json")]);
    assert_eq!(arrivals[1].content, b"content of b.json");
    assert_eq!(check_readable(FEED, &arrivals[1].content), Ok(()));

    lying_ready(&["a.txt", "down"]);
    assert_eq!(poll(FEED, "").expect("the first").len(), 1);
    lying_ready(&["down", "a.txt"]);
    assert!(poll(FEED, "").is_err());
    lying_ready(&[]);
    assert_eq!(poll(FEED, "c9").as_deref(), Ok(&[][..]));
    assert!(poll("outgoing", "").is_err() && check_readable("outgoing", b"").is_err());
}

#[test]
fn what_cannot_be_fetched_is_passed_over_and_reported() {
    let odd = ["gone", "../x", "a/b", "", "a b", "a?b", "a%b", "a@b", ".", "..", "caf\u{e9}"];
    for name in odd.into_iter().chain([&*"x".repeat(201)]) {
        lying_ready(&[name, "a.txt"]);
        let arrivals = poll(FEED, "").expect("both");
        assert_eq!((&*arrivals[0].cursor, &*arrivals[1].cursor), ("c0", "c1"), "{name}");
        assert!(check_readable(FEED, &arrivals[0].content).is_err(), "{name}");
        assert!(arrivals[0].name.len() <= 200, "{name}");
        assert_eq!(arrivals[1].content, b"content of a.txt", "{name}");
    }
    for name in ["A(1)+2,a;b=c:d~!$&'*", &"x".repeat(200)] {
        lying_ready(&[name]);
        let arrivals = poll(FEED, "").expect("one");
        assert_eq!(arrivals[0].content, format!("content of {name}").into_bytes());
    }
}

#[test]
fn lists_that_lead_nowhere_are_not_followed() {
    lying_ready(&["a.txt"]);
    assert!(poll(FEED, "c0").is_err());
    let twice = "{\"files\":[{\"cursor\":\"1\",\"cursor\":\"2\",\"name\":\"a\"}]}";
    for body in [
        "",
        "[]",
        "[[]]",
        "{\"files\":{}}",
        "{\"files\":[{\"name\":\"a\"}]}",
        "{\"files\":[{\"cursor\":\"\",\"name\":\"a\"}]}",
        "{\"files\":[[\"c0\",\"a\"]]}",
        twice,
    ] {
        let _sent = answering(Ok((200, body.into())));
        assert!(poll(FEED, "").is_err(), "{body}");
    }
    let _sent = answering(Ok((500, "{\"files\":[]}".into())));
    assert!(poll(FEED, "").is_err());
}

#[test]
fn the_list_is_asked_for_with_the_cursor_as_it_came() {
    let sent = answering(Ok((200, "{\"files\":[]}".into())));
    poll(FEED, "a=b&c").expect("nothing");
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &*request.query[0].name), ("list", "after"));
    assert_eq!(request.query[0].value, [text("a=b&c")]);
}
