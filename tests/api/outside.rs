//! A rail from a folder outside this repository: built, packed, checked and put into
//! `modules.dir`, it pays in a currency that nobody else serves, as `docs/rails.md` says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::program::PROGRAM;
use crate::test_host::{Answer, Engine, TestHost, unique, with, with_host_configured};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The folder, away from the repository, with everything built and packed: for `modules.dir`.
static MODULES: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let rail = folder.path().join("vola");
    copy(&Path::new(REPOSITORY).join("examples/vola"), &rail);
    // What the page tells to do: where the crates are that it builds with.
    for (manifest, up) in [("Cargo.toml", "../../"), ("simulator/Cargo.toml", "../../../")] {
        let path = rail.join(manifest);
        let text = std::fs::read_to_string(&path).expect("a manifest");
        let here = format!("path = \"{REPOSITORY}/rails");
        let moved = text.replace(&format!("path = \"{up}rails"), &here);
        assert_ne!(moved, text);
        std::fs::write(path, moved).expect("written");
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(Command::new(cargo)
        .current_dir(&rail)
        .args(["build", "--release", "--locked", "--workspace"])
        .args(["--target", "wasm32-wasip2", "--target-dir"])
        .arg(&target)
        // What the tests were built with is not meant for this.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"));
    let built = target.join("wasm32-wasip2/release");
    let packed = folder.path().join("vola.wasm");
    run(Command::new(PROGRAM)
        .args(["rail", "pack"])
        .args([built.join("vola.wasm"), rail.join("rail.toml")])
        .arg("--simulator")
        .arg(built.join("vola_simulator.wasm"))
        .arg("--output")
        .arg(&packed));
    for (cases, held) in [("cases", "13 of 13 cases hold"), ("cases/bulk", "25 of 25 cases hold")] {
        let checked = run(Command::new(PROGRAM)
            .args(["rail", "check"])
            .arg(&packed)
            .arg("--cases")
            .arg(rail.join(cases)));
        assert!(checked.contains(held), "{checked}");
    }
    let shown = run(Command::new(PROGRAM)
        .current_dir(&rail)
        .env("RAILHEAD_MODULES__DIR", folder.path())
        .args(["calendar", "show", "vola/madagascar"]));
    assert!(shown.contains("2026-12-25  Friday"), "{shown}");
    std::fs::remove_dir_all(rail).expect("removed");
    folder
});

fn run(command: &mut Command) -> String {
    let output = command.output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned() + &said
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry: PathBuf = entry.expect("an entry").path();
        let name = entry.file_name().expect("a name");
        match entry.is_dir() {
            true if name != "target" => copy(&entry, &to.join(name)),
            true => {}
            false => drop(std::fs::copy(&entry, to.join(name)).expect("copied")),
        }
    }
}

async fn with_vola(engine: Engine, test: impl AsyncFnOnce(&mut TestHost)) {
    let modules = MODULES.path().to_owned();
    with_host_configured(engine, |config| config.modules.dir = Some(modules), test).await;
}

fn ariary(changes: Value) -> Value {
    let body = json!({
        "amount_minor": "150000",
        "currency": "MGA",
        "recipient": { "mobile_number": "0341234567", "name": "Rasoa Rakoto" },
        "allow_duplicate": true,
    });
    with(body, changes)
}

async fn pay(host: &TestHost, scenario: &str, body: Value) -> Answer {
    let headers = [("Idempotency-Key", unique()), ("X-Sandbox-Scenario", scenario.to_owned())];
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let key = host.merchant.test_key.clone();
    host.send(Method::POST, "/v1/payouts", &key, &headers, Some(body)).await
}

/// A payout in the sandbox: how it stands at once, and once it was asked about.
async fn plays(host: &TestHost, body: Value, [scenario, at_once, asked]: [&str; 3]) -> Answer {
    let payout = pay(host, scenario, body).await.ok();
    assert_eq!(payout.status_word(), at_once, "{scenario}");
    let path = format!("/v1/payouts/{}/requery", payout.id());
    let key = host.merchant.test_key.clone();
    let later = host.send(Method::POST, &path, &key, &[], None).await.ok();
    assert_eq!(later.status_word(), asked, "{scenario}");
    later
}

