//! A bank on its own port for live keys, and a second host on the same database.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use railhead::clock::Clock;
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::simulator::{Simulator, serve};
use railhead::start::{Host, Sources, start};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bank::networks;
use crate::test_host::{Engine, TestHost, config, data_folder, with_host_configured};

/// Whether the host sends what is queued by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    /// At once, as it does in production.
    Yes,
    /// Never: what is queued stays queued.
    No,
}

/// Runs a test on a test host whose live keys reach a bank.
pub(crate) async fn with_live_host(
    engine: Engine,
    sends: Sends,
    test: impl AsyncFnOnce(&mut TestHost),
) {
    let url = open_bank().await;
    with_host_configured(engine, |config| live(config, url, sends), test).await;
}

/// Runs a test with two hosts on one database; PostgreSQL is the engine that allows it.
pub(crate) async fn with_two_hosts(sends: Sends, test: impl AsyncFnOnce(&mut TestHost, &TestHost)) {
    let url = open_bank().await;
    let change = |config: &mut Config| live(config, url.clone(), sends);
    with_host_configured(Engine::Postgres, change, async |host| {
        let beside = beside(host, change).await;
        test(host, &beside).await;
        beside.close().await;
    })
    .await;
}

/// Another host on the database of this one.
pub(crate) async fn beside(host: &TestHost, change: impl FnOnce(&mut Config)) -> TestHost {
    let mut config = config(&host.database);
    config.data.dir = data_folder(&host.database, "beside");
    change(&mut config);
    let clock = host.clock.clone();
    let sources = Sources { ids: IdGenerator::seeded(clock.clone(), 43), clock: clock.clone() };
    let running = start(config, sources).await.expect("a second host");
    TestHost {
        engine: host.engine,
        database: Arc::clone(&host.database),
        clock,
        base: format!("http://{}", running.address),
        running: Some(running),
        client: host.client.clone(),
        merchant: host.merchant.clone(),
    }
}

/// Starts a host that was stopped, with this configuration.
pub(crate) async fn start_again(host: &mut TestHost, config: Config) {
    let running = start_when_free(config, host.clock.clone()).await;
    host.base = format!("http://{}", running.address);
    host.running = Some(running);
}

/// Starts a host where another one ran: its last task or thread lets go of its file a moment after
/// it has stopped, or was killed.
pub(crate) async fn start_when_free(config: Config, clock: Clock) -> Host {
    // The clock stands still: a start that made the ids of an earlier one would meet them.
    static STARTS: AtomicU64 = AtomicU64::new(1_000);
    let mut why = BTreeSet::new();
    for _ in 0..1_000 {
        let seed = STARTS.fetch_add(1, Ordering::Relaxed);
        let ids = IdGenerator::seeded(clock.clone(), seed);
        let starting = start(config.clone(), Sources { clock: clock.clone(), ids });
        match Box::pin(starting).await {
            Ok(running) => return running,
            Err(cause) => drop(why.insert(cause.to_string())),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("no host starts: {why:?}");
}

pub(crate) fn live(config: &mut Config, url: String, sends: Sends) {
    config.simulator.url = Some(url);
    config.worker.dispatch = sends == Sends::Yes;
}

/// A bank that pays everybody, for as long as the test runs.
pub(crate) async fn open_bank() -> String {
    let (simulator, messages) = Simulator::new(None, Clock::System, networks());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        // Nobody carries the bank's own messages; they are kept until the bank closes.
        let _messages = messages;
        serve(&simulator, listener, CancellationToken::new()).await
    });
    url
}
