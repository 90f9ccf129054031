//! What a network says by itself about a payment, where its rail declares that it is believed, and
//! where it is not.

use rstest::rstest;
use serde_json::json;

use crate::hostile::{Till, attempt, hostile, with_hostile};
use crate::live::{pay, reference, until, until_asked, with_bank};
use crate::notices::RIGHT;
use crate::test_host::{Answer, Engine, TestHost, unique};

const AMOUNT: i64 = 100_000;

/// A payout that the network has accepted, and by what name the network knows it.
pub(crate) async fn accepted(host: &TestHost) -> (String, String) {
    let key = host.merchant.live_key.clone();
    let payout = host.pay_as(&key, &unique(), hostile("accept")).await.ok();
    let id = payout.id();
    until(host, &id, "processing").await;
    until_asked(host, &id, 0).await;
    let reference = attempt(host, &id).await.0;
    (id, reference)
}

pub(crate) async fn tell(host: &TestHost, path: &str, line: &str) -> Answer {
    let url = format!("{}/notices/live/hostile{path}", host.base);
    let request = host.client.post(url).bearer_auth(RIGHT).body(line.to_owned());
    Answer::of(request.send().await.expect("an answer")).await
}

async fn available(host: &TestHost) -> i64 {
    host.count("SELECT available_minor FROM wallets WHERE env = 'live' AND currency = 'NGN'").await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_ends_a_payment_without_a_question(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till: &Till| {
        let before = available(host).await;
        let (id, reference) = accepted(host).await;
        let charged = before - available(host).await;
        let told = tell(host, "/told", &format!("paid reference {reference} {AMOUNT}")).await.ok();
        assert_eq!(told.headers["content-type"], "text/plain");
        until(host, &id, "paid").await;
        assert_eq!((asked(host, &id).await, till.paid(&reference)), (0, 1));
        // Said again, and said otherwise: the books stay, and a person is called.
        tell(host, "/told", &format!("paid reference {reference} {AMOUNT}")).await.ok();
        assert_eq!(open_cases(host).await, 0);
        tell(host, "/told", &format!("refused reference {reference} 0")).await.ok();
        until(host, &id, "paid").await;
        assert_eq!(open_cases(host).await, 1);

        let (id, reference) = accepted(host).await;
        let by_its_own_name = format!("refused network-id N-{reference} 0");
        tell(host, "/told", &by_its_own_name).await.ok();
        let failed = until(host, &id, "failed").await;
        assert_eq!((&failed.json["failure_code"], asked(host, &id).await), (&json!("91"), 0));
        assert_eq!(before - available(host).await, charged);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_believed_is_a_reason_to_ask(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till: &Till| {
        let (id, reference) = accepted(host).await;
        let mut queries = 0;
        for (path, line) in [
            // A channel that is only a hint, an amount that is not ours, none at all, and a
            // network that does not know itself.
            ("/hinted", format!("paid reference {reference} {AMOUNT}")),
            ("/hinted", format!("refused reference {reference} 0")),
            ("/told", format!("paid reference {reference} {}", AMOUNT - 1)),
            ("/told", format!("paid reference {reference} none")),
            ("/told", format!("unknown reference {reference} 0")),
        ] {
            tell(host, path, &line).await.ok();
            queries += 1;
            until_asked(host, &id, queries).await;
            until(host, &id, "processing").await;
        }
        // What it was told on accepting is there in every question.
        let forgotten = "SELECT COUNT(*) FROM rail_calls WHERE result LIKE '%forgotten%'";
        assert_eq!((host.count(forgotten).await, till.paid(&reference)), (0, 1));
        let put = host.client.put(format!("{}/notices/live/hostile/told", host.base));
        let put = put.bearer_auth(RIGHT).send().await.expect("an answer");
        assert_eq!(put.status(), 404, "it is declared for POST");
        tell(host, "/told", &format!("paid reference {reference} {AMOUNT}")).await.ok();
        until(host, &id, "paid").await;
    })
    .await;
}

/// The outcome may be told while the very call that it answers is under way.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_overtakes_the_acknowledgement_is_taken_in_after_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till: &Till| {
        let door = till.close().await;
        let key = host.merchant.live_key.clone();
        let payout = host.pay_as(&key, &unique(), hostile("accept")).await.ok();
        let id = payout.id();
        till.until_knocked().await;
        let reference = attempt(host, &id).await.0;
        let line = format!("paid reference {reference} {AMOUNT}");
        let opening = async {
            // Whoever came before these has come in.
            for _ in 0..5 {
                host.client.get(format!("{}/healthz", host.base)).send().await.expect("an answer");
            }
            drop(door);
        };
        let (told, ()) = tokio::join!(tell(host, "/told", &line), opening);
        told.ok();
        until(host, &id, "paid").await;
        assert_eq!((asked(host, &id).await, till.paid(&reference)), (0, 1));
    })
    .await;
}

/// A definite answer counts, whatever this host believed of its own sending.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_be_paid_is_not_sent_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        for (account, end) in [("0000001046", "paid"), ("0000001053", "failed")] {
            let id = pay(host, account).await.ok().id();
            until(host, &id, "processing").await;
            until_asked(host, &id, 0).await;
            let unsent = format!("UPDATE attempts SET bytes_left = 0 WHERE transfer_id = '{id}'");
            host.run(&[unsent]).await;
            host.advance(60);
            let ended = until(host, &id, end).await;
            assert_eq!(bank.transfer(&reference(&ended)).await.received, 1, "{account}");
        }
    })
    .await;
}

async fn asked(host: &TestHost, id: &str) -> i64 {
    let sql = "SELECT queries FROM attempts WHERE transfer_id = $1";
    let found = sqlx::query_scalar(sql).bind(id).fetch_one(host.app().db.pool()).await;
    found.expect("one attempt")
}

async fn open_cases(host: &TestHost) -> i64 {
    host.count("SELECT COUNT(*) FROM cases WHERE status = 'open'").await
}
