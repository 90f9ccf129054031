//! Canadian dollars by Interac e-Transfer, through the API of one of the network's participants.
//!
//! A transfer goes to an email address. It is accepted at once and paid when it is deposited:
//! within minutes where the recipient has Autodeposit, or when the recipient has answered a
//! question, for which there are thirty days. What was deposited stays so; until then a transfer
//! can be cancelled. Our reference is the `end_to_end_identification`, by which the participant
//! refuses to pay twice.
//!
//! | module | holds |
//! |---|---|
//! | [`recipients`] | canonical form of a recipient |
//! | [`payments`] | payment, question and cancellation |
//! | [`notices`] | what the participant tells by itself |
//! | [`standing`] | how a transfer stands, and what that proves |
//! | [`codes`] | statuses and refusals, and what each proves |
//! | [`messages`], [`participant`] | the messages; one request |
//! | [`reference`](mod@reference), [`memo`], [`amount`] | our references; texts for the recipient; dollars with two decimals |
//! | [`settings`] | the operator's settings |
//!
//! Everything here is plain Rust that runs natively in tests; `guest.rs` exports it to the
//! host and exists only in the component.

pub mod amount;
pub mod codes;
pub mod memo;
pub mod messages;
pub mod notices;
pub mod participant;
pub mod payments;
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
