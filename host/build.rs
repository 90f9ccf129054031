//! Builds the built-in components for the sandbox and packs them into the host's binary.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "wasm/src/section.rs"]
#[allow(unreachable_pub, reason = "public in the host, which shares this file")]
mod section;

/// Folder, crate, declaration and, for a rail, the crate of the other side of its network.
const BUILT_IN: &[(&str, &str, &str, Option<&str>)] = &[
    ("rails/nip", "railhead-rail-nip", "rail.toml", Some("railhead-simulator-nip")),
    ("rails/mpesa", "railhead-rail-mpesa", "rail.toml", Some("railhead-simulator-mpesa")),
    ("rails/fps", "railhead-rail-fps", "rail.toml", Some("railhead-simulator-fps")),
    ("rails/ach", "railhead-rail-ach", "rail.toml", Some("railhead-simulator-ach")),
    ("rails/fedwire", "railhead-rail-fedwire", "rail.toml", Some("railhead-simulator-fedwire")),
    ("rails/sepa", "railhead-rail-sepa", "rail.toml", Some("railhead-simulator-sepa")),
    ("rails/eft", "railhead-rail-eft", "rail.toml", Some("railhead-simulator-eft")),
    ("rails/interac", "railhead-rail-interac", "rail.toml", Some("railhead-simulator-interac")),
    ("rails/mtn-momo", "railhead-rail-mtn-momo", "rail.toml", Some("railhead-simulator-mtn-momo")),
    (
        "rails/airtel-money",
        "railhead-rail-airtel-money",
        "rail.toml",
        Some("railhead-simulator-airtel-money"),
    ),
    (
        "rails/aggregator",
        "railhead-rail-aggregator",
        "rail.toml",
        Some("railhead-simulator-aggregator"),
    ),
    (
        "rails/aggregator/kenya",
        "railhead-rail-aggregator",
        "rail.toml",
        Some("railhead-simulator-aggregator"),
    ),
    ("rules/fees", "railhead-rules-fees", "rules.toml", None),
    ("rules/fraud", "railhead-rules-fraud", "rules.toml", None),
    ("rates/ecb", "railhead-rates-ecb", "rates.toml", None),
];
const TARGET: &str = "wasm32-wasip2";

fn main() {
    if let Err(why) = run() {
        println!("cargo::error={why}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let env = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let out = PathBuf::from(env("OUT_DIR")?);
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")?).join("..");
    for watched in [
        "wit",
        "rails",
        "rules",
        "rates",
        "Cargo.lock",
        "Cargo.toml",
        "host/build.rs",
        "host/wasm/src/section.rs",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let built = build(&root, &target_folder(&out)?)?;
    let mut list = String::from("&[\n");
    let component = |package: &str| read(&built.join(package.replace('-', "_") + ".wasm"));
    for (folder, package, declaration, simulator) in BUILT_IN {
        let sections = section::CustomSections {
            simulator: simulator.map(component).transpose()?,
            ..section::CustomSections::read(&root.join(folder), declaration)?
        };
        let packed = out.join(format!("{}.wasm", folder.replace('/', "-")));
        let bytes = section::pack(&component(package)?, &sections);
        std::fs::write(&packed, bytes).map_err(|cause| cause.to_string())?;
        list += &format!("    ({folder:?}, include_bytes!({:?})),\n", packed.display().to_string());
    }
    list += "]\n";
    std::fs::write(out.join("built_in.rs"), list).map_err(|cause| cause.to_string())
}

/// The target folder that this build runs in: the parent of the profile's folder.
fn target_folder(out: &Path) -> Result<PathBuf, String> {
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    let target = build.and_then(Path::parent).and_then(Path::parent);
    target.map(Path::to_owned).ok_or_else(|| format!("no target folder above {}", out.display()))
}

/// Compiles every built-in component, in a target folder of their own: this build holds the
/// lock of the outer one.
fn build(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("components");
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo.current_dir(root).args(["build", "--locked", "--profile", "component"]);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(&folder);
    for (_, package, _, simulator) in BUILT_IN {
        cargo.args(["-p", package]).args(simulator.iter().flat_map(|package| ["-p", package]));
    }
    // What the outer build was told is not meant for this one.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        cargo.env_remove(name);
    }
    let output = cargo.output().map_err(|cause| format!("cargo: {cause}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let hint = match said.contains("can't find crate for `core`") {
            true => " (run: rustup target add wasm32-wasip2)",
            false => "",
        };
        for line in said.lines() {
            println!("cargo::warning={line}");
        }
        return Err(format!("the built-in components do not build{hint}"));
    }
    Ok(folder.join(TARGET).join("component"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))
}
