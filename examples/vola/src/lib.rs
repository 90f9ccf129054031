//! Ariary to Vola wallets. Vola takes a payment on and tells its outcome at the address that the
//! request gave; it can be asked, too. Or it takes many in a file, and answers in another one.
#![cfg(target_family = "wasm")]

mod bulk;
mod guest;
mod messages;
mod payments;
mod recipients;
