//! What the tests of several modules need: the declared settings, invented tables, one payment,
//! and a gateway that answers what the test wants.

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
pub(crate) use railhead_rail::host::double::{Sent, body};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment};

use crate::modulus::{SUBSTITUTIONS, WEIGHTS};

/// Invented rows that exercise every rule of the modulus check.
pub(crate) const WEIGHTS_CSV: &str = include_str!("../fixtures/weights.csv");

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "RP01A1FD557A800000000002";

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
    double::install_with(host(), answer)
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
