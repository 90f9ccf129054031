//! `rail.toml`, and the component that it travels in.

use railhead::rails::declaration::Declaration;
use railhead::wasm::module::{custom_sections, declaration, repack};
use railhead::wasm::section::{CustomSections, pack};

use crate::inputs::fuzz;

/// A component with nothing in it.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

const WORDS: &[&str] = &[
    "manifest = 1",
    "[rail]",
    "name = ",
    "[[currencies]]",
    "code = \"NGN\"",
    "methods = []",
    "[recipient]",
    "[[recipient.fields]]",
    "pattern = \"^[0-9]{10}$\"",
    "(a{9}{9}{9})",
    "(?i)",
    "[query]",
    "schedule_s = [0]",
    "[endpoints.gateway]",
    "methods = [\"POST\"]",
    "[notices]",
    "bearer_secret = ",
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
    assert_eq!(read.manifest, 1);
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    assert!(!read.rail.name.is_empty() && read.rail.name.bytes().all(is_plain));
    assert!(read.currencies.iter().all(|terms| !terms.methods.is_empty()));
    assert!(!read.query.schedule_s.is_empty() && !read.query.schedule_s.contains(&0));
    for terms in &read.currencies {
        assert!(read.currency(terms.code).is_some());
    }
    if let Some(notices) = &read.notices {
        assert!(read.secrets.contains_key(&notices.bearer_secret));
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
        cases: vec![("first.toml".into(), input.to_vec())],
    };
    let packed = pack(EMPTY, &sections);
    let out = custom_sections(&packed).expect("a component");
    assert_eq!(
        (&out.declaration, &out.tables, &out.cases),
        (&text, &sections.tables, &sections.cases)
    );
    let other = CustomSections { declaration: "other".into(), ..CustomSections::default() };
    assert_eq!(repack(&packed, &other).expect("a component"), pack(EMPTY, &other));
    // The text itself is hardly a component; reading it as one must not hurt.
    assert!(declaration(input).is_none_or(|found| found.len() <= input.len()));
}
