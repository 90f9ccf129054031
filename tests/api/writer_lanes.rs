//! The writer's lanes on PostgreSQL: requests of one do not wait for those of the other, and where
//! they meet none of them is lost.

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures::future::join_all;
use http::Method;
use railhead::db::bulk::{Column, Table, Write, text, together};
use railhead::db::cell::Kind;
use railhead::db::lookup::Lookup;
use railhead::error::{ErrorCode, Problem};
use railhead::id::WalletId;
use railhead::ledger::{Command, CounterChange, Done, Effects, Reservation};
use railhead::money::Minor;
use sqlx::AssertSqlSafe;

use crate::network::{Sends, with_live_host};
use crate::test_host::{Engine, Merchant, SOMEBODY_WAITS, TestHost, naira, unique};

static HELD: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("updated_at", Kind::Int)], lock: true };
static MADE: Lookup =
    Lookup { name: "meta", key: "key", columns: &[("value", Kind::Text)], lock: true };
static STATUSES: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("status", Kind::Text)], lock: false };

pub(crate) fn lane_of(host: &TestHost, wallet: &str) -> usize {
    host.app().writer.lane_of(&WalletId::parse(wallet).expect("an id"))
}

/// Waits until a wallet's lane turns requests away.
async fn until_late(host: &TestHost, wallet: &str) {
    let wallet = WalletId::parse(wallet).expect("an id");
    for _ in 0..4_000 {
        if host.app().writer.admit_for(&wallet).is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it still takes them");
}

/// Adds one to each of these counters, and says when it has read them: it goes on when told.
fn add(keys: [&'static str; 2]) -> (Command<()>, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (has_read, read) = mpsc::channel();
    let (go_on, told) = mpsc::channel();
    let told = Mutex::new(told);
    let command = Command::new(move |locked| {
        let _ = has_read.send(());
        // Nobody tells it a second time: it may have to decide again.
        let _ = told.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let counters = keys.map(|key| CounterChange {
            key: key.to_owned(),
            holder: String::new(),
            count: locked.counter(key).count + 1,
            sum: Minor::ZERO,
            expires_at: i64::MAX,
        });
        Ok(Effects { counters: counters.into(), ..Effects::default() }.and(()))
    });
    (command.counters(keys.map(str::to_owned)), read, go_on)
}

/// A counter that is absent when it is read is not locked: another lane may make it and lock it
/// before it is written here, and wait meanwhile for one that is locked here.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_meets_a_counter_that_was_made_meanwhile_lets_the_other_one_go_first() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        let database = host.connections().await;
        let made = async |key: &str| {
            let sql = "INSERT INTO counters \
                       (key, version, holder, count, sum_minor, updated_at, expires_at) \
                       VALUES ($1, 1, '', 1, 0, 0, 9223372036854775807)";
            sqlx::query(sql).bind(key).execute(&database).await.expect("made");
        };
        let lock = "SELECT count FROM counters WHERE key = $1 FOR NO KEY UPDATE";
        made("met/b").await;
        let (command, read, go_on) = add(["met/a", "met/b"]);
        let app = host.app().clone();
        let adding = tokio::spawn(async move { app.writer.request(command).await });
        tokio::task::spawn_blocking(move || read.recv()).await.expect("a task").expect("it reads");

        made("met/a").await;
        let mut other = database.begin().await.expect("a transaction");
        sqlx::query(lock).bind("met/a").execute(&mut *other).await.expect("locked");
        let waiting = tokio::spawn(async move {
            let locked = sqlx::query(lock).bind("met/b").execute(&mut *other).await;
            locked.map(|_| other)
        });
        host.until_count(SOMEBODY_WAITS, 1).await;
        drop(go_on);
        let other = waiting.await.expect("a task").expect("nobody waits for it");
        other.commit().await.expect("committed");
        adding.await.expect("a task").expect("added");
        let twos = "SELECT COUNT(*) FROM counters WHERE key IN ('met/a', 'met/b') AND count = 2";
        assert_eq!(host.count(twos).await, 2);
    })
    .await;
}

/// However long: the host turns away what would wait for it, and serves everybody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_wallet_that_is_held_keeps_its_lane_waiting_and_not_the_other() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        let lane = lane_of(host, &host.merchant.live_wallet);
        let mut keys = Vec::new();
        while keys.len() < 3 {
            let other = host.new_merchant(&unique()).await;
            if lane_of(host, &other.live_wallet) != lane {
                keys.push(other.live_key);
            }
        }
        let database = host.connections().await;
        let mut holder = database.begin().await.expect("a transaction");
        let hold = "SELECT id FROM wallets WHERE id = $1 FOR UPDATE";
        let held = sqlx::query(hold).bind(&host.merchant.live_wallet);
        held.execute(&mut *holder).await.expect("held");

        let pay = async |key: &str| host.pay_as(key, &unique(), naira(100_000)).await;
        let held = pay(&host.merchant.live_key);
        let others = async {
            host.until_count(SOMEBODY_WAITS, 1).await;
            for paid in join_all(keys.iter().map(|key| pay(key))).await {
                paid.ok();
            }
            until_late(host, &host.merchant.live_wallet).await;
            let refused = pay(&host.merchant.live_key).await;
            assert_eq!(refused.refused(), (503, "service_overloaded"));
            pay(&keys[0]).await.ok();
            host.send(Method::GET, "/readyz", "", &[], None).await.ok();
            holder.commit().await.expect("let go");
        };
        let (held, ()) = tokio::join!(held, others);
        held.ok();
    })
    .await;
}

