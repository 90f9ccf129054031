//! Railhead: a payout, wallet and collections service with sandboxed rails.

pub mod app;
pub mod audit;
pub mod auth;
pub mod beneficiaries;
pub mod built_in;
pub mod caller;
pub mod cases;
pub mod cli;
pub mod conformance;
pub mod decisions;
pub mod events;
pub mod funding;
pub mod http;
pub mod lookup;
pub mod metrics;
pub mod openapi;
pub mod operator;
pub mod outbound;
pub mod pages;
pub mod payouts;
pub mod rails;
pub mod recipients;
pub mod routes;
pub mod rules;
pub mod sandbox;
pub mod simulator;
pub mod start;
mod sweeper;
pub mod transfers;
pub mod verify;
pub mod wallets;
pub mod webhooks;
pub mod worker;

pub use railhead_core::{address, clock, config, env, error, id, keyring, money};
pub use railhead_ledger::{db, ledger};
pub use railhead_wasm as wasm;
