use railhead_rail::request::{plain as bytes, secret, text};
use railhead_rail::types::{Delivery, File, Presence};

use super::GATEWAY;
use crate::fixtures;

const KNOWN: &str = "{\"name\":\"RF2026030600000004201A1FD557A80.xml\",\
                     \"message_id\":\"RF2026030600000004201A1FD557A80\"}";

fn file() -> File {
    let identity = "RF2026030600000004201A1FD557A80";
    let (name, content) = (format!("{identity}.xml"), b"<Document/>".to_vec());
    File { name, identity: identity.into(), content }
}

#[test]
fn a_file_leaves_as_it_was_stored() {
    let sent = fixtures::gateway(Ok((201, KNOWN.to_owned())));
    assert_eq!(GATEWAY.deliver(&file()), Delivery::Taken);
    let request = &sent.borrow()[0];
    assert_eq!((&*request.call, &request.path), ("deliver", &file().name));
    assert_eq!(bytes(&request.body).as_deref(), Some(&b"<Document/>"[..]));
    assert_eq!(request.headers[0].value, [text("Bearer "), secret("api_key")]);
    assert_eq!(request.headers[1].value, [text("application/xml")]);
}

#[test]
fn only_an_answer_that_names_our_file_is_one() {
    for (body, is_ours) in [
        (KNOWN.to_owned(), true),
        (KNOWN.replace("A80.xml", "A81.xml"), false),
        (KNOWN.replace("A80\"}", "A81\"}"), false),
        (format!("[{KNOWN}]"), false),
        (String::new(), false),
    ] {
        let _sent = fixtures::gateway(Ok((200, body.clone())));
        assert_eq!(GATEWAY.deliver(&file()) == Delivery::Taken, is_ours, "{body}");
        assert_eq!(GATEWAY.look(&file()) == Presence::Present, is_ours, "{body}");
    }
}
