//! A host with as many calls of rails under way as it has instances.

use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::accounts::account;
use crate::bank::{Bank, Hold};
use crate::live::{pay, until};
use crate::test_host::{Engine, TestHost, beginning, naira, unique, with};

fn recipient(number: u32) -> Value {
    json!({ "account_number": account(number), "bank_code": "058" })
}

/// The only instance is held by a bank that is silent. A payment that is next waits, and counts no
/// try; whoever wants a recipient checked, or a name asked for, is told to come again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_instance_is_neither_refused_nor_counted(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let clock = beginning();
    let bank = Bank::open_at(clock.clone()).await;
    let url = bank.url.clone();
    let change = |config: &mut Config| {
        config.simulator.url = Some(url);
        config.rail_guests = Some(1);
    };
    let host = TestHost::open_at(clock, engine, change).await;
    // This one is checked, and its name is not known to a live payment.
    let checked = with(naira(100_000), json!({ "recipient": recipient(9) }));
    host.pay("paid", checked.clone()).await.ok();
    bank.door.hold(Hold::Answer);
    let first = pay(&host, "0123456785").await.ok().id();
    bank.door.until_held().await;
    // Whom it goes to was checked a moment ago.
    let second = pay(&host, "0123456785").await.ok().id();
    let sql = format!(
        "SELECT COUNT(*) FROM transfers WHERE id = '{second}' AND due_at > queued_at AND tries = 0"
    );
    host.until_count(&sql, 1).await;
    for body in [checked, with(naira(100_000), json!({ "recipient": recipient(7) }))] {
        let refused = host.pay_as(&host.merchant.live_key, &unique(), body).await;
        assert_eq!(refused.refused(), (503, "service_overloaded"), "{}", refused.text);
        assert!(refused.headers.contains_key("retry-after"), "{}", refused.text);
    }
    bank.door.hold(Hold::Nothing);
    until(&host, &first, "paid").await;
    host.advance(31);
    until(&host, &second, "paid").await;
    bank.prove().await;
    host.close().await;
}
