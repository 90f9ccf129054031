//! Lists: newest first, page by page without a gap or a repeat, filtered as asked.

use std::collections::BTreeSet;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::to;
use crate::test_host::{Engine, TestHost, naira, with, with_host};

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

fn all_lists(host: &TestHost) -> [String; 5] {
    let wallet = &host.merchant.test_wallet;
    [
        "/v1/payouts".to_owned(),
        format!("/v1/wallets/{wallet}/transactions"),
        format!("/v1/wallets/{wallet}/funding_events"),
        "/v1/events".to_owned(),
        "/v1/beneficiaries".to_owned(),
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
            ("/v1/webhook_deliveries", "status", &["sent", "DELIVERED"]),
            ("/v1/webhook_deliveries", "event_type", &["payout.lost"]),
            ("/v1/events", "type", &["payout.lost", "Payout.Paid"]),
            ("/v1/events", "created_after", &["soon"]),
            ("/v1/events/stream", "type", &["payout.lost"]),
            (&transactions, "source", &["payout", "PAYOUT_DEBIT"]),
            (&transactions, "direction", &["in", "Credit"]),
        ];
        for (list, field, values) in cases {
            for value in values {
                let refused = host.get(&format!("{list}?{field}={value}")).await;
                let told = (refused.refused(), refused.field());
                assert_eq!(told, ((400, "invalid_filter"), field), "{list} {field}={value}");
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
