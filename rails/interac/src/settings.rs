//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Values that go into transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The account that transfers are paid from, as the participant names it.
    pub debtor_account: String,
    /// Who sends the money, as recipients read it.
    pub sender_name: String,
    /// What recipients without Autodeposit are asked.
    pub security_question: String,
    /// `EN` or `FR`.
    pub language: String,
    /// Most of one transfer, in cents; nothing where it is not a number of dollars.
    pub amount_minor_max: Option<i64>,
}

impl Settings {
    /// The settings of this call. One that is not set is empty: the host keeps a route without
    /// them from being used.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default();
        let dollars = setting("amount_max").parse::<i64>().ok();
        Self {
            debtor_account: setting("debtor_account"),
            sender_name: setting("sender_name"),
            security_question: setting("security_question"),
            language: setting("language"),
            amount_minor_max: dollars.and_then(|dollars| dollars.checked_mul(100)),
        }
    }
}
