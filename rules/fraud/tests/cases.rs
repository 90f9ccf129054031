//! The cases that the pack ships with, and that they leave no rule out.

#![cfg(not(target_family = "wasm"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use railhead_rule::{Action, Fact, Facts, Value, fact};
use railhead_rules_fraud::assess::assess;
use railhead_rules_fraud::rules::Rules;
use serde::Deserialize;

const BUILT_IN: &str = include_str!("../rules.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    facts: toml::Table,
    action: String,
    hits: Vec<String>,
}

fn cases() -> Vec<Case> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Cases =
            toml::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        cases.extend(read.case);
    }
    cases
}

/// As the host gives them: in the declared order, absent where the case says nothing.
fn given(rules: &Rules, case: &Case) -> Vec<Fact> {
    for name in case.facts.keys() {
        assert!(rules.facts().iter().any(|(known, _)| known == name), "{}: {name}", case.name);
    }
    let value = |name: &str| match case.facts.get(name) {
        Some(toml::Value::Boolean(value)) => Value::Bool(*value),
        Some(toml::Value::Integer(number)) => Value::Int(*number),
        Some(toml::Value::String(text)) => Value::String(text.clone()),
        Some(other) => panic!("{}: {name} = {other:?}", case.name),
        None => Value::Absent,
    };
    rules.facts().iter().map(|(name, _)| fact(name, value(name))).collect()
}

const fn word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Hold => "hold",
        Action::Block => "block",
    }
}

#[test]
fn the_built_in_rules_decide_their_cases() {
    let rules = Rules::read(BUILT_IN).expect("valid");
    for case in cases() {
        let verdict = assess(&rules, &Facts(&given(&rules, &case)));
        let hits: Vec<_> = verdict.hits.iter().map(|hit| hit.label.as_str()).collect();
        assert_eq!(
            (word(verdict.action), hits),
            (case.action.as_str(), case.hits.iter().map(String::as_str).collect()),
            "{}",
            case.name
        );
    }
}

#[test]
fn every_rule_has_a_case_but_for_empty_lists() {
    let rules = Rules::read(BUILT_IN).expect("valid");
    let hit: BTreeSet<String> = cases().into_iter().flat_map(|case| case.hits).collect();
    let missed: Vec<_> = rules
        .rules()
        .iter()
        .map(|rule| &rule.label)
        .filter(|label| !hit.contains(*label))
        .collect();
    assert_eq!(missed, ["blocked_bank", "blocked_account", "trusted_account"]);
}

#[test]
fn lists_that_are_filled_in_count() {
    let text = BUILT_IN
        .replace("blocked_banks = []", "blocked_banks = ['090001']")
        .replace("blocked_accounts = []", "blocked_accounts = ['bad']")
        .replace("trusted_accounts = []", "trusted_accounts = ['own']");
    let rules = Rules::read(&text).expect("valid");
    let decided = |bank: &str, recipient: &str| {
        let facts = [
            fact("bank_code", bank),
            fact("recipient", recipient),
            fact("currency", "NGN"),
            fact("amount_minor", 600_000_000),
        ];
        let verdict = assess(&rules, &Facts(&facts));
        let hits: Vec<_> = verdict.hits.into_iter().map(|hit| hit.label).collect();
        (word(verdict.action), hits.join(" "))
    };
    assert_eq!(decided("090001", "x"), ("block", "blocked_bank amount_cap".into()));
    assert_eq!(decided("090002", "bad"), ("block", "blocked_account amount_cap".into()));
    assert_eq!(decided("090002", "own"), ("allow", "trusted_account".into()));
    assert_eq!(decided("090001", "own"), ("block", "blocked_bank trusted_account".into()));
    assert_eq!(decided("090002", "x"), ("hold", "amount_cap".into()));
}
