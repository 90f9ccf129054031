//! Deliveries that do not arrive: when they are tried again, and when no more.

use std::time::Duration;

use railhead::clock::Moment;
use rstest::rstest;
use serde_json::{Value, json};

use crate::hooks::{
    change, deliveries, endpoint, failing, let_it_look, listen, listen_with, moment, until,
    until_all, until_tried, with_receiver,
};
use crate::receiver::{Manner, Receiver};
use crate::test_host::{Engine, TestHost, naira};

/// Seconds between an attempt and the next one.
const DELAYS: [u64; 6] = [5, 60, 300, 1800, 7200, 28_800];

/// Lets the clock stand at an instant.
fn advance_to(host: &TestHost, at: Moment) {
    let micros = at.micros() - host.clock.now().micros();
    host.clock.advance(Duration::from_micros(u64::try_from(micros).expect("the future")));
}

/// When an attempt must come that follows one at `last`, jitter of a tenth included.
fn window(last: Moment, delay: u64) -> std::ops::RangeInclusive<Moment> {
    let delay = Duration::from_secs(delay);
    // Answers show milliseconds.
    last.after(delay)..=last.after(delay + delay / 10)
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn seven_attempts_are_made_on_the_schedule_and_no_eighth(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        receiver.behave("/a", Manner::Says(500, Vec::new(), "no".into()));
        host.pay("paid", naira(100_000)).await.ok();
        for (made, delay) in (1..).zip(DELAYS) {
            let delivery = until_tried(host, &id, made).await;
            assert_eq!(delivery["status"], "failed");
            assert_eq!(
                (&delivery["response_status"], &delivery["response_body"]),
                (&json!(500), &json!("no"))
            );
            assert!(delivery["error_message"].is_string());
            let next = moment(&delivery["next_attempt_at"]);
            let window = window(host.clock.now(), delay);
            assert!(window.contains(&next), "attempt {made}: {next} and not in {window:?}");
            advance_to(host, next.before(Duration::from_millis(1)));
            let_it_look().await;
            assert_eq!(receiver.got("/a").len(), usize::try_from(made).expect("small"));
            advance_to(host, next.after(Duration::from_millis(1)));
        }
        let delivery = until_tried(host, &id, 7).await;
        assert_eq!(
            (&delivery["status"], &delivery["next_attempt_at"]),
            (&json!("giving_up"), &Value::Null)
        );
        host.advance(30 * 86_400);
        let_it_look().await;
        let got = receiver.until("/a", 7).await;
        assert!(got.iter().all(|one| one.bytes == got[0].bytes));
        assert!(got.iter().all(|one| one.header("webhook-id") == delivery["id"]));
        let now = endpoint(host, &id).await;
        assert_eq!((&now["consecutive_failures"], &now["is_active"]), (&json!(7), &json!(true)));
        assert_eq!(moment(&now["last_failure_at"]).seconds(), got[6].sent_at());
        assert_eq!(host.count("SELECT COUNT(*) FROM webhook_queue").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_late_has_arrived(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        receiver.behave("/a", Manner::Resets);
        host.pay("paid", naira(100_000)).await.ok();
        let delivery = until_tried(host, &id, 1).await;
        assert_eq!(delivery["response_status"], Value::Null);
        assert_eq!(endpoint(host, &id).await["consecutive_failures"], 1);
        receiver.behave("/a", Manner::status(200));
        host.advance(6);
        let delivery = until_all(host, &id, (1, "delivered")).await.remove(0);
        assert_eq!(delivery["attempts"], 2);
        assert_eq!(
            (&delivery["error_message"], &delivery["next_attempt_at"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(moment(&delivery["delivered_at"]), host.clock.now());
        let now = endpoint(host, &id).await;
        assert_eq!(now["consecutive_failures"], 0);
        assert!(moment(&now["last_success_at"]) > moment(&now["last_failure_at"]));
    })
    .await;
}

/// What is sent follows from the event and its payout: as long as that cannot be read, nothing is,
/// and then the very same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_told_now_is_told_later(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
        receiver.behave("/a", Manner::status(500));
        host.pay("paid", naira(100_000)).await.ok();
        until_tried(host, &id, 1).await;
        let sql = "SELECT charges FROM payouts";
        let kept: String =
            sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("charges");
        host.run(&["UPDATE payouts SET charges = '{'".to_owned()]).await;
        receiver.behave("/a", Manner::status(200));
        host.advance(6);
        let put_off = format!(
            "SELECT COUNT(*) FROM webhook_queue WHERE lease_until = 0 AND due_at > {}",
            host.clock.now().after(Duration::from_secs(300)).micros()
        );
        host.until_count(&put_off, 1).await;
        assert_eq!(receiver.got("/a").len(), 1);
        host.run(&[format!("UPDATE payouts SET charges = '{kept}'")]).await;
        host.advance(600);
        let delivery = until_all(host, &id, (1, "delivered")).await.remove(0);
        assert_eq!(delivery["attempts"], 2);
        let got = receiver.until("/a", 2).await;
        assert_eq!(got[0].bytes, got[1].bytes);
        // What cannot be told for days never is, and says why.
        receiver.behave("/a", Manner::status(500));
        host.pay("paid", naira(100_001)).await.ok();
        until(host, "status=failed", |found| found.len() == 1).await;
        host.run(&["UPDATE payouts SET charges = '{'".to_owned()]).await;
        host.advance(4 * 86_400);
        // Not before it was put off once.
        let put_off = format!(
            "SELECT COUNT(*) FROM webhook_queue WHERE lease_until = 0 AND due_at > {}",
            host.clock.now().after(Duration::from_secs(300)).micros()
        );
        host.until_count(&put_off, 1).await;
        host.advance(600);
        let given_up = until(host, "status=giving_up", |found| found.len() == 1).await.remove(0);
        assert_eq!(
            (&given_up["attempts"], &given_up["next_attempt_at"]),
            (&json!(2), &Value::Null)
        );
        let why = given_up["error_message"].as_str().expect("a reason");
        assert!(why.contains("cannot be read"), "{why}");
        host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
        assert_eq!(receiver.got("/a").len(), 3);
        host.run(&[format!("UPDATE payouts SET charges = '{kept}'")]).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn answers_mean_what_they_say_and_nobody_is_sent_elsewhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let elsewhere = || vec![("location", receiver.url("/elsewhere"))];
        let long = "é".repeat(50_000);
        let cases = [
            (Manner::status(201), "delivered", json!(201)),
            (Manner::status(204), "delivered", json!(204)),
            (Manner::status(299), "delivered", json!(299)),
            (Manner::Says(301, elsewhere(), String::new()), "failed", json!(301)),
            (Manner::Says(302, elsewhere(), String::new()), "failed", json!(302)),
            (Manner::Says(307, elsewhere(), String::new()), "failed", json!(307)),
            (Manner::Says(308, elsewhere(), String::new()), "failed", json!(308)),
            (Manner::status(400), "failed", json!(400)),
            (Manner::status(404), "failed", json!(404)),
            (Manner::status(503), "failed", json!(503)),
            (Manner::Babbles, "failed", Value::Null),
            (Manner::Resets, "failed", Value::Null),
            (Manner::Says(200, Vec::new(), "a\0b".into()), "delivered", json!(200)),
            (Manner::Says(200, Vec::new(), long.clone()), "delivered", json!(200)),
            (Manner::NeverEnds, "delivered", json!(200)),
        ];
        let mut endpoints = Vec::new();
        for (number, (manner, ..)) in cases.iter().enumerate() {
            let path = format!("/{number}");
            receiver.behave(&path, manner.clone());
            endpoints.push(listen(host, &receiver.url(&path), json!(["payout.paid"])).await.id());
        }
        host.pay("paid", naira(100_000)).await.ok();
        let mut bodies = Vec::new();
        for ((manner, status, response), id) in cases.iter().zip(&endpoints) {
            let delivery = until_tried(host, id, 1).await;
            assert_eq!(delivery["status"], *status, "{manner:?}");
            assert_eq!(delivery["response_status"], *response, "{manner:?}");
            assert_eq!(delivery["error_message"].is_null(), *status == "delivered", "{manner:?}");
            bodies.push(delivery["response_body"].as_str().map(str::to_owned));
        }
        assert_eq!(receiver.got("/elsewhere").len(), 0);
        let [.., nul, cut, endless] = bodies.as_slice() else { panic!("no bodies") };
        assert_eq!(nul.as_deref(), Some("a\u{fffd}b"));
        assert_eq!(cut.as_deref(), Some(&long[..16 * 1024]));
        assert_eq!(endless.as_deref(), Some(".".repeat(16 * 1024).as_str()));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn receivers_may_ask_for_patience_within_bounds(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let day = 86_400;
        let cases = [
            (429, "90", Some(90)),
            (503, "3600", Some(3600)),
            (503, "1000000000", Some(day)),
            (429, "18446744073709551616", None),
            (429, "2", None),
            (429, "-5", None),
            (429, "Sun, 22 Nov 2026 09:00:00 GMT", None),
            (500, "90", None),
        ];
        let mut endpoints = Vec::new();
        for (number, (status, after, _)) in cases.iter().enumerate() {
            let path = format!("/{number}");
            let headers = vec![("retry-after", (*after).to_owned())];
            receiver.behave(&path, Manner::Says(*status, headers, String::new()));
            endpoints.push(listen(host, &receiver.url(&path), json!(["payout.paid"])).await.id());
        }
        host.pay("paid", naira(100_000)).await.ok();
        for ((status, after, wanted), id) in cases.iter().zip(&endpoints) {
            let next = moment(&until_tried(host, id, 1).await["next_attempt_at"]);
            let window = match wanted {
                Some(seconds) => {
                    let at = host.clock.now().after(Duration::from_secs(*seconds));
                    at..=at
                }
                None => window(host.clock.now(), DELAYS[0]),
            };
            assert!(window.contains(&next), "{status} {after}: {next}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn ten_seconds_are_for_the_whole_exchange_and_cost_nobody_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let mut endpoints = Vec::new();
        for (path, manner) in [
            ("/hangs", Manner::Hangs),
            ("/trickles", Manner::Trickles),
            ("/dawdles", Manner::Dawdles(Duration::from_secs(2))),
            ("/good", Manner::status(200)),
        ] {
            receiver.behave(path, manner);
            endpoints.push(listen(host, &receiver.url(path), json!(["payout.paid"])).await.id());
        }
        host.pay("paid", naira(100_000)).await.ok();
        until_all(host, &endpoints[3], (1, "delivered")).await;
        until_all(host, &endpoints[2], (1, "delivered")).await;
        let waiting = deliveries(host, "status=pending").await;
        assert_eq!(waiting.len(), 2, "{waiting:#?}");
        for (id, response) in [(&endpoints[0], Value::Null), (&endpoints[1], json!(200))] {
            let delivery = until_tried(host, id, 1).await;
            assert_eq!(
                (&delivery["status"], &delivery["response_status"]),
                (&json!("failed"), &response)
            );
            let why = delivery["error_message"].as_str().expect("a reason");
            assert!(why.contains("within 10s"), "{why}");
        }
    })
    .await;
}

/// Attempts that were made for an endpoint, by delivery.
async fn attempts(host: &TestHost, id: &str) -> Vec<i64> {
    let found = deliveries(host, &format!("endpoint_id={id}")).await;
    found.iter().map(|one| one["attempts"].as_i64().expect("a number")).collect()
}

async fn until_got(receiver: &Receiver, path: &str, count: usize) {
    receiver.until(path, count).await;
    let_it_look().await;
    receiver.until(path, count).await;
}

/// An endpoint at `/a` that has failed for five of eight payouts, and is left alone.
async fn left_alone(host: &TestHost, receiver: &Receiver) -> String {
    let id = listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
    receiver.behave("/a", Manner::status(500));
    let paid = (0..8).map(async |_| host.pay("paid", naira(100_000)).await);
    for answer in futures::future::join_all(paid).await {
        answer.ok();
    }
    until_got(receiver, "/a", 5).await;
    // The fifth is written down a moment after it was received.
    let query = format!("endpoint_id={id}");
    let tried = |one: &Value| one["attempts"] == 1;
    until(host, &query, |found| found.iter().filter(|one| tried(one)).count() == 5).await;
    id
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_keeps_failing_is_left_alone_at_no_attempts_cost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let good = listen(host, &receiver.url("/good"), json!(["payout.paid"])).await.id();
        let id = left_alone(host, receiver).await;
        assert_eq!(attempts(host, &id).await.iter().sum::<i64>(), 5);
        until_all(host, &good, (8, "delivered")).await;
        // One is tried when the pause is over, and after it the pause is longer.
        host.advance(6);
        until_got(receiver, "/a", 6).await;
        host.advance(6);
        until_got(receiver, "/a", 6).await;
        receiver.behave("/a", Manner::status(200));
        host.advance(60);
        until_all(host, &id, (8, "delivered")).await;
        assert_eq!(attempts(host, &id).await.iter().sum::<i64>(), 6 + 8);
    })
    .await;
}

/// What was left for later there goes to the new address at once: the clock stands still.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_was_left_alone_is_not_where_it_is_now(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let id = left_alone(host, receiver).await;
        change(host, &id, json!({ "url": receiver.url("/b") })).await.ok();
        let query = format!("endpoint_id={id}&status=delivered");
        until(host, &query, |found| found.len() == 3).await;
        host.advance(6);
        until_all(host, &id, (8, "delivered")).await;
    })
    .await;
}

