//! `rail.toml`, and the component that it travels in.

use railhead::rails::declaration::Declaration;
use railhead::wasm::module::{custom_sections, declaration, repack};
use railhead::wasm::section::{CustomSections, pack};

use crate::inputs::fuzz;

/// A component with nothing in it.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

const WORDS: &[&str] = &[
    "manifest = 2",
    "[rail]",
    "name = ",
    "[[methods]]",
    "currency = \"NGN\"",
    "step = 7",
    "[recipient]",
    "[[recipient.fields]]",
    "pattern = \"^[0-9]{10}$\"",
    "(a{9}{9}{9})",
    "(?i)",
    "[query]",
    "schedule_s = [0]",
    "[[endpoints.gateway.calls]]",
    "method = \"POST\"",
    "path = \"/a/*\"",
    "moves_money = true",
    "[[notices]]",
    "auth = { bearer = \"key\" }",
    "[secrets.key]",
    "[tables.banks]",
    "[scenarios]",
    "[redact]",
    "exponent = ",
    "amount_minor_max = ",
    "'''",
    "= [",
    "= {",
];

#[test]
fn declarations() {
    fuzz("declarations", WORDS, |input| {
        travels(input);
        let Ok(text) = std::str::from_utf8(input) else { return };
        match Declaration::read(text) {
            Ok(read) => sound(text, &read),
            Err(why) => assert!(why.to_string().len() < 4 * text.len() + 1_000, "{why}"),
        }
    });
}

fn sound(text: &str, read: &Declaration) {
    assert_eq!(read.manifest, 2);
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    assert!(!read.rail.name.is_empty() && read.rail.name.bytes().all(is_plain));
    assert!(!read.query.schedule_s.is_empty() && !read.query.schedule_s.contains(&0));
    assert!(!read.methods.is_empty());
    for terms in &read.methods {
        assert!(read.method(terms.currency, &terms.name).is_some() && terms.step > 0);
        assert!(read.currencies().contains(&terms.currency));
    }
    let mut calls = std::collections::BTreeSet::new();
    for call in read.endpoints.values().flat_map(|endpoint| &endpoint.calls) {
        assert!(calls.insert(&call.name) && call.path.starts_with('/'));
    }
    for notice in &read.notices {
        assert!(notice.auth.bearer.as_ref().is_none_or(|it| read.secrets.contains_key(it)));
    }
    let again = Declaration::read(text).expect("the same as before");
    assert_eq!(format!("{again:?}"), format!("{read:?}"));
}

/// What is packed into a component is what comes out of it, whatever it is.
fn travels(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    let sections = CustomSections {
        declaration: text.clone(),
        tables: vec![("banks".into(), input.to_vec())],
        calendars: vec![("days".into(), input.to_vec())],
        cases: vec![("first.toml".into(), input.to_vec())],
        simulator: Some(input.to_vec()),
    };
    let packed = pack(EMPTY, &sections);
    let out = custom_sections(&packed).expect("a component");
    assert_eq!(
        (&out.declaration, &out.tables, &out.calendars, &out.cases, &out.simulator),
        (&text, &sections.tables, &sections.calendars, &sections.cases, &sections.simulator)
    );
    let other = CustomSections { declaration: "other".into(), ..CustomSections::default() };
    assert_eq!(repack(&packed, &other).expect("a component"), pack(EMPTY, &other));
    // The text itself is hardly a component; reading it as one must not hurt.
    assert!(declaration(input).is_none_or(|found| found.len() <= input.len()));
}
