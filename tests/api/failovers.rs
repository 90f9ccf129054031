//! A database that changes under a host that runs: it fails over, an old server comes back, or a
//! copy is put in its place.

use http::Method;
use railhead::clock::Moment;
use railhead::db::Identity;
use rstest::rstest;
use serde_json::json;

use crate::ach::{self, until_files};
use crate::bank::Bank;
use crate::file_kills::holding;
use crate::file_transport::{
    NAME, Over, close_window, configure, names, secrets, until_deliveries, with_files,
};
use crate::live::{pay, reference, until, until_asked, with_bank};
use crate::network::{Sends, beside, live};
use crate::packs::until as until_it_holds;
use crate::restores::{Backup, back_up, copy, file, quarantine, release, server, start_again};
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira};
use crate::under_way::until_it_waits;

/// Puts the copy back and lets the host run on.
async fn put_back_under(host: &TestHost, backup: &Backup) {
    match host.engine {
        Engine::Sqlite => {
            let beside = file(host).with_extension("beside");
            std::fs::copy(&backup.place, &beside).expect("copied");
            std::fs::rename(beside, file(host)).expect("put back");
        }
        Engine::Postgres => {
            let (server, name) = server(host);
            copy(&server, &backup.place, &name).await;
        }
    }
}

async fn until_quarantine(host: &TestHost) {
    let path = "/admin/v1/quarantine";
    // The database may be away for a moment.
    let is_active = async || {
        host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.json["is_active"] == true
    };
    until_it_holds("somebody has noticed", is_active).await;
}

/// The writer's connection breaks while an attempt is being committed, and leads to another
/// server from then on: the attempt is there, and nothing of it leaves.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_about_to_leave_as_connections_led_elsewhere_does_not() {
    with_bank(Engine::Postgres, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        let db = host.app().db.clone();
        let mut held = db.write().await.expect("a transaction");
        let sql = "LOCK TABLE attempts IN EXCLUSIVE MODE";
        sqlx::query(sql).execute(held.conn()).await.expect("locked");
        let id = pay(host, "0123456785").await.ok().id();
        let waiting = "SELECT COUNT(*) FROM pg_locks \
                       WHERE NOT granted AND relation = 'attempts'::regclass";
        host.until_count(waiting, 1).await;
        host.run(&["UPDATE meta SET value = 'another' WHERE key = 'system'".to_owned()]).await;
        let here = db.identity().await.expect("an identity");
        db.expect(Identity { system: "another".to_owned(), ..here });
        let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_locks \
                   WHERE NOT granted AND relation = 'attempts'::regclass";
        assert_eq!(host.count(cut).await, 1);
        until_it_holds("it has moved", async || db.has_moved()).await;
        held.commit().await.expect("let go");
        host.until_count("SELECT COUNT(*) FROM attempts", 2).await;
        until_quarantine(host).await;
        host.until_count("SELECT COUNT(*) FROM transfers WHERE lease_until > 0", 0).await;
        assert_eq!(bank.transfers().await.len(), 1, "it left");
        release(host).await;
        // It may have left before, for all that is known: it is sent once that is ruled out.
        for queries in 1..=3 {
            host.advance(2 * 86_400);
            until_asked(host, &id, queries).await;
        }
        let sent = reference(&until(host, &id, "paid").await);
        assert_eq!(bank.transfer(&sent).await.received, 1);
        assert_eq!(bank.transfers().await.len(), 2);
    })
    .await;
}

/// Pays somebody, and sets a copy of that aside.
async fn pay_and_set_aside(host: &mut TestHost, bank: &Bank) -> Backup {
    let known = pay(host, "0123456785").await.ok().id();
    until(host, &known, "paid").await;
    let backup = back_up(host).await;
    start_again(host, bank, Sends::Yes).await;
    backup
}

