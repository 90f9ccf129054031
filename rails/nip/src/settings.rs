//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Values that go into every message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Six digits: the institution in whose name messages are sent.
    pub institution_code: String,
    /// NIP's code for where the order came from.
    pub channel_code: String,
    /// Name on the account that transfers are debited from.
    pub originator_account_name: String,
    /// NUBAN of that account.
    pub originator_account_number: String,
    /// Bank verification number behind that account; empty for most companies.
    pub originator_bvn: String,
    /// KYC level of that account.
    pub originator_kyc_level: String,
    /// Latitude and longitude.
    pub transaction_location: String,
}

impl Settings {
    /// The settings of this call. One that is not set is empty: the host supplies the
    /// defaults, and a message with an empty element is refused by the network, not guessed.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default();
        Self {
            institution_code: setting("institution_code"),
            channel_code: setting("channel_code"),
            originator_account_name: setting("originator_account_name"),
            originator_account_number: setting("originator_account_number"),
            originator_bvn: setting("originator_bvn"),
            originator_kyc_level: setting("originator_kyc_level"),
            transaction_location: setting("transaction_location"),
        }
    }
}
