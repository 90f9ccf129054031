//! What the tests of several modules need: the declared settings, one payment, and a Daraja that
//! answers what the test wants.

use std::cell::RefCell;
use std::rc::Rc;

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::{Failure, Request, Response};
use railhead_rail::types::Payment;

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "600000-1a1fd557a80-2";

/// Requests that reached Daraja.
pub(crate) type Sent = Rc<RefCell<Vec<Request>>>;

fn host() -> Host {
    let mut host = Host::default();
    for (name, value) in
        [("short_code", "600000"), ("initiator_name", "railhead"), ("command", "BusinessPayment")]
    {
        host.settings.insert(name.into(), value.into());
    }
    host
}

/// Installs the settings on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs a host whose Daraja gives this answer, and returns what is sent to it.
pub(crate) fn daraja(answer: Result<(u16, String), Failure>) -> Sent {
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

/// 1,250 shillings to a wallet.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "mpesa".into(),
        currency: "KES".into(),
        exponent: 2,
        amount_minor: 125_000,
        recipient: vec![
            field("mobile_operator", "mpesa"),
            field("mobile_number", "254712345678"),
            field("name", "Wanjiku Kamau"),
        ],
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}
