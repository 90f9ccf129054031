//! How a host answers when it is not pressed, and what it takes when it is pressed too hard.

use std::time::Duration;

use super::load::{Load, Run};
use super::server::{Engine, Server, Setup};

/// How many connections press, and how many press too hard: as many as a host has places for.
const PRESSING: usize = 128;
const TOO_MANY: usize = 1000;

/// As if the server had run for a while: it writes over segments of its log then, instead of making
/// new ones, which takes 50 ms each. A checkpoint keeps as many as were filled since the last one.
const LONG_RUNNING: &str = "SELECT COUNT(pg_logical_emit_message(false, 'bench', repeat('x', 1000000))) \
                            FROM generate_series(1, 1500)";

/// Answers at 70 % of the most that the host accepts, in an open loop; then memory and answers where
/// far more is asked than it can do.
pub(crate) async fn run(engine: Engine, length: Duration, steady: Duration) {
    let server = Server::start(engine, Setup { batch_max: 256, dispatch: false }).await;
    let targets = server.merchants(50).await;
    let load =
        |connections| Load { base: server.base.clone(), targets: targets.clone(), connections };
    load(PRESSING).warm_up().await;
    println!("{engine:?}: accepted payouts at 70 % of the most, and far above it");
    println!("{}", Run::head());
    let most = load(PRESSING).run(&server, length).await;
    println!("{}", most.line("the most"));
    if engine == Engine::Postgres {
        server.execute(LONG_RUNNING).await;
        server.execute("CHECKPOINT").await;
    }
    let before = server.resident_mb();
    let calm = load(PRESSING).run_at(&server, steady, Some(0.7 * most.per_second())).await;
    println!("{}\n{}", calm.line("70 %, open loop"), calm.p99_line());
    // Ten times what it can do is due each second, and every place for a connection is taken.
    let pressed = load(TOO_MANY).run_at(&server, length, Some(10.0 * most.per_second())).await;
    println!("{}", pressed.line("10 x the most"));
    println!(
        "    resident memory {before} MB before, {} MB after; {:.2} x of the most was accepted\n",
        server.resident_mb(),
        pressed.per_second() / most.per_second()
    );
    server.stop().await;
}
