//! What the tests of several modules need: the sandbox's settings, one payment, one window, and a
//! gateway that answers what the test wants.

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
pub(crate) use railhead_rail::host::double::{Sent, body};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment, RecallReason, RecallRequest, Window};

/// The reference of [`payment`].
pub(crate) const REFERENCE: &str = "RE01A1FD557A800000000002";
/// The reference of [`instant_payment`].
pub(crate) const INSTANT_REFERENCE: &str = "RJ01A1FD557A800000000002";
/// The instant of every call.
pub(crate) const NOW_MS: u64 = 1_795_251_601_964;

/// A host with the sandbox's settings, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host { now_ms: NOW_MS, ..Host::default() };
    for (name, value) in [
        ("debtor_name", "RAILHEAD DEMO"),
        ("debtor_iban", "DE66999999991234567890"),
        ("debtor_bic", "RAILDEFFXXX"),
        ("initiator_id", ""),
        ("batch_booking", "yes"),
        ("purpose", ""),
        ("creditor_address", "structured"),
        ("ultimate_debtor", "no"),
        ("acceptance", "ACCP"),
        ("instant_paid", "ACSC"),
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
    [
        ("iban", "DE89370400440532013000"),
        ("bic_code", "COBADEFFXXX"),
        ("name", "Jürgen Müller"),
        ("email", "jm@example.com"),
        ("street", "Hauptstraße 1"),
        ("city", "Köln"),
        ("zip_code", "50667"),
        ("country", "DE"),
    ]
    .map(|(name, value)| field(name, value))
    .to_vec()
}

/// 1,250.50 euros.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "sepa".into(),
        currency: "EUR".into(),
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

/// The same, instantly.
pub(crate) fn instant_payment() -> Payment {
    Payment { reference: INSTANT_REFERENCE.into(), method: "sepa-instant".into(), ..payment() }
}

/// The 42nd file: the first of a Friday, for the Monday after.
pub(crate) fn window() -> Window {
    Window {
        name: "afternoon".into(),
        method: "sepa".into(),
        currency: "EUR".into(),
        exponent: 2,
        number: 42,
        number_of_day: 1,
        first_entry: 1,
        business_date: "2026-03-06".into(),
        local_time: "15:00".into(),
        value_date: "2026-03-09".into(),
    }
}

/// A request to have the payment back.
pub(crate) fn recall_request() -> RecallRequest {
    let payment = payment();
    RecallRequest {
        serial: payment.serial,
        begun_at_ms: payment.begun_at_ms,
        reason: RecallReason::CustomerRequest,
    }
}
