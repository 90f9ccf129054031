//! What a host shows to networks, so that they know it, stands nowhere else: in no log, no column,
//! no timeline and no evidence, whatever became of a payment.
//!
//! What is paid by file waits for windows that only a clock of the test's own reaches, and such a
//! host has no log of its own: its secrets are looked for in the log of a program that looks for
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{UNTIL_TUESDAY, funded, pay_live, until_files};
use crate::ach_gateway::{self, AchGateway};
use crate::daraja::{self, Daraja};
use crate::file_transport::{self, Over, close_window, column, put, total, with_files};
use crate::fps::{self, pounds};
use crate::fps_gateway::{self, FORGOTTEN, FpsGateway, REFUSED, SIGNING_KEY};
use crate::live::until;
use crate::mpesa::tell;
use crate::packs;
use crate::program::Deployment;
use crate::receiver::authority_file;
use crate::secrets::columns_with;
use crate::sftp_server::{PASSWORD, Server, USER};
use crate::test_host::{Answer, Engine, TestHost, unique, with_host_configured};

/// Routes with what is configured for each, and leave to reach this machine, as a file has it.
fn in_file(routes: &[(&str, BTreeMap<String, String>)]) -> String {
    let authority = authority_file().display().to_string();
    let mut text = String::from("[egress]\nallow_private_networks = [\"127.0.0.0/8\"]\n");
    writeln!(text, "extra_ca_file = {authority:?}").expect("written");
    for (route, secrets) in routes {
        writeln!(text, "[routes.{route}]").expect("written");
        for (name, value) in secrets {
            writeln!(text, "{name} = {value:?}").expect("written");
        }
    }
    text
}

/// A program that logs everything, with these routes.
async fn talkative(engine: Engine, routes: &[(&str, BTreeMap<String, String>)]) -> Deployment {
    let mut deployment = Deployment::open(engine, &in_file(routes)).await;
    deployment.kill().await;
    let address = ("RAILHEAD_SERVER__PUBLIC_URL", daraja::PUBLIC_URL);
    deployment.start(&[("RUST_LOG", "trace"), address]).await;
    deployment
}

/// What a host says of payments to their merchant, and to operators of everything.
async fn said(host: &TestHost, ids: &[String]) -> Vec<(String, Answer)> {
    let mut said = Vec::new();
    for id in ids {
        for path in [format!("/v1/payouts/{id}"), format!("/v1/payouts/{id}/timeline")] {
            said.push((path.clone(), host.get_as(&host.merchant.live_key, &path).await.ok()));
        }
    }
    for path in ["events", "request_logs"] {
        let path = format!("/v1/{path}?limit=100");
        said.push((path.clone(), host.get_as(&host.merchant.live_key, &path).await.ok()));
    }
    let mut paths: Vec<String> = ["audit?limit=100", "routes", "rails", "cases", "files"]
        .map(str::to_owned)
        .into_iter()
        .collect();
    let files = host.admin(Method::GET, "files", json!({})).await.ok();
    for file in files.json["data"].as_array().expect("files") {
        let id = file["id"].as_str().expect("an id");
        paths.extend(["", "/payments", "/content"].map(|part| format!("files/{id}{part}")));
    }
    for path in paths {
        said.push((path.clone(), host.admin(Method::GET, &path, json!({})).await.ok()));
    }
    said
}

/// None of these is in what the host says.
#[track_caller]
fn assert_unsaid(said: &[(String, Answer)], secrets: &[String]) {
    for secret in secrets {
        assert!(secret.len() > 8, "{secret:?} may stand anywhere by chance");
        for (path, answer) in said {
            assert!(!answer.text.contains(secret), "{path} says {secret}: {}", answer.text);
        }
    }
}

/// None of these is in what a program has said, written down or logged.
async fn assert_kept_nowhere(mut deployment: Deployment, ids: &[String], secrets: &[String]) {
    assert_unsaid(&said(&deployment.host, ids).await, secrets);
    deployment.kill().await;
    let log = deployment.log.lock().expect("a log").clone();
    assert!(log.lines().count() > 20, "it was told to say a lot");
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(secret.as_str()));
        assert_eq!(line, None, "{secret} is in the log");
    }
    assert_eq!(columns_with(&deployment.db, secrets).await, BTreeSet::new());
}

/// The address that a request gave, as the network uses it.
fn path(url: &Value) -> String {
    let url: http::Uri = url.as_str().expect("an address").parse().expect("an address");
    url.path().to_owned()
}

/// What M-Pesa tells of a payment: a code, and the amount.
fn result(reference: &Value, code: u32) -> String {
    let amount = json!({ "Key": "TransactionAmount", "Value": 1250 });
    json!({ "Result": {
        "ResultType": 0,
        "ResultCode": code,
        "ResultDesc": "as the code says",
        "OriginatorConversationID": reference,
        "TransactionID": format!("RA{code}"),
        "ResultParameters": { "ResultParameter": [amount] },
    } })
    .to_string()
}

