//! What the gateway writes is well-formed, and says who wrote it.

use roxmltree::Document;

use super::{QUESTION, RECALL, WIRE, play, send, told};

/// Everything that it writes in some scenario.
fn written() -> Vec<String> {
    let mut all = Vec::new();
    for scenario in ["paid", "failed", "rejected_ac01", "returned", "recall_accepted", "processing"]
    {
        play(scenario);
        all.push(send("/status-requests", QUESTION).1);
        all.push(send("/wires", WIRE).1);
        all.push(send("/status-requests", QUESTION).1);
        all.push(send("/return-requests", RECALL).1);
        all.extend(told());
    }
    all
}

#[test]
fn every_message_has_header_and_document_of_one_kind() {
    for text in written() {
        let document = Document::parse(&text).expect("XML");
        let named = |name: &str| document.descendants().find(|node| node.tag_name().name() == name);
        let kind = named("MsgDefIdr").and_then(|node| node.text()).expect("a kind");
        let namespace = named("Document").and_then(|node| node.tag_name().namespace());
        assert_eq!(namespace, Some(&*format!("urn:iso:std:iso:20022:tech:xsd:{kind}")));
        let header = named("AppHdr").and_then(|node| node.tag_name().namespace());
        assert_eq!(header, Some("urn:iso:std:iso:20022:tech:xsd:head.001.001.03"));
    }
}

/// For `tests/iso20022`, or a validator of your own: `KEEP_WRITTEN`
/// names a folder that the messages are left in.
#[test]
fn left_for_a_validator() {
    let Some(folder) = std::env::var_os("KEEP_WRITTEN") else { return };
    for (at, text) in written().iter().enumerate() {
        let path = std::path::Path::new(&folder).join(format!("simulator-{at:02}.xml"));
        std::fs::write(path, text).expect("a file");
    }
}
