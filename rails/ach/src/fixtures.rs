//! What the tests of several modules need: the sandbox's settings, one payment, one window, and a
//! gateway that answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment, Window};

/// A host with the sandbox's settings, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    for (name, value) in [
        ("company_name", "RAILHEAD DEMO"),
        ("company_id", "1987654321"),
        ("entry_description", "PAYOUT"),
        ("origin", "121042882"),
        ("origin_name", "RAILHEAD"),
        ("destination", "231380104"),
        ("destination_name", "SANDBOX BANK"),
        ("odfi", "12104288"),
        ("addenda", "yes"),
        ("same_day", "no"),
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
        ("account_number", "12345678"),
        ("routing_number", "121042882"),
        ("name", "Jane Smith"),
        ("account_type", "checking"),
        ("type", "individual"),
        ("method", "ach"),
        ("bank_name", "A Bank"),
        ("email", "jane@example.com"),
        ("street", "1 Main Street"),
        ("city", "Springfield"),
        ("state", "IL"),
        ("country", "US"),
        ("zip_code", "62701"),
        ("bank_address.line1", "420 Montgomery Street"),
        ("bank_address.city", "San Francisco"),
        ("bank_address.country", "US"),
    ]
    .map(|(name, value)| field(name, value))
    .to_vec()
}

/// 1,250.50 dollars.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: "R16000000000002".into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "ach".into(),
        currency: "USD".into(),
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

/// The 42nd file: the first of a Friday, for the Monday after.
pub(crate) fn window() -> Window {
    Window {
        name: "next-day".into(),
        method: "ach".into(),
        currency: "USD".into(),
        exponent: 2,
        number: 42,
        number_of_day: 1,
        first_entry: 1,
        business_date: "2026-03-06".into(),
        local_time: "16:45".into(),
        value_date: "2026-03-09".into(),
    }
}
