//! What the tests of several modules need: the declared settings, one payment, and a Daraja that
//! answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::Payment;

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "600000-1a1fd557a80-2";

/// A host with the settings, and no Daraja.
pub(crate) fn host() -> Host {
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
    double::install_with(host(), answer)
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
