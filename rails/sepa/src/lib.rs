//! Euros by SEPA credit transfer: in files (`sepa`), and instantly (`sepa-instant`).
//!
//! In files payments are collected until a window closes and leave in one pain.001. The bank tells
//! in a pain.002 whether it carries the file out, and which payments of it it does not; what comes
//! back stands in a camt.054. Instantly a payment is a pacs.008 that is answered with a pacs.002,
//! and a pacs.028 asks where it was not. Our reference travels as the `EndToEndId`, which everybody
//! repeats.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`iban`], [`bic`] | canonical form of a recipient; which accounts and banks there are |
//! | [`names`] | Verification of Payee |
//! | [`order`] | a payment in the network's characters, and our references |
//! | [`assembly`], [`pain001`] | the file that leaves |
//! | [`gateway`] | one authorised request; what the bank's gateway for files has of its own |
//! | [`arrivals`], [`pain002`], [`camt054`] | what a file of the bank's says |
//! | [`instant`], [`messages`], [`pacs002`] | instant payments and questions about them |
//! | [`notices`], [`pacs004`] | what the bank tells by itself |
//! | [`recalls`] | calling a payment off |
//! | [`status`], [`codes`] | how a payment stands, and what a rejection proves |
//! | [`reference`](mod@reference), [`charset`], [`amount`], [`time`], [`xml`] | how these are written and read |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod amount;
pub mod arrivals;
pub mod assembly;
pub mod bic;
pub mod camt054;
pub mod charset;
pub mod codes;
pub mod gateway;
pub mod iban;
pub mod instant;
pub mod messages;
pub mod names;
pub mod notices;
pub mod order;
pub mod pacs002;
pub mod pacs004;
pub mod pain001;
pub mod pain002;
pub mod recalls;
pub mod recipients;
pub mod reference;
pub mod settings;
pub mod status;
pub mod time;
pub mod xml;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod damage_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