/// What M-Pesa answers to a question about one that was paid.
fn completed() -> String {
    let parameters = [("TransactionStatus", json!("Completed")), ("Amount", json!(1250))];
    let parameters = parameters.map(|(key, value)| json!({ "Key": key, "Value": value }));
    json!({ "Result": { "ResultCode": 0, "ResultParameters": { "ResultParameter": parameters } } })
        .to_string()
}

/// Consumer key and secret, as they are and as they are presented; the token; the initiator's
/// password, and every sealing of it; and the token in the address that results come to.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_daraja_is_shown_is_written_down_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let daraja = Daraja::open().await;
    let deployment = talkative(engine, &[(daraja::ROUTE, daraja::secrets())]).await;
    let host = &deployment.host;
    daraja.lead(host).await;
    let mut ids = Vec::new();
    for (number, ending) in [(1, "paid"), (2, "failed"), (3, "processing")] {
        let id = daraja::pay(host, number).await;
        let came = daraja.until_came("payment", ids.len() + 1).await;
        let order = &came[ids.len()].body;
        until(host, &id, "processing").await;
        deployment.until_nothing_is_leased().await;
        let reference = &order["OriginatorConversationID"];
        let told = match ending {
            "paid" => Some(result(reference, 0)),
            "failed" => Some(result(reference, 2040)),
            _ => None,
        };
        if let Some(told) = told {
            tell(host, &path(&order["ResultURL"]), &told).await.ok();
        }
        until(host, &id, ending).await;
        ids.push(id);
    }
    deployment.requery(&ids[2]).await;
    let asked = daraja.until_came("status", 1).await;
    tell(host, &path(&asked[0].body["ResultURL"]), &completed()).await.ok();
    until(host, &ids[2], "paid").await;

    let came = [daraja.came("payment"), asked].concat();
    let mut secrets = vec![daraja::TOKEN.to_owned()];
    let plain = ["consumer_key", "consumer_secret", "initiator_password"];
    secrets.extend(plain.map(|name| daraja::secrets()[name].clone()));
    let token = &daraja.came("token")[0].authorization;
    secrets.push(token.strip_prefix("Basic ").expect("credentials").to_owned());
    let sealed = came.iter().map(|it| it.body["SecurityCredential"].as_str().expect("a text"));
    secrets.extend(sealed.map(str::to_owned));
    let door = path(&came[0].body["ResultURL"]);
    secrets.push(door.split('/').nth(3).expect("a token").to_owned());
    assert_eq!(BTreeSet::from_iter(&secrets).len(), 1 + plain.len() + 1 + 4 + 1);
    let timeline = format!("/v1/payouts/{}/timeline", ids[0]);
    let timeline = host.get_as(&host.merchant.live_key, &timeline).await.ok();
    assert!(timeline.text.contains(r#"SecurityCredential\":\"****\""#), "{}", timeline.text);
    assert_kept_nowhere(deployment, &ids, &secrets).await;
}

/// The token, and the key that signs, line by line.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_of_faster_payments_is_shown_is_written_down_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let gateway = FpsGateway::open().await;
    let deployment = talkative(engine, &[(fps_gateway::ROUTE, fps_gateway::secrets())]).await;
    let host = &deployment.host;
    gateway.lead(host).await;
    fps::funded(host, &host.merchant.live_key).await;
    let mut ids = Vec::new();
    for (account, at_once, asked) in [
        ("66374958", "processing", "paid"),
        (REFUSED, "failed", "failed"),
        (FORGOTTEN, "processing", "processing"),
    ] {
        let body = pounds(json!({ "account_number": account }));
        let id = host.pay_as(&host.merchant.live_key, &unique(), body).await.ok().id();
        until(host, &id, at_once).await;
        deployment.until_nothing_is_leased().await;
        deployment.requery(&id).await;
        until(host, &id, asked).await;
        ids.push(id);
    }
    let presented = gateway.presented();
    assert!(presented.len() >= 8, "{}", presented.len());
    for (token, _) in &presented {
        assert_eq!(*token, format!("Bearer {}", fps_gateway::TOKEN));
    }
    assert!(presented.iter().filter(|(_, signature)| signature.len() > 300).count() >= 6);
    let mut secrets = vec![fps_gateway::TOKEN.to_owned()];
    let key = SIGNING_KEY.lines().filter(|line| !line.starts_with("-----"));
    secrets.extend(key.map(str::to_owned));
    assert!(secrets.len() > 20);
    assert_kept_nowhere(deployment, &ids, &secrets).await;
}

