//! Where dependencies come from, and on what terms. `deny.toml` says which; cargo-deny, where it
//! is installed, looks closer.

use std::process::Command;

use serde_json::Value;

use crate::root;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn file(name: &str) -> toml::Table {
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    text.parse().unwrap()
}

/// Licences that are accepted.
fn accepted() -> Vec<String> {
    let listed = file("deny.toml")["licenses"]["allow"].as_array().unwrap().clone();
    listed.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_dependency_comes_from_crates_io() {
    for lock in ["Cargo.lock", "rules/template/Cargo.lock"] {
        let lock = file(lock);
        let packages = lock["package"].as_array().unwrap();
        for package in packages {
            let name = package["name"].as_str().unwrap();
            match package.get("source").and_then(toml::Value::as_str) {
                Some(source) => {
                    assert_eq!(source, CRATES_IO, "{name}");
                    assert!(package.get("checksum").is_some(), "{name}");
                }
                None => assert!(name.starts_with("railhead") || name == "{{name}}", "{name}"),
            }
        }
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_accepted() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["metadata", "--locked", "--offline", "--format-version=1"]);
    // What other systems need is not here to be looked at.
    let output = cargo.args(["--filter-platform", &platform()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let accepted = accepted();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !permits(package["license"].as_str().unwrap_or(""), &accepted))
        .map(|package| format!("{} ({})", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

fn platform() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// Whether an SPDX expression can be met by these licences: one of every `OR`, all of every
/// `AND`, which binds closer. Old manifests write `/` for `OR`.
fn permits(expression: &str, accepted: &[String]) -> bool {
    let (inner, outer) = innermost(expression);
    if let Some((before, after)) = outer {
        let holds = if permits(inner, accepted) { accepted[0].as_str() } else { "none" };
        return permits(&format!("{before}{holds}{after}"), accepted);
    }
    inner.replace('/', " OR ").split(" OR ").any(|choice| {
        choice.split(" AND ").all(|licence| accepted.iter().any(|known| *known == licence.trim()))
    })
}

/// What stands in the innermost brackets, with what stands around them.
fn innermost(expression: &str) -> (&str, Option<(&str, &str)>) {
    let Some(close) = expression.find(')') else { return (expression, None) };
    let open = expression[..close].rfind('(').expect("an opening bracket");
    let around = (&expression[..open], &expression[close + 1..]);
    (&expression[open + 1..close], Some(around))
}

#[test]
fn licences_are_read_as_they_are_meant() {
    let accepted = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
    for (expression, is_met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("Apache-2.0 AND MIT", true),
        ("(MIT OR GPL-3.0) AND ISC", false),
        ("(MIT OR GPL-3.0) AND Apache-2.0", true),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0 WITH another", false),
        ("(MIT AND (GPL-3.0 OR Apache-2.0))", true),
    ] {
        assert_eq!(permits(expression, &accepted), is_met, "{expression}");
    }
}
