//! Live keys: a bank on a port of its own, and a clock that says when to ask it.

use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::test_host::{
    Answer, Engine, TestHost, beginning, naira, unique, with, with_host_configured,
};

/// 1,000.00 naira with fee and tax.
pub(crate) const TOTAL: i64 = 101_075;

/// Every lease has run out, and nobody takes the work over: it is not due for long.
pub(crate) const LEASES_OVER: &str =
    "UPDATE transfers SET lease_until = 1, due_at = 9000000000000000";

/// A test host whose live routes lead to a bank.
pub(crate) async fn with_bank(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Bank)) {
    let clock = beginning();
    let bank = Bank::open_at(clock.clone()).await;
    let url = bank.url.clone();
    let change = |config: &mut railhead::config::Config| config.simulator.url = Some(url);
    let mut host = TestHost::open_at(clock, engine, change).await;
    test(&mut host, &bank).await;
    bank.prove().await;
    host.close().await;
}

fn to(account: &str) -> Value {
    let recipient = json!({ "account_number": account, "bank_code": "058" });
    with(naira(100_000), json!({ "recipient": recipient }))
}

pub(crate) async fn pay(host: &TestHost, account: &str) -> Answer {
    host.pay_as(&host.merchant.live_key, &unique(), to(account)).await
}

pub(crate) async fn until(host: &TestHost, id: &str, status: &str) -> Answer {
    host.until(&host.merchant.live_key, id, status).await
}

