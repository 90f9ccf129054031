//! What the tests of several modules need: the declared settings, one payment, and a participant
//! that answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment};

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "RI01A1FD557A800000000002";
/// What its recipient is asked.
pub(crate) const QUESTION: &str = "What code did the sender give you?";

/// A host with the settings, and no participant.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    for (name, value) in [
        ("debtor_account", "000112345671234567"),
        ("sender_name", "Railhead Sandbox"),
        ("security_question", QUESTION),
        ("language", "EN"),
        ("amount_max", "25000"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    host
}

/// Installs [`host`] on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs a host whose participant gives this answer, and returns what is sent to it.
pub(crate) fn participant(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host(), answer)
}

/// A recipient in canonical form.
pub(crate) fn recipient() -> Vec<Field> {
    vec![
        field("email", "jane.tremblay@example.com"),
        field("interac_email", "jane.tremblay@example.com"),
        field("interac_first_name", "Jane"),
        field("interac_last_name", "Tremblay"),
        field("name", "Jane Tremblay"),
    ]
}

/// 1,250.50 dollars.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "interac".into(),
        currency: "CAD".into(),
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
