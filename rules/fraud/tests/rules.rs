//! Files of rules: what is refused where, and how hits become verdicts.

#![cfg(not(target_family = "wasm"))]
#![expect(clippy::expect_used, reason = "tests")]

use std::fmt::Write;

use railhead_rule::{Action, Fact, Facts, Value, Verdict, fact};
use railhead_rules_fraud::assess::assess;
use railhead_rules_fraud::rules::{LIST_ITEMS_MAX, RULES_MAX, Rules};

const HEAD: &str = "manifest = 1\n[pack]\nname = 'x'\nfacts = ['amount_minor', 'currency']\n";

/// Rules from pairs of condition and action, labelled a, b, c and so on.
fn rules(pairs: &[(&str, &str)]) -> Rules {
    let mut text = HEAD.to_owned();
    for ((when, action), label) in pairs.iter().zip('a'..='z') {
        writeln!(text, "[[rule]]\nlabel = '{label}'\nwhen = \"{when}\"\naction = '{action}'")
            .and_then(|()| writeln!(text, "reason = 'reason {label}'"))
            .expect("memory");
    }
    Rules::read(&text).expect("valid")
}

fn shown(verdict: &Verdict) -> String {
    let word = |action| match action {
        Action::Allow => "allow",
        Action::Hold => "hold",
        Action::Block => "block",
    };
    let hits: Vec<_> =
        verdict.hits.iter().map(|hit| format!("{}={}", hit.label, word(hit.action))).collect();
    format!("{}: {}", word(verdict.action), hits.join(" "))
}

fn payout(amount: i64) -> Vec<Fact> {
    vec![fact("amount_minor", amount), fact("currency", "NGN")]
}

fn decided(pairs: &[(&str, &str)]) -> String {
    shown(&assess(&rules(pairs), &Facts(&payout(100))))
}

#[test]
fn the_most_severe_hit_counts_and_hits_keep_their_order() {
    for (pairs, expected) in [
        (&[("false", "block"), ("amount_minor > 100", "hold")] as &[_], "allow: "),
        (&[("true", "hold")], "hold: a=hold"),
        (&[("true", "block"), ("true", "hold")], "block: a=block b=hold"),
        (&[("true", "hold"), ("true", "block"), ("true", "hold")], "block: a=hold b=block c=hold"),
        // Allowing ends the look.
        (&[("true", "allow"), ("true", "block")], "allow: a=allow"),
        (&[("false", "allow"), ("true", "block")], "block: b=block"),
        (&[("true", "hold"), ("true", "allow"), ("true", "block")], "hold: a=hold b=allow"),
    ] {
        assert_eq!(decided(pairs), expected);
    }
}

#[test]
fn a_rule_that_cannot_be_worked_out_holds() {
    let broken = "amount_minor / 0 == 1";
    for (pairs, expected) in [
        (&[(broken, "hold")] as &[_], "hold: a=hold"),
        (&[(broken, "block")], "hold: a=hold"),
        // It did not match, so the look goes on.
        (&[(broken, "allow"), ("true", "block")], "block: a=hold b=block"),
    ] {
        assert_eq!(decided(pairs), expected);
    }
    let verdict = assess(&rules(&[(broken, "block")]), &Facts(&payout(1)));
    let reasons: Vec<_> = verdict.hits.iter().map(|hit| hit.reason.as_str()).collect();
    assert_eq!(reasons, ["The rule could not be worked out: it divides by zero."]);
    let wrong = [fact("amount_minor", "1"), fact("currency", "NGN")];
    let verdict = assess(&rules(&[("amount_minor > 5", "block")]), &Facts(&wrong));
    let reasons: Vec<_> = verdict.hits.iter().map(|hit| hit.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["The rule could not be worked out: the fact amount_minor is not of type int."]
    );
}

#[test]
fn a_hit_carries_what_merchants_read_beside_the_reason() {
    let rule = "[[rule]]\nlabel = 'a'\nwhen = 'true'\naction = 'hold'\nreason = 'Seen before.'\n";
    for (line, public) in [("", None), ("public = 'We look at it.'\n", Some("We look at it."))] {
        let rules = Rules::read(&format!("{HEAD}{rule}{line}")).expect("valid");
        let verdict = assess(&rules, &Facts(&payout(1)));
        let hit = verdict.hits.first().expect("a hit");
        assert_eq!((hit.reason.as_str(), hit.public.as_deref()), ("Seen before.", public));
    }
}