/// Nobody stops the host: what it has sent is forgotten, the gate is shut before anything else leaves,
/// and what comes then follows on what the database knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_put_back_under_a_running_host_is_noticed() {
    with_bank(Engine::Postgres, async |host, bank| {
        let backup = pay_and_set_aside(host, bank).await;
        let forgotten = pay(host, "0123456785").await.ok().id();
        until(host, &forgotten, "paid").await;
        put_back_under(host, &backup).await;
        until_quarantine(host).await;
        let cases = "SELECT COUNT(*) FROM cases WHERE kind = 'forgotten_transfer'";
        host.until_count(cases, 1).await;
        let id = pay(host, "0123456785").await.ok().id();
        assert_eq!(host.pay("paid", naira(100_000)).await.ok().status_word(), "paid");
        host.advance(61);
        until_it_waits(host, &id, "quarantine").await;
        assert_eq!(bank.transfers().await.len(), 2, "it left");
        host.prove().await;
    })
    .await;
}

/// What would be written to a file that nobody finds again is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_replaced_under_a_running_host_takes_nothing_more() {
    with_bank(Engine::Sqlite, async |host, bank| {
        let backup = pay_and_set_aside(host, bank).await;
        put_back_under(host, &backup).await;
        let refused = pay(host, "0123456785").await;
        assert_eq!(refused.refused().0, 503);
        assert_eq!(bank.transfers().await.len(), 1, "it left");
        let ready = host.client.get(format!("{}/readyz", host.base)).send().await;
        assert_ne!(ready.map(|answer| answer.status().as_u16()).unwrap_or(503), 200);
    })
    .await;
}

/// The same disk as it was some time ago: nothing but its age tells it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_younger_than_it_was_is_not_trusted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let folder = host.app().config.data.dir.join("epochs");
        assert!(folder.read_dir().is_ok_and(|mut found| found.next().is_some()), "no mark");
        host.run(&["UPDATE meta SET value = '0' WHERE key = 'epoch'".to_owned()]).await;
        until_quarantine(host).await;
        let reasons = quarantine(host).await["reasons"].to_string();
        assert!(reasons.contains("younger"), "{reasons}");
        let id = pay(host, "0123456785").await.ok().id();
        host.advance(61);
        until_it_waits(host, &id, "quarantine").await;
        assert_eq!(bank.transfers().await.len(), 0, "it left");
        release(host).await;
    })
    .await;
}

/// An old server that comes back knows nothing of the release that this host has seen: that it says
/// nothing of a quarantine does not open the gate, nor does the way back.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_before_a_release_is_not_trusted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let list = async || -> String {
            let sql = "SELECT value FROM meta WHERE key = 'incarnations'";
            sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("a list")
        };
        let lead_to = async |list: &str| {
            let list = format!("UPDATE meta SET value = '{list}' WHERE key = 'incarnations'");
            let silent = "UPDATE meta SET value = '' WHERE key = 'quarantine'".to_owned();
            host.run(&[list, silent]).await;
        };
        let before = list().await;
        quarantine_and_release(host).await;
        let after = list().await;
        lead_to(&before).await;
        until_quarantine(host).await;
        lead_to(&after).await;
        until_quarantine(host).await;
        let id = pay(host, "0123456785").await.ok().id();
        host.advance(61);
        until_it_waits(host, &id, "quarantine").await;
        assert_eq!(bank.transfers().await.len(), 0, "it left");
        // Whoever says that this is the one is believed.
        release(host).await;
        until_over(host).await;
        host.advance(61);
        until(host, &id, "processing").await;
    })
    .await;
}

/// Writes intents to a journal of this host, oldest first: what left, and over which attempt.
fn intend(host: &TestHost, attempts: impl Iterator<Item = (Moment, String)>) {
    let folder = host.app().config.data.dir.join("intents");
    let folder = folder.read_dir().expect("a folder").next().expect("one").expect("one").path();
    let lines = attempts.map(|(at, attempt)| {
        let intent = json!({
            "at_us": at.micros(), "transfer_id": format!("of_{attempt}"), "attempt_id": attempt,
            "route": "ngn_nip", "rail": "nip", "reference": attempt, "currency": "NGN",
            "amount_minor": 100_000, "merchant_id": host.merchant.id,
        });
        format!("{intent}\n")
    });
    let day = host.clock.now().to_string()[..10].to_owned();
    std::fs::write(folder.join(format!("{day}.77.jsonl")), lines.collect::<String>())
        .expect("told");
}

