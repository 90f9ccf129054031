//! A whole host, spoken to over HTTP as its users do, on SQLite and on PostgreSQL.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests")]
#![allow(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "brief tests")]
#![allow(clippy::field_reassign_with_default, reason = "configurations differ in a few fields")]

mod accounts;
mod approvals;
mod audit_coverage;
mod audit_log;
mod auth;
mod bank;
mod beneficiaries;
mod blacklist;
mod books;
mod commands;
mod commit_lost;
mod concurrency;
mod contract;
mod crash;
mod crash_at_random;
mod developer_commands;
mod edges;
mod hooks;
mod hostile;
mod idempotency;
mod isolation;
mod lanes;
mod ledger;
mod limits;
mod line;
mod lists;
mod live;
mod lookup;
mod movements;
mod network;
mod notices;
mod operator;
mod operator_objects;
mod packs;
mod payouts;
mod permissions;
mod program;
mod random_faults;
mod rate_limits;
mod receiver;
mod request_logs;
mod restores;
mod retention;
mod review;
mod routing;
mod rule_decisions;
mod rule_facts;
mod rule_hostile;
mod rule_life;
mod rule_shadow;
mod rule_swap;
mod rule_upgrade;
mod rule_velocity;
mod seams;
mod secrets;
mod signatures;
mod silence;
mod ssrf;
mod stream;
mod tampering;
mod test_host;
mod webhook_calls;
mod webhook_crash;
mod webhook_isolation;
mod webhook_off;
mod webhook_retries;
mod webhooks;
