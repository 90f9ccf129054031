//! What the tests of several modules need: the declared settings, invented tables, one payment,
//! and a gateway that answers what the test wants.

use std::cell::RefCell;
use std::rc::Rc;

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::{Failure, Request, Response};
use railhead_rail::request::plain;
use railhead_rail::types::{Field, Payment};

use crate::modulus::{SUBSTITUTIONS, WEIGHTS};

/// Invented rows that exercise every rule of the modulus check.
pub(crate) const WEIGHTS_CSV: &str = include_str!("../fixtures/weights.csv");

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "RP01A1FD557A800000000002";

/// Requests that reached the gateway.
pub(crate) type Sent = Rc<RefCell<Vec<Request>>>;

/// A host with the tables and the settings, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    let substitutions = include_str!("../fixtures/substitutions.csv");
    host.tables.insert(WEIGHTS.into(), double::table(WEIGHTS_CSV));
    host.tables.insert(SUBSTITUTIONS.into(), double::table(substitutions));
    for (name, value) in [
        ("debtor_sort_code", "040004"),
        ("debtor_account", "00000000"),
        ("debtor_address", "UK, London, High Street, 1, EC1A 1AA"),
        ("payment_type", "SIP"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    host
}

/// Installs [`host`] on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs a host whose gateway gives this answer, and returns what is sent to it.
pub(crate) fn gateway(answer: Result<(u16, String), Failure>) -> Sent {
    let sent = Sent::default();
    let seen = Rc::clone(&sent);
    let mut host = host();
    host.send = Box::new(move |request| {
        seen.borrow_mut().push(request.clone());
        answer.clone().map(|(status, body)| Response {
            status,
            headers: Vec::new(),
            body: body.into_bytes(),
        })
    });
    double::install(host);
    sent
}

/// The body of the only request that was sent.
pub(crate) fn body(sent: &Sent) -> String {
    let sent = sent.borrow();
    assert_eq!(sent.len(), 1, "one request");
    let body = plain(&sent[0].body).expect("nothing secret in it");
    String::from_utf8(body).expect("UTF-8")
}

/// A recipient in canonical form.
pub(crate) fn recipient() -> Vec<Field> {
    vec![
        field("account_number", "66374958"),
        field("sort_code", "089999"),
        field("name", "Jane Smith"),
        field("bank_name", "A Bank"),
        field("email", "jane@example.com"),
        field("street", "1 High Street"),
        field("city", "Leeds"),
        field("country", "GB"),
        field("zip_code", "LS1 4AP"),
    ]
}

/// 1,250.50 pounds.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "fps".into(),
        currency: "GBP".into(),
        exponent: 2,
        amount_minor: 125_050,
        recipient: recipient(),
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}
