//! The bank's file gateway: what it has of its own.

use railhead_rail::file_gateway::FileGateway;
use railhead_rail::strict::Object;
use railhead_rail::types::File;
use serde::Deserialize;

use crate::assembly::number_in;
use crate::refusals;

/// Files of the bank's, and ours.
pub const GATEWAY: FileGateway =
    FileGateway { content_type: "text/plain; charset=us-ascii", refuses: refusals::FILE, names };

/// What it knows of a file that was delivered.
#[derive(Debug, Deserialize)]
struct Known {
    name: String,
    file_creation_number: String,
}

/// Whether the gateway names this file, and its number.
fn names(file: &File, body: &[u8]) -> bool {
    let known = serde_json::from_slice::<Object<Known>>(body);
    known.is_ok_and(|Object(it)| {
        it.name == file.name && number_in(&file.name) == Some(it.file_creation_number.as_str())
    })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::request::text;
    use railhead_rail::types::{Delivery, File, Presence};

    use super::GATEWAY;
    use crate::fixtures;

    fn file() -> File {
        File {
            name: "EFT-0123456789-20260306-00000042-0042.txt".into(),
            identity: "EFT-0123456789-20260306-00000042-0042.txt".into(),
            content: b"A000000001\r\n".to_vec(),
        }
    }

    const KNOWN: &str = "{\"name\":\"EFT-0123456789-20260306-00000042-0042.txt\",\
                         \"file_creation_number\":\"0042\",\"status\":\"received\"}";

    #[test]
    fn only_an_answer_that_names_our_file_is_one() {
        let sent = fixtures::gateway(Ok((200, KNOWN.to_owned())));
        assert_eq!(GATEWAY.deliver(&file()), Delivery::Taken);
        assert_eq!(GATEWAY.look(&file()), Presence::Present);
        assert_eq!(sent.borrow()[0].path, file().name);
        assert_eq!(sent.borrow()[0].headers[1].value, [text("text/plain; charset=us-ascii")]);
        for body in [
            String::new(),
            "{}".into(),
            "{\"status\":\"received\"}".into(),
            KNOWN.replace("\"0042\"", "\"0043\""),
            KNOWN.replace("\"0042\"", "42"),
            KNOWN.replace("EFT-0123456789-20260306-00000042", "EFT-0123456789-20260306-00000041"),
            // A list in the right order is no object.
            "[\"EFT-0123456789-20260306-00000042-0042.txt\",\"0042\"]".into(),
        ] {
            let _sent = fixtures::gateway(Ok((200, body.clone())));
            assert!(matches!(GATEWAY.deliver(&file()), Delivery::Unknown(_)), "{body}");
            assert!(matches!(GATEWAY.look(&file()), Presence::Unknown(_)), "{body}");
        }
    }
}
