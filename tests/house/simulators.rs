//! The other side of a rail's network is not written by the rail's own code: a misunderstanding
//! that both shared would cancel itself out.

use std::path::{Component, Path, PathBuf};

use crate::{root, rust_files};

/// What a simulator may be built with beside crates from elsewhere.
const KIT: &str = "rails/simulator";
/// Attributes and macros that bring in another file.
const BRINGS_IN: [&str; 4] = ["#[path", "include!(", "include_str!(", "include_bytes!("];

/// Folders of rails that bring a simulator, from the root.
fn rails() -> Vec<String> {
    let mut found = Vec::new();
    for parent in ["rails", "examples"] {
        for entry in std::fs::read_dir(root().join(parent)).unwrap() {
            let folder = entry.unwrap().path();
            if folder.join("simulator/Cargo.toml").is_file() {
                let name = folder.file_name().unwrap().to_string_lossy().into_owned();
                found.push(format!("{parent}/{name}"));
            }
        }
    }
    found.sort();
    found
}

fn manifest(folder: &Path) -> toml::Table {
    std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap()
}

/// Everything that a manifest depends on, for whatever and wherever: the crate, and its folder from
/// the root if it has one.
fn dependencies(folder: &Path) -> Vec<(String, Option<PathBuf>)> {
    let manifest = manifest(folder);
    let of_targets = manifest.get("target").and_then(toml::Value::as_table);
    let of_targets = of_targets.into_iter().flat_map(toml::Table::values);
    let mut places: Vec<&toml::Table> = of_targets.filter_map(toml::Value::as_table).collect();
    places.push(&manifest);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let mut found = Vec::new();
    for place in places {
        let tables = kinds.iter().filter_map(|kind| place.get(*kind)?.as_table());
        for (name, wanted) in tables.flatten() {
            let text = |key: &str| Some(wanted.get(key)?.as_str()?.to_owned());
            let path = text("path").map(|path| plain(&folder.join(path)));
            found.push((text("package").unwrap_or_else(|| name.clone()), path));
        }
    }
    found
}

/// A path from the root, without ways up and down again.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{}", path.display()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.strip_prefix(root()).unwrap_or(&plain).to_owned()
}

/// The files that a text brings in by name, as it writes them. A name that is put together may be
/// anything, and stands as the root of everything.
fn brought_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in BRINGS_IN.iter().flat_map(|word| text.match_indices(word)) {
        let end = text[at..].find(']').into_iter().chain(text[at..].find(')')).min();
        let whole = &text[at..at + end.unwrap_or(text.len() - at)];
        let is_put_together = whole.contains("env!(") || whole.contains("concat!(");
        let name = whole.split('"').nth(1).filter(|_| !is_put_together);
        found.push(name.unwrap_or("/").to_owned());
    }
    found
}

/// Nor on another rail, nor on what rails are built with.
#[test]
fn no_simulator_depends_on_its_rail() {
    let rails = rails();
    assert!(rails.len() >= 5, "{rails:?}");
    for rail in &rails {
        let folder = root().join(rail).join("simulator");
        let own = manifest(&root().join(rail))["package"]["name"].as_str().unwrap().to_owned();
        let found = dependencies(&folder);
        assert!(found.iter().any(|(_, path)| path.as_deref() == Some(Path::new(KIT))), "{rail}");
        for (name, path) in found {
            let is_rails = name == own || name.starts_with("railhead-rail");
            assert!(!is_rails, "{rail}/simulator depends on {name}");
            if let Some(path) = path {
                assert_eq!(path, Path::new(KIT), "{rail}/simulator depends on {name}");
            }
        }
    }
}

/// A rail that was tried with its simulator's own code would be tried with nothing.
#[test]
fn no_rail_depends_on_a_simulator() {
    for rail in rails() {
        for (name, path) in dependencies(&root().join(&rail)) {
            let is_simulator = name.contains("simulator");
            let leads_there = path.is_some_and(|path| path.ends_with("simulator"));
            assert!(!is_simulator && !leads_there, "{rail} depends on {name}");
        }
    }
}

/// Neither brings in a file of the other's: a simulator none from outside its folder, and a rail
/// none from inside it.
#[test]
fn no_simulator_shares_a_file_with_its_rail() {
    for rail in rails() {
        let folder = root().join(&rail);
        for (file, text) in rust_files(&folder) {
            let is_simulators = file.starts_with("simulator/");
            let from = folder.join(&file);
            for name in brought_in(&text) {
                let there = plain(&from.parent().unwrap().join(&name));
                let is_there = there.starts_with(Path::new(&rail).join("simulator"));
                assert_eq!(is_there, is_simulators, "{rail}/{file} brings in {name}");
            }
        }
    }
}

/// Attributes and macros are found, whatever stands around them.
#[test]
fn what_is_brought_in_is_read() {
    let text = "#[path = \"tests/a.rs\"]\nmod a;\nconst B: &str = include_str!(\"../b.csv\");\n\
                include!(concat!(env!(\"OUT_DIR\"), \"/c.rs\"));";
    assert_eq!(brought_in(text), ["tests/a.rs", "/", "../b.csv"]);
    assert_eq!(plain(&root().join("rails/a/simulator/../src/b.rs")), Path::new("rails/a/src/b.rs"));
}
