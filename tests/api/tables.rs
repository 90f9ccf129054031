//! Reference tables that an operator lays beside the rails: `<modules.dir>/tables/<rail>`.

use railhead::config::Config;
use railhead::start::{Sources, start};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fps::{self, pounds};
use crate::test_host::{Database, Engine, TestHost, config, naira, with, with_host_configured};

/// One bank, by a name of the operator's.
const BANKS: &str = "# Ours.\nnip_code,cbn_code,aliases,name,slug,kind,status,successor\n\
                     000013,058,,The Only Bank,the-only-bank,dmb,active,\n";
const WEIGHTS: &str = include_str!("../../rails/fps/fixtures/weights.csv");
const SUBSTITUTIONS: &str = include_str!("../../rails/fps/fixtures/substitutions.csv");

/// A folder of modules with these tables of rails.
fn modules(tables: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (rail, table, csv) in tables {
        let of_rail = folder.path().join("tables").join(rail);
        std::fs::create_dir_all(&of_rail).expect("a folder");
        std::fs::write(of_rail.join(table).with_extension("csv"), csv).expect("written");
    }
    folder
}

async fn with_tables(
    engine: Engine,
    tables: &[(&str, &str, &str)],
    test: impl AsyncFnOnce(&mut TestHost),
) {
    let folder = modules(tables);
    let change = |config: &mut Config| config.modules.dir = Some(folder.path().to_owned());
    with_host_configured(engine, change, test).await;
}

fn to_bank(code: &str) -> Value {
    let recipient = json!({ "account_number": "0123456785", "bank_code": code });
    with(naira(100_000), json!({ "recipient": recipient }))
}

async fn banks(host: &TestHost) -> Vec<Value> {
    let listed = host.get("/v1/banks?currency=NGN").await.ok();
    listed.json["data"].as_array().expect("banks").clone()
}

/// The operator's banks are the ones that are listed and paid at, and the rail's own are not.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_the_operators_stands_in_for_the_rails_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_tables(engine, &[("nip", "banks", BANKS)], async |host| {
        let listed = banks(host).await;
        let [bank] = listed.as_slice() else { panic!("{listed:?}") };
        assert_eq!((&bank["code"], &bank["name"]), (&json!("058"), &json!("The Only Bank")));
        assert_eq!(host.pay("", to_bank("058")).await.ok().status_word(), "paid");
        // Access Bank, which the rail's own table has.
        let refused = host.pay("", to_bank("044")).await;
        assert_eq!(refused.refused(), (422, "unknown_bank_code"));
        assert_eq!(refused.field(), "recipient.bank_code");
    })
    .await;
    // A table of another rail, or of another name, is nobody's.
    let elsewhere = [("fps", "banks", BANKS), ("nip", "bank", BANKS)];
    with_tables(engine, &elsewhere, async |host| {
        let listed = banks(host).await;
        assert!(listed.len() > 100, "{}", listed.len());
        assert!(listed.iter().any(|bank| bank["code"] == "044"));
        assert_ne!(host.pay("", to_bank("044")).await.refused().1, "unknown_bank_code");
    })
    .await;
}

/// What only the operator may have is used where he has it: without the weights every account of
/// the right shape passes.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_only_the_operator_has_is_used_once_it_is_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let to = |account: &str| pounds(json!({ "sort_code": "990100", "account_number": account }));
    let (right, mistyped) = ("58619528", "81446356");
    let tables = [("fps", "weights", WEIGHTS), ("fps", "substitutions", SUBSTITUTIONS)];
    with_tables(engine, &tables, async |host| {
        fps::funded(host, &host.merchant.test_key).await;
        let refused = host.pay("", to(mistyped)).await;
        assert_eq!(refused.refused(), (422, "invalid_recipient"));
        assert_eq!(refused.field(), "recipient.account_number");
        assert_eq!(host.pay("", to(right)).await.ok().status_word(), "paid");
    })
    .await;
    with_tables(engine, &[], async |host| {
        fps::funded(host, &host.merchant.test_key).await;
        assert_eq!(host.pay("", to(mistyped)).await.ok().status_word(), "paid");
    })
    .await;
}

/// A table that cannot be used is refused at the start, and named: nobody is paid by half of one.
#[rstest]
#[case::lacks_a_column("weights", "start,end,method\n1,2,MOD10\n", "it has no column u")]
#[case::lacks_a_cell("substitutions", "sort_code,substitute\n123456\n", "line 2")]
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_cannot_be_used_is_named(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] table: &str,
    #[case] csv: &str,
    #[case] why: &str,
) {
    let (database, folder) = (Database::new(engine).await, modules(&[("fps", table, csv)]));
    let mut config = config(&database);
    config.modules.dir = Some(folder.path().to_owned());
    let refusal = start(config, Sources::system().expect("sources")).await;
    let refusal = refusal.err().expect("a refusal").to_string();
    for part in ["rails/fps", &format!("table {table}"), why] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}
