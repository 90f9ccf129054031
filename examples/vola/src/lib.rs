//! Ariary to Vola wallets. Vola takes a payment on and tells its outcome at the address that the
//! request gave; it can be asked, too.
#![cfg(target_family = "wasm")]

mod guest;
mod messages;
mod payments;
mod recipients;
