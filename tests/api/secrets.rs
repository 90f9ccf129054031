//! What must not be read where it need not be: bank verification numbers nowhere, account
//! numbers only where they are the point.

use std::collections::BTreeSet;

use http::Method;
use railhead::db::{Db, Engine as DbEngine};
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::{Column, Row};

use crate::program::Deployment;
use crate::test_host::{Answer, Engine, naira, unique, with};

/// Accounts that are paid, refused, timed out on, and not known; all are looked for.
const ACCOUNTS: [&str; 5] = ["0123456785", "0000001022", "0000001046", "0000001091", "0000001101"];

/// Fields of answers that show whole account numbers, as documented.
const SHOWN: [&str; 3] = ["recipient_account", "account_number", "deleted_account_number"];

/// Columns that hold them: what is paid to, what finds a recipient again, and what was
/// answered and will be answered again. The last is the sandbox's own bank.
const KEPT: [&str; 5] = [
    "beneficiaries.recipient",
    "beneficiaries.search",
    "idempotency_keys.response",
    "payouts.recipient",
    "simulator_transfers.transfer",
];

/// The number that the simulated bank has on record behind an account.
fn bvn(account: &str) -> String {
    format!("222{}", &account[2..])
}

fn to(account: &str) -> Value {
    let recipient = json!({ "account_number": account, "bank_code": "058" });
    with(naira(100_000), json!({ "recipient": recipient }))
}

/// Everything that merchants, the operator and the bank can make the program say.
async fn talk(deployment: &Deployment) -> Vec<(String, Answer)> {
    let (host, mut said) = (&deployment.host, Vec::new());
    let (test, live) = (&host.merchant.test_key, &host.merchant.live_key);
    for key in [test, live] {
        for account in ACCOUNTS {
            let enquiry =
                json!({ "account_number": account, "bank_code": "058", "currency": "NGN" });
            let path = "/v1/name-enquiry";
            let answer = host.send(Method::POST, path, key, &[], Some(enquiry)).await;
            said.push((path.to_owned(), answer));
            let made = host.pay_as(key, &unique(), to(account)).await;
            said.push(("/v1/payouts".to_owned(), made.clone()));
            if made.status != 201 {
                continue;
            }
            deployment.until_sent(key, &made.id()).await;
            for path in ["/requery", "/timeline", ""] {
                let method = if path == "/requery" { Method::POST } else { Method::GET };
                let path = format!("/v1/payouts/{}{path}", made.id());
                let answer = host.send(method, &path, key, &[], Some(json!({}))).await;
                said.push((path, answer));
            }
        }
        for path in ["payouts", "beneficiaries", "events", "wallets", "banks"] {
            said.push((path.to_owned(), host.get_as(key, &format!("/v1/{path}")).await));
        }
    }
    // Refusals: an unknown bank, an account that is too long, a bank that is no text.
    for (account, bank) in [
        ("0123456785", json!("999")),
        ("01234567850123456785", json!("058")),
        ("0123456785", json!(58)),
    ] {
        let recipient = json!({ "account_number": account, "bank_code": bank });
        let body = with(naira(1), json!({ "recipient": recipient }));
        said.push(("/v1/payouts".to_owned(), host.pay("paid", body).await));
    }
    for path in ["audit", "routes", "rails", "merchants"] {
        said.push((path.to_owned(), host.admin(Method::GET, path, json!({})).await));
    }
    said
}

/// Texts of a JSON value, each with the field that it stands in.
fn texts<'a>(field: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => found.push((field, text)),
        Value::Array(items) => items.iter().for_each(|item| texts(field, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| texts(name, value, found)),
        _ => {}
    }
}

/// Which columns of which tables hold any of these texts.
pub(crate) async fn columns_with(db: &Db, wanted: &[String]) -> BTreeSet<String> {
    let pool = db.pool();
    let tables = match db.engine() {
        DbEngine::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
        DbEngine::Postgres => {
            "SELECT CAST(table_name AS TEXT) FROM information_schema.tables \
             WHERE table_schema = 'public'"
        }
    };
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(pool).await.expect("tables");
    let mut found = BTreeSet::new();
    for table in tables.iter().filter(|table| *table != "_sqlx_migrations") {
        let sql = sqlx::AssertSqlSafe(format!("SELECT * FROM {table}"));
        for row in sqlx::query(sql).fetch_all(pool).await.expect("rows") {
            for column in row.columns() {
                let cell = row.try_get::<Option<String>, _>(column.ordinal());
                let text = cell.ok().flatten().unwrap_or_default();
                if wanted.iter().any(|wanted| text.contains(wanted.as_str())) {
                    found.insert(format!("{table}.{}", column.name()));
                }
            }
        }
    }
    found
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_people_are_read_only_where_they_must_be(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = Deployment::open(engine, "").await;
    deployment.kill().await;
    deployment.start(&[("RUST_LOG", "trace")]).await;
    let said = talk(&deployment).await;
    deployment.kill().await;
    let accounts = ACCOUNTS.map(str::to_owned);
    let bvns = ACCOUNTS.map(bvn);
    for (path, answer) in &said {
        assert!(![404, 405].contains(&answer.status), "{path} says nothing");
        for bvn in &bvns {
            assert!(!answer.text.contains(bvn), "{path}: {}", answer.text);
        }
        let mut found = Vec::new();
        texts("", &answer.json, &mut found);
        for (field, text) in found {
            let shows = accounts.iter().any(|account| text.contains(account.as_str()));
            let may = SHOWN.contains(&field) && !path.ends_with("/timeline");
            assert!(!shows || may, "{path}: {field} shows {text}");
        }
    }
    let timelines = said.iter().filter(|(path, _)| path.ends_with("/timeline"));
    let sent = timelines.filter(|(_, timeline)| {
        timeline.text.contains("<BeneficiaryAccountNumber>******6785</BeneficiaryAccountNumber>")
            && timeline.text.contains("<BeneficiaryBankVerificationNumber>*******6785<")
            && timeline.text.contains("<Amount>1000.00</Amount>")
    });
    assert_eq!(sent.count(), 2, "the masked message is there, in both environments");
    let log = deployment.log.lock().expect("a log").clone();
    assert!(log.lines().count() > 20, "it was told to say a lot");
    for number in accounts.iter().chain(&bvns) {
        let line = log.lines().find(|line| line.contains(number.as_str()));
        assert_eq!(line, None, "{number} is in the log");
    }
    assert_eq!(columns_with(&deployment.db, &bvns).await, BTreeSet::new());
    let kept = columns_with(&deployment.db, &accounts).await;
    assert_eq!(Vec::from_iter(&kept), KEPT);
}
