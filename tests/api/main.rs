//! A whole host, spoken to over HTTP as its users do, on SQLite and on PostgreSQL.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]

mod bank;
mod commit_lost;
mod crash;
mod crash_at_random;
mod hostile;
mod live;
mod notices;
mod payouts;
mod program;
mod secrets;
mod yard;
