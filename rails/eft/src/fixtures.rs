//! What the tests of several modules need: the sandbox's settings, one payment, one window, and a
//! gateway that answers what the test wants.

use railhead_rail::fields::field;
pub(crate) use railhead_rail::host::double::Sent;
use railhead_rail::host::double::{self, Host};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Field, Payment, Window};

use crate::recipients::INSTITUTIONS;

/// A host with the sandbox's settings and the rail's table, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    for (name, value) in [
        ("originator_id", "0123456789"),
        ("data_centre", "00320"),
        ("short_name", "RAILHEAD DEMO"),
        ("long_name", "RAILHEAD DEMO INC"),
        ("returns_institution", "000300320"),
        ("returns_account", "1234567"),
        ("transaction_code", "450"),
        ("currency", "CAD"),
        ("sundry", "blank"),
        ("capitals", "yes"),
        ("framing", "crlf"),
        ("padding", "full"),
        ("first_line", ""),
        ("counts", "payments"),
        ("file_number_offset", "0"),
        ("file_number_last", "9999"),
        ("same_day", "no"),
    ] {
        host.settings.insert(name.into(), value.into());
    }
    let table = double::table(include_str!("../institutions.csv"));
    host.tables.insert(INSTITUTIONS.into(), table);
    host
}

/// Installs [`host`] on this thread.
pub(crate) fn install() {
    double::install(host());
}

/// Installs [`host`] with other settings.
pub(crate) fn install_with(changes: &[(&str, &str)]) {
    let mut host = host();
    for (name, value) in changes {
        host.settings.insert((*name).to_owned(), (*value).to_owned());
    }
    double::install(host);
}

/// Installs a host whose gateway gives this answer, and returns what is sent to it.
pub(crate) fn gateway(answer: Result<(u16, String), Failure>) -> Sent {
    double::install_with(host(), answer)
}

/// A recipient in canonical form.
pub(crate) fn recipient() -> Vec<Field> {
    [
        ("institution_number", "003"),
        ("transit_number", "00320"),
        ("account_number", "1234567"),
        ("name", "Jose Tremblay"),
        ("method", "eft"),
        ("bank_name", "Royal Bank of Canada"),
        ("email", "jose@example.com"),
        ("street", "1 Main Street"),
        ("city", "Toronto"),
        ("state", "ON"),
        ("country", "CA"),
        ("zip_code", "M5V 2T6"),
    ]
    .map(|(name, value)| field(name, value))
    .to_vec()
}

/// 1,250.50 dollars.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: "E16000000000002".into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "eft".into(),
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

/// The 42nd file: the first of a Friday, for the Monday after.
pub(crate) fn window() -> Window {
    Window {
        name: "next-day".into(),
        method: "eft".into(),
        currency: "CAD".into(),
        exponent: 2,
        number: 42,
        number_of_day: 1,
        first_entry: 1,
        business_date: "2026-03-06".into(),
        local_time: "16:00".into(),
        value_date: "2026-03-09".into(),
    }
}
