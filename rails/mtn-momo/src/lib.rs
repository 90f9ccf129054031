//! Mobile money to wallets of MTN, over the MoMo Open API (Disbursements, version 1): Ghanaian
//! cedis, and whatever other countries [`countries`] lists.
//!
//! A transfer is taken on with 202, and what became of it is told when it is asked for by its
//! `X-Reference-Id`: that is our reference, by which MTN refuses to pay twice. MTN tells it once by
//! itself, too, without a signature: a reason to ask.
//!
//! | module | holds |
//! |---|---|
//! | [`countries`] | what differs between countries: currency, numbers |
//! | [`recipients`] | canonical form of a recipient |
//! | [`names`] | in whose name a wallet is registered |
//! | [`payments`] | transfer and question |
//! | [`standing`] | how a transfer stands, as MTN writes it |
//! | [`callbacks`] | what MTN tells by itself |
//! | [`reasons`] | reasons and error codes, and what each proves |
//! | [`reference`](mod@reference) | our references |
//! | [`amount`], [`note`] | amounts in major units; texts as MTN takes them |
//! | [`gateway`] | one request to MTN |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod amount;
pub mod callbacks;
pub mod countries;
pub mod gateway;
pub mod names;
pub mod note;
pub mod payments;
pub mod reasons;
pub mod recipients;
pub mod reference;
pub mod settings;
pub mod standing;

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
