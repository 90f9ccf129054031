//! The manifest that this crate gets where a new pack takes a copy of it along.

#![cfg(not(target_family = "wasm"))]

const OWN: &str = include_str!("../Cargo.toml");
const COPY: &str = include_str!("../../template/sdk/Cargo.toml");

fn dependencies(manifest: &str) -> Vec<&str> {
    let after = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    after.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_copy_is_built_like_the_original() {
    assert_eq!(dependencies(COPY), dependencies(OWN));
    assert!(!dependencies(OWN).is_empty());
    // A copy has no workspace to inherit from.
    assert!(!COPY.contains("workspace"));
}
