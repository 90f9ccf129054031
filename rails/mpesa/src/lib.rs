//! Kenyan shillings to M-Pesa wallets, over Safaricom's Daraja API (B2C, version 3).
//!
//! Everything is answered later: a request is acknowledged, and what became of it is told at an
//! address that the request gave. So is the answer to a question about a payment. Our reference
//! is the `OriginatorConversationID`, by which Daraja refuses to pay twice.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`msisdn`] | canonical form of a recipient, and of a Kenyan mobile number |
//! | [`payments`] | payment and status query |
//! | [`results`] | what Daraja tells by itself |
//! | [`codes`] | result codes and what each proves |
//! | [`daraja`] | one request to Daraja, and which answers are answers at all |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod codes;
pub mod daraja;
pub mod msisdn;
pub mod payments;
pub mod recipients;
pub mod results;
pub mod settings;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod damage_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
