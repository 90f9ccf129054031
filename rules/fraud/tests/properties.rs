//! What holds for any condition and any facts.

#![cfg(not(target_family = "wasm"))]

use std::collections::BTreeSet;

use proptest::prelude::*;
use railhead_facts::{PLAIN, Type};
use railhead_rule::{Action, Fact, Facts, Value, Verdict};
use railhead_rules_fraud::assess::assess;
use railhead_rules_fraud::cel::{List, Names, Param, compile};
use railhead_rules_fraud::rules::Rules;

const BUILT_IN: &str = include_str!("../rules.toml");

fn names() -> Names {
    Names {
        facts: PLAIN.iter().map(|(name, kind, _)| ((*name).to_owned(), *kind)).collect(),
        params: [("cap".to_owned(), Param::Int(1_000))].into(),
        lists: [("banks".to_owned(), List::of_strings(vec!["044".into(), "NGN".into()]))].into(),
    }
}

fn int() -> impl Strategy<Value = i64> {
    let edges = prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX]);
    prop_oneof![edges, any::<i64>(), -10..10_i64, 0..1_000_000_000_i64]
}

fn value(kind: Type) -> BoxedStrategy<Value> {
    let known = match kind {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => int().prop_map(Value::Int).boxed(),
        Type::String => {
            prop_oneof!["NGN|live|single|044|090001|", ".{0,8}"].prop_map(Value::String).boxed()
        }
    };
    prop_oneof![1 => Just(Value::Absent), 4 => known].boxed()
}

/// A value for every plain fact, in order.
fn plain_values() -> impl Strategy<Value = Vec<Value>> {
    PLAIN.iter().map(|(_, kind, _)| value(*kind)).collect::<Vec<_>>()
}

/// The facts that the built-in rules ask for, with any values.
fn built_in_facts() -> impl Strategy<Value = Vec<Fact>> {
    let rules = Rules::read(BUILT_IN).unwrap_or_else(|problems| panic!("{problems:?}"));
    let facts: Vec<_> = rules
        .facts()
        .iter()
        .map(|(name, kind)| {
            let name = name.clone();
            value(*kind).prop_map(move |value| Fact { name: name.clone(), value })
        })
        .collect();
    facts
}

fn of_type(kind: Type) -> impl Strategy<Value = String> {
    let fit = PLAIN.iter().filter(move |(_, known, _)| *known == kind);
    prop::sample::select(fit.map(|(name, _, _)| (*name).to_owned()).collect::<Vec<_>>())
}

/// Expressions that pass the check, of each type.
fn ints(depth: u32) -> BoxedStrategy<String> {
    let number = int().prop_map(|number| format!("({number})"));
    let leaf = prop_oneof![of_type(Type::Int), number, Just("cap".to_owned())];
    if depth == 0 {
        return leaf.boxed();
    }
    let sides =
        (ints(depth - 1), prop::sample::select(vec!["+", "-", "*", "/", "%"]), ints(depth - 1));
    prop_oneof![
        leaf,
        sides.prop_map(|(left, sign, right)| format!("({left} {sign} {right})")),
        ints(depth - 1).prop_map(|inner| format!("-{inner}")),
        strings(depth - 1).prop_map(|text| format!("size({text})")),
        (bools(depth - 1), ints(depth - 1), ints(depth - 1))
            .prop_map(|(condition, one, other)| format!("({condition} ? {one} : {other})")),
    ]
    .boxed()
}

fn strings(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![of_type(Type::String), "'[a-zA-Z0-9 é]{0,4}'"];
    if depth == 0 {
        return leaf.boxed();
    }
    let choice = (bools(depth - 1), strings(depth - 1), strings(depth - 1))
        .prop_map(|(condition, one, other)| format!("({condition} ? {one} : {other})"));
    prop_oneof![leaf, choice].boxed()
}

fn bools(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![of_type(Type::Bool), Just("true".to_owned()), Just("false".to_owned())];
    if depth == 0 {
        return leaf.boxed();
    }
    let signs = || prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let tests = prop::sample::select(vec!["startsWith", "endsWith", "contains"]);
    let joined = |(left, sign, right)| format!("({left} {sign} {right})");
    prop_oneof![
        1 => leaf,
        4 => (ints(depth - 1), signs(), ints(depth - 1)).prop_map(joined),
        2 => (strings(depth - 1), signs(), strings(depth - 1)).prop_map(joined),
        4 => (bools(depth - 1), prop::sample::select(vec!["&&", "||", "==", "!="]), bools(depth - 1))
            .prop_map(joined),
        1 => bools(depth - 1).prop_map(|inner| format!("!{inner}")),
        1 => ints(depth - 1).prop_map(|inner| format!("({inner} == null)")),
        1 => (strings(depth - 1), tests, strings(depth - 1))
            .prop_map(|(left, test, right)| format!("{left}.{test}({right})")),
        1 => ints(depth - 1).prop_map(|inner| format!("({inner} in [1, -2, 3])")),
        1 => strings(depth - 1).prop_map(|inner| format!("({inner} in banks)")),
    ]
    .boxed()
}

/// A sign, and the one that says the same with its sides changed.
fn comparing() -> impl Strategy<Value = (&'static str, &'static str)> {
    let signs = [("==", "=="), ("!=", "!="), ("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")];
    prop::sample::select(signs.to_vec())
}

