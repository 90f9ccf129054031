//! The whole life of payouts: accepted, sent over HTTP, paid, and heard of by their merchant.

use std::time::{Duration, Instant};

use super::cpu::{COLUMNS, Cpu};
use super::growth::Growth;
use super::load::Load;
use super::receivers::Receivers;
use super::server::{Engine, Server, Setup};
use super::tpcb::TpcB;

const SETUP: Setup = Setup { batch_max: 256, dispatch: true };
const WALLETS: usize = 50;
const CONNECTIONS: usize = 128;

/// Payouts for this long, and until the last one has ended: all of it counts.
pub(crate) async fn run(engine: Engine, length: Duration, tpcb: TpcB) {
    println!("{engine:?}: whole lives ({WALLETS} wallets, {CONNECTIONS} connections)");
    heard(engine, length, tpcb).await;
    let server = Server::start(engine, SETUP).await;
    let load = load(&server, server.merchants(WALLETS).await).await;
    let growth = Growth::begin(&server).await;
    let life = Life::measure(&server, &load, length, None).await;
    println!("{}", life.cpu_line());
    growth.print(&server, usize::try_from(life.count).unwrap()).await;
    server.verify();
    println!("    accepted, sent over HTTP, paid {}\n", tpcb.against(life.per_second()));
    server.stop().await;
}

/// The same with a webhook each, received.
async fn heard(engine: Engine, length: Duration, tpcb: TpcB) {
    let receivers = Receivers::open(WALLETS).await;
    let server = Server::start_with(engine, SETUP, Some(&receivers.ca_file)).await;
    let targets = server.merchants(WALLETS).await;
    for (target, url) in targets.iter().zip(&receivers.urls) {
        server.listen(&target.key, url, "payout_paid").await;
    }
    let load = load(&server, targets).await;
    let warm = usize::try_from(server.count("paid").await).unwrap();
    while receivers.count() < warm {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let life = Life::measure(&server, &load, length, Some(&receivers)).await;
    println!("{}", life.cpu_line());
    println!("    accepted, paid, webhook received {}", tpcb.against(life.per_second()));
    server.stop().await;
}

async fn load(server: &Server, targets: Vec<super::server::Target>) -> Load {
    let load = Load { base: server.base.clone(), targets, connections: CONNECTIONS };
    load.warm_up().await;
    server.until_idle().await;
    load
}

/// Lives that have ended.
struct Life {
    count: i64,
    accepting: Duration,
    took: Duration,
    cpu: Cpu,
}

impl Life {
    async fn measure(
        server: &Server,
        load: &Load,
        length: Duration,
        receivers: Option<&Receivers>,
    ) -> Self {
        let (cpu, before) = (Cpu::now(server), server.count("paid").await);
        let heard_before = receivers.map_or(0, Receivers::count);
        let begun = Instant::now();
        let run = load.run(server, length).await;
        let accepting = begun.elapsed();
        server.until_idle().await;
        let count = server.count("paid").await - before;
        assert_eq!(usize::try_from(count), Ok(run.accepted()), "paid, and accepted");
        assert_eq!(run.refused(), 0, "refused");
        if let Some(receivers) = receivers {
            let wanted = usize::try_from(count).unwrap() + heard_before;
            while receivers.count() < wanted {
                assert!(begun.elapsed() < length * 100, "{} of {wanted} heard", receivers.count());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let took = begun.elapsed();
        Self { count, accepting, took, cpu: Cpu::now(server).since(cpu) }
    }

    fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }

    fn cpu_line(&self) -> String {
        format!(
            "    {} payouts, accepted in {:.1} s, ended after {:.1} s; CPU us per payout ({COLUMNS}): {}",
            self.count,
            self.accepting.as_secs_f64(),
            self.took.as_secs_f64(),
            self.cpu.of_each(usize::try_from(self.count).unwrap()),
        )
    }
}
