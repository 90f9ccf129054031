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

pub mod fields;
pub mod host;
pub mod json;
pub mod request;
pub mod violations;

/// Records and variants of `railhead:rail/types`.
pub mod types {
    pub use crate::bindings::railhead::rail::types::*;
}

/// The raw imports, for `with:` in a rail's own `wit_bindgen::generate!`.
pub mod imports {
    pub use crate::bindings::railhead::host::{clock, http, keys, log, settings, tables};
    pub use crate::bindings::railhead::rail::types;
}

pub use wit_bindgen;
