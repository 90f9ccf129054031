//! `railhead simulator`: the networks on a port of their own, for live routes without an address.

use std::process::Stdio;

use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::fps::{self, pounds};
use crate::hostile::attempt;
use crate::live::until;
use crate::mpesa::{self, shillings};
use crate::notices::RIGHT;
use crate::program::PROGRAM;
use crate::test_host::{Engine, TestHost, unique, with_host_configured};

/// The command, until it is dropped.
struct Simulator {
    child: Child,
    url: String,
    /// Where it runs.
    _folder: tempfile::TempDir,
}

impl Simulator {
    /// Starts it, and lets it tell a host what networks say by themselves.
    async fn start(host: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(PROGRAM);
        command
            .args(["simulator", "--address", "127.0.0.1:0", "--notify", host])
            .current_dir(&folder)
            .env("RAILHEAD_SIMULATOR__TOKEN", RIGHT)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the program");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = lines.next_line().await.expect("text").expect("a line");
        let url = line.split([' ', ',']).find(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        Self { child, url, _folder: folder }
    }

    /// Has something happen to a payment.
    async fn tell(&self, host: &TestHost, place: &str) {
        let url = format!("{}/control/{place}", self.url);
        let told = host.client.post(url).send().await.expect("an answer");
        assert_eq!(told.status().as_u16(), 200);
    }

    /// Ends it as an operator does.
    async fn stop(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(told.expect("kill").success());
        assert!(self.child.wait().await.expect("an end").success(), "it did not stop in order");
    }
}

/// Runs a test on a host at a known address, whose live routes lead to the command.
async fn with_simulator(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Simulator)) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    let public = format!("http://{address}");
    let simulator = Simulator::start(&public).await;
    let change = |config: &mut Config| {
        config.server.address = address;
        config.server.public_url = Some(public);
        config.simulator.url = Some(simulator.url.clone());
        config.simulator.token = Some(RIGHT.into());
    };
    with_host_configured(engine, change, async |host| test(host, &simulator).await).await;
    simulator.stop().await;
}

async fn pay(host: &TestHost, body: Value) -> String {
    host.pay_as(&host.merchant.live_key, &unique(), body).await.ok().id()
}

/// Results come to the address that the network was given with the payment. Nothing is asked: the
/// clock stands still, and the first question is due a minute later.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_route_of_mpesa_is_paid_over_the_command(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_simulator(engine, async |host, _| {
        let wallet = mpesa::funded(host, &host.merchant.live_key).await;
        let before = host.balance(&wallet).await;
        let paid = pay(host, shillings("0712345678")).await;
        let paid = until(host, &paid, "paid").await;
        let left = host.balance(&wallet).await;
        let total = paid.json["total_debit_minor"].as_str().expect("a sum");
        assert_eq!((before - left).to_string(), total);
        let failed = pay(host, shillings("0700000022")).await;
        assert_eq!(until(host, &failed, "failed").await.json["failure_code"], "2040");
        assert_eq!(host.balance(&wallet).await, left);
        let asked = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'query'";
        assert_eq!(host.count(asked).await, 0);
    })
    .await;
}

/// What is told is signed, and comes to the host that the command was given, with the token that
/// both know. Payments come back in the same way.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_route_of_faster_payments_is_paid_over_the_command(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_simulator(engine, async |host, simulator| {
        let wallet = fps::funded(host, &host.merchant.live_key).await;
        let before = host.balance(&wallet).await;
        let paid = pay(host, pounds(json!({}))).await;
        until(host, &paid, "paid").await;
        let to = |account: &str| pounds(json!({ "account_number": account }));
        let failed = pay(host, to("00001022")).await;
        until(host, &failed, "failed").await;
        let refused = host.pay_as(&host.merchant.live_key, &unique(), to("00001132")).await;
        assert_eq!(refused.refused(), (422, "name_mismatch"));
        let (reference, ..) = attempt(host, &paid).await;
        simulator.tell(host, &format!("fps/transfers/{reference}/return")).await;
        until(host, &paid, "reversed").await;
        assert_eq!(host.balance(&wallet).await, before);
        let asked = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'query'";
        assert_eq!(host.count(asked).await, 0);
    })
    .await;
}
