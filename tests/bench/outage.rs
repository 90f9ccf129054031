//! A network that is gone while payouts are accepted for it, and back.

use std::time::{Duration, Instant};

use super::cpu::{COLUMNS, Cpu};
use super::load::{Load, Run};
use super::server::{Engine, Server, Setup};

/// As long as a host has for a look at all that waits before it is measured what that costs.
const SETTLING: Duration = Duration::from_secs(10);

/// What it costs that payouts wait for a network, while nobody asks for anything; how many are
/// accepted beside them; and how soon they are paid once the network is back.
pub(crate) async fn run(engine: Engine, length: Duration) {
    println!("{engine:?}: a network that is gone (50 wallets, 128 connections)");
    let mut server = Server::start(engine, Setup { batch_max: 256, dispatch: true }).await;
    let targets = server.merchants(50).await;
    let load = Load { base: server.base.clone(), targets, connections: 128 };
    load.warm_up().await;
    server.until_idle().await;
    println!("{}", Run::head());
    server.lose_networks();
    println!("{}", load.run(&server, length).await.line("gone, none waiting"));
    println!("{}", load.run(&server, length).await.line("gone, those waiting"));
    let waiting = server.count("queued").await + server.count("processing").await;
    tokio::time::sleep(SETTLING).await;
    let (cpu, begun) = (Cpu::now(&server), Instant::now());
    tokio::time::sleep(length).await;
    let milliseconds = usize::try_from(begun.elapsed().as_millis()).unwrap();
    println!(
        "    {waiting} wait, and nobody asks for anything; CPU us in a millisecond ({COLUMNS}): {}",
        Cpu::now(&server).since(cpu).of_each(milliseconds),
    );
    server.find_networks();
    let (back, left) = (Instant::now(), server.count("paid").await);
    while server.count("paid").await == left {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let noticed = back.elapsed();
    server.until_idle().await;
    println!(
        "    noticed {:.1} s after it is back, and then all of them paid, {:.0}/s",
        noticed.as_secs_f64(),
        waiting as f64 / (back.elapsed() - noticed).as_secs_f64(),
    );
    server.verify();
    server.stop().await;
}