/// A receiver that has failed is told of one event at a time; the next one follows when it has had
/// the last, and not when its head start in the queue is over: the clock stands still.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_a_slow_endpoint_is_busy_follows_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let (id, _) = failing(host, receiver, "/a").await;
        receiver.behave("/a", Manner::Dawdles(Duration::from_millis(900)));
        host.pay("paid", naira(100_000)).await.ok();
        receiver.until("/a", 2).await;
        let paying = &*host;
        let paid = (0..7).map(async |_| paying.pay("paid", naira(100_000)).await);
        for answer in futures::future::join_all(paid).await {
            answer.ok();
        }
        receiver.behave("/a", Manner::status(200));
        let query = format!("endpoint_id={id}&status=delivered");
        let told = until(host, &query, |found| found.len() == 8).await;
        assert!(told.iter().all(|one| one["attempts"] == 1), "{told:?}");
        receiver.until("/a", 9).await;
    })
    .await;
}

/// Whoever switches an endpoint on again has its row and then wants the counter of its failures: a
/// good delivery takes them in the same order, lest the two wait for each other in a circle.
#[tokio::test(flavor = "multi_thread")]
async fn a_good_delivery_takes_the_endpoint_before_its_counter() {
    with_receiver(Engine::Postgres, async |host, receiver| {
        listen(host, &receiver.url("/a"), json!(["payout.paid"])).await;
        receiver.behave("/a", Manner::status(500));
        host.pay("paid", naira(100_000)).await.ok();
        let failures = "SELECT COUNT(*) FROM counters WHERE key LIKE 'webhook/%'";
        host.until_count(failures, 1).await;
        receiver.behave("/a", Manner::status(200));
        let mut tx = host.app().db.write().await.expect("a transaction");
        let sql = "SELECT id FROM webhook_endpoints FOR UPDATE";
        sqlx::query(sql).fetch_all(tx.conn()).await.expect("locked");
        host.advance(60);
        until_got(receiver, "/a", 2).await;
        let waits = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'tuple' \
                     AND relation = to_regclass('webhook_endpoints')";
        host.until_count(waits, 1).await;
        let sql = "SELECT key FROM counters WHERE key LIKE 'webhook/%' FOR UPDATE NOWAIT";
        sqlx::query(sql).fetch_all(tx.conn()).await.expect("nobody has it");
        tx.commit().await.expect("let go");
        let delivered = "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'delivered'";
        host.until_count(delivered, 1).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_endpoint_holds_back_one_object_and_no_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let fields = json!({ "events": ["payout.processing", "payout.paid"], "ordered": true });
        let ordered = listen_with(host, &receiver.url("/ordered"), fields).await;
        assert_eq!(ordered.json["ordered"], true);
        let loose = listen(host, &receiver.url("/loose"), json!(["*"])).await.id();
        receiver.behave("/ordered", Manner::status(500));
        receiver.behave("/loose", Manner::status(500));
        let first = host.pay("processing", naira(100_000)).await.ok().id();
        until_tried(host, &ordered.id(), 1).await;
        until_tried(host, &loose, 1).await;
        receiver.behave("/ordered", Manner::status(200));
        receiver.behave("/loose", Manner::status(200));
        host.post(&format!("/v1/sandbox/payouts/{first}/settle"), json!({})).await.ok();
        let second = host.pay("paid", naira(100_000)).await.ok().id();
        let heard = |path: &str| -> Vec<(bool, i64)> {
            let got = receiver.got(path).into_iter().map(|got| got.json());
            got.map(|body| (body["data"]["id"] == second, body["sequence"].as_i64().expect("one")))
                .collect()
        };
        until_got(receiver, "/ordered", 3).await;
        assert_eq!(heard("/ordered"), [(false, 2), (true, 2), (true, 3)]);
        until_got(receiver, "/loose", 4).await;
        assert!(heard("/loose").contains(&(false, 3)), "what wants no order does not wait");
        host.advance(6);
        receiver.until("/ordered", 5).await;
        assert_eq!(heard("/ordered")[3..], [(false, 2), (false, 3)]);
        until_all(host, &ordered.id(), (4, "delivered")).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_up_no_longer_holds_back_what_follows(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let fields = json!({ "events": ["*"], "ordered": true });
        let id = listen_with(host, &receiver.url("/a"), fields).await.id();
        receiver.behave("/a", Manner::status(500));
        let payout = host.pay("processing", naira(100_000)).await.ok().id();
        for made in 1..7 {
            until_tried(host, &id, made).await;
            host.advance(32_000);
        }
        until_all(host, &id, (1, "giving_up")).await;
        receiver.behave("/a", Manner::status(200));
        host.post(&format!("/v1/sandbox/payouts/{payout}/settle"), json!({})).await.ok();
        host.advance(300);
        until(host, "status=delivered", |found| found.len() == 1).await;
        assert_eq!(receiver.until("/a", 8).await[7].json()["sequence"], 3);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_an_inactive_endpoint_goes_on_when_it_is_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let (id, waiting) = failing(host, receiver, "/a").await;
        receiver.behave("/a", Manner::status(200));
        change(host, &id, json!({ "is_active": false })).await.ok();
        host.advance(3600);
        host.pay("paid", naira(100_000)).await.ok();
        until_got(receiver, "/a", 1).await;
        assert_eq!(until_tried(host, &id, 1).await, waiting);
        change(host, &id, json!({ "is_active": true })).await.ok();
        let delivery = until_all(host, &id, (1, "delivered")).await.remove(0);
        assert_eq!((&delivery["id"], &delivery["attempts"]), (&waiting["id"], &json!(2)));
        // What happened meanwhile was not for it; what happens now is.
        host.pay("paid", naira(100_000)).await.ok();
        until_all(host, &id, (2, "delivered")).await;
    })
    .await;
}

/// A receiver that refuses one kind of event hears of the others all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_again_and_again_keeps_nothing_else_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let events = json!(["payout.paid", "payout.failed"]);
        let id = listen(host, &receiver.url("/a"), events).await.id();
        receiver.behave("/a", Manner::Refuses("\"payout.failed\""));
        for _ in 0..9 {
            host.pay("failed", naira(100_000)).await.ok();
        }
        host.until_count("SELECT COUNT(*) FROM webhook_queue", 9).await;
        // Left alone after five failures, and by now all of them are due again.
        for _ in 0..4 {
            host.advance(300);
            let_it_look().await;
        }
        host.pay("paid", naira(100_000)).await.ok();
        for _ in 0..3 {
            host.advance(300);
            let_it_look().await;
        }
        until(host, "status=delivered", |found| found.len() == 1).await;
        let waiting = host.count("SELECT COUNT(*) FROM webhook_queue").await;
        assert_eq!(waiting, 9, "the others are tried on: {}", endpoint(host, &id).await);
    })
    .await;
}
