//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// What the operator configures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// MTN's name for the country's wallet platform.
    pub target_environment: String,
    /// Whether MTN is given an address for what it tells by itself.
    pub gives_address: bool,
    /// Whether MTN is asked in whose name a wallet is.
    pub checks_names: bool,
    /// What is made of a failure of which MTN does not say enough.
    pub unclear: Unclear,
}

/// What "failed" proves where the reason may be MTN's own trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// Nothing: it is asked about until MTN, or a person, says more.
    Asked,
    /// That it will not be paid, as MTN has told the operator.
    Refused,
}

impl Settings {
    /// The settings of this call.
    #[must_use]
    pub fn read() -> Self {
        let setting = |name| host::setting(name).unwrap_or_default();
        Self {
            target_environment: setting("target_environment"),
            gives_address: setting("callbacks") == "on",
            checks_names: setting("name_check") == "on",
            unclear: match setting("unclear_failures").as_str() {
                "refused" => Unclear::Refused,
                _ => Unclear::Asked,
            },
        }
    }
}
