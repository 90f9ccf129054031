//! Kenyan shillings to wallets of Airtel Money, over Airtel's Open API (Disbursements, version 2).
//!
//! A payment is answered with what became of it, as far as Airtel knows, and it is asked about where
//! that is not clear. Our reference is the `transaction.id`, by which Airtel refuses to pay twice.
//! Airtel tells some outcomes by itself, too, without a signature that is checked here: a reason to
//! ask.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`msisdn`] | canonical form of a recipient, and of a Kenyan mobile number |
//! | [`names`] | names in the characters that Airtel is sent |
//! | [`payments`] | payment and question |
//! | [`outcome`] | what an answer says became of a payment |
//! | [`callbacks`] | what Airtel tells by itself |
//! | [`codes`] | response codes, and what each proves |
//! | [`reference`](mod@reference) | our references |
//! | [`gateway`] | one request to Airtel |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod callbacks;
pub mod codes;
pub mod gateway;
pub mod msisdn;
pub mod names;
pub mod outcome;
pub mod payments;
pub mod recipients;
pub mod reference;
pub mod settings;

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
mod payments_tests;
