//! Test keys only: telling the simulated bank how a payout goes on, and filling wallets.

pub mod http;
pub mod recipients;
