//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Whether the aggregator is given an address for what it tells by itself.
#[must_use]
pub fn gives_address() -> bool {
    is_on("callbacks")
}

/// Whether the aggregator is asked in whose name a wallet is.
#[must_use]
pub fn checks_names() -> bool {
    is_on("name_check")
}

fn is_on(name: &str) -> bool {
    host::setting(name).as_deref() == Some("on")
}
