//! Canadian dollars by EFT: credits in CPA-005 files through an originating bank's file gateway
//! over HTTPS.
//!
//! Payments are collected until a window closes and leave in one file, six to a record. The bank
//! tells in a report whether it carries the file out. A payment that comes back comes in a file of
//! the same standard, as a returned credit (logical record type I). Our reference travels as the
//! originator's cross-reference number, by which returns name it.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`] | canonical form of a recipient |
//! | [`entries`] | a payment as a segment of a file, and our references |
//! | [`assembly`], [`layout`] | the file that leaves; its records |
//! | [`gateway`] | what the bank's gateway has of its own: [`railhead_rail::file_gateway`] does the rest |
//! | [`arrivals`], [`reports`], [`returns`] | what a file of the bank's says |
//! | [`incoming`] | a CPA-005 file taken apart, and its totals |
//! | [`codes`] | return codes of Standard 007 |
//! | [`refusals`] | codes with which the gateway refuses |
//! | [`record`](mod@record), [`charset`], [`dates`] | records and segments; characters and dates |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod arrivals;
pub mod assembly;
pub mod charset;
pub mod codes;
pub mod dates;
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
mod damage_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
