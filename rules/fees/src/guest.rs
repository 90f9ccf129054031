//! The exports of the component. Nothing is decided here.

#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/rules.wit",
        world: "fee-pack",
        with: { "railhead:rules/facts@0.1.0": railhead_rule::imports::facts },
    });
    export!(Fees with_types_in self);
    use super::Fees;
}

use std::cell::RefCell;

use bindings::exports::railhead::rules::fees::{Guest as Pricing, Kind, Line};
use bindings::exports::railhead::rules::pack::{Guest as Pack, Problem};
use railhead_rule::{Fact, Facts};

use crate::price;
use crate::rules::Rules;

struct Fees;

thread_local! {
    static RULES: RefCell<Option<Rules>> = const { RefCell::new(None) };
}

impl Pack for Fees {
    fn open(rules: String) -> Result<(), Vec<Problem>> {
        let rules = Rules::read(&rules).map_err(|problems| {
            let problems = problems.into_iter();
            problems
                .map(|found| Problem { at: found.at, message: found.message })
                .collect::<Vec<_>>()
        })?;
        RULES.set(Some(rules));
        Ok(())
    }
}

impl Pricing for Fees {
    fn price(payouts: Vec<Vec<Fact>>) -> Vec<Result<Vec<Line>, String>> {
        RULES.with_borrow(|rules| {
            payouts
                .iter()
                .map(|facts| match rules {
                    Some(rules) => price::price(rules, Facts(facts)).map(lines),
                    None => Err("the pack was not opened".into()),
                })
                .collect()
        })
    }
}

fn lines(lines: Vec<price::Line>) -> Vec<Line> {
    lines
        .into_iter()
        .map(|line| Line {
            kind: match line.kind {
                price::Kind::Fee => Kind::Fee,
                price::Kind::Tax => Kind::Tax,
                price::Kind::Levy => Kind::Levy,
            },
            label: line.label,
            amount_minor: line.amount_minor,
        })
        .collect()
}
