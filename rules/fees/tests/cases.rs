//! The cases that the pack ships with.

#![cfg(not(target_family = "wasm"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use railhead_rule::{Facts, Kind, Value, fact};
use railhead_rules_fees::price::price;
use railhead_rules_fees::rules::Rules;
use serde::Deserialize;

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
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    no_price: bool,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
struct Line {
    kind: String,
    amount_minor: i64,
}

#[test]
fn the_built_in_rules_price_their_cases() {
    let rules = Rules::read(include_str!("../rules.toml")).expect("valid");
    let cases: Cases = toml::from_str(include_str!("../cases/naira.toml")).unwrap();
    for case in cases.case {
        let facts: Vec<_> = case
            .facts
            .iter()
            .map(|(name, value)| match value {
                toml::Value::Integer(number) => fact(name, *number),
                toml::Value::String(text) => fact(name, text.as_str()),
                _ => fact(name, Value::Absent),
            })
            .collect();
        let priced = price(&rules, &Facts(&facts));
        assert_eq!(priced.is_err(), case.no_price, "{}", case.name);
        let lines: Vec<_> = priced
            .into_iter()
            .flatten()
            .map(|line| Line {
                kind: match line.kind {
                    Kind::Fee => "fee".to_owned(),
                    Kind::Tax => "tax".to_owned(),
                    Kind::Levy => "levy".to_owned(),
                },
                amount_minor: line.amount_minor,
            })
            .collect();
        assert_eq!(lines, case.lines, "{}", case.name);
    }
}