async fn fund(host: &TestHost) {
    let wallets = host.get("/v1/wallets").await.ok();
    let mut wallets = wallets.json["data"].as_array().expect("wallets").iter();
    let wallet = wallets.find(|wallet| wallet["currency"] == "MGA").expect("a wallet");
    host.credit(wallet["id"].as_str().expect("an id"), 10_000_000).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_from_elsewhere_pays_without_a_line_of_the_host(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_vola(engine, async |host| {
        fund(host).await;
        for story in [
            ["paid", "paid", "paid"],
            ["failed", "failed", "failed"],
            ["duplicate_callback", "paid", "paid"],
            ["processing", "processing", "processing"],
            ["timeout_then_paid", "processing", "paid"],
            ["timeout_then_failed", "processing", "failed"],
            ["timeout_then_unknown", "processing", "processing"],
            ["never_received", "processing", "paid"],
        ] {
            plays(host, ariary(json!({})), story).await;
        }
        for (step, end) in [("settle", "paid"), ("fail", "failed")] {
            let payout = pay(host, "processing", ariary(json!({}))).await.ok();
            let path = format!("/v1/sandbox/payouts/{}/{step}", payout.id());
            assert_eq!(host.post(&path, json!({})).await.ok().status_word(), end);
        }
        for (changes, refusal, field) in [
            (json!({ "amount_minor": "150100" }), (422, "limit_violation"), "amount_minor"),
            (
                json!({ "recipient": { "mobile_number": "1", "name": "R" } }),
                (400, "invalid_field"),
                "recipient.mobile_number",
            ),
        ] {
            let refused = pay(host, "", ariary(changes)).await;
            assert_eq!((refused.refused(), refused.field()), (refusal, field));
        }
    })
    .await;
}

/// To the wallet of the number, by file: the recipient selects the method.
fn by_file(number: &str) -> Value {
    let recipient = json!({ "mobile_number": number, "name": "Rasoa Rakoto, Tana",
        "method": "vola-bulk" });
    ariary(json!({ "recipient": recipient }))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_from_elsewhere_pays_by_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_vola(engine, async |host| {
        fund(host).await;
        for (story, code) in [
            (["paid", "paid", "paid"], Value::Null),
            (["failed", "failed", "failed"], json!("no_wallet")),
            (["returned", "reversed", "reversed"], json!("wallet_closed")),
            (["duplicate_callback", "paid", "paid"], Value::Null),
            (["processing", "processing", "processing"], Value::Null),
            (["timeout_then_paid", "processing", "paid"], Value::Null),
            (["timeout_then_failed", "processing", "failed"], json!("no_wallet")),
            (["timeout_then_unknown", "processing", "processing"], Value::Null),
            (["never_received", "processing", "paid"], Value::Null),
            (["provider_down", "processing", "processing"], Value::Null),
        ] {
            let payout = plays(host, by_file("0341234567"), story).await;
            assert_eq!(payout.json["failure_code"], code, "{story:?}");
        }
        for (scenario, step, end) in [
            ("processing", "settle", "paid"),
            ("processing", "fail", "failed"),
            ("paid", "return", "reversed"),
        ] {
            let payout = pay(host, scenario, by_file("0341234567")).await.ok();
            let path = format!("/v1/sandbox/payouts/{}/{step}", payout.id());
            assert_eq!(host.post(&path, json!({})).await.ok().status_word(), end);
        }
        // Recipients choose a scenario by themselves, whatever the method.
        let failed = pay(host, "", by_file("0340000022")).await.ok();
        assert_eq!(failed.status_word(), "failed");
        // The request can name the method as well.
        let named = pay(host, "", ariary(json!({ "method": "vola-bulk" }))).await.ok();
        assert_eq!((named.status_word(), &named.json["method"]), ("paid", &json!("vola-bulk")));
        let path = format!("/v1/payouts/{}/timeline", named.id());
        let timeline = host.get(&path).await.ok().text;
        assert!(timeline.contains("in the file payments-") && timeline.contains(",1500,"));
        assert!(!timeline.contains("261341234567"), "{timeline}");
    })
    .await;
}

/// Lists, documents and saved recipients know it as they know those that come with the host.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_from_elsewhere_is_known_everywhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_vola(engine, async |host| {
        fund(host).await;
        let operators = host.get("/v1/momo_operators?currency=MGA").await.ok();
        assert_eq!(operators.json["data"][0]["slug"], "vola");
        let document = host.get("/openapi.json").await.ok();
        let schemas = &document.json["components"]["schemas"];
        let method = &schemas["Recipient_vola"]["properties"]["method"];
        assert_eq!(method["pattern"], "^vola(-bulk)?$");
        let choices = schemas["CreatePayout"]["allOf"][0]["anyOf"].as_array().expect("rails");
        let mut methods = choices.iter().map(|choice| &choice["properties"]["method"]["enum"]);
        assert!(methods.any(|known| *known == json!(["vola", "vola-bulk", null])));
        let recipients = host.get("/v1/sandbox/recipients").await.ok();
        let recipients = recipients.json["data"].as_array().expect("a list");
        assert_eq!(recipients.iter().filter(|one| one["currency"] == "MGA").count(), 8);
        let body = json!({ "currency": "MGA", "name": "Rasoa Rakoto",
            "wallet": { "number": "0341234567" } });
        let missing = with(body.clone(), json!({ "wallet": null }));
        let refused = host.post("/v1/beneficiaries", missing).await;
        let told = (refused.refused(), refused.field());
        assert_eq!(told, ((400, "missing_field"), "wallet.number"));
        let saved = host.post("/v1/beneficiaries", body).await.ok();
        assert_eq!(saved.json["wallet"]["number"], "261341234567");
        let to =
            json!({ "amount_minor": "150000", "currency": "MGA", "beneficiary_id": saved.id() });
        assert_eq!(pay(host, "", to).await.ok().status_word(), "paid");
        let body = json!({ "currency": "MGA", "name": "Hery Rabe", "method": "vola-bulk",
            "wallet": { "number": "0349876543" } });
        let saved = host.post("/v1/beneficiaries", body).await.ok();
        let to =
            json!({ "amount_minor": "150000", "currency": "MGA", "beneficiary_id": saved.id() });
        let paid = pay(host, "", to).await.ok();
        assert_eq!((paid.status_word(), &paid.json["method"]), ("paid", &json!("vola-bulk")));
        let quote = json!({ "currency": "MGA", "amount_minor": "150000" });
        assert_eq!(host.post("/v1/payouts/quote", quote).await.ok().json["fee_minor"], "0");
        let rails = host.admin(Method::GET, "rails", json!({})).await.ok();
        assert!(rails.text.contains("\"vola\""), "{}", rails.text);
    })
    .await;
}
