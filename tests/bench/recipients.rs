//! Payouts to many people beside payouts to one: whoever is paid is looked up first.

use std::time::Duration;

use super::load::{Load, Run};
use super::server::{Engine, Server, Setup, Target};

const WALLETS: usize = 50;
const CONNECTIONS: usize = 128;
/// How many people each merchant pays, in turn: most of them are not paid twice within a second.
const EACH: u64 = 200;

/// Accepted payouts a second to one saved recipient of each merchant, and to many.
pub(crate) async fn run(engine: Engine, length: Duration) {
    println!("{engine:?}: accepted payouts to saved recipients ({WALLETS} wallets)");
    println!("{}", Run::head());
    let server = Server::start(engine, Setup { batch_max: 256, dispatch: false }).await;
    let targets = server.merchants(WALLETS).await;
    let mut rates = Vec::new();
    for (name, recipients) in [("one each", 1), ("200 each", EACH)] {
        let targets = targets.iter().map(|target| Target { recipients, ..target.clone() });
        let load = Load {
            base: server.base.clone(),
            targets: targets.collect(),
            connections: CONNECTIONS,
        };
        load.save_recipients(recipients).await;
        let run = load.run(&server, length).await;
        println!("{}", run.line(name));
        rates.push(run.per_second());
    }
    println!("    many against one {:.0} %\n", 100.0 * rates[1] / rates[0]);
    server.stop().await;
}
