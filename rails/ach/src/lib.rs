//! US dollars by ACH credit: NACHA files through an originating bank's file gateway over HTTPS.
//!
//! Payments are collected until a window closes and leave in one file. The bank tells in a report
//! whether it carries the file out. An entry that a recipient's bank sends back, and a correction
//! of one that stands, come in NACHA files of the bank's. Our reference travels as the entry's
//! identification number, by which a return names it; the entry's trace number is what everybody
//! else calls it.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`aba`] | canonical form of a recipient; whether a routing number can be one |
//! | [`entries`] | a payment as an entry, and our references |
//! | [`assembly`], [`layout`] | the file that leaves; its records |
//! | [`gateway`] | what the bank's gateway has of its own: [`railhead_rail::file_gateway`] does the rest |
//! | [`arrivals`], [`reports`], [`returns`] | what a file of the bank's says |
//! | [`incoming`] | a NACHA file taken apart, and its totals |
//! | [`refusals`] | codes of the gateway's that refuse a file, or an entry of one |
//! | [`codes`] | reason codes of returns, and change codes |
//! | [`record`](mod@record), [`charset`] | records of 94 characters; the characters that they hold |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod aba;
pub mod arrivals;
pub mod assembly;
pub mod charset;
pub mod codes;
pub mod entries;
pub mod gateway;
pub mod incoming;
pub mod layout;
pub mod recipients;
pub mod record;
pub mod refusals;
pub mod reports;
pub mod returns;
pub mod settings;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod arrivals_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod assembly_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
