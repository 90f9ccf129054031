//! A bank on its own port for live keys, and a second host on the same database.

use std::collections::BTreeMap;
use std::sync::Arc;

use railhead::clock::Clock;
use railhead::config::Config;
use railhead::id::Mint;
use railhead::simulator::{Simulator, serve};
use railhead::start::{Sources, start};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::yard::{Engine, Yard, config, in_yard_with};

/// Whether the host sends what is queued by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sends {
    /// At once, as it does in production.
    Yes,
    /// Never: what is queued stays queued.
    No,
}

/// Runs a test in a yard whose live keys reach a bank.
pub(crate) async fn in_live_yard(engine: Engine, sends: Sends, test: impl AsyncFnOnce(&mut Yard)) {
    let url = open_bank().await;
    in_yard_with(engine, |config| live(config, url, sends), test).await;
}

/// Runs a test with two hosts on one database; PostgreSQL is the engine that allows it.
pub(crate) async fn in_two_yards(sends: Sends, test: impl AsyncFnOnce(&mut Yard, &Yard)) {
    let url = open_bank().await;
    let change = |config: &mut Config| live(config, url.clone(), sends);
    in_yard_with(Engine::Postgres, change, async |yard| {
        let beside = beside(yard, change).await;
        test(yard, &beside).await;
        beside.close().await;
    })
    .await;
}

/// Another host on the database of this one.
pub(crate) async fn beside(yard: &Yard, change: impl FnOnce(&mut Config)) -> Yard {
    let mut config = config(&yard.database);
    change(&mut config);
    let clock = yard.clock.clone();
    let sources = Sources { mint: Mint::seeded(clock.clone(), 43), clock: clock.clone() };
    let host = start(config, sources).await.expect("a second host");
    Yard {
        engine: yard.engine,
        database: Arc::clone(&yard.database),
        clock,
        base: format!("http://{}", host.address),
        host: Some(host),
        client: yard.client.clone(),
        merchant: yard.merchant.clone(),
    }
}

pub(crate) fn live(config: &mut Config, url: String, sends: Sends) {
    config.simulator.url = Some(url);
    config.worker.dispatch = sends == Sends::Yes;
}

/// A bank that pays everybody, for as long as the test runs.
pub(crate) async fn open_bank() -> String {
    let (simulator, messages) = Simulator::new(None, Clock::System, BTreeMap::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        // Nobody carries the bank's own messages; they are kept until the bank closes.
        let _messages = messages;
        serve(&simulator, listener, CancellationToken::new()).await
    });
    url
}
