//! The shape of the code: who may use whom, and how long a file may be.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod dependencies;
mod manifest_keys;
mod simulators;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A file that is longer has more than one subject.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file below a folder, with its path from there.
fn rust_files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let shown = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.push((shown, text));
            }
        }
    }
    files
}

/// The parts of the host from the lowest to the highest, as its architecture page lists them.
fn parts() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("host/ARCHITECTURE.md")).unwrap();
    let list = page.split("```parts\n").nth(1).expect("a list of parts on the page");
    let list = list.split("```").next().unwrap();
    let lines =
        list.lines().flat_map(|line| line.split_once(':').expect("level: parts").1.split(' '));
    lines.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The host's crates and where their code is. What one crate may use of another is in their
/// manifests; what a part may use of its own crate is tested here.
const CRATES: [(&str, &str); 4] = [
    ("core", "host/core/src"),
    ("ledger", "host/ledger/src"),
    ("wasm", "host/wasm/src"),
    ("host", "host/src"),
];

/// The part that a file belongs to: its folder or its name, or its whole crate.
fn part_of(crate_: &str, file: &str) -> Option<String> {
    match (crate_, file) {
        ("wasm", _) => Some("wasm".to_owned()),
        (_, "lib.rs") => None,
        _ => Some(file.split('/').next().unwrap().trim_end_matches(".rs").to_owned()),
    }
}

/// Names that follow `crate::`, alone or in braces.
fn uses(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_heads(group)),
            None => found.extend(head(rest)),
        }
    }
    found
}

fn head(path: &str) -> Option<String> {
    let name: String =
        path.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The first names of each path in a group of imports.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut heads) = (0_u32, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match (letter, depth) {
            ('{', _) => depth += 1,
            ('}', 0) => {
                heads.extend(head(&group[start..at]));
                return heads;
            }
            ('}', _) => depth -= 1,
            (',', 0) => {
                heads.extend(head(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    heads
}

#[test]
fn a_part_uses_only_parts_below_it() {
    let parts = parts();
    let level = |name: &str| parts.iter().position(|part| part == name);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (crate_, folder) in CRATES {
        for (file, text) in rust_files(&root().join(folder)) {
            let Some(own) = part_of(crate_, &file) else { continue };
            let Some(own_level) = level(&own) else {
                wrong.push(format!("{folder}/{file}: {own} is not on the architecture page"));
                continue;
            };
            for used in uses(&text) {
                // A crate that is one part calls its own modules by name.
                let is_own = used == own || (crate_ == own && level(&used).is_none());
                if !is_own && level(&used).is_none_or(|level| level >= own_level) {
                    wrong.push(format!("{folder}/{file} uses {used}"));
                }
            }
            seen.insert(own);
        }
    }
    for part in &parts {
        if !seen.contains(part) {
            wrong.push(format!("{part} is on the architecture page and not in the code"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_have_one_subject() {
    let long: Vec<String> = rust_files(&root())
        .into_iter()
        .map(|(file, text)| (file, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(file, lines)| format!("{file}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The simulator plays the other side: code that it shared with a rail would hide its faults.
#[test]
fn the_simulator_shares_nothing_with_the_rails() {
    for (file, text) in rust_files(&root().join("host/src/simulator")) {
        assert!(!text.contains("railhead_rail"), "simulator/{file}");
    }
    let manifest = std::fs::read_to_string(root().join("host/Cargo.toml")).unwrap();
    assert!(!manifest.contains("railhead-rail"), "the host depends on a guest's crate");
}

#[test]
fn groups_of_imports_are_read() {
    let found =
        uses("use crate::{app, db::{Db, Tx}, http};\nuse crate::clock::Clock;\n// crate::no");
    assert_eq!(Vec::from_iter(found), ["app", "clock", "db", "http"]);
}
