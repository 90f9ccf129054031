//! Railhead: a payout, wallet and collections service with sandboxed rails.

pub mod address;
pub mod app;
pub mod audit;
pub mod auth;
pub mod caller;
pub mod clock;
pub mod config;
pub mod db;
pub mod env;
pub mod error;
pub mod events;
pub mod http;
pub mod id;
pub mod keyring;
pub mod ledger;
pub mod money;
pub mod payouts;
pub mod rails;
pub mod recipients;
pub mod rules;
pub mod wasm;
