//! Railhead: a payout, wallet and collections service with sandboxed rails.

pub mod address;
pub mod clock;
pub mod config;
pub mod db;
pub mod env;
pub mod error;
pub mod id;
pub mod keyring;
pub mod ledger;
pub mod money;
pub mod wasm;