#[test]
fn facts_count_by_name_in_any_order() {
    let rules = rules(&[("amount_minor == 7 && currency == 'NGN'", "hold")]);
    let held = |facts: &[Fact]| assess(&rules, &Facts(facts)).action == Action::Hold;
    let (amount, currency) = (fact("amount_minor", 7), fact("currency", "NGN"));
    assert!(held(&[amount.clone(), currency.clone()]));
    assert!(held(&[currency.clone(), amount.clone()]));
    assert!(held(&[fact("hour", 1), fact("kind", "x"), amount.clone(), currency]));
    assert!(!held(std::slice::from_ref(&amount)));
    assert!(!held(&[amount, fact("currency", Value::Absent)]));
    assert!(!held(&[]));
}

/// A name for the snapshot, and a file with mistakes.
const REFUSED: &[(&str, &str)] = &[
    ("not TOML", "manifest = "),
    ("no pack", "manifest = 1\n"),
    ("no facts", "manifest = 1\n[pack]\nname = 'x'\n"),
    ("an unknown table", "manifest = 1\n[pack]\nfacts = []\n[[rules]]\nlabel = 'a'\n"),
    (
        "an unknown key of a rule",
        "manifest = 1\n[pack]\nfacts = []\n[[rule]]\nlabel = 'a'\nif = 'true'\n",
    ),
    (
        "facts",
        "manifest = 1\n[pack]\nfacts = ['hour', 'hours', 'hour', 'velocity', 'sum_per_wallet_90d']\n",
    ),
    (
        "names",
        "manifest = 1\n[pack]\nfacts = []\n\
         [params]\namount_minor = 1\nwhile = 1\nBig = 1\nx = 1.5\ny = [1]\n1st = 1\ntwice = 1\n\
         [lists]\ncount_per_bank_1h = []\nb = 'x'\nc = [1, 'x']\nd = [[1]]\ntwice = []\n",
    ),
    (
        "rules",
        "manifest = 1\n[pack]\nfacts = ['hour']\n\
         [[rule]]\nlabel = 'A b'\nwhen = 'true'\naction = 'hold'\nreason = 'x'\n\
         [[rule]]\nlabel = ''\nwhen = 'hour'\naction = 'refuse'\nreason = ' '\n\
         [[rule]]\nlabel = 'fine'\nwhen = 'hour > 5'\naction = 'hold'\nreason = 'x'\n\
         [[rule]]\nlabel = 'fine'\nwhen = \"hour == 'x'\"\naction = 'hold'\nreason = 'x'\n",
    ),
];

#[test]
fn refusals() {
    let mut told = String::new();
    for (name, text) in REFUSED {
        writeln!(told, "# {name}").expect("memory");
        for problem in Rules::read(text).expect_err(name) {
            writeln!(told, "{}: {}", problem.at, problem.message.trim_end()).expect("memory");
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn what_grows_has_limits() {
    let rule = "[[rule]]\nlabel = 'a'\nwhen = 'true'\naction = 'hold'\nreason = 'x'\n";
    let refused = |text: String| {
        let problems = Rules::read(&text).expect_err("too much");
        problems.into_iter().map(|problem| problem.at).collect::<Vec<_>>()
    };
    assert_eq!(refused(format!("{HEAD}{}", rule.repeat(RULES_MAX + 1))), ["rule"]);
    let items = "1,".repeat(LIST_ITEMS_MAX + 1);
    assert_eq!(refused(format!("{HEAD}[lists]\nx = [{items}]\n")), ["lists.x"]);
    let long = "x".repeat(501);
    assert_eq!(
        refused(format!("{HEAD}{}", rule.replace("'x'", &format!("'{long}'")))),
        ["rule[0].reason"]
    );
    for text in ["", " ", &"x".repeat(501)] {
        let public = format!("action = 'hold'\npublic = '{text}'");
        let text = format!("{HEAD}{}", rule.replace("action = 'hold'", &public));
        assert_eq!(refused(text), ["rule[0].public"]);
    }
    let long = "x".repeat(65);
    assert_eq!(
        refused(format!("{HEAD}{}", rule.replace("'a'", &format!("'{long}'")))),
        ["rule[0].label"]
    );
}
