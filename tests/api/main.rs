//! A whole host, spoken to over HTTP as its users do, on SQLite and on PostgreSQL.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod audit_log;
mod auth;
mod blacklist;
mod edges;
mod isolation;
mod movements;
mod operator;
mod payouts;
mod rate_limits;
mod routing;
mod yard;
