//! Answers and messages that no network should send, for the tests of rails that read JSON.
//!
//! They are made out of a corpus, in two ways. Some have their bytes damaged: one is another, or
//! missing, or the text ends too early. Others are well written and say something else: members
//! are missing or stand twice, have another name or another type, or a value of another message,
//! numbers are huge, lists lie in lists.
//!
//! What a rail makes of one is compared with what stands in it ([`Json::only`]): a rail that
//! believes what stands nowhere, or twice, has misread it.

use proptest::test_runner::Config as ProptestConfig;

mod changes;
mod json;

pub use changes::{Damaged, damaged, each_change};
pub use json::Json;

/// How a property is tried: on thousands of cases, or on as many as `PROPTEST_CASES` says. Which
/// ones, `PROPTEST_RNG_SEED` says.
#[must_use]
pub fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok());
    let default = ProptestConfig::default();
    ProptestConfig { cases: cases.unwrap_or(4_096), failure_persistence: None, ..default }
}

/// The bodies that stand in a file of conformance cases, each between single quotes.
#[must_use]
pub fn bodies(cases: &str) -> Vec<String> {
    let after = cases.split("body = '").skip(1);
    after.filter_map(|rest| rest.split_once('\'')).map(|(body, _)| body.to_owned()).collect()
}