const FORGOTTEN: &str = "SELECT COUNT(*) FROM cases WHERE kind = 'forgotten_transfer'";

/// Whatever left after it is known: an intent is written as something leaves, and the attempt of what
/// goes by file, or once more, is older than the backup.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_found_behind_many_that_are_known(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        let sql = format!("SELECT id FROM attempts WHERE transfer_id = '{known}'");
        let attempt: String = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(host.app().db.pool())
            .await
            .expect("one");
        host.advance(600);
        let now = host.clock.now();
        let forgotten = std::iter::once((now, "forgotten".to_owned()));
        intend(host, forgotten.chain(std::iter::repeat_n((now, attempt), 450)));
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::Yes).await;
        assert_eq!(host.count(FORGOTTEN).await, 1);
        assert_eq!(quarantine(host).await["forgotten"], 1);
        release(host).await;
        until_over(host).await;
    })
    .await;
}

/// A database may be put back by less than the time between two marks: then nothing but the journal
/// tells. Each of very many gets its case, once.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_within_a_heartbeat_is_noticed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let now = host.clock.now();
        intend(host, (0..450).map(|number| (now, format!("forgotten_{number}"))));
        until_shut(host).await;
        host.until_count(FORGOTTEN, 450).await;
        assert_eq!(quarantine(host).await["forgotten"], 450);
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        start_again(host, bank, Sends::Yes).await;
        assert_eq!(host.count(FORGOTTEN).await, 450);
        assert_eq!(quarantine(host).await["forgotten"], 450);
        release(host).await;
        until_over(host).await;
    })
    .await;
}

/// The same place is put back once more before the quarantine is over: what it forgets by that has left
/// long before the first comparison, and gets its cases all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_by_a_second_restore_is_found_as_well(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let before = host.clock.now();
        host.advance(600);
        let first = (host.clock.now(), "first".to_owned());
        intend(host, std::iter::once(first.clone()));
        host.until_count(FORGOTTEN, 1).await;
        until_it_holds("it is compared", async || quarantine(host).await["forgotten"] == 1).await;
        host.advance(600);
        intend(host, [(before, "second".to_owned()), first].into_iter());
        host.run(&["UPDATE meta SET value = '' WHERE key = 'quarantine'".to_owned()]).await;
        host.until_count(FORGOTTEN, 2).await;
        until_quarantine(host).await;
        release(host).await;
        until_over(host).await;
    })
    .await;
}

/// The same place, and no older than the last mark: only what this host was told is durable tells that
/// the server has lost it. Nothing leaves before that was looked for.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_and_is_lost_is_noticed_before_anything_leaves() {
    with_bank(Engine::Postgres, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        // Requests have lanes of their own, which may be idle in all that follows.
        host.pay("paid", naira(100_000)).await.ok();
        let armed = host.disarm("writer_batches").await;
        let lose = [
            "CREATE TABLE kept AS SELECT * FROM writer_batches WHERE id IN \
             (SELECT MAX(id) FROM writer_batches WHERE hash <> '' GROUP BY id >> 32)",
            "DELETE FROM writer_batches WHERE id IN (SELECT id FROM kept)",
        ];
        host.run(&lose.map(str::to_owned)).await;
        let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert!(host.count(cut).await > 0);
        until_reconnected(host).await;
        let id = pay(host, "0123456785").await.ok().id();
        until_shut(host).await;
        host.advance(61);
        until_it_waits(host, &id, "quarantine").await;
        assert_eq!(bank.transfers().await.len(), 1, "it left");
        until_quarantine(host).await;
        release(host).await;
        until_over(host).await;
        // What is lost is not looked for again, whichever lane has not written since.
        for _ in 0..3 {
            host.pay("paid", naira(100_000)).await.ok();
            pay(host, "0123456785").await.ok();
        }
        assert!(!is_shut(host));
        let find = ["INSERT INTO writer_batches SELECT * FROM kept", "DROP TABLE kept"];
        host.run(&find.map(str::to_owned)).await;
        host.run(&armed).await;
    })
    .await;
}