/// What commands answer that so many lanes wait with, for a merchant and his wallet. Whoever holds
/// both suspends the one, and makes a row and uses a key that were not there before.
async fn while_held<T>(host: &TestHost, lanes: i64, waiting: impl Future<Output = T>) -> T {
    let database = host.connections().await;
    let mut holder = database.begin().await.expect("a transaction");
    let Merchant { id, live_wallet, .. } = &host.merchant;
    for sql in [
        format!("SELECT id FROM wallets WHERE id = '{live_wallet}' FOR UPDATE"),
        format!("UPDATE merchants SET status = 'suspended' WHERE id = '{id}'"),
        "INSERT INTO meta (key, value) VALUES ('met/row', '')".to_owned(),
        "INSERT INTO idempotency_keys (key, fingerprint, subject, resource_id, created_at, batch_id) \
         VALUES ('met/key', 'f', 's', 'first', 0, 0)"
            .to_owned(),
    ] {
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *holder).await.expect("held");
    }
    let commit = async {
        host.until_count(SOMEBODY_WAITS, lanes).await;
        holder.commit().await.expect("committed");
    };
    let (answer, ()) = tokio::join!(waiting, commit);
    let armed = host.disarm("idempotency_keys").await;
    host.run(&[
        format!("UPDATE merchants SET status = 'active' WHERE id = '{id}'"),
        "DELETE FROM meta WHERE key = 'met/row'".to_owned(),
        "DELETE FROM idempotency_keys WHERE key = 'met/key'".to_owned(),
    ])
    .await;
    host.run(&armed).await;
    answer
}

/// Answers the merchant's status and whether the row was made.
fn look(host: &TestHost) -> Command<(String, bool)> {
    let id = host.merchant.id.clone();
    let command = Command::new(move |locked| {
        let status = locked.row(&STATUSES, &id).map(|row| row.text("status")).transpose()?;
        let is_made = locked.row(&MADE, "met/row").is_some();
        Ok(Effects::default().and((status.unwrap_or_default().to_owned(), is_made)))
    });
    command.row(&STATUSES, host.merchant.id.as_str()).row(&MADE, "met/row")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_waited_for_a_wallet_sees_what_was_committed_until_then() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        let wallet = WalletId::parse(&host.merchant.live_wallet).expect("an id");
        let looking = host.app().writer.request(look(host).wallets([wallet]));
        let Ok(Done::Now((status, is_made))) = while_held(host, 1, looking).await else {
            panic!("refused");
        };
        assert_eq!((&*status, is_made), ("suspended", true));
    })
    .await;
}

/// A repeat finds the key of whoever held the row, instead of a row that it did not expect.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_waited_for_a_row_sees_what_was_committed_until_then() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        let held = host.merchant.id.as_str();
        let repeat: Command<()> = Command::new(|_| Err(Problem::new(ErrorCode::StateConflict)));
        let repeat = repeat.row(&HELD, held).reserve(Reservation {
            key: "met/key".to_owned(),
            fingerprint: "f".to_owned(),
            subject: "s".to_owned(),
            resource_id: "second".to_owned(),
            expires: false,
        });
        let writer = &host.app().writer;
        let both = async {
            tokio::join!(writer.work(look(host).row(&HELD, held)), writer.request(repeat))
        };
        let (looked, repeated) = while_held(host, 2, both).await;
        let Ok(Done::Now((status, is_made))) = looked else { panic!("refused") };
        assert_eq!((&*status, is_made), ("suspended", true));
        let Ok(Done::Before { resource_id, .. }) = repeated else { panic!("{repeated:?}") };
        assert_eq!(resource_id, "first");
    })
    .await;
}

static ID: [Column<&str>; 1] = [text("id", |id| (*id).into())];

const fn turns(name: &'static str, on_conflict: Option<&'static str>) -> Table<&'static str> {
    Table { name, fixed: &ID, changing: &[], on_conflict, is_sealed: false }
}

static PLAIN: Table<&str> = turns("turns_of_plain", None);
static COUNTED: Table<&str> = turns("turns_of_counted", Some("(id) DO NOTHING"));
static OTHER: Table<&str> = turns("turns_of_other", None);

/// Locks are taken in the order in which a statement's parts are carried out. That is PostgreSQL's
/// own affair: the writer hands over what is not counted the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_is_written_first_and_the_rest_last_one_first() {
    with_live_host(Engine::Postgres, Sends::No, async |host| {
        host.run(&["CREATE SEQUENCE turns".to_owned()]).await;
        let tables = [&PLAIN, &COUNTED, &OTHER];
        let make = tables.map(|table| {
            let turn = "turn BIGINT NOT NULL DEFAULT nextval('turns')";
            format!("CREATE TABLE {} (id TEXT PRIMARY KEY, {turn})", table.name)
        });
        host.run(&make).await;
        let sql = together(&tables.map(|table| Write::Rows(table, &[])));
        let database = host.connections().await;
        let query = tables
            .iter()
            .fold(sqlx::query(AssertSqlSafe(sql)), |query, _| query.bind(vec!["once"]));
        query.execute(&database).await.expect("written");
        let mut turns = Vec::new();
        for table in tables {
            turns.push(host.count(&format!("SELECT turn FROM {}", table.name)).await);
        }
        assert_eq!(turns, [3, 1, 2]);
        host.run(&tables.map(|table| format!("DROP TABLE {}", table.name))).await;
        host.run(&["DROP SEQUENCE turns".to_owned()]).await;
    })
    .await;
}
