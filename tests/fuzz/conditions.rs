//! Conditions of fraud rules: what is accepted decides, in the sandbox and within its fuel.

use std::sync::Arc;

use railhead::config::limits;
use railhead::keyring::Keyring;
use railhead::rules::Pack;
use railhead::wasm::module::repack;
use railhead::wasm::pack::{Action, Fact, Value};
use railhead::wasm::section::CustomSections;
use railhead::wasm::{CodeCache, Engines};
use railhead_facts::{PLAIN, Type};
use railhead_rules_fraud::cel::{CONDITION_BYTES_MAX, Names, compile};

use crate::inputs::fuzz;

const WORDS: &[&str] = &[
    "amount_minor",
    "currency",
    "first_payment",
    "recipient_name",
    "hour",
    "customer",
    "'NGN'",
    "== null",
    " == ",
    " != ",
    " < ",
    " >= ",
    " && ",
    " || ",
    "!",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " in ['a', 'b']",
    " in [1, 2]",
    " ? ",
    " : ",
    "size(currency)",
    ".contains('a')",
    ".startsWith(currency)",
    ".endsWith('')",
    ".matches('a')",
    "has(",
    "1u",
    "1.5",
    "0x7f",
    "true",
    "false",
    "--",
    "((((((((((",
    "))))))))))",
    "// what",
    "[",
    "]",
    "amount_minor.b",
    "b'x'",
    "r'\\'",
];

/// Bytes of a fact that is a text: as long as names are. Looking for a word in it takes up to
/// ninety units of fuel for each byte, and a condition has room for nearly two hundred words.
const TEXT_BYTES: usize = 100;

/// Facts that take a pack the most work, and such as are absent.
fn facts() -> [Vec<Fact>; 3] {
    let value = |kind: Type, number: i64, text: &str| match kind {
        Type::Bool => Value::Bool(number > 0),
        Type::Int => Value::Int(number),
        Type::String => Value::String(text.into()),
    };
    let all = |number, text: &str| {
        let fact = |(name, kind, _): &(&str, Type, &str)| Fact {
            name: (*name).into(),
            value: value(*kind, number, text),
        };
        PLAIN.iter().map(fact).collect::<Vec<_>>()
    };
    let nothing =
        PLAIN.iter().map(|(name, ..)| Fact { name: (*name).into(), value: Value::Absent });
    [all(7, &"a".repeat(TEXT_BYTES)), all(i64::MIN, ""), nothing.collect()]
}

fn names() -> Names {
    let facts = PLAIN.iter().map(|(name, kind, _)| ((*name).to_owned(), *kind)).collect();
    Names { facts, ..Names::default() }
}

fn rules(condition: &str) -> String {
    let facts: Vec<&str> = PLAIN.iter().map(|(name, ..)| *name).collect();
    // A text of JSON is one of TOML, but for this one character.
    let when = serde_json::to_string(condition).expect("a text").replace('\u{7f}', "\\u007f");
    format!(
        "manifest = 1\n[pack]\nname = \"fuzz\"\nversion = \"1\"\nkind = \"fraud\"\n\
         contract = \"railhead:rules@0.1.0\"\ntitle = \"Fuzz\"\nfacts = {facts:?}\n\
         [[rule]]\nlabel = \"it\"\naction = \"hold\"\nreason = \"It holds.\"\nwhen = {when}\n"
    )
}

#[test]
fn conditions() {
    let folder = tempfile::tempdir().expect("a folder");
    let keyring = Arc::new(Keyring::from_hex(&["11".repeat(32)]).expect("a key"));
    let cache = CodeCache::new(Some(folder.path().to_owned()), keyring);
    let engines = Engines::start().expect("engines");
    let found = railhead::built_in::COMPONENTS.iter().find(|(name, _)| *name == "rules/fraud");
    let component = found.expect("a pack").1;
    let (names, payouts) = (names(), facts());
    fuzz("conditions", WORDS, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let condition = compile(text, &names);
        if condition.is_err() || text.trim().is_empty() {
            return;
        }
        assert!(text.len() <= CONDITION_BYTES_MAX, "{} bytes", text.len());
        let sections = CustomSections { declaration: rules(text), ..CustomSections::default() };
        let packed = repack(component, &sections).expect("a component");
        let pack = Pack::load(&engines, &cache, &packed);
        let pack = pack.unwrap_or_else(|why| panic!("accepted here, refused there: {why}"));
        for facts in &payouts {
            let decided = pack.code.assess(std::slice::from_ref(facts));
            let verdicts = decided.unwrap_or_else(|why| panic!("it did not decide: {why}"));
            assert_eq!(verdicts.len(), 1);
            let again = pack.code.assess(std::slice::from_ref(facts)).expect("as before");
            assert_eq!(verdicts, again);
            let hit = verdicts[0].hits.iter().any(|hit| hit.label == "it");
            assert_eq!(hit, verdicts[0].action == Action::Hold, "{verdicts:?}");
        }
        assert!(pack.code.fuel_max() <= limits::PACK_FUEL_PER_DECISION);
    });
}
