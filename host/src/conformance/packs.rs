//! Conformance of rule packs: the cases that a pack ships with, and proof that its answers
//! depend on the facts alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::limits;
use crate::rules::{Action, Pack, PackKind, facts};
use crate::wasm::pack::{Fact, Kind, Line, Value};

/// Sets of facts that are made up for a pack.
const PROBES: usize = 64;

/// What a check found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PackReport {
    /// Cases that were run.
    pub cases: usize,
    /// Sets of facts that were tried in several orders.
    pub probes: usize,
    /// The most fuel that a decision took.
    pub fuel_max: u64,
    /// What did not hold, in words.
    pub failures: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    #[serde(default, rename = "case")]
    cases: Vec<Case>,
}

/// Facts, and what must come of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    facts: BTreeMap<String, toml::Value>,
    action: Option<Action>,
    hits: Option<Vec<String>>,
    lines: Option<Vec<LineCase>>,
    #[serde(default)]
    no_price: bool,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct LineCase {
    kind: String,
    amount_minor: i64,
    label: Option<String>,
}

/// Runs a pack's own cases, then tries it on facts that are made up.
#[must_use]
pub fn check(pack: &Pack) -> PackReport {
    let mut report = PackReport::default();
    for (file, text) in &pack.cases {
        match read(text) {
            Err(why) => report.failures.push(format!("{file}: {why}")),
            Ok(cases) => {
                for case in cases {
                    report.cases += 1;
                    if let Err(why) = run(pack, &case) {
                        report.failures.push(format!("{file}: {}: {why}", case.name));
                    }
                }
            }
        }
    }
    let probes = probes(&pack.about.facts);
    report.probes = probes.len();
    if let Err(why) = depends_on_facts_alone(pack, &probes) {
        report.failures.push(why);
    }
    report.fuel_max = pack.code.fuel_max();
    if report.fuel_max > limits::PACK_FUEL_PER_DECISION / 2 {
        let (used, most) = (report.fuel_max, limits::PACK_FUEL_PER_DECISION);
        report.failures.push(format!("a decision took {used} of {most} units of fuel: over half"));
    }
    report
}

fn read(text: &[u8]) -> Result<Vec<Case>, String> {
    let text = std::str::from_utf8(text).map_err(|cause| cause.to_string())?;
    toml::from_str::<CaseFile>(text).map(|file| file.cases).map_err(|cause| cause.to_string())
}

fn run(pack: &Pack, case: &Case) -> Result<(), String> {
    let facts = given(pack, case)?;
    match pack.about.kind {
        PackKind::Fraud => {
            let verdicts = pack.assess_all(&[facts])?;
            let verdict = verdicts.first().ok_or("no answer")?;
            let expected = case.action.ok_or("a case of a fraud pack needs action")?;
            let labels = verdict.labels();
            if verdict.action != expected {
                let said = verdict.action.as_str();
                return Err(format!("{} was expected, it is {said} {labels:?}", expected.as_str()));
            }
            match &case.hits {
                Some(hits) if *hits != labels => {
                    Err(format!("hits {hits:?} were expected, they are {labels:?}"))
                }
                _ => Ok(()),
            }
        }
        PackKind::Fees => {
            let prices = pack.price_all(&[facts])?;
            match (prices.first().ok_or("no answer")?, &case.lines) {
                (Err(_), None) if case.no_price => Ok(()),
                (Err(why), _) => Err(format!("there is no price: {why}")),
                (Ok(lines), Some(expected)) if same(lines, expected) => Ok(()),
                (Ok(lines), expected) => Err(format!("{expected:?} was expected, it is {lines:?}")),
            }
        }
    }
}

fn same(lines: &[Line], expected: &[LineCase]) -> bool {
    let word = |kind| match kind {
        Kind::Fee => "fee",
        Kind::Tax => "tax",
        Kind::Levy => "levy",
    };
    lines.len() == expected.len()
        && lines.iter().zip(expected).all(|(line, case)| {
            let labelled = case.label.as_ref().is_none_or(|label| *label == line.label);
            labelled && (word(line.kind), line.amount_minor) == (&*case.kind, case.amount_minor)
        })
}