fn severity(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Hold => 1,
        Action::Block => 2,
    }
}

fn sound(verdict: &Verdict) -> bool {
    let most = verdict.hits.iter().map(|hit| severity(hit.action)).max().unwrap_or(0);
    let labels: BTreeSet<_> = verdict.hits.iter().map(|hit| &hit.label).collect();
    let allowing = verdict.hits.iter().position(|hit| hit.action == Action::Allow);
    severity(verdict.action) == most
        && labels.len() == verdict.hits.len()
        && allowing.is_none_or(|at| at + 1 == verdict.hits.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = compile(&text, &names());
    }

    #[test]
    fn any_tokens_are_read_or_refused(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "amount_minor", "currency", "first_payment", "banks", "null", "true", "1", "'x'", "==",
            "!=", "<", "&&", "||", "!", "-", "+", "/", "%", "in", "?", ":", "(", ")", "[", "]", ",",
            ".", "size", "contains", "{", "0x", "\"", "\\", "//", "\n",
        ]), 0..20),
        values in plain_values(),
    ) {
        if let Ok(condition) = compile(&tokens.join(" "), &names()) {
            let known: Vec<&Value> = values.iter().collect();
            let _ = condition.holds(&known);
        }
    }

    #[test]
    fn any_condition_of_the_right_types_is_worked_out(
        text in bools(4),
        values in plain_values(),
    ) {
        let condition = match compile(&text, &names()) {
            Ok(condition) => condition,
            Err(refused) if text.len() > 4_096 => {
                prop_assert!(refused.contains("bytes"));
                return Ok(());
            }
            Err(refused) => return Err(TestCaseError::fail(format!("{refused}: {text}"))),
        };
        let known: Vec<&Value> = values.iter().collect();
        prop_assert_eq!(condition.holds(&known), condition.holds(&known));
        // Whatever the host gives, there is an answer.
        let _ = condition.holds(&known[..known.len() / 2]);
        let turned: Vec<&Value> = values.iter().rev().collect();
        let _ = condition.holds(&turned);
    }

    /// Facts against constants, and what one operator joins, are worked out in ways of their own.
    #[test]
    fn the_same_condition_in_other_words_holds_for_the_same_facts(
        (fact, number, signs) in (of_type(Type::Int), int(), comparing()),
        (text, constant, test) in (of_type(Type::String), "NGN|live|044|", comparing()),
        (one, two, three, join) in (bools(1), bools(1), bools(1), "&&|[|]{2}"),
        values in plain_values(),
        turned in any::<bool>(),
    ) {
        let (sign, changed) = signs;
        for [plain, other] in [
            [format!("{fact} {sign} {number}"), format!("{fact} + 0 {sign} {number}")],
            [format!("{fact} {sign} {number}"), format!("{number} {changed} {fact}")],
            [
                format!("{text} {} '{constant}'", test.0),
                format!("(true ? {text} : '') {} '{constant}'", test.0),
            ],
            [
                format!("({one} {join} {two}) {join} {three}"),
                format!("{one} {join} ({two} {join} {three})"),
            ],
            [
                format!("{one} {join} {two} {join} {three}"),
                format!("(({one} {join} {two}) == true) {join} {three}"),
            ],
        ] {
            let mut known: Vec<&Value> = values.iter().collect();
            // Facts of other types are faults, and the first one is told.
            if turned {
                known.reverse();
            }
            let holds = |text: &str| compile(text, &names()).map(|it| it.holds(&known));
            let (plain, other) = ((holds(&plain), plain), (holds(&other), other));
            prop_assert!(plain.0.is_ok(), "{plain:?}");
            prop_assert_eq!(&plain.0, &other.0, "{} and {}", plain.1, other.1);
        }
    }

    #[test]
    fn nothing_known_matches_no_comparison(left in ints(2), sign in "==|!=|<|>|<=|>=") {
        let condition = compile(&format!("{left} + amount_minor {sign} 5"), &names());
        let holds = condition.map(|condition| condition.holds(&[]));
        prop_assert!(!matches!(holds, Ok(Ok(true)) | Err(_)), "{holds:?}");
    }

    #[test]
    fn any_file_is_read_or_refused(text in "\\PC{0,200}", when in "\\PC{0,30}") {
        let _ = Rules::read(&text);
        let head = "manifest = 1\n[pack]\nfacts = ['hour']\n[[rule]]\nlabel = 'a'\naction = 'hold'\n";
        let _ = Rules::read(&format!("{head}reason = 'x'\nwhen = '''{when}'''\n"));
    }

    #[test]
    fn verdicts_depend_on_nothing_but_the_facts(
        first in built_in_facts(),
        second in built_in_facts(),
    ) {
        let rules = Rules::read(BUILT_IN).map_err(|_| TestCaseError::fail("the built-in rules"))?;
        let alone = assess(&rules, &Facts(&second));
        let before = assess(&rules, &Facts(&first));
        let after = assess(&rules, &Facts(&second));
        prop_assert_eq!(&alone, &after);
        prop_assert!(sound(&alone) && sound(&before));
        let mut turned = second;
        turned.reverse();
        prop_assert_eq!(&alone, &assess(&rules, &Facts(&turned)));
    }
}
