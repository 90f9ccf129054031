//! The developer's commands, run against the program as developers run them.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use http::HeaderMap;
use railhead::keyring::Keyring;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::program::Deployment;
use crate::test_host::{Engine, naira};

const PROGRAM: &str = env!("CARGO_BIN_EXE_railhead-under-test");
/// The secret of the examples of Standard Webhooks.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A developer at a terminal of their own.
struct Developer<'a> {
    deployment: &'a Deployment,
    folder: tempfile::TempDir,
}

impl<'a> Developer<'a> {
    fn of(deployment: &'a Deployment) -> Self {
        Self { deployment, folder: tempfile::tempdir().expect("a folder") }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let host = &self.deployment.host;
        command(self.folder.path(), &host.base, &host.merchant.test_key, arguments)
    }

    /// What a command that ends says, and whether it went well.
    async fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.command(arguments).output().await.expect("the program");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).expect("text"))
    }

    /// Makes an event and says which.
    async fn trigger(&self, name: &str) -> String {
        let (is_good, said) = self.run(&["trigger", name]).await;
        assert!(is_good, "{said}");
        let event = said.split_whitespace().find(|word| word.starts_with("evt_"));
        event.expect("an event").to_owned()
    }
}

fn command(folder: &Path, base: &str, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).args(["--url", base]).current_dir(folder);
    command.env_remove("DATABASE_URL").env("RAILHEAD_API_KEY", key);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A command that goes on, and what it has said.