/// The facts of a case in the pack's order; those that it leaves out are absent.
fn given(pack: &Pack, case: &Case) -> Result<Vec<Fact>, String> {
    let wanted = &pack.about.facts;
    if let Some(unknown) = case.facts.keys().find(|name| !wanted.contains(name)) {
        return Err(format!("{unknown} is not among the facts of the pack"));
    }
    let one = |name: &String| {
        let value = match case.facts.get(name) {
            None => Value::Absent,
            Some(toml::Value::Boolean(value)) => Value::Bool(*value),
            Some(toml::Value::Integer(number)) => Value::Int(*number),
            Some(toml::Value::String(text)) => Value::String(text.as_str().into()),
            Some(other) => return Err(format!("{name} cannot be {other}")),
        };
        match facts::fits(name, &value) {
            true => Ok(Fact { name: name.as_str().into(), value }),
            false => Err(format!("{name} is a fact of another type")),
        }
    };
    wanted.iter().map(one).collect()
}

/// Asks about the same facts in an instance of its own each, in one instance backwards, and in
/// one call. A pack that remembers, or counts calls, gives itself away.
fn depends_on_facts_alone(pack: &Pack, probes: &[Vec<Fact>]) -> Result<(), String> {
    let fresh: Vec<String> = probes
        .iter()
        .map(|probe| {
            pack.code.cool();
            answers(pack, std::slice::from_ref(probe)).map(|mut one| one.pop().unwrap_or_default())
        })
        .collect::<Result<_, _>>()?;
    pack.code.cool();
    let mut backwards = Vec::new();
    for probe in probes.iter().rev() {
        backwards.extend(answers(pack, std::slice::from_ref(probe))?);
    }
    backwards.reverse();
    let together = answers(pack, probes)?;
    for (index, answer) in fresh.iter().enumerate() {
        if backwards.get(index) != Some(answer) || together.get(index) != Some(answer) {
            let facts = &probes[index];
            return Err(format!("the answer depends on more than the facts: {facts:?}"));
        }
    }
    Ok(())
}

fn answers(pack: &Pack, probes: &[Vec<Fact>]) -> Result<Vec<String>, String> {
    match pack.about.kind {
        PackKind::Fraud => {
            let verdicts = pack.assess_all(probes)?;
            Ok(verdicts.iter().map(|verdict| format!("{verdict:?}")).collect())
        }
        PackKind::Fees => {
            let prices = pack.price_all(probes)?;
            Ok(prices.iter().map(|price| format!("{price:?}")).collect())
        }
    }
}

/// Facts of the right types, ordinary and extreme, in combinations that do not repeat soon.
fn probes(names: &[String]) -> Vec<Vec<Fact>> {
    let ints = [0, 1, 23, 100, 999_900, 1_000_000, 50_000_000, i64::MAX, i64::MIN];
    let longest = "x".repeat(limits::FACT_TEXT_BYTES_MAX);
    let strings = ["", "NGN", "single", "live", "000014", "Ada Obi", "\u{1F600}", &longest];
    let value = |name: &str, turn: usize| {
        if turn.is_multiple_of(7) {
            return Value::Absent;
        }
        match railhead_facts::type_of(name) {
            Some(railhead_facts::Type::Bool) => Value::Bool(turn.is_multiple_of(2)),
            Some(railhead_facts::Type::Int) => Value::Int(ints[turn % ints.len()]),
            Some(railhead_facts::Type::String) => {
                Value::String(strings[turn % strings.len()].into())
            }
            None => Value::Absent,
        }
    };
    let probe = |round: usize| {
        let facts = names.iter().enumerate();
        facts
            .map(|(place, name)| Fact {
                name: name.as_str().into(),
                value: value(name, 1 + round * 5 + place * 3 + round * place),
            })
            .collect()
    };
    (0..PROBES).map(probe).collect()
}
