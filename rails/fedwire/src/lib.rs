//! US dollars by the Fedwire Funds Service, through a sponsor bank's gateway.
//!
//! A wire is one ISO 20022 message, a pacs.008, and is final once a pacs.002 says that it settled.
//! Where that does not come, a pacs.028 asks. What was paid can only be asked back (camt.056); it
//! comes back as a payment of its own (pacs.004). Our reference is the UETR, by which every message
//! names the wire.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`aba`] | canonical form of a recipient; routing numbers |
//! | [`payments`], [`recalls`] | wire and question; asking for one back |
//! | [`notices`] | what the gateway tells by itself |
//! | [`messages`], [`parties`] | the messages that leave; names and addresses in them |
//! | [`reports`] | what the messages that come say |
//! | [`codes`] | statuses and reasons, and what each proves |
//! | [`reference`](mod@reference), [`imad`], [`days`] | UETR, IMAD, and the day that it begins with |
//! | [`amount`], [`charset`], [`xml`] | dollars, characters, and XML in both directions |
//! | [`gateway`], [`settings`] | one request; the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the host and
//! exists only in the component.

pub mod aba;
pub mod amount;
pub mod charset;
pub mod codes;
pub mod days;
pub mod gateway;
pub mod imad;
pub mod messages;
pub mod notices;
pub mod parties;
pub mod payments;
pub mod recalls;
pub mod recipients;
pub mod reference;
pub mod reports;
pub mod settings;
pub mod xml;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod damage_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod messages_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod payments_tests;
