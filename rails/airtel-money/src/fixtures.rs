//! What the tests of several modules need: one payment, and an Airtel that answers what the test
//! wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::Payment;

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "RH01A1FD557A800000000002";

/// A host with this setting, and no Airtel.
pub(crate) fn host(not_found: &str) -> Host {
    let mut host = Host::default();
    host.settings.insert("not_found".into(), not_found.into());
    host
}

/// Installs a host whose Airtel gives this answer, and returns what is sent to it.
pub(crate) fn airtel(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host("asked"), answer)
}

/// 1,250 shillings to a wallet.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "airtel-money".into(),
        currency: "KES".into(),
        exponent: 2,
        amount_minor: 125_000,
        recipient: vec![
            field("mobile_operator", "airtel"),
            field("mobile_number", "254733123456"),
            field("name", "Wanjiku Kamau"),
        ],
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: None,
        network_id: None,
        facts: Vec::new(),
    }
}
