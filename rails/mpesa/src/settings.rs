//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Values that go into requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The B2C short code that payments are made from.
    pub short_code: String,
    /// The API operator in whose name payments are made.
    pub initiator_name: String,
    /// Daraja's word for the kind of payment.
    pub command: String,
}

impl Settings {
    /// The settings of this call.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default();
        Self {
            short_code: setting("short_code"),
            initiator_name: setting("initiator_name"),
            command: setting("command"),
        }
    }
}