struct Running {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().expect("a lock").push(line);
            }
        });
        Self { child, said }
    }

    fn lines(&self) -> Vec<String> {
        self.said.lock().expect("a lock").clone()
    }

    /// Waits for a line that holds all of this.
    async fn says(&self, wanted: &[&str]) -> String {
        for _ in 0..1500 {
            let lines = self.lines();
            let found = lines.iter().find(|line| wanted.iter().all(|text| line.contains(text)));
            if let Some(line) = found {
                return line.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it does not say {wanted:?}: {:#?}", self.lines());
    }

    /// Ends it as its user does.
    async fn interrupt(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-INT", &id]).status().await;
        assert!(told.expect("kill").success());
        assert!(self.child.wait().await.expect("an end").success());
    }
}

type Received = Arc<Mutex<Vec<(HeaderMap, String)>>>;

/// The developer's own server.
async fn receiver() -> (String, Received) {
    let received = Received::default();
    let heard = Arc::clone(&received);
    let take = async move |headers: HeaderMap, body: String| {
        let status = if body.contains("payout.failed") { 500 } else { 204 };
        heard.lock().expect("a lock").push((headers, body));
        http::StatusCode::from_u16(status).expect("a status")
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hooks", listener.local_addr().expect("an address"));
    let router = Router::new().route("/hooks", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

fn ids(received: &Received) -> Vec<String> {
    let received = received.lock().expect("a lock");
    let bodies =
        received.iter().map(|(_, body)| serde_json::from_str::<Value>(body).expect("JSON"));
    bodies.map(|body| body["id"].as_str().expect("an id").to_owned()).collect()
}

async fn until_received(received: &Received, id: &str) {
    for _ in 0..1500 {
        if ids(received).iter().any(|known| known == id) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} did not arrive: {:?}", ids(received));
}

/// What was received is what a webhook would have been.
fn check(headers: &HeaderMap, body: &str, event: &Value) {
    let header = |name: &str| headers[name].to_str().expect("text").to_owned();
    let read: Value = serde_json::from_str(body).expect("JSON");
    let mut expected = event.clone();
    expected.as_object_mut().expect("an object").remove("object");
    assert_eq!(read, expected);
    assert!(body.starts_with(r#"{"id":"evt_"#), "{body}");
    assert_eq!(header("x-service-event"), event["event"]);
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("user-agent"), "Service-Webhooks/1.0");
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    assert!(id.starts_with("ckwhd_") && id == header("x-service-delivery"));
    let own = Keyring::sign(SECRET.as_bytes(), format!("{at}.{body}").as_bytes());
    let own: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(header("x-service-signature"), format!("t={at},v1={own}"));
    assert!(header("webhook-signature").starts_with("v1,"));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_forwarded_once_across_a_restart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = Deployment::open(engine, "").await;
    let (url, received) = receiver().await;
    let developer = Developer::of(&deployment);
    let before = developer.trigger("wallet_funded").await;
    let listen = ["listen", "--forward-to", &url, "--secret", SECRET];
    let listening = Running::start(developer.command(&listen));
    listening.says(&["Signing secret:", SECRET]).await;
    listening.says(&["Forwarding *", &url]).await;
    let mut made = vec![developer.trigger("payout.paid").await];
    made.push(developer.trigger("payout.failed").await);
    listening.says(&[&made[0], "payout.paid", "204"]).await;
    listening.says(&[&made[1], "payout.failed", "500"]).await;

    drop(developer);
    let address = deployment.host.base.trim_start_matches("http://").to_owned();
    deployment.kill().await;
    listening.says(&["connecting again"]).await;
    deployment.start(&[("RAILHEAD_SERVER__ADDRESS", &address)]).await;
    let host = &deployment.host;
    // Some before it is back, and some after.
    for _ in 0..5 {
        host.pay("paid", naira(100_000)).await.ok();
    }
    listening.says(&["Connected again"]).await;
    made.push(Developer::of(&deployment).trigger("wallet_funded").await);
    for id in &made {
        until_received(&received, id).await;
    }
    let feed = host.get("/v1/events?limit=100").await.ok();
    let feed = feed.json["data"].as_array().expect("events").iter().rev();
    let feed: Vec<&Value> =
        feed.skip_while(|event| event["id"] != before.as_str()).skip(1).collect();
    assert_eq!(feed.len(), 2 + 2 + 10 + 1);
    let expected: Vec<&str> = feed.iter().filter_map(|event| event["id"].as_str()).collect();
    assert_eq!(ids(&received), expected, "each once, and none from before it began");
    for ((headers, body), event) in received.lock().expect("a lock").iter().zip(feed) {
        check(headers, body, event);
    }
    listening.interrupt().await;
    deployment.prove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_is_for_those_events_in_that_spelling() {
    let deployment = Deployment::open(Engine::Sqlite, "").await;
    let developer = Developer::of(&deployment);
    let (url, received) = receiver().await;
    let some = ["listen", "--forward-to", &url, "--events", "payout_paid,wallet_funded"];
    let listening = Running::start(developer.command(&some));
    let secret = listening.says(&["Signing secret: whsec_"]).await;
    let nobody = Running::start(developer.command(&[
        "listen",
        "--forward-to",
        "http://127.0.0.1:1",
        "--secret",
        SECRET,
    ]));
    nobody.says(&["Forwarding"]).await;
    listening.says(&["Forwarding payout_paid, wallet_funded"]).await;
    developer.trigger("payout.failed").await;
    let paid = developer.trigger("payout.paid").await;
    let funded = developer.trigger("wallet_funded").await;
    until_received(&received, &funded).await;
    assert_eq!(ids(&received), [paid.clone(), funded]);
    let body = received.lock().expect("a lock")[0].1.clone();
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((&body["event"], &body["id"]), (&json!("payout_paid"), &json!(paid)));
    nobody.says(&[&paid, "refused"]).await;
    assert!(!secret.contains(SECRET), "a secret of its own");

    for (arguments, why) in [
        (&["--events", "payout.lost"][..], "there is no event payout.lost"),
        (&["--secret", "secret"], "whsec_"),
        (&["--key", "sk_test_wrong"], "invalid_api_key"),
    ] {
        let (is_good, said) = developer.run(&[&some[..3], arguments].concat()).await;
        assert!(!is_good && said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_of_the_sandbox_is_triggered_and_no_other() {
    let deployment = Deployment::open(Engine::Sqlite, "").await;
    let developer = Developer::of(&deployment);
    for (asked, name) in [
        ("payout.processing", "payout.processing"),
        ("payout_paid", "payout.paid"),
        ("payout.failed", "payout.failed"),
        ("payout.reversed", "payout.reversed"),
        ("wallet.funded", "wallet_funded"),
    ] {
        let id = developer.trigger(asked).await;
        let feed = deployment.host.get(&format!("/v1/events?type={name}")).await.ok();
        assert_eq!(feed.json["data"][0]["id"], id, "{asked}");
        if name != "wallet_funded" {
            assert_eq!(
                format!("payout.{}", feed.json["data"][0]["data"]["status"].as_str().unwrap()),
                name
            );
        }
    }
    // Whatever a rail wants to know of a recipient.
    for currency in ["USD", "CAD"] {
        for event in ["wallet_funded", "payout.paid"] {
            let (is_good, said) = developer.run(&["trigger", event, "--currency", currency]).await;
            assert!(is_good, "{currency}: {said}");
        }
    }
    let live = &deployment.host.merchant.live_key;
    for (arguments, why) in [
        (&["trigger", "payout.reversed", "--currency", "KES"][..], "no payment in KES comes back"),
        (&["trigger", "payout.cancelled"], "it makes payout.processing, payout.paid"),
        (&["trigger", "nonsense"], "it makes payout.processing, payout.paid"),
        (&["trigger", "payout.paid", "--currency", "XYZ"], "no rail pays XYZ"),
        (&["trigger", "payout.paid", "--key", live], "sk_test_"),
    ] {
        let (is_good, said) = developer.run(arguments).await;
        assert!(!is_good && said.contains(why), "{said}");
    }
    let mut keyless = developer.command(&["trigger", "payout.paid"]);
    let output = keyless.env_remove("RAILHEAD_API_KEY").output().await.expect("the program");
    assert!(String::from_utf8_lossy(&output.stderr).contains("RAILHEAD_API_KEY"));
    let sql = "SELECT COUNT(*) FROM payouts WHERE env = 'live'";
    assert_eq!(deployment.count(sql).await, 0);
    deployment.prove().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn requests_and_deliveries_are_followed_across_a_restart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = Deployment::open(engine, "").await;
    let developer = Developer::of(&deployment);
    let host = &deployment.host;
    // Nobody is there: the delivery fails, and is shown all the same.
    let hook = json!({ "url": "https://webhooks.invalid/", "events": ["wallet_funded"] });
    host.post("/v1/webhook_endpoints", hook).await.ok();
    let missing = host.get("/v1/payouts/c0").await;
    let (is_good, said) = developer.run(&["logs", "--limit", "2"]).await;
    assert!(is_good, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("200 POST /v1/webhook_endpoints"), "{said}");
    assert!(lines[1].contains("404 GET /v1/payouts/c0") && lines[1].ends_with("payout_not_found"));
    assert!(lines[1].contains(&missing.headers["x-request-id"]) && lines.len() == 2, "{said}");

    let following = Running::start(developer.command(&["logs", "--follow"]));
    following.says(&["/v1/webhook_endpoints"]).await;
    host.get("/v1/wallets").await.ok();
    developer.trigger("wallet_funded").await;
    following.says(&["200 GET /v1/wallets", "sk_test_"]).await;
    following.says(&["200 POST /v1/sandbox/fund"]).await;
    following.says(&["webhook wallet_funded", "to ckwhe_"]).await;

    drop(developer);
    let address = deployment.host.base.trim_start_matches("http://").to_owned();
    deployment.kill().await;
    following.says(&["Connection refused"]).await;
    deployment.start(&[("RAILHEAD_SERVER__ADDRESS", &address)]).await;
    deployment.host.get("/v1/beneficiaries").await.ok();
    following.says(&["200 GET /v1/beneficiaries"]).await;
    let lines = following.lines();
    let wallets = lines.iter().filter(|line| line.contains(" /v1/wallets ")).count();
    let own = lines.iter().filter(|line| line.contains("/v1/webhook_deliveries")).count();
    assert!((wallets, own) == (1, 1), "each once, and not its own questions: {lines:#?}");
    let (is_good, said) = Developer::of(&deployment).run(&["logs", "--limit", "0"]).await;
    assert!(!is_good && said.contains("--limit"), "{said}");
    following.interrupt().await;
}
