//! A new master key in front of the old one: what was written under the old one goes on.

use rstest::rstest;
use serde_json::json;

use crate::bank::Bank;
use crate::live::{pay, until, until_asked};
use crate::network::start_again;
use crate::test_host::{Engine, TestHost, config, naira, unique, with};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_outlives_the_key_that_it_was_begun_under(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let url = bank.url.clone();
    let change = |config: &mut railhead::config::Config| config.simulator.url = Some(url.clone());
    let mut host = TestHost::open(engine, change).await;
    let unknown = pay(&host, "0000001053").await.ok().id();
    until(&host, &unknown, "processing").await;
    until_asked(&host, &unknown, 0).await;
    let paid = pay(&host, "0123456785").await.ok().id();
    until(&host, &paid, "paid").await;
    for keys in [&["22", "11"][..], &["22"]] {
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        let mut config = config(&host.database);
        change(&mut config);
        config.encryption.keys = keys.iter().map(|byte| byte.repeat(32)).collect();
        start_again(&mut host, config).await;
        if keys.len() == 1 {
            // The host's own secrets have moved to the new key; what merchants were given has not.
            assert_eq!(pay(&host, "0000001015").await.refused(), (401, "invalid_api_key"));
            break;
        }
        // The gateway that it was sent to is known again, and believed that it refuses.
        host.advance(5);
        until(&host, &unknown, "failed").await;
        // So is the recipient that was paid a moment ago.
        let again = with(naira(100_000), json!({ "allow_duplicate": false }));
        let refused = host.pay_as(&host.merchant.live_key, &unique(), again).await;
        assert_eq!(refused.refused().1, "beneficiary_cooldown");
    }
    host.close().await;
}
