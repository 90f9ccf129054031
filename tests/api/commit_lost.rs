//! A COMMIT whose fate is not told: the connection to PostgreSQL breaks before it arrives, or
//! before its answer does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use railhead::config::Config;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::program::Deployment;
use crate::test_host::{Engine, TestHost, naira, unique};

/// Where the connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    /// COMMIT does not arrive.
    Command,
    /// COMMIT is obeyed, and nobody learns of it.
    Answer,
}

/// What happens to the line there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It is cut.
    Cut,
    /// It carries nothing more, until the host is gone.
    Silence,
}

/// Which COMMITs of the ledger's writer are met, and how.
#[derive(Clone, Copy, Debug)]
struct Plan {
    at: Break,
    then: Then,
    /// How many are carried before each that is met.
    carried: u32,
    times: u32,
}

/// A line to PostgreSQL that breaks when it is told to.
#[derive(Clone)]
struct Line {
    address: SocketAddr,
    plan: Arc<Mutex<Option<(Plan, u32)>>>,
    /// How many COMMITs were met.
    met: watch::Sender<u32>,
    /// Whether the writer's next ROLLBACK is cut off as well.
    cuts_rollback: Arc<AtomicBool>,
}

impl Line {
    /// A line to the server of this address, and the address at its other end.
    fn open(url: &str) -> (Self, String) {
        let inside = url.strip_prefix("postgres://postgres@").expect("a server");
        let (server, name) = inside.split_once('/').expect("a database");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(listener).expect("a socket");
        let outside = listener.local_addr().expect("an address");
        let address = server.parse().expect("an address");
        let line = Self {
            address,
            plan: Arc::default(),
            met: watch::Sender::new(0),
            cuts_rollback: Arc::default(),
        };
        tokio::spawn({
            let line = line.clone();
            async move {
                while let Ok((host, _)) = listener.accept().await {
                    tokio::spawn(line.clone().carry(host));
                }
            }
        });
        (line, format!("postgres://postgres@{outside}/{name}"))
    }

    fn plan(&self, plan: Plan) {
        *self.plan.lock().expect("a lock") = Some((plan, plan.carried));
    }

    /// How many COMMITs were met.
    fn met(&self) -> u32 {
        *self.met.borrow()
    }

    async fn until_met(&self, count: u32) {
        let mut met = self.met.subscribe();
        let reached = met.wait_for(|met| *met >= count);
        let reached = tokio::time::timeout(Duration::from_secs(20), reached).await;
        reached.expect("in time").expect("a line");
    }