/// The bank's report on the only file: it carries it out, but for one payment.
async fn report(host: &TestHost, rejected: &str) -> Value {
    let sql = "SELECT network_id FROM attempts WHERE transfer_id = $1";
    let pool = host.app().db.pool();
    let trace: String = sqlx::query_scalar(sql).bind(rejected).fetch_one(pool).await.expect("one");
    let rejected = json!({ "trace_number": trace, "code": "invalid_account", "message": "None." });
    json!({ "report": "file", "reference_code": column(host, "identity").await,
        "status": "accepted", "total_credit": total(host).await,
        "rejected_entries": [rejected] })
}

/// One of two payouts is paid when its day has come, and the other one fails.
async fn settled(host: &TestHost, ids: &[String; 2]) {
    host.advance(300);
    until_files(host, &[("acknowledged", 1)]).await;
    until(host, &ids[1], "failed").await;
    host.advance(UNTIL_TUESDAY);
    until(host, &ids[0], "paid").await;
}

/// The key of a bank's gateway, with which a file is delivered, looked for and reported on.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_file_gateway_is_written_down_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let gateway = AchGateway::open().await;
    let change = |config: &mut Config| {
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        config.egress.extra_ca_file = Some(authority_file());
        config.routes.insert(ach_gateway::ROUTE.to_owned(), ach_gateway::secrets());
    };
    with_host_configured(engine, change, async |host| {
        gateway.lead(host).await;
        funded(host, &host.merchant.live_key).await;
        let ids = [pay_live(host, "77").await, pay_live(host, "78").await];
        close_window(host, &ids).await;
        until_files(host, &[("unclear", 1)]).await;
        host.advance(11);
        packs::until("the file is looked for", async || !gateway.presented("look").is_empty())
            .await;
        gateway.lay("report.json", &report(host, &ids[1]).await);
        settled(host, &ids).await;
        for kind in ["deliver", "look", "list", "fetch"] {
            let presented = gateway.presented(kind);
            assert!(!presented.is_empty(), "{kind}");
            let is_key = |it: &String| *it == format!("Bearer {}", ach_gateway::KEY);
            assert!(presented.iter().all(is_key), "{presented:?}");
        }
        let secrets = [ach_gateway::KEY.to_owned()];
        assert_unsaid(&said(host, &ids).await, &secrets);
        assert_eq!(columns_with(&host.app().db, &secrets).await, BTreeSet::new());
    })
    .await;
}

/// The password with which files are delivered to a bank's server, and fetched from it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_password_of_a_server_is_written_down_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Sftp, async |host, server| {
        let ids = [pay_live(host, "77").await, pay_live(host, "78").await];
        close_window(host, &ids).await;
        until_files(host, &[("delivered", 1)]).await;
        let report = report(host, &ids[1]).await.to_string();
        put(host, &server.path("incoming").join("report.json"), &report, -60);
        settled(host, &ids).await;
        assert!(server.seen().passwords.len() >= 2);
        let secrets = [PASSWORD.to_owned()];
        assert_unsaid(&said(host, &ids).await, &secrets);
        assert_eq!(columns_with(&host.app().db, &secrets).await, BTreeSet::new());
    })
    .await;
}

/// Both of them, in the log of a program that looks for what lies ready.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_files_are_fetched_with_is_in_no_log(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (gateway, server) = (AchGateway::open().await, Server::open().await);
    let routes = [
        (ach_gateway::ROUTE, ach_gateway::secrets()),
        ("usd_sftp", file_transport::secrets(&server)),
    ];
    let deployment = talkative(engine, &routes).await;
    let host = &deployment.host;
    gateway.lead(host).await;
    let of = |name: &str| format!("sftp://{USER}@127.0.0.1:{}/{name}", server.port);
    let settings = file_transport::settings(&of("outgoing"), &of("incoming"));
    let route = json!({ "name": "usd_sftp", "env": "live", "currency": "USD", "method": "ach",
        "rail": "ach", "position": 9, "settings": settings });
    let made = host.admin(Method::POST, "routes", route).await.ok();
    assert_eq!(made.json["missing"], Value::Null);
    // It is the turn of both, whenever they were looked at before.
    let mut tx = deployment.db.write().await.expect("a transaction");
    sqlx::query("DELETE FROM feed_turns").execute(tx.conn()).await.expect("changed");
    tx.commit().await.expect("committed");
    packs::until("both are looked at", async || {
        !gateway.presented("list").is_empty() && !server.seen().passwords.is_empty()
    })
    .await;
    let is_looked_at = "SELECT COUNT(*) FROM feeds WHERE lease_until > 0";
    packs::until("it is over", async || deployment.count(is_looked_at).await == 0).await;
    assert_eq!(gateway.presented("list")[0], format!("Bearer {}", ach_gateway::KEY));
    assert_eq!(server.seen().passwords[0], PASSWORD);
    let secrets = [ach_gateway::KEY.to_owned(), PASSWORD.to_owned()];
    assert_kept_nowhere(deployment, &[], &secrets).await;
}
