//! Verdicts on single payouts.

use railhead_rule::{Action, Facts, Hit, Value, Verdict};

use crate::cel::Fault;
use crate::rules::Rules;

/// Looks at the rules in their order. Every match is a hit; a match that allows ends the look.
///
/// A rule that cannot be worked out holds the payout, whatever it would have asked for: a
/// person looks at it rather than nobody.
#[must_use]
pub fn assess(rules: &Rules, facts: &Facts<'_>) -> Verdict {
    let names = rules.facts().iter().enumerate();
    let known: Vec<&Value> = names.map(|(place, (name, _))| facts.at(place, name)).collect();
    let mut hits = Vec::new();
    for rule in rules.rules() {
        match rule.when.holds(&known) {
            Ok(false) => {}
            Ok(true) => {
                let hit = Hit::new(&rule.label, rule.action, &rule.reason);
                hits.push(Hit { public: rule.public.clone(), ..hit });
                if rule.action == Action::Allow {
                    break;
                }
            }
            Err(fault) => {
                let reason = format!("The rule could not be worked out: {}.", why(rules, fault));
                hits.push(Hit::new(&rule.label, Action::Hold, &reason));
            }
        }
    }
    Verdict::of(hits)
}

fn why(rules: &Rules, fault: Fault) -> String {
    match fault {
        Fault::WrongType(place) => match rules.facts().get(place) {
            Some((name, kind)) => format!("the fact {name} is not of type {}", kind.name()),
            None => fault.to_string(),
        },
        Fault::Overflow | Fault::DivisionByZero => fault.to_string(),
    }
}
