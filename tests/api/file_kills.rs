//! A host that dies at one step of a file's life, and another start that ends it.
//!
//! At each step the database, or the bank, lets the host get no further: then it is dropped there,
//! with its leases, as a process that is killed leaves them.

use std::thread::JoinHandle;
use std::time::Duration;

use railhead::config::Config;
use railhead::db::Db;
use rstest::rstest;
use tokio_util::sync::CancellationToken;

use crate::ach::{UNTIL_MONDAY, UNTIL_TUESDAY, funded, pay_live, reference};
use crate::bank::{Bank, Hold};
use crate::files::release;
use crate::live::{until, with_bank};
use crate::network::{start_again, start_when_free};
use crate::test_host::{Engine, TestHost, config};

/// Where the host dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The window has closed, and the file was not made.
    Closed,
    /// It was made, and none of it has left.
    Assembled,
    /// It is there, and the host has not heard so.
    Delivering,
    /// The host knows that it is there, and not that the bank carries it out.
    Delivered,
    /// The host knows that as well, and its payments do not.
    Acknowledged,
}

impl Step {
    /// The state in which the file stays.
    const fn state(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Assembled => "assembled",
            Self::Delivering => "sending",
            Self::Delivered => "delivered",
            Self::Acknowledged => "acknowledged",
        }
    }

    /// What of the database is held fast so that the host gets no further: a table, and which
    /// changes of it. A delivery is held up by the bank.
    fn held_fast(self) -> Option<(&'static str, String)> {
        match self {
            Self::Closed | Self::Assembled | Self::Delivered => {
                Some(("payment_files", format!("OLD.state = '{}'", self.state())))
            }
            Self::Acknowledged => Some(("transfers", "NEW.nudges > OLD.nudges".to_owned())),
            Self::Delivering => None,
        }
    }
}

/// The statements that hold such changes of a table fast, and those that let go of them.
pub(crate) fn holding(engine: Engine, (table, when): (&str, &str)) -> [Vec<String>; 2] {
    match engine {
        Engine::Sqlite => [
            vec![format!(
                "CREATE TRIGGER held_fast BEFORE UPDATE ON {table} WHEN {when} \
                 BEGIN SELECT RAISE(ABORT, 'held fast'); END"
            )],
            vec!["DROP TRIGGER held_fast".to_owned()],
        ],
        Engine::Postgres => [
            vec![
                "CREATE FUNCTION hold_fast() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'held fast'; END $$"
                    .to_owned(),
                format!(
                    "CREATE TRIGGER held_fast BEFORE UPDATE ON {table} FOR EACH ROW \
                     WHEN ({when}) EXECUTE FUNCTION hold_fast()"
                ),
            ],
            vec![
                format!("DROP TRIGGER held_fast ON {table}"),
                "DROP FUNCTION hold_fast()".to_owned(),
            ],
        ],
    }
}

/// Runs statements where no host runs.
async fn run(db: &Db, statements: &[String]) {
    let mut tx = db.write().await.expect("a transaction");
    for sql in statements {
        let query = sqlx::query(sqlx::AssertSqlSafe(sql.clone()));
        query.execute(tx.conn()).await.expect(sql);
    }
    tx.commit().await.expect("committed");
}

fn leading_to(bank: &Bank, host: &TestHost) -> Config {
    let mut config = config(&host.database);
    config.simulator.url = Some(bank.url.clone());
    config
}

/// Runs a host until it is killed: then nothing of it runs any more, and what it has not committed
/// was never done.
fn run_until_killed(host: &TestHost, config: Config, killed: CancellationToken) -> JoinHandle<()> {
    let clock = host.clock.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let running = runtime.block_on(async {
            let running = start_when_free(config, clock).await;
            killed.cancelled().await;
            running
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        drop(running);
    })
}

/// How many payments the bank carries out. What else it remembers are its files.
async fn carried_out(bank: &Bank) -> usize {
    bank.transfers().await.iter().filter(|known| known.executed == 1).count()
}

/// Waits until the only file there is has come to this state; while nothing happens, time passes.
async fn until_state(host: &TestHost, db: &Db, state: &str) {
    let sql = "SELECT COUNT(*) FROM payment_files WHERE state = $1";
    for turn in 1..2_000 {
        let count: i64 =
            sqlx::query_scalar(sql).bind(state).fetch_one(db.pool()).await.expect("a number");
        if count == 1 {
            return;
        }
        if turn % 50 == 0 {
            host.advance(20);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no file is {state}");
}

/// Has a host carry files until it can get no further than a step, and kills it there.
async fn die_at(step: Step, host: &TestHost, bank: &Bank, payments: usize) {
    let db = Db::open_for_reading(&host.database.url.clone().into()).await.expect("a database");
    let statements = step.held_fast().map(|(table, when)| holding(host.engine, (table, &when)));
    let [hold, let_go] = statements.unwrap_or_default();
    run(&db, &hold).await;
    if step == Step::Delivering {
        bank.door.hold(Hold::Answer);
    }
    let killed = CancellationToken::new();
    let thread = run_until_killed(host, leading_to(bank, host), killed.clone());
    until_state(host, &db, step.state()).await;
    if step == Step::Delivering {
        bank.door.until_held().await;
        assert_eq!(carried_out(bank).await, payments, "the bank has them");
    }
    killed.cancel();
    tokio::task::spawn_blocking(move || thread.join()).await.expect("joined").expect("no panic");
    bank.door.hold(Hold::Nothing);
    run(&db, &let_go).await;
    db.close().await;
}

/// Whatever the host was at when it died, the next one goes on from what is written down: every
/// payment is at the bank once, and is paid.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_a_step_of_its_file_every_payment_is_sent_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Step::Closed, Step::Assembled, Step::Delivering, Step::Delivered, Step::Acknowledged)]
    step: Step,
) {
    with_bank(engine, async |host, bank| {
        funded(host, &host.merchant.live_key).await;
        let mut ids = Vec::new();
        for number in 0..3 {
            ids.push(pay_live(host, &format!("77{number}")).await);
        }
        let waiting = "SELECT COUNT(*) FROM transfers WHERE due_at > queued_at AND lease_until = 0";
        host.until_count(waiting, 3).await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        host.advance(UNTIL_MONDAY);
        die_at(step, host, bank, ids.len()).await;
        // Its leases run out.
        release(host).await;
        start_again(host, leading_to(bank, host)).await;
        let db = Db::open_for_reading(&host.database.url.clone().into()).await.expect("a database");
        until_state(host, &db, "acknowledged").await;
        db.close().await;
        host.advance(UNTIL_TUESDAY);
        for id in &ids {
            until(host, id, "paid").await;
            let transfer = bank.transfer(&reference(host, id).await).await;
            assert_eq!((transfer.received, transfer.executed), (1, 1));
        }
        assert_eq!(carried_out(bank).await, ids.len());
        let once = "SELECT COUNT(*) FROM attempts WHERE sends = 1 AND state = 'paid'";
        assert_eq!(host.count(once).await, 3);
        let delivered = "SELECT COUNT(*) FROM payment_files WHERE deliveries = 1";
        assert_eq!(host.count(delivered).await, 1);
        assert_eq!(host.count("SELECT COUNT(*) FROM payment_files").await, 1);
    })
    .await;
}
