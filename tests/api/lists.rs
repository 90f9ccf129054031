//! Lists: newest first, page by page without a gap or a repeat, filtered as asked.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::to;
use crate::hooks::{listen, reach_loopback};
use crate::packs::restart;
use crate::plans::{plans, write_down};
use crate::receiver::{Manner, Receiver};
use crate::test_host::{Engine, TestHost, naira, with, with_host, with_host_configured};

async fn data(host: &TestHost, path: &str) -> Vec<Value> {
    host.get(path).await.ok().json["data"].as_array().expect("a list").clone()
}

fn ids(items: &[Value]) -> Vec<String> {
    items.iter().filter_map(|item| item["id"].as_str()).map(str::to_owned).collect()
}

/// All ids of a list, fetched in pages of this size.
async fn paged(host: &TestHost, path: &str, limit: usize) -> Vec<String> {
    let sign = if path.contains('?') { '&' } else { '?' };
    let mut all: Vec<String> = Vec::new();
    loop {
        let after = all.last().map(|id| format!("&starting_after={id}")).unwrap_or_default();
        let page = host.get(&format!("{path}{sign}limit={limit}{after}")).await.ok();
        let items = ids(page.json["data"].as_array().expect("a list"));
        assert!(items.len() <= limit);
        let more = page.json["has_more"].as_bool().expect("a boolean");
        assert!(!more || items.len() == limit, "a page that is not the last is full");
        all.extend(items);
        if !more {
            return all;
        }
    }
}

/// A merchant with some payouts of several fates, spread over three days.
async fn fill(host: &TestHost) {
    for (day, scenario) in
        ["paid", "failed", "processing", "paid", "failed", "paid", "paid"].iter().enumerate()
    {
        let serial = u32::try_from(day).expect("small");
        host.pay(scenario, with(naira(100_000), to(serial))).await.ok();
        if day % 3 == 2 {
            host.advance(86_400);
        }
    }
}

