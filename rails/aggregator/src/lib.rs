//! Mobile money to operators that have no public API of their own, through an aggregator: Telecel
//! Cash and AT Money in Ghana, T-Kash in Kenya.
//!
//! What is spoken here is no network's protocol. It is a small one that this project documents, in
//! the rail's README, for an aggregator or for an adapter in front of one.
//!
//! A payout is taken on under our reference, by which the aggregator pays once, and has one of four
//! statuses. Only two of them end it: `SUCCESS`, and `FAILED` for a code that is listed. What the
//! aggregator tells by itself is a reason to ask.
//!
//! | module | holds |
//! |---|---|
//! | [`countries`], [`operators`] | numbers of a country; whose wallets hold its currency |
//! | [`recipients`] | canonical form of a recipient |
//! | [`names`] | in whose name a wallet is registered |
//! | [`payouts`] | a payout, and the question what became of it |
//! | [`standing`] | how a payout stands, as the aggregator writes it |
//! | [`callbacks`] | what the aggregator tells by itself |
//! | [`codes`] | codes, and what each proves |
//! | [`reference`](mod@reference) | our references |
//! | [`words`] | amounts and texts as they are sent |
//! | [`gateway`] | one request to the aggregator |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod callbacks;
pub mod codes;
pub mod countries;
pub mod gateway;
pub mod names;
pub mod operators;
pub mod payouts;
pub mod recipients;
pub mod reference;
pub mod settings;
pub mod standing;
pub mod words;

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod damage_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod declaration_tests;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod fixtures;
#[cfg(target_family = "wasm")]
mod guest;
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod payouts_tests;