/// The bank has the file, and the database has forgotten that: the host that runs on delivers no
/// second copy, though nothing but files is done.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_left_before_the_database_was_put_back_does_not_leave_again() {
    with_files(Engine::Postgres, Over::Folder, async |host, server| {
        let (outgoing, aside) = (server.path("outgoing"), server.path("aside"));
        std::fs::rename(&outgoing, &aside).expect("moved");
        let id = ach::pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_deliveries(host, 1).await;
        let backup = back_up(host).await;
        std::fs::rename(&aside, &outgoing).expect("moved back");
        let mut with = crate::test_host::config(&host.database);
        configure(&mut with, server, secrets(server));
        crate::network::start_again(host, with).await;
        host.advance(61);
        until_files(host, &[("delivered", 1)]).await;
        std::fs::remove_file(outgoing.join(NAME)).expect("fetched");
        host.advance(3_600);
        put_back_under(host, &backup).await;
        until_quarantine(host).await;
        host.advance(61);
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        assert_eq!(names(&outgoing), Vec::<String>::new(), "it left again");
    })
    .await;
}

/// Sets a copy aside under a name of its own.
async fn set_aside(host: &mut TestHost, bank: &Bank, ending: &str) -> Backup {
    let first = back_up(host).await;
    let (server, name) = server(host);
    let place = format!("{name}_{ending}");
    copy(&server, &first.place, &place).await;
    start_again(host, bank, Sends::Yes).await;
    Backup { place }
}

fn is_shut(host: &TestHost) -> bool {
    host.app().transfers.quarantine.is_closed()
}

async fn until_over(host: &TestHost) {
    until_it_holds("the gate is open", async || !is_shut(host)).await;
}

async fn until_shut(host: &TestHost) {
    until_it_holds("the gate is shut", async || is_shut(host)).await;
}

const MADE_YOUNGER: &str = "UPDATE meta SET value = CAST(CAST(value AS BIGINT) - 1000 AS TEXT) \
                            WHERE key = 'epoch'";

async fn quarantine_and_release(host: &TestHost) {
    host.run(&[MADE_YOUNGER.to_owned()]).await;
    until_quarantine(host).await;
    release(host).await;
    until_over(host).await;
}

/// Connections lead to a server of before a release for a while, and back again. Nobody has said
/// that what is there now is right, so nothing leaves, and everybody hears so.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_that_comes_and_goes_opens_no_gate() {
    with_bank(Engine::Postgres, async |host, bank| {
        let old = set_aside(host, bank, "old").await;
        quarantine_and_release(host).await;
        let released = set_aside(host, bank, "released").await;
        put_back_under(host, &old).await;
        until_quarantine(host).await;
        put_back_under(host, &released).await;
        // What came back says nothing of a quarantine until this host has.
        until_quarantine(host).await;
        let id = pay(host, "0123456785").await.ok().id();
        host.advance(61);
        until_it_waits(host, &id, "quarantine").await;
        assert_eq!(bank.transfers().await.len(), 0, "it left");
        release(host).await;
        host.advance(61);
        until(host, &id, "processing").await;
    })
    .await;
}

/// Waits until no connection is left that leads to what was put away.
async fn until_reconnected(host: &TestHost) {
    let mut answered = 0;
    for _ in 0..500 {
        let sql = sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM meta");
        answered = sql.fetch_one(host.app().db.pool()).await.map_or(0, |_| answered + 1);
        if answered == 20 {
            return;
        }
    }
    panic!("the database does not answer");
}

