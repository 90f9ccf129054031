use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Enquiry, Verdict};

use super::resolve;
use crate::fixtures;

#[test]
fn the_name_is_asked_about_as_it_was_given() {
    let sent = fixtures::gateway(Err(Failure::NoAnswer("timeout".into())));
    let verdict = resolve(&Enquiry::about(&fixtures::payment()));
    assert_eq!(verdict, Verdict::Unavailable("no answer: timeout".to_owned()));
    let expected = "{\"party\":{\"name\":\"Jürgen Müller\"},\
                    \"partyAccount\":{\"iban\":\"DE89370400440532013000\"},\
                    \"partyAgent\":{\"financialInstitutionId\":{\"bicfi\":\"COBADEFFXXX\"}}}";
    assert_eq!(fixtures::body(&sent), expected);
    let id = &sent.borrow()[0].headers[2];
    assert_eq!(id.name, "X-Request-ID");
}