/// Waits until the rail has been asked about a payout this often.
pub(crate) async fn until_asked(host: &TestHost, id: &str, queries: i64) {
    let sql = "SELECT queries FROM attempts WHERE transfer_id = $1";
    let mut asked = 0;
    for _ in 0..3_000 {
        let pool = host.app().db.pool();
        let found = sqlx::query_scalar(sql).bind(id).fetch_optional(pool).await;
        asked = found.expect("attempts").unwrap_or(-1);
        if asked == queries && !is_leased(host, id).await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{id} was asked about {asked} times and not {queries}");
}

async fn is_leased(host: &TestHost, id: &str) -> bool {
    let sql = "SELECT COUNT(*) FROM transfers WHERE id = $1 AND lease_until > 0";
    let count: i64 =
        sqlx::query_scalar(sql).bind(id).fetch_one(host.app().db.pool()).await.expect("a number");
    count > 0
}

pub(crate) fn reference(payout: &Answer) -> String {
    payout.json["nip_reference"].as_str().expect("a reference").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_payout_is_queued_then_sent_then_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let queued = pay(host, "0123456785").await.ok();
        assert_eq!((queued.status, queued.status_word()), (201, "queued"));
        assert!(queued.json["queued_at"].is_string() && queued.json["processing_at"].is_null());
        let paid = until(host, &queued.id(), "paid").await;
        assert!(paid.json["processing_at"].is_string() && paid.json["completed_at"].is_string());
        let transfer = bank.transfer(&reference(&paid)).await;
        assert_eq!((transfer.received, transfer.executed), (1, 1));
        assert_eq!((transfer.amount_minor, transfer.account.as_str()), (100_000, "0123456785"));
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000 - TOTAL);
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000);
        let path = format!("/v1/payouts/{}/timeline", queued.id());
        let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
        let steps = timeline.json["data"].as_array().expect("steps").iter();
        let words: Vec<_> = steps.filter_map(|step| step["event"].as_str()).collect();
        assert_eq!(words, ["payout.queued", "payout.processing", "payout.paid"]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_magic_recipient_ends_as_it_should(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        // Account, status before the first question, status after it, questions, executed.
        for (account, before, after, queries, executed) in [
            ("0123456785", "paid", "paid", 0, 1),
            ("0000001015", "processing", "processing", 1, 0),
            ("0000001022", "failed", "failed", 0, 0),
            ("0000001046", "processing", "paid", 1, 1),
            ("0000001053", "processing", "failed", 1, 0),
            ("0000001060", "processing", "processing", 1, 0),
            ("0000001077", "processing", "processing", 1, 0),
            // Scenarios of the sandbox's own: to a live key these are accounts like any other.
            ("0000001118", "paid", "paid", 0, 1),
            ("0000001125", "paid", "paid", 0, 1),
        ] {
            let balance = host.balance(&host.merchant.live_wallet).await;
            let id = pay(host, account).await.ok().id();
            let payout = until(host, &id, before).await;
            until_asked(host, &id, 0).await;
            host.advance(4);
            until_asked(host, &id, 0).await;
            host.advance(1);
            until(host, &id, after).await;
            until_asked(host, &id, queries).await;
            let transfer = bank.transfer(&reference(&payout)).await;
            assert_eq!((transfer.received, transfer.executed), (1, executed), "{account}");
            let taken = if after == "failed" { 0 } else { TOTAL };
            let left = host.balance(&host.merchant.live_wallet).await;
            assert_eq!(left, balance - taken, "{account}");
            if after == "failed" {
                let failed = until(host, &id, after).await;
                assert_eq!(failed.json["failure_code"], "05", "{account}");
            }
        }
        for (account, status, code) in
            [("0000001091", 422, "recipient_unresolvable"), ("0000001101", 502, "provider_error")]
        {
            assert_eq!(pay(host, account).await.refused(), (status, code));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_is_asked_about_on_the_rails_schedule_and_never_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001060").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        // The declared schedule; its last value repeats.
        for (queries, wait_s) in (1..).zip([5, 15, 60, 180, 600, 1800, 3600, 3600, 3600]) {
            host.advance(wait_s - 1);
            until_asked(host, &id, queries - 1).await;
            host.advance(1);
            until_asked(host, &id, queries).await;
        }
        host.advance(30 * 86_400);
        until_asked(host, &id, 10).await;
        until(host, &id, "processing").await;
        let transfer = bank.transfer(&reference(&payout)).await;
        assert_eq!((transfer.received, transfer.executed), (1, 0));
        // The bank makes up its mind.
        bank.control(&reference(&payout), "settle").await.ok();
        host.advance(3600);
        until(host, &id, "paid").await;
        assert_eq!(bank.transfer(&reference(&payout)).await.received, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_received_is_sent_once_more_after_a_day_under_the_same_reference(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001077").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        for (queries, wait_s) in (1..).zip([5, 15, 60, 180, 600, 1800]) {
            host.advance(wait_s);
            until_asked(host, &id, queries).await;
        }
        assert_eq!(bank.transfer(&reference(&payout)).await.received, 1);
        host.advance(86_400);
        let paid = until(host, &id, "paid").await;
        assert_eq!(reference(&paid), reference(&payout));
        let transfer = bank.transfer(&reference(&payout)).await;
        assert_eq!((transfer.received, transfer.executed), (2, 1));
        assert_eq!(bank.transfers().await.len(), 1);
        assert_eq!(host.balance(&host.merchant.live_wallet).await, 100_000_000 - TOTAL);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_bank_decides_later_is_learned_by_asking(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        for (step, ending, taken) in [("settle", "paid", TOTAL), ("fail", "failed", 0)] {
            let balance = host.balance(&host.merchant.live_wallet).await;
            let id = pay(host, "0000001015").await.ok().id();
            let payout = until(host, &id, "processing").await;
            until_asked(host, &id, 0).await;
            bank.control(&reference(&payout), step).await.ok();
            assert_eq!(bank.control(&reference(&payout), step).await.status, 409);
            host.advance(5);
            until(host, &id, ending).await;
            assert_eq!(host.balance(&host.merchant.live_wallet).await, balance - taken);
        }
    })
    .await;
}

/// Both hosts look for work at once, and only one finds each payout.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_share_the_work_and_neither_sends_what_the_other_has() {
    with_bank(Engine::Postgres, async |host, bank| {
        let mut config = crate::test_host::config(&host.database);
        config.simulator.url = Some(bank.url.clone());
        let ids = railhead::id::IdGenerator::seeded(host.clock.clone(), 43);
        let sources = railhead::start::Sources { clock: host.clock.clone(), ids };
        let other = railhead::start::start(config, sources).await.expect("a second host");
        let bases = [host.base.clone(), format!("http://{}", other.address)];
        let accounts = ["0123456785", "0000001046", "0000001022"];
        let mut ids = Vec::new();
        for number in 0..30 {
            host.base.clone_from(&bases[number % 2]);
            ids.push(pay(host, accounts[number % 3]).await.ok().id());
        }
        host.base.clone_from(&bases[0]);
        for (number, id) in ids.iter().enumerate() {
            let status = ["paid", "processing", "failed"][number % 3];
            until(host, id, status).await;
            if status == "processing" {
                // The bank's answer says when it is to be asked: by the clock as it is now.
                until_asked(host, id, 0).await;
            }
        }
        host.advance(5);
        for (number, id) in ids.iter().enumerate() {
            until(host, id, ["paid", "paid", "failed"][number % 3]).await;
        }
        let transfers = bank.transfers().await;
        assert_eq!(transfers.len(), ids.len());
        assert!(transfers.iter().all(|transfer| transfer.received == 1), "{transfers:?}");
        other.stop().await.expect("stopped in order");
    })
    .await;
}

/// How often a network has to say that it never received a payment, its rail declares.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn as_many_answers_permit_another_sending_as_are_declared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let changes = [
        ("never_received_answers = 3", "never_received_answers = 6"),
        ("never_received_after_s = 86_400", "never_received_after_s = 300"),
    ];
    let (bank, folder) = (Bank::open().await, crate::repacked::folder("nip", &changes));
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(bank.url.clone());
        config.modules.dir = Some(folder.path().to_owned());
    };
    with_host_configured(engine, change, async |host| {
        let id = pay(host, "0000001077").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        for (queries, wait_s) in (1..).zip([5, 15, 60, 180, 600]) {
            host.advance(wait_s);
            until_asked(host, &id, queries).await;
        }
        // With three it would have been sent again.
        assert_eq!(bank.transfer(&reference(&payout)).await.received, 1);
        host.advance(1_800);
        until(host, &id, "paid").await;
        assert_eq!(bank.transfer(&reference(&payout)).await.received, 2);
    })
    .await;
}
