//! What the tests of several modules need: the declared settings, one payment, and an aggregator
//! that answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::Payment;

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "096a71bd-b309-4ce5-adbd-9e274c4dd64e";
/// The reference of [`kenyan`].
pub(crate) const KENYAN: &str = "adf33f0e-d627-4b59-950e-dce61cda74a9";

/// A host with the settings, and no aggregator.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    for name in ["callbacks", "name_check"] {
        host.settings.insert(name.into(), "on".into());
    }
    host
}

/// Installs a host whose aggregator gives this answer, and returns what is sent to it.
pub(crate) fn aggregator(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host(), answer)
}

/// 1,250.50 cedis to a wallet of Telecel Cash.
pub(crate) fn payment() -> Payment {
    Payment {
        // As the conformance cases have it.
        payout: "po_conformance00000000000000".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "momo".into(),
        currency: "GHS".into(),
        exponent: 2,
        amount_minor: 125_050,
        recipient: vec![
            field("mobile_operator", "telecel"),
            field("mobile_number", "233201234567"),
            field("name", "Ama Mensah"),
        ],
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}

/// 1,250 shillings to a wallet of T-Kash.
pub(crate) fn kenyan() -> Payment {
    Payment {
        reference: KENYAN.into(),
        serial: 3,
        currency: "KES".into(),
        amount_minor: 125_000,
        recipient: vec![
            field("mobile_operator", "tkash"),
            field("mobile_number", "254771234567"),
            field("name", "Wanjiku Kamau"),
        ],
        ..payment()
    }
}
