//! What the tests of several modules need: the declared settings, one payment, and an MTN that
//! answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::Payment;

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "7b4d6378-46e1-48db-ab9f-ade2c925e0de";

/// A host with the settings, and no MTN.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    for (name, value) in [
        ("target_environment", "mtnghana"),
        ("callbacks", "on"),
        ("name_check", "on"),
        ("unclear_failures", "asked"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    host
}

/// Installs the settings on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs a host whose MTN gives this answer, and returns what is sent to it.
pub(crate) fn mtn(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host(), answer)
}

/// 1,250.50 cedis to a wallet.
pub(crate) fn payment() -> Payment {
    Payment {
        // As the conformance cases have it.
        payout: "po_conformance00000000000000".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "mtn-momo".into(),
        currency: "GHS".into(),
        exponent: 2,
        amount_minor: 125_050,
        recipient: vec![
            field("mobile_operator", "mtn"),
            field("mobile_number", "233241234567"),
            field("name", "Ama Mensah"),
        ],
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}
