//! What the tests of several modules need: the real directory, the declared settings, one
//! payment, and a gateway that answers what the test wants.

use railhead_rail::fields::field;
use railhead_rail::host::double::{self, Host};
pub(crate) use railhead_rail::host::double::{Sent, body};
use railhead_rail::imports::http::Failure;
use railhead_rail::types::{Payment, Resolution};

/// The reference of [`payment`]: 21 November 2026, 10:00:00 in Lagos, number 2.
pub(crate) const REFERENCE: &str = "999998261121100000000000000002";

/// A host with the directory and the settings, and no gateway.
pub(crate) fn host() -> Host {
    let mut host = Host::default();
    host.tables.insert("banks".into(), double::table(include_str!("../banks.csv")));
    for (name, value) in [
        ("institution_code", "999998"),
        ("channel_code", "7"),
        ("originator_account_name", "RAILHEAD SETTLEMENT"),
        ("originator_account_number", "0000000000"),
        ("originator_kyc_level", "3"),
        ("transaction_location", "6.4300747,3.4110715"),
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

/// 1,250.50 naira to Guaranty Trust Bank.
pub(crate) fn payment() -> Payment {
    Payment {
        payout: "po_0001".into(),
        reference: REFERENCE.into(),
        serial: 2,
        begun_at_ms: 1_795_251_600_000,
        method: "nip".into(),
        currency: "NGN".into(),
        exponent: 2,
        amount_minor: 125_050,
        recipient: vec![
            field("account_number", "0123456785"),
            field("bank_code", "058"),
            field("bank_name", "Guaranty Trust Bank"),
            field("institution_code", "000013"),
        ],
        sender: Vec::new(),
        narration: "Invoice 17".into(),
        resolution: Some(Resolution {
            name: "ADA OBI".into(),
            reference: "999998261121095959000000000001".into(),
            attributes: vec![field("bvn", "22212345678"), field("kyc_level", "3")],
        }),
        network_id: None,
        facts: Vec::new(),
    }
}
