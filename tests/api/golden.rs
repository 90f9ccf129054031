//! Components as they were when the contract had some version. A host that speaks a later one of
//! the same major version still runs them: every scenario of their sandboxes, with the simulators
//! that travel inside. Until 1.0 is released they may be made anew; from then on they stay as they
//! are, no key of a declaration is taken away, and a version of the contract adds a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use railhead::built_in::COMPONENTS;

use crate::hostile::{hostile, of_version, packed};
use crate::live::until;
use crate::test_host::{Engine, unique, with_host_configured};

/// `KEEP_GOLDEN=1.0` keeps the components of this commit, where there are none yet.
const KEEP: &str = "KEEP_GOLDEN";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut found: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found
}

#[test]
fn components_of_every_version_of_the_contract_run() {
    if let Ok(version) = std::env::var(KEEP) {
        keep(&folder().join(version));
    }
    let mut checked = 0;
    for rail in entries(&folder()).iter().flat_map(|version| entries(version)) {
        let mut command = Command::new(crate::program::PROGRAM);
        command.args(["rail", "check"]).arg(rail.join("rail.wasm")).arg("--cases").arg(&rail);
        let output = command.output().expect("a program");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {said}", rail.display());
        checked += 1;
    }
    assert!(checked >= 12, "{checked} rails");
}

fn keep(version: &Path) {
    for (name, bytes) in COMPONENTS {
        let Some(name) = name.strip_prefix("rails/") else { continue };
        let file = version.join(name.replace('/', "-")).join("rail.wasm");
        if !file.exists() {
            std::fs::write(&file, bytes).expect("a folder with the payment of its scenarios");
        }
    }
}

/// What was built against a later correction of the contract finds everything that it asks for.
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_of_a_later_correction_pays() {
    let component = of_version(&crate::hostile::built("hostile", ""), "1.0.7");
    let declaration = include_str!("../hostile/rail.toml").replace("rail@1.0.0", "rail@1.0.7");
    let modules = tempfile::tempdir().expect("a folder");
    let file = modules.path().join("hostile.wasm");
    std::fs::write(file, packed(&component, &declaration)).expect("written");
    let till = crate::hostile::Till::default();
    let url = till.open().await;
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(url);
        config.simulator.token = Some(crate::notices::RIGHT.into());
        config.modules.dir = Some(modules.path().to_owned());
    };
    with_host_configured(Engine::Sqlite, change, async |host| {
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("sent, then claim")).await.ok().id();
        until(host, &id, "paid").await;
    })
    .await;
}
