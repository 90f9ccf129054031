//! A whole host, spoken to over HTTP as its users do, on SQLite and on PostgreSQL.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod accounts;
mod beneficiaries;
mod books;
mod concurrency;
mod idempotency;
mod ledger;
mod limits;
mod lists;
mod lookup;
mod network;
mod payouts;
mod review;
mod yard;