/// The database changes once more before the first quarantine is over: numbers are moved on in that
/// one, too, and what is written there follows on what it knows.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_back_in_a_quarantine_is_noticed_as_well() {
    with_bank(Engine::Postgres, async |host, bank| {
        let known = pay(host, "0123456785").await.ok().id();
        until(host, &known, "paid").await;
        let old = set_aside(host, bank, "old").await;
        host.pay("paid", naira(100_000)).await.ok();
        put_back_under(host, &old).await;
        until_quarantine(host).await;
        until_reconnected(host).await;
        let serials = "SELECT next FROM serials WHERE id = 'transfers'";
        let moved_on = host.count(serials).await;
        host.pay("paid", naira(100_000)).await.ok();
        put_back_under(host, &old).await;
        until_quarantine(host).await;
        until_reconnected(host).await;
        host.until_count(&format!("SELECT ({serials}) / 10000000"), moved_on / 10_000_000).await;
        host.pay("paid", naira(100_000)).await.ok();
        assert_eq!(host.count(serials).await / 10_000_000, 1, "once for each");
        host.prove().await;
    })
    .await;
}

/// A quarantine that cannot be written down yet is, later on; and until then the gate is shut.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_that_cannot_be_written_down_is_tried_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        quarantine_and_release(host).await;
        let [hold, let_go] = holding(engine, ("meta", "NEW.key = 'quarantine'"));
        host.run(&hold).await;
        host.run(&[MADE_YOUNGER.to_owned()]).await;
        until_shut(host).await;
        let serials = "SELECT next FROM serials WHERE id = 'transfers'";
        host.until_count(&format!("SELECT ({serials}) / 10000000"), 2).await;
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        assert_eq!(quarantine(host).await["is_active"], false, "nothing can be written");
        host.run(&let_go).await;
        until_quarantine(host).await;
        assert_eq!(host.count(serials).await / 10_000_000, 2, "numbers were moved on twice");
        release(host).await;
        until_over(host).await;
    })
    .await;
}

/// Whoever cannot remember what was released keeps its gate shut, and opens it as soon as it can.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_cannot_be_remembered_opens_the_gate_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        quarantine_and_release(host).await;
        host.run(&[MADE_YOUNGER.to_owned()]).await;
        until_quarantine(host).await;
        let folder = host.app().config.data.dir.join("epochs");
        let remembered = std::fs::read_dir(&folder).expect("a folder").next();
        let in_the_way = remembered.expect("a file").expect("a file").path().with_extension("new");
        std::fs::create_dir(&in_the_way).expect("made");
        release(host).await;
        tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
        assert!(is_shut(host), "it would not be known after a start");
        std::fs::remove_dir(&in_the_way).expect("removed");
        until_over(host).await;
        assert_eq!(quarantine(host).await["is_active"], false);
    })
    .await;
}

/// What one host has noticed, and somebody has let go of, is over for the other one as well.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_leave_a_quarantine_together() {
    with_bank(Engine::Postgres, async |host, bank| {
        let old = set_aside(host, bank, "old").await;
        let other = beside(host, |config| live(config, bank.url.clone(), Sends::Yes)).await;
        quarantine_and_release(host).await;
        until_over(&other).await;
        put_back_under(host, &old).await;
        until_quarantine(host).await;
        until_shut(&other).await;
        // Each adds what it has noticed.
        let both_have_told = async || {
            let before = quarantine(host).await;
            tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
            quarantine(host).await == before
        };
        until_it_holds("both have told", both_have_told).await;
        release(host).await;
        until_over(host).await;
        until_over(&other).await;
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        for host in [host, &other] {
            assert!(!is_shut(host));
            assert_eq!(quarantine(host).await["is_active"], false);
        }
        other.close().await;
    })
    .await;
}

/// A host that has nothing to do notices that its file is not there any more, and stops.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_whose_file_is_replaced_stops_by_itself() {
    with_bank(Engine::Sqlite, async |host, bank| {
        let backup = back_up(host).await;
        start_again(host, bank, Sends::Yes).await;
        put_back_under(host, &backup).await;
        assert!(is_shut(host));
        let app = host.app().clone();
        let running = host.running.take().expect("a host").run(std::future::pending());
        let ended = tokio::time::timeout(std::time::Duration::from_secs(30), running).await;
        assert!(ended.expect("it stops").is_err());
        // As its process would end.
        app.stopping.cancel();
        app.writer.stop().await;
        app.db.close().await;
        drop(app);
        start_again(host, bank, Sends::Yes).await;
    })
    .await;
}
