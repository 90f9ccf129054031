//! Nigerian naira over NIBSS Instant Payments (NIP).
//!
//! A payment is one `FTSingleCreditRequest` with an answer that is final, and one
//! `TSQuerySingleRequest` whenever that answer did not come or did not say enough. A name
//! enquiry precedes every payment; its SessionID goes into the transfer.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`] | canonical form and check digit of a recipient |
//! | [`directory`] | a bank by any of its codes, from `banks.csv` |
//! | [`nuban`] | the check digit of an account number |
//! | [`names`] | name enquiry |
//! | [`payments`] | transfer and status query |
//! | [`notices`] | what the gateway sends by itself: returned transfers, pushed statuses |
//! | [`codes`] | response codes and what each proves, by call |
//! | [`session`] | the 30-digit SessionID |
//! | [`amount`] | naira with two decimals, and back |
//! | [`requests`], [`xml`] | the messages that leave, and reading those that come |
//! | [`gateway`] | one request to the gateway, and which answers are answers at all |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod amount;
pub mod codes;
pub mod directory;
pub mod gateway;
pub mod names;
pub mod notices;
pub mod nuban;
pub mod payments;
pub mod recipients;
pub mod requests;
pub mod session;
pub mod settings;
pub mod xml;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
