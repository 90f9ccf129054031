//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Values that go into payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Six digits: the sort code of the account that is debited.
    pub debtor_sort_code: String,
    /// Its eight digits.
    pub debtor_account: String,
    /// The address of whose account that is.
    pub debtor_address: String,
    /// The gateway's word for the kind of payment.
    pub payment_type: String,
}

impl Settings {
    /// The settings of this call. One that is not set is empty: the host keeps a route without
    /// them from being used.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default();
        Self {
            debtor_sort_code: setting("debtor_sort_code"),
            debtor_account: setting("debtor_account"),
            debtor_address: setting("debtor_address"),
            payment_type: setting("payment_type"),
        }
    }
}