    /// Carries one connection until an end closes it or a plan breaks it.
    async fn carry(self, mut host: TcpStream) {
        let mut server = TcpStream::connect(self.address).await.expect("PostgreSQL");
        let _ = (host.set_nodelay(true), server.set_nodelay(true));
        let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        let mut is_writers = false;
        loop {
            tokio::select! {
                read = host.read(&mut up) => {
                    let Some(bytes) = some(read, &up) else { return };
                    // Only the ledger's writer marks its batches.
                    is_writers |= contains(bytes, b"INTO writer_batches");
                    let is_rollback = is_writers && contains(bytes, b"ROLLBACK\0");
                    if is_rollback && self.cuts_rollback.swap(false, Ordering::SeqCst) {
                        return;
                    }
                    let is_commit = is_writers && contains(bytes, b"COMMIT\0");
                    let plan = is_commit.then(|| self.next()).flatten();
                    if plan.is_none_or(|plan| plan.at == Break::Answer) {
                        server.write_all(bytes).await.expect("PostgreSQL");
                    }
                    let Some(plan) = plan else { continue };
                    if plan.at == Break::Answer {
                        // Until PostgreSQL says that it is done.
                        let _ = server.read(&mut down).await;
                    }
                    self.met.send_modify(|met| *met += 1);
                    while plan.then == Then::Silence && matches!(host.read(&mut up).await, Ok(1..)) {
                    }
                    return;
                }
                read = server.read(&mut down) => {
                    let Some(bytes) = some(read, &down) else { return };
                    if host.write_all(bytes).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// What is planned for this COMMIT.
    fn next(&self) -> Option<Plan> {
        let mut slot = self.plan.lock().expect("a lock");
        let (plan, carried) = slot.as_mut()?;
        if *carried > 0 {
            *carried -= 1;
            return None;
        }
        let met = *plan;
        (plan.times, *carried) = (plan.times - 1, plan.carried);
        if plan.times == 0 {
            *slot = None;
        }
        Some(met)
    }
}

fn some(read: std::io::Result<usize>, bytes: &[u8]) -> Option<&[u8]> {
    read.ok().filter(|&count| count > 0).map(|count| &bytes[..count])
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// A test host on a line that can break.
async fn on_a_line(test: impl AsyncFnOnce(&mut TestHost, &Line)) {
    let mut line = None;
    let change = |config: &mut Config| {
        let (opened, url) = Line::open(config.database_url().expose_secret());
        config.database_url = Some(url.into());
        // Small batches: more COMMITs to lose.
        config.writer.batch_max = 4;
        line = Some(opened);
    };
    let mut host = TestHost::open(Engine::Postgres, change).await;
    let line = line.expect("a line");
    test(&mut host, &line).await;
    host.close().await;
}

/// One COMMIT after this many is cut off.
fn cut(at: Break, carried: u32) -> Plan {
    Plan { at, then: Then::Cut, carried, times: 1 }
}

/// Its creation, its attempt, its outcome.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whichever_commit_of_a_payout_is_lost_it_is_made_and_paid_once(
    #[values(Break::Command, Break::Answer)] at: Break,
    #[values(0, 1, 2)] carried: u32,
) {
    on_a_line(async |host, line| {
        let key = unique();
        line.plan(cut(at, carried));
        let made = host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await;
        assert_eq!((made.status, line.met()), (201, 1), "{}", made.text);
        assert_eq!(made.status_word(), "paid");
        let again = host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await;
        assert_eq!((again.status, &again.text), (201, &made.text));
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
        assert_eq!(host.count("SELECT MAX(sends) + COUNT(*) FROM attempts").await, 2);
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000 - 101_075);
    })
    .await;
}

/// The COMMIT was obeyed and its answer lost; the batch is found, and then the connection breaks
/// once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_was_found_is_not_run_again_because_a_rollback_fails() {
    on_a_line(async |host, line| {
        let key = unique();
        line.plan(cut(Break::Answer, 0));
        line.cuts_rollback.store(true, Ordering::SeqCst);
        let made = host.pay_as(&host.merchant.test_key, &key, naira(100_000)).await.ok();
        assert!(!line.cuts_rollback.load(Ordering::SeqCst), "there was a rollback, and it failed");
        assert_eq!(made.status_word(), "paid");
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 1);
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000 - 101_075);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn under_load_lost_commits_double_nothing(
    #[values(Break::Command, Break::Answer)] at: Break,
) {
    on_a_line(async |host, line| {
        line.plan(Plan { at, then: Then::Cut, carried: 2, times: 8 });
        let pay = async |_| {
            let made = host.pay_as(&host.merchant.test_key, &unique(), naira(100_000)).await;
            assert_eq!((made.status, made.status_word()), (201, "paid"), "{}", made.text);
        };
        futures::future::join_all((0..40).map(pay)).await;
        assert_eq!(line.met(), 8);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 40);
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000 - 40 * 101_075);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_around_its_commit_a_payout_exists_as_a_whole_or_not_at_all(
    #[values(Break::Command, Break::Answer)] at: Break,
) {
    let mut deployment = Deployment::open(Engine::Postgres, "").await;
    deployment.kill().await;
    let (line, url) = Line::open(&deployment.host.database.url);
    deployment.start(&[("DATABASE_URL", &url), ("RAILHEAD_WORKER__DISPATCH", "false")]).await;
    let key = unique();
    line.plan(Plan { then: Then::Silence, ..cut(at, 0) });
    let request = deployment.pay_in_vain(&key, naira(100_000));
    line.until_met(1).await;
    deployment.kill().await;
    assert!(request.await.expect("no panic").is_err(), "nobody is left to answer");
    let there = usize::from(at == Break::Answer);
    assert_eq!(deployment.payouts().await, there);
    deployment.start(&[]).await;
    let made = deployment.pay(&key, naira(100_000)).await.ok();
    let replayed = made.headers.get("idempotent-replayed").map_or("false", String::as_str);
    assert_eq!(replayed, ["false", "true"][there]);
    deployment.until(&made.id(), "paid").await;
    assert_eq!(deployment.payouts().await, 1);
    assert_eq!(deployment.sends_and_queries(&made.id()).await, (1, 0));
    deployment.prove().await;
}
