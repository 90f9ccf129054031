//! The stream of events: everything once, in its order, to its owner only.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use railhead::clock::{Clock, Moment};
use railhead::env::Env;
use railhead::events::Event;
use railhead::id::{EventId, IdGenerator, MerchantId};
use railhead::ledger::Command;
use railhead::start::{Sources, start};
use reqwest::Response;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Engine, TestHost, config, naira, with_host, with_host_configured};

const PATH: &str = "/v1/events/stream";

/// An open stream.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(host: &TestHost, key: &str, query: &str, headers: &[(&str, &str)]) -> Self {
        Self::open_at(&host.base, host, (key, query), headers).await
    }

    async fn open_at(
        base: &str,
        host: &TestHost,
        (key, query): (&str, &str),
        headers: &[(&str, &str)],
    ) -> Self {
        let mut request = host.client.get(format!("{base}{PATH}{query}")).bearer_auth(key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next message, with its id and what it carries; none if the stream ends.
    async fn next(&mut self) -> Option<(String, Value)> {
        let reading = async {
            loop {
                if let Some((message, rest)) = self.text.split_once("\n\n") {
                    let line = |name: &str| {
                        let line = message.lines().find_map(|line| line.strip_prefix(name));
                        line.map(str::trim).unwrap_or_default().to_owned()
                    };
                    let (id, data) = (line("id:"), line("data:"));
                    self.text = rest.to_owned();
                    // Anything else is a sign of life.
                    if id.is_empty() {
                        continue;
                    }
                    return Some((id, serde_json::from_str(&data).unwrap_or(Value::Null)));
                }
                let bytes = self.response.chunk().await.ok()??;
                self.text.push_str(std::str::from_utf8(&bytes).expect("text"));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect("a message in time")
    }

    /// The next `count` events.
    async fn events(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        while events.len() < count {
            let (id, event) = self.next().await.expect("a message");
            if !event.is_null() {
                assert_eq!(event["id"], id, "a message goes by its event's id");
                events.push(event);
            }
        }
        events
    }
}

/// The feed, oldest first.
async fn feed(host: &TestHost, key: &str) -> Vec<Value> {
    let feed = host.get_as(key, "/v1/events?limit=100").await.ok();
    feed.json["data"].as_array().expect("events").iter().rev().cloned().collect()
}

async fn fund(host: &TestHost, key: &str) {
    let body = json!({ "currency": "NGN", "amount_minor": "100" });
    host.send(Method::POST, "/v1/sandbox/fund", key, &[], Some(body)).await.ok();
}

/// An event that becomes visible now, whenever its id was made.
async fn insert(host: &TestHost, id: &EventId) {
    let event = Event {
        id: id.clone(),
        merchant_id: MerchantId::parse(&host.merchant.id).expect("an id"),
        env: Env::Test,
        name: "wallet_funded",
        object_type: "wallet_movement",
        object_id: id.to_string(),
        sequence: 1,
        data: Some(railhead::events::Data::Whole("{}".to_owned())),
        created_at: id.made_at(),
    };
    let command = Command::rows(vec![event.row()]);
    host.app().writer.work(command).await.expect("committed");
}

fn id_at(host: &TestHost, ago_s: u64) -> EventId {
    EventId::first_at(host.clock.now().before(Duration::from_secs(ago_s)))
}

/// An id of a host whose clock is ahead.
fn id_ahead(host: &TestHost, ahead_s: u64) -> EventId {
    EventId::first_at(host.clock.now().after(Duration::from_secs(ahead_s)))
}

/// Has an event become visible, which is the next one of a stream.
async fn insert_and_hear(host: &TestHost, id: &EventId, stream: &mut Stream) {
    insert(host, id).await;
    assert_eq!(stream.events(1).await[0]["id"], id.as_str());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_shows_what_the_feed_shows_from_now_on(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        fund(host, &key).await;
        let before = feed(host, &key).await.len();
        host.advance(1);
        let mut all = Stream::open(host, &key, "", &[]).await;
        let mut paid = Stream::open(host, &key, "?type=payout_paid", &[]).await;
        let (begin, nothing) = all.next().await.expect("where it begins");
        assert!(EventId::parse(&begin).is_some() && nothing.is_null());
        host.advance(1);
        for scenario in ["paid", "failed", "paid"] {
            host.pay(scenario, naira(100_000)).await.ok();
        }
        fund(host, &key).await;
        let made = feed(host, &key).await.split_off(before);
        assert_eq!(made.len(), 7);
        assert_eq!(all.events(7).await, made);
        let those: Vec<Value> =
            made.iter().filter(|event| event["event"] == "payout.paid").cloned().collect();
        assert_eq!(paid.events(2).await, those);

        // Whoever has seen nothing but the beginning goes on from there.
        let mut later = Stream::open(host, &key, "", &[("last-event-id", &begin)]).await;
        let heard = later.events(before + 7).await;
        assert_eq!(heard[before..], made);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_from_a_while_before_its_cursor(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        for pause in [200, 100, 30, 10] {
            fund(host, &key).await;
            host.advance(pause);
        }
        // More than is read at a time.
        let many: Vec<EventId> = (0..1100).map(|_| host.app().ids.id()).collect();
        for id in &many {
            insert(host, id).await;
        }
        let known = host.get("/v1/events?type=wallet_funded&created_after=2026-11-21T09:03:00Z");
        assert_eq!(known.await.ok().json["has_more"], true);
        let funded = &feed_ids(host).await[..];
        let (cursor, expected) = (&funded[funded.len() - 1 - 1100], &funded[funded.len() - 1102..]);
        for (query, headers) in [
            (format!("?starting_after={cursor}"), vec![]),
            (String::new(), vec![("last-event-id", cursor.as_str())]),
            (format!("?starting_after={}", funded[0]), vec![("last-event-id", cursor.as_str())]),
        ] {
            let mut stream = Stream::open(host, &key, &query, &headers).await;
            let heard = stream.events(expected.len()).await;
            let heard: Vec<&str> = heard.iter().filter_map(|event| event["id"].as_str()).collect();
            assert_eq!(heard, *expected, "what came within two minutes before it, and all after");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_goes_on_over_pages_of_long_ago_shows_everything_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        host.advance(3_000);
        // Of the last two minutes are 60 of them.
        let many: Vec<EventId> = (0..1_100).rev().map(|number| id_at(host, number * 2)).collect();
        for id in &many {
            insert(host, id).await;
        }
        let headers = [("last-event-id", many[0].as_str())];
        let mut stream = Stream::open(host, &key, "", &headers).await;
        let heard = stream.events(many.len()).await;
        let heard: Vec<&str> = heard.iter().filter_map(|event| event["id"].as_str()).collect();
        assert!(heard.iter().copied().eq(many.iter().map(EventId::as_str)));
        // In the present it goes on, with what becomes visible late as well.
        host.advance(1);
        for ago_s in [0, 100, 10] {
            insert_and_hear(host, &id_at(host, ago_s), &mut stream).await;
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_of_tomorrow_silences_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        host.advance(200);
        let recent = id_at(host, 50);
        let [before, last] = [0, 300].map(|more_s| id_ahead(host, 86_400 + more_s));
        for id in [&recent, &before, &last] {
            insert(host, id).await;
        }
        let query = format!("?starting_after={last}");
        let farthest = format!("evt_{}", "z".repeat(24));
        let mut streams = [
            Stream::open(host, &key, &query, &[]).await,
            Stream::open(host, &key, "", &[("last-event-id", last.as_str())]).await,
            Stream::open(host, &key, "", &[("last-event-id", farthest.as_str())]).await,
        ];
        for (number, stream) in streams.iter_mut().enumerate() {
            assert_eq!(stream.events(1).await[0]["id"], recent.as_str());
            // What came within two minutes before the cursor, and nothing else of tomorrow.
            if number < 2 {
                assert_eq!(stream.events(1).await[0]["id"], last.as_str());
            }
        }
        for ago_s in [0, 100] {
            let id = id_at(host, ago_s);
            insert(host, &id).await;
            for stream in &mut streams {
                assert_eq!(stream.events(1).await[0]["id"], id.as_str());
            }
        }
        // Another one was ahead when nobody looked.
        let elsewhere = id_ahead(host, 3_600);
        insert(host, &elsewhere).await;
        for stream in &mut streams {
            assert_eq!(stream.events(1).await[0]["id"], elsewhere.as_str());
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_silences_no_stream(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let mut stream = Stream::open(host, &key, "", &[]).await;
        host.advance(1);
        insert_and_hear(host, &id_at(host, 0), &mut stream).await;
        host.advance(3_600);
        // Whatever shows the second of them began to look after the clock was ahead.
        for ago_s in [1, 0] {
            insert_and_hear(host, &id_at(host, ago_s), &mut stream).await;
        }
        let Clock::Fixed(at) = &host.clock else { panic!("a clock that is set") };
        at.fetch_sub(3_600_000_000, Ordering::SeqCst);
        host.advance(1);
        for ago_s in [0, 60, 10] {
            insert_and_hear(host, &id_at(host, ago_s), &mut stream).await;
        }
    })
    .await;
}

/// Ids of the whole feed, oldest first.
async fn feed_ids(host: &TestHost) -> Vec<String> {
    let sql = "SELECT id FROM events WHERE body IS NOT NULL AND env = 'test' ORDER BY id";
    sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("ids")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_visible_late_is_sent_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let mut stream = Stream::open(host, &key, "", &[]).await;
        host.advance(60);
        let mut sent = BTreeSet::new();
        for ago_s in [0, 50, 119, 3, 100] {
            let id = id_at(host, ago_s);
            insert(host, &id).await;
            assert_eq!(stream.events(1).await[0]["id"], id.as_str());
            assert!(sent.insert(id));
        }
        host.advance(60);
        insert(host, &id_at(host, 500)).await;
        let last = id_at(host, 0);
        insert(host, &last).await;
        assert_eq!(stream.events(1).await[0]["id"], last.as_str(), "too late, and nothing twice");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_confined_to_its_owner_and_world(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let cursor = feed(host, &host.merchant.live_key).await[0]["id"].clone();
        let query = format!("?starting_after={}", cursor.as_str().expect("an id"));
        let mine = feed(host, &host.merchant.live_key).await.len();
        let mut stream = Stream::open(host, &host.merchant.live_key, &query, &[]).await;
        host.pay("paid", naira(100_000)).await.ok();
        fund(host, &other.test_key).await;
        host.credit(&other.live_wallet, 5).await;
        host.credit(&host.merchant.live_wallet, 7).await;
        let heard = stream.events(mine + 1).await;
        assert_eq!(heard, feed(host, &host.merchant.live_key).await);
        assert_eq!(heard[mine]["data"]["amount_minor"], "7");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_the_deadline_and_ends_with_its_key_or_its_host(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(
        engine,
        |config| config.server.timeout_s = 4,
        async |host| {
            let (key, merchant) = (host.merchant.test_key.clone(), host.merchant.id.clone());
            let mut stream = Stream::open(host, &key, "", &[]).await;
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(4200) {
                fund(host, &key).await;
                stream.events(1).await;
            }
            let body = json!({ "env": "test", "label": "brief" });
            let brief = host.admin(Method::POST, &format!("merchants/{merchant}/keys"), body).await;
            let secret = brief.json["secret"].as_str().expect("a secret");
            let mut doomed = Stream::open(host, secret, "", &[]).await;
            doomed.next().await.expect("where it begins");
            host.admin(Method::POST, &format!("keys/{}/revoke", brief.id()), json!({})).await.ok();
            assert!(doomed.next().await.is_none(), "its key was revoked");
            host.app().stopping.cancel();
            while stream.next().await.is_some() {}
        },
    )
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn streams_are_counted_and_wrong_questions_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for (query, header, code, field) in [
            ("?type=payout.lost", "", "invalid_filter", "type"),
            ("?starting_after=evt_1", "", "invalid_field", "starting_after"),
            ("?starting_after=", "", "invalid_field", "starting_after"),
            ("", "1", "invalid_field", "Last-Event-ID"),
        ] {
            let headers = [("last-event-id", header)];
            let path = format!("{PATH}{query}");
            let refused =
                host.send(Method::GET, &path, &host.merchant.test_key, &headers, None).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), field), "{query}");
        }
        let key = host.merchant.test_key.clone();
        let mut open = Vec::new();
        for _ in 0..8 {
            open.push(Stream::open(host, &key, "", &[]).await);
        }
        let refused = host.get(PATH).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        assert!(refused.headers.contains_key("retry-after"));
        assert_eq!(refused.json["error"]["detail"]["limit"], 8);
        Stream::open(host, &host.merchant.live_key, "", &[]).await;
        drop(open.pop());
        for _ in 0..200 {
            let again = host.client.get(format!("{}{PATH}", host.base)).bearer_auth(&key);
            if again.send().await.expect("an answer").status() == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("the place of a stream that was closed is not free");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_one_host_shows_what_another_does() {
    with_host(Engine::Postgres, async |host| {
        let clock = Clock::fixed(Moment::parse("2026-11-21T08:59:58Z").expect("an instant"));
        let sources = Sources { clock: clock.clone(), ids: IdGenerator::seeded(clock, 7) };
        let other = start(config(&host.database), sources).await.expect("a host");
        let base = format!("http://{}", other.address);
        let key = host.merchant.test_key.clone();
        let mut here = Stream::open(host, &key, "", &[]).await;
        let mut there = Stream::open_at(&base, host, (&key, ""), &[]).await;
        fund(host, &key).await;
        let known = here.events(1).await;
        assert_eq!(there.events(1).await, known);
        let body = json!({ "currency": "NGN", "amount_minor": "100" });
        let sent = host.client.post(format!("{base}/v1/sandbox/fund")).bearer_auth(&key);
        assert_eq!(sent.json(&body).send().await.expect("an answer").status(), 200);
        let late = here.events(1).await;
        assert!(late[0]["id"].as_str() < known[0]["id"].as_str(), "the other clock is behind");
        assert_eq!(there.events(1).await, late);
        other.stop().await.expect("stopped in order");
    })
    .await;
}
