//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// What it proves that Airtel finds no payment of our reference when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// Nothing: Airtel does not promise that it will not turn up.
    Asked,
    /// That it never came, as Airtel has told the operator.
    NeverReceived,
}

/// See [`NotFound`].
#[must_use]
pub fn not_found() -> NotFound {
    match host::setting("not_found").as_deref() {
        Some("never-received") => NotFound::NeverReceived,
        _ => NotFound::Asked,
    }
}
