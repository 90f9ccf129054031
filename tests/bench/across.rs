//! Payouts out of another currency, beside payouts of the same merchants in their own.

use std::time::Duration;

use super::load::{Load, Run};
use super::server::{Engine, Server, Setup, Target};

const SETUP: Setup = Setup { batch_max: 256, dispatch: false };
const WALLETS: usize = 50;
const CONNECTIONS: usize = 128;

/// What the requests say of their amounts.
const ASKED: &[(&str, &str)] = &[
    ("naira out of naira", r#""amount_minor":"1500000""#),
    ("naira out of dollars", r#""amount_minor":"1500000","funding_currency":"USD""#),
    (
        "the fee included",
        r#""funding_amount_minor":"1000","fee_inclusive":true,"funding_currency":"USD""#,
    ),
];

/// Accepts each kind for a while, over the same connections to the same host.
pub(crate) async fn run(engine: Engine, length: Duration) {
    println!("{engine:?}: accepted payouts out of another currency, {WALLETS} merchants");
    println!("{}", Run::head());
    let server = Server::start(engine, SETUP).await;
    let targets = server.merchants(WALLETS).await;
    server.open_exchange(&targets).await;
    let mut rates = Vec::new();
    for &(name, amounts) in ASKED {
        let targets = targets.iter().map(|target| Target { amounts, ..target.clone() }).collect();
        let load = Load { base: server.base.clone(), targets, connections: CONNECTIONS };
        load.warm_up().await;
        let run = load.run(&server, length).await;
        println!("{}", run.line(name));
        rates.push(run.per_second());
    }
    println!(
        "    of the rate in the same currency: {:.0} %, with the fee included {:.0} %",
        100.0 * rates[1] / rates[0],
        100.0 * rates[2] / rates[0]
    );
    server.verify();
    server.stop().await;
    println!();
}
