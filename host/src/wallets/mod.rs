//! Wallets: balances, transactions, what came in.

pub mod http;
mod view;
