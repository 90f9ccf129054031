//! What a rail is written with: the types of the contract in `wit/rail.wit`, the host's
//! imports as plain functions, and doubles of those imports for tests on the developer's
//! own machine.
//!
//! A rail keeps its knowledge of the network in pure modules that use [`types`] and
//! [`host`], and one thin `guest.rs` that exports them.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        world: "railhead:rail/imports",
        generate_all,
        additional_derives: [PartialEq, Eq],
    });
}

pub mod exports;
pub mod fields;
pub mod host;
pub mod json;
pub mod request;
pub mod violations;

/// Records and variants of `railhead:rail/types`.
pub mod types {
    pub use crate::bindings::railhead::rail::types::*;
}

/// The raw imports.
pub mod imports {
    pub use crate::bindings::railhead::host::{clock, http, keys, log, settings, tables};
    pub use crate::bindings::railhead::rail::types;
}

/// What a rail implements, as its component exports it.
pub use exports::{
    files::Guest as Files, names::Guest as Names, notices::Guest as Notices,
    payouts::Guest as Payouts, recipients::Guest as Recipients,
};
/// Each makes a type that implements one of them what the component exports.
pub use exports::{
    files::export_files, names::export_names, notices::export_notices, payouts::export_payouts,
    recipients::export_recipients,
};
