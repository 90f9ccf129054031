//! `railhead rules new` and `check`: writing and checking a pack, without a host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built_in;
use crate::config::limits;
use crate::conformance::packs;
use crate::rules::{Pack, PackKind};
use crate::start::StartError;
use crate::wasm::module;
use crate::wasm::section::{self, CustomSections};

use super::document;
use super::say;

/// What every pack in Rust starts with.
const TEMPLATE: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../../rules/template/Cargo.toml")),
    // The versions that this host's own packs are built with.
    ("Cargo.lock", include_str!("../../../rules/template/Cargo.lock")),
    ("rustfmt.toml", include_str!("../../../rules/template/rustfmt.toml")),
    ("rules.toml", include_str!("../../../rules/template/rules.toml")),
    ("src/lib.rs", include_str!("../../../rules/template/src/lib.rs")),
    ("cases/first.toml", include_str!("../../../rules/template/cases/first.toml")),
    ("sdk/Cargo.toml", include_str!("../../../rules/template/sdk/Cargo.toml")),
    ("sdk/wit/rules.wit", include_str!("../../../wit/rules.wit")),
    ("sdk/src/lib.rs", include_str!("../../../rules/sdk/src/lib.rs")),
    ("sdk/src/bindings.rs", include_str!("../../../rules/sdk/src/bindings.rs")),
    ("sdk/src/facts.rs", include_str!("../../../rules/sdk/src/facts.rs")),
    ("sdk/src/fees.rs", include_str!("../../../rules/sdk/src/fees.rs")),
    ("sdk/src/fraud.rs", include_str!("../../../rules/sdk/src/fraud.rs")),
    ("sdk/src/guest.rs", include_str!("../../../rules/sdk/src/guest.rs")),
];

/// The target that packs are built for.
const TARGET: &str = "wasm32-wasip2";

/// Writes a pack in Rust.
pub(super) fn new_in_rust(name: &str) -> Result<(), StartError> {
    let folder = new_folder(name)?;
    for (file, text) in TEMPLATE {
        write(&folder.join(file), text.replace("{{name}}", name).as_bytes())?;
    }
    say(format!("Wrote {name}/: the rules are in src/lib.rs and rules.toml, cases in cases/."));
    say(format!("Check it: railhead rules check {name}"));
    Ok(())
}

/// Writes the rules and cases of the built-in pack of a kind, under a name of their own.
pub(super) fn new_as_text(name: &str, kind: PackKind) -> Result<(), StartError> {
    let folder = new_folder(name)?;
    let sections = module::custom_sections(built_in_component(kind)?)?;
    let own_name = format!("name = \"{}\"", kind.as_str());
    let rules = sections.declaration.replacen(&own_name, &format!("name = \"{name}\""), 1);
    write(&folder.join("rules.toml"), rules.as_bytes())?;
    for (file, case) in &sections.cases {
        write(&folder.join("cases").join(file), case)?;
    }
    say(format!("Wrote {name}/rules.toml and {name}/cases/."));
    say(format!("Check it: railhead rules check {name}"));
    Ok(())
}

/// Checks a pack and tells what was found; writes the packed component if wanted.
pub(super) fn check(path: &Path, output: Option<&Path>) -> Result<(), StartError> {
    let packed = checked(path)?;
    if let Some(output) = output {
        write(output, &packed)?;
        say(format!("  written to {} ({} bytes)", output.display(), packed.len()));
    }
    Ok(())
}

/// The packed component of a pack that passes its checks.
pub(super) fn checked(path: &Path) -> Result<Vec<u8>, StartError> {
    let packed = packed(path)?;
    let (engines, cache) = document::engines()?;
    let pack = Pack::load(&engines, &cache, &packed)?;
    let report = packs::check(&pack);
    say(format!("{} {} ({})", pack.about.name, pack.about.version, &pack.digest[..12]));
    for failure in &report.failures {
        say(format!("  FAILED {failure}"));
    }
    say(format!(
        "  {} cases, {} made-up sets of facts; at most {} of {} units of fuel a decision",
        report.cases,
        report.probes,
        report.fuel_max,
        limits::PACK_FUEL_PER_DECISION,
    ));
    match report.failures.len() {
        0 => Ok(packed),
        count => Err(format!("{count} checks failed").into()),
    }
}

/// A component as it is; a folder or a rules.toml with the code that goes with it: its own
/// sources, or the built-in pack of its kind.
fn packed(path: &Path) -> Result<Vec<u8>, StartError> {
    let fail = |cause: std::io::Error| format!("{}: {cause}", path.display());
    let (folder, file) = match path.is_dir() {
        true => (path.to_owned(), "rules.toml".to_owned()),
        false if path.extension().is_some_and(|ending| ending == "toml") => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
            (folder.unwrap_or(Path::new(".")).to_owned(), file.unwrap_or_default())
        }
        false => return Ok(std::fs::read(path).map_err(fail)?),
    };
    let sections = CustomSections::read(&folder, &file)?;
    if folder.join("Cargo.toml").exists() {
        let component = build(&folder)?;
        return Ok(section::pack(&std::fs::read(component)?, &sections));
    }
    let kind = PackKind::of_text(&sections.declaration)?;
    Ok(module::repack(built_in_component(kind)?, &sections)?)
}

/// Builds sources in Rust; answers where the component is.
fn build(folder: &Path) -> Result<PathBuf, StartError> {
    let run = |command: &mut Command| {
        command.current_dir(folder).output().map_err(|cause| format!("cargo: {cause}"))
    };
    say(format!("Building {}", folder.display()));
    let built = Command::new("cargo")
        .args(["build", "--release", "--target", TARGET])
        .current_dir(folder)
        .status()
        .map_err(|cause| format!("cargo: {cause}"))?;
    if !built.success() {
        let hint = format!("if the target is missing: rustup target add {TARGET}");
        return Err(format!("the sources do not build ({hint})").into());
    }
    let metadata = ["metadata", "--format-version", "1", "--no-deps"];
    let metadata = run(Command::new("cargo").args(metadata))?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    let manifest = folder.join("Cargo.toml").canonicalize()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let own = packages.clone().find(|package| {
        package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
    });
    let own = own.ok_or("cargo metadata does not name the pack")?;
    let name = own["name"].as_str().unwrap_or_default().replace('-', "_");
    Ok(PathBuf::from(target).join(TARGET).join("release").join(format!("{name}.wasm")))
}

fn built_in_component(kind: PackKind) -> Result<&'static [u8], StartError> {
    let folder = format!("rules/{}", kind.as_str());
    let found = built_in::COMPONENTS.iter().find(|(name, _)| *name == folder);
    found.map(|(_, bytes)| *bytes).ok_or_else(|| format!("{folder} is not in this binary").into())
}

fn new_folder(name: &str) -> Result<PathBuf, StartError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits);
    if !is_name {
        return Err(format!("{name:?} is no name: lowercase letters, digits, - and _").into());
    }
    let folder = PathBuf::from(name);
    match folder.exists() {
        true => Err(format!("{name} exists already").into()),
        false => Ok(folder),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StartError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, bytes).map_err(|cause| format!("{}: {cause}", path.display()).into())
}
