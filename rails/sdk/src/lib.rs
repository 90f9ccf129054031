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

#[cfg(feature = "files")]
pub mod bank_files;
#[cfg(feature = "documents")]
pub mod document;
pub mod exports;
pub mod fields;
#[cfg(feature = "files")]
pub mod file_gateway;
pub mod host;
pub mod json;
pub mod letters;
pub mod request;
#[cfg(feature = "strict")]
pub mod strict;
pub mod uuids;
pub mod violations;
pub mod wording;

/// Records and variants of `railhead:rail/types`.
pub mod types {
    pub use crate::bindings::railhead::rail::types::*;

    impl Enquiry {
        /// The question who holds the account of a payment.
        #[must_use]
        pub fn about(payment: &Payment) -> Self {
            Self {
                serial: payment.serial,
                begun_at_ms: payment.begun_at_ms,
                method: payment.method.clone(),
                currency: payment.currency.clone(),
                account: payment.recipient.clone(),
            }
        }
    }

    impl Reply {
        /// The message was taken: status 200, and nothing in the headers.
        #[must_use]
        pub fn ok(content_type: &str, body: &[u8]) -> Self {
            let (content_type, body) = (content_type.to_owned(), body.to_vec());
            Self { status: 200, content_type, headers: Vec::new(), body }
        }
    }
}

/// The raw imports.
pub mod imports {
    pub use crate::bindings::railhead::host::{clock, http, keys, log, settings, tables};
    pub use crate::bindings::railhead::rail::types;
}

/// What a rail implements, as its component exports it.
pub use exports::{
    files::Guest as Files, names::Guest as Names, notices::Guest as Notices,
    payouts::Guest as Payouts, recalls::Guest as Recalls, recipients::Guest as Recipients,
};
/// Each makes a type that implements one of them what the component exports.
pub use exports::{
    files::export_files, names::export_names, notices::export_notices, payouts::export_payouts,
    recalls::export_recalls, recipients::export_recipients,
};
