//! Pounds sterling over Faster Payments, through a gateway of the shape of ClearBank's v3 API.
//!
//! An order is accepted at once and settles within seconds; a signed webhook tells how it ended,
//! and a question does where none comes. Our reference is the `endToEndIdentification`, by which
//! the gateway refuses to pay twice. A payment that settled stays settled: what comes back is a
//! payment of its own.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`], [`modulus`] | canonical form of a recipient; whether sort code and account fit |
//! | [`names`] | Confirmation of Payee |
//! | [`payments`] | payment and question |
//! | [`webhooks`] | what the gateway tells by itself: settled, rejected, returned |
//! | [`codes`] | reject and return codes, and what each proves |
//! | [`reference`](mod@reference) | our references |
//! | [`charset`], [`amount`] | the scheme's characters; pounds with two decimals, and back |
//! | [`messages`], [`gateway`] | the messages of payments; one signed request |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod amount;
pub mod charset;
pub mod codes;
pub mod gateway;
pub mod messages;
pub mod modulus;
pub mod names;
pub mod payments;
pub mod recipients;
pub mod reference;
pub mod settings;
pub mod webhooks;

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
#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod specification_tests;