fn all_lists(host: &TestHost) -> [String; 6] {
    let wallet = &host.merchant.test_wallet;
    [
        "/v1/payouts".to_owned(),
        format!("/v1/wallets/{wallet}/transactions"),
        format!("/v1/wallets/{wallet}/funding_events"),
        "/v1/events".to_owned(),
        "/v1/beneficiaries".to_owned(),
        "/v1/wallets".to_owned(),
    ]
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_without_gap_or_repeat(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        fill(host).await;
        for list in all_lists(host) {
            let whole = data(host, &list).await;
            let expected = ids(&whole);
            assert!(!expected.is_empty() && expected.len() < 50, "{list}");
            assert_eq!(expected.iter().collect::<BTreeSet<_>>().len(), expected.len(), "{list}");
            let times: Vec<_> = whole.iter().map(|item| item["created_at"].as_str()).collect();
            assert!(times.is_sorted_by(|a, b| a >= b), "{list}: {times:?}");
            for limit in [1, 2, 3, expected.len(), 100] {
                assert_eq!(paged(host, &list, limit).await, expected, "{list} by {limit}");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn limits_and_cursors_are_checked(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let other = host.new_merchant("Other").await;
        let foreign = host.pay_as(&other.test_key, "k", naira(100_000)).await.ok().id();
        for list in all_lists(host) {
            for limit in ["0", "101", "-1", "x", "1.5", ""] {
                let refused = host.get(&format!("{list}?limit={limit}")).await;
                assert_eq!(refused.refused(), (400, "invalid_limit"), "{list} {limit}");
                assert_eq!(refused.field(), "limit");
            }
            for limit in ["1", "100"] {
                host.get(&format!("{list}?limit={limit}")).await.ok();
            }
            for cursor in ["x", "c0", "evt_0", foreign.as_str()] {
                let refused = host.get(&format!("{list}?starting_after={cursor}")).await;
                assert_eq!(refused.refused(), (400, "invalid_field"), "{list} {cursor}");
                assert_eq!(refused.field(), "starting_after");
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_are_filtered(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        fill(host).await;
        for (query, count) in [
            ("", 7),
            ("status=paid", 4),
            ("status=failed", 2),
            ("status=processing", 1),
            ("status=draft", 0),
            ("currency=NGN", 7),
            ("currency=GBP", 0),
            ("created_after=2026-11-22", 4),
            ("created_after=2026-11-22T09:00:00Z", 1),
            ("created_after=2026-11-22T08:59:59.999Z", 4),
            ("created_after=2026-11-22T10:00:00%2B01:00", 1),
            ("created_before=2026-11-22", 3),
            ("created_before=2026-11-22T09:00:00Z", 3),
            ("created_after=2026-11-22&created_before=2026-11-23", 3),
            ("created_after=2026-11-22&status=paid&currency=NGN", 3),
        ] {
            let found = data(host, &format!("/v1/payouts?{query}")).await;
            assert_eq!(found.len(), count, "{query}");
            let paged = paged(host, &format!("/v1/payouts?{query}"), 2).await;
            assert_eq!(paged, ids(&found), "{query}");
        }
        for (query, field) in [
            ("status=payed", "status"),
            ("status=", "status"),
            ("currency=naira", "currency"),
            ("created_after=yesterday", "created_after"),
            ("created_before=2026-13-01", "created_before"),
        ] {
            let refused = host.get(&format!("/v1/payouts?{query}")).await;
            assert_eq!(refused.refused(), (400, "invalid_filter"), "{query}");
            assert_eq!(refused.field(), field);
        }
        let newest = &data(host, "/v1/payouts").await[0];
        let reference = newest["reference"].as_str().expect("a reference");
        let rest = data(host, &format!("/v1/payouts?starting_after={reference}")).await;
        assert_eq!(rest.len(), 6, "a reference is as good a cursor as an id");
        let live = host.get_as(&host.merchant.live_key, "/v1/payouts").await.ok();
        assert_eq!(live.json["data"], json!([]));
    })
    .await;
}

/// Payouts that are on their way between others that are not, of two merchants.
async fn fill_with_open(host: &TestHost) {
    let other = host.new_merchant("Other").await;
    let settings = json!({ "dual_control_threshold_minor": { "NGN": "100000" } });
    let merchant = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &merchant, settings).await.ok();
    for serial in 0..15 {
        let (scenario, amount) = match serial % 5 {
            0 => ("processing", 100_000),
            // A teammate has to approve of it.
            1 => ("paid", 100_001),
            _ => ("paid", 100_000),
        };
        let made = host.pay(scenario, with(naira(amount), to(serial))).await.ok();
        if made.status_word() == "draft" {
            let path = format!("payouts/{}/approve", made.id());
            let body = json!({ "reason": "a test", "evidence": "a letter" });
            host.admin(Method::POST, &path, body).await.ok();
        }
        let key = format!("key-of-{serial}");
        let headers = [("idempotency-key", key.as_str()), ("x-sandbox-scenario", scenario)];
        let body = with(naira(100_000), to(serial));
        let path = "/v1/payouts";
        host.send(Method::POST, path, &other.test_key, &headers, Some(body)).await.ok();
        host.advance(600);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_on_their_way_are_listed_like_all_others(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let idle = |config: &mut railhead::config::Config| config.worker.dispatch = false;
    with_host_configured(engine, idle, async |host| {
        // Answers show less of an instant than there is.
        host.clock.advance(std::time::Duration::from_micros(300));
        fill_with_open(host).await;
        let all = data(host, "/v1/payouts?limit=100").await;
        assert_eq!(all.len(), 15);
        let middle = all[7]["created_at"].as_str().expect("an instant");
        for (status, count) in [("processing", 3), ("queued", 3), ("paid", 9)] {
            let of_status: Vec<Value> =
                all.iter().filter(|payout| payout["status"] == status).cloned().collect();
            assert_eq!(of_status.len(), count, "{status}");
            let list = format!("/v1/payouts?status={status}");
            for limit in [1, 2, 3, 100] {
                assert_eq!(paged(host, &list, limit).await, ids(&of_status), "{list} by {limit}");
            }
            for (name, side) in
                [("created_after", Ordering::Greater), ("created_before", Ordering::Less)]
            {
                let is_there = |payout: &&Value| {
                    payout["created_at"].as_str().is_some_and(|at| at.cmp(middle) == side)
                };
                let there: Vec<Value> = of_status.iter().filter(is_there).cloned().collect();
                let list = format!("{list}&{name}={middle}");
                for limit in [1, 100] {
                    assert_eq!(paged(host, &list, limit).await, ids(&there), "{list} by {limit}");
                }
            }
            let none = data(host, &format!("{list}&currency=GBP")).await;
            assert_eq!(none.len(), 0, "{list}");
            let live = host.get_as(&host.merchant.live_key, &list).await.ok();
            assert_eq!(live.json["data"], json!([]), "{list}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_filtered(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        fill(host).await;
        // One of which a levy is taken.
        host.pay("paid", naira(1_000_000)).await.ok();
        let list = format!("/v1/wallets/{}/transactions", host.merchant.test_wallet);
        for (query, count) in [
            ("", 1 + 7 * 2 + 2 * 2 + 3),
            ("direction=debit", 17),
            ("direction=credit", 5),
            ("source=payout_debit", 8),
            ("source=payout_fee", 8),
            ("source=payout_reversal", 2),
            ("source=payout_fee_reversal", 2),
            ("source=admin_credit", 1),
            ("source=stamp_duty_collected", 1),
            ("source=payout_reversal&direction=credit", 2),
            ("source=payout_reversal&direction=debit", 0),
        ] {
            let found = data(host, &format!("{list}?{query}")).await;
            assert_eq!(found.len(), count, "{query}");
            let paged = paged(host, &format!("{list}?{query}"), 3).await;
            assert_eq!(paged, ids(&found), "{query}");
        }
        for (query, field) in [
            ("source=salary", "source"),
            ("direction=in", "direction"),
            ("direction=", "direction"),
        ] {
            let refused = host.get(&format!("{list}?{query}")).await;
            assert_eq!(refused.refused(), (400, "invalid_filter"), "{query}");
            assert_eq!(refused.field(), field);
        }
        let refused = host.get(&format!("{list}?customer_id=cus_0")).await;
        assert_eq!(refused.refused(), (403, "permission_denied"));
        let live = host.get_as(&host.merchant.live_key, &list).await;
        assert_eq!(live.refused(), (404, "wallet_not_found"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn events_are_filtered(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        fill(host).await;
        for (query, count) in [
            ("", 1 + 7 + 4 + 2),
            ("type=payout.processing", 7),
            ("type=payout.paid", 4),
            ("type=payout.failed", 2),
            ("type=payout.reversed", 0),
            ("type=wallet_funded", 1),
            ("created_after=2026-11-22", 8),
            ("created_after=2026-11-22T09:00:00Z", 2),
            ("created_after=2026-11-23T08:00:00Z&type=payout.paid", 1),
        ] {
            let found = data(host, &format!("/v1/events?{query}")).await;
            assert_eq!(found.len(), count, "{query}");
            let paged = paged(host, &format!("/v1/events?{query}"), 3).await;
            assert_eq!(paged, ids(&found), "{query}");
            assert!(found.iter().all(|event| event["object"] == "event" && event["env"] == "test"));
        }
        for (query, field) in [("type=payout.queued", "type"), ("created_after=x", "created_after")]
        {
            let refused = host.get(&format!("/v1/events?{query}")).await;
            assert_eq!(refused.refused(), (400, "invalid_filter"), "{query}");
            assert_eq!(refused.field(), field);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_takes_only_values_that_there_are(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = &host.merchant.test_wallet;
        let transactions = format!("/v1/wallets/{wallet}/transactions");
        let cases: [(&str, &str, &[&str]); 12] = [
            ("/v1/payouts", "currency", &["XXX", "ABC", "ngn", "NG", ""]),
            ("/v1/payouts", "status", &["payed", "PAID", ""]),
            ("/v1/payouts", "created_after", &["soon"]),
            ("/v1/payouts", "created_before", &["2026-13-01"]),
            ("/v1/beneficiaries", "currency", &["XXX", "ABC", "ngn", "naira", ""]),
            ("/v1/webhook_deliveries", "status", &["sent", "DELIVERED", ""]),
            ("/v1/webhook_deliveries", "event_type", &["payout.lost", ""]),
            ("/v1/events", "type", &["payout.lost", "Payout.Paid", ""]),
            ("/v1/events", "created_after", &["soon"]),
            ("/v1/events/stream", "type", &["payout.lost", ""]),
            (&transactions, "source", &["payout", "PAYOUT_DEBIT", ""]),
            (&transactions, "direction", &["in", "Credit", ""]),
        ];
        for (list, field, values) in cases {
            for value in values {
                let refused = host.get(&format!("{list}?{field}={value}")).await;
                let told = (refused.refused(), refused.field());
                assert_eq!(told, ((400, "invalid_filter"), field), "{list} {field}={value}");
                let message = refused.json["error"]["message"].as_str().expect("a message");
                let is_told_how = message.starts_with(&format!("{field} is "));
                assert!(is_told_how || field == "currency", "{list} {field}={value}: {message}");
            }
        }
        for currency in ["NGN", "GBP", "USD", "EUR", "CAD", "GHS", "KES"] {
            for list in ["/v1/payouts", "/v1/beneficiaries"] {
                host.get(&format!("{list}?currency={currency}")).await.ok();
            }
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_keeps_its_place_while_new_things_happen(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        fill(host).await;
        for list in all_lists(host) {
            let before = ids(&data(host, &list).await);
            let first = data(host, &format!("{list}?limit=1")).await;
            let cursor = first[0]["id"].as_str().expect("an id").to_owned();
            host.credit(&host.merchant.test_wallet, 1).await;
            host.pay("paid", with(naira(100_000), to(999))).await.ok();
            let rest = ids(&data(host, &format!("{list}?starting_after={cursor}")).await);
            assert_eq!(rest, before[1..], "{list}");
        }
        let path = format!("/v1/wallets/{}/transactions", host.merchant.test_wallet);
        let posted = host.send(Method::POST, &path, &host.merchant.test_key, &[], None).await;
        assert_eq!(posted.refused(), (405, "method_not_allowed"));
    })
    .await;
}

/// How often what was paid is there once more.
const COPIES: u64 = 2_000;
/// As many rows as a statement of a list may read: two pages, and some at the edges.
const READ_MAX: u64 = 150;

/// Puts payouts that were paid there many times over, with their events and deliveries. They are no
/// books any more.
async fn multiply_paid(host: &TestHost) {
    let paid = "(SELECT id FROM payouts WHERE status = 'paid')";
    let events = format!("(SELECT id FROM events WHERE object_id IN {paid})");
    let copies = [
        (
            "payouts",
            "'id', t.id || '~' || k, 'id_number', t.id_number + k",
            format!("t.id IN {paid}"),
        ),
        (
            "events",
            "'id', t.id || '~' || k, 'id_number', t.id_number + k, \
             'object_id', t.object_id || '~' || k",
            format!("t.object_id IN {paid}"),
        ),
        (
            "webhook_deliveries",
            "'id', t.id || '~' || k, 'id_number', t.id_number + k",
            format!("t.event_id IN {events}"),
        ),
    ];
    let copies = copies.map(|(table, other, which)| {
        format!(
            "INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object({other}))).* \
             FROM {table} t CROSS JOIN generate_series(1, {COPIES}) k WHERE {which}"
        )
    });
    host.run(&copies).await;
}

/// How many rows of a table were read for a plan that was carried out, wanted or not.
fn rows_read(plan: &Value, table: &str) -> u64 {
    let count = |name: &str| {
        let number = plan[name].to_string();
        number.split('.').next().and_then(|whole| whole.parse::<u64>().ok()).unwrap_or(0)
    };
    let inner = plan["Plans"].as_array().into_iter().flatten();
    let inner: u64 = inner.map(|inner| rows_read(inner, table)).sum();
    match plan["Relation Name"].as_str() {
        Some(name) if name.starts_with(table) => {
            let dropped = count("Rows Removed by Filter") + count("Rows Removed by Index Recheck");
            inner + (count("Actual Rows") + dropped) * count("Actual Loops")
        }
        _ => inner,
    }
}

/// What few of very many are is found without reading the many: on their way, of other days, or to
/// be delivered again.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_reads_little_where_it_finds_little() {
    let receiver = Receiver::open().await;
    receiver.behave("/bad", Manner::status(500));
    let mut host = TestHost::open(Engine::Postgres, reach_loopback).await;
    listen(&host, &receiver.url("/good"), json!(["*"])).await;
    let bad = listen(&host, &receiver.url("/bad"), json!(["payout.failed"])).await.id();
    let days: [&[&str]; 3] = [&["processing", "failed"], &["paid"], &["paid"]];
    for (day, scenarios) in days.iter().enumerate() {
        for scenario in *scenarios {
            host.pay(scenario, naira(100_000)).await.ok();
        }
        let pending = "SELECT COUNT(*) FROM webhook_deliveries WHERE status = 'pending'";
        host.until_count(pending, 0).await;
        match day {
            1 => multiply_paid(&host).await,
            2 => break,
            _ => {}
        }
        host.advance(2 * 86_400);
    }
    host.run(&["ANALYZE".to_owned()]).await;
    write_down(&host, ("auto_explain.log_analyze", "on")).await;
    restart(&mut host, reach_loopback).await;
    let to_bad = format!("webhook_deliveries?endpoint_id={bad}");
    for (list, count) in [
        ("payouts?status=processing", 1),
        ("payouts?status=queued", 0),
        ("payouts?created_after=2026-11-24", 1),
        ("payouts?created_before=2026-11-22", 2),
        ("payouts?created_after=2026-11-24&status=paid", 1),
        ("payouts?created_before=2026-11-22&status=processing", 1),
        ("payouts?created_after=2026-11-24&status=failed", 0),
        ("events?created_after=2026-11-24", 2),
        ("events?created_after=2026-11-24&type=payout.failed", 0),
        ("webhook_deliveries?status=failed", 1),
        ("webhook_deliveries?status=pending", 0),
        (to_bad.as_str(), 1),
        ("reports/failed_payouts", 1),
    ] {
        assert_eq!(data(&host, &format!("/v1/{list}")).await.len(), count, "{list}");
    }
    let plans = plans(&host);
    for (table, words, asked) in [
        ("payouts", " id DESC LIMIT $8", 7),
        ("payouts", "AND unusual IN (", 2),
        ("events", "body IS NOT NULL AND id < $6", 2),
        ("webhook_deliveries", "ORDER BY d.id_number DESC, d.id DESC LIMIT $6", 3),
    ] {
        let own = plans.iter().filter(|(statement, _)| statement.contains(words));
        let own: Vec<&Value> = own.flat_map(|(_, plans)| plans).collect();
        assert!(own.len() >= asked, "{table}: {} plans", own.len());
        for plan in own {
            let read = rows_read(plan, table);
            assert!(read < READ_MAX, "{read} rows of {table} were read: {plan}");
        }
    }
    host.running.take().expect("a host").stop().await.expect("stopped in order");
}
