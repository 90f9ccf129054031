//! A whole host, spoken to over HTTP as its users do, on SQLite and on PostgreSQL.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]
#![allow(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "brief tests")]
#![allow(clippy::field_reassign_with_default, reason = "configurations differ in a few fields")]

mod audit_log;
mod auth;
mod bank;
mod blacklist;
mod commands;
mod commit_lost;
mod contract;
mod crash;
mod crash_at_random;
mod edges;
mod hostile;
mod isolation;
mod live;
mod movements;
mod notices;
mod operator;
mod payouts;
mod program;
mod rate_limits;
mod routing;
mod secrets;
mod yard;
