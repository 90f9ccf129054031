//! Tokens that a network wants with every request: how often they are fetched, and when anew.

use rstest::rstest;
use serde_json::{Value, json};

use crate::daraja::{Came, TOKEN, pay, with_daraja};
use crate::live::{until, until_asked};
use crate::test_host::Engine;

/// Whether all of these presented the token of this number.
#[track_caller]
fn presented(came: &[Came], number: u32) {
    for it in came {
        assert_eq!(it.authorization, format!("Bearer {TOKEN}-{number}"));
    }
}

/// However many payments want a token at once, the network is asked for one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_token_is_fetched_for_all_who_wait_for_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const PAYOUTS: u32 = 8;
    with_daraja(engine, async |host, daraja| {
        let door = daraja.gives_none().await;
        for number in 0..PAYOUTS {
            pay(host, number).await;
        }
        host.until_count("SELECT COUNT(*) FROM attempts WHERE sends = 1", PAYOUTS.into()).await;
        daraja.until_came("token", 1).await;
        assert!(daraja.came("payment").is_empty(), "nothing leaves without a token");
        drop(door);
        let paid = daraja.until_came("payment", usize::try_from(PAYOUTS).expect("few")).await;
        presented(&paid, 1);
        assert_eq!(daraja.came("token").len(), 1);
    })
    .await;
}

/// A token is renewed before its end, by as much as a request may take: twenty seconds, or a tenth
/// of its life if that is more. One that does not say how long it lives has five minutes.
#[rstest]
#[case::in_a_text(json!("100"), 80)]
#[case::in_a_number(json!(3_600), 3_240)]
#[case::untold(Value::Null, 270)]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_before_its_end(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] lifetime: Value,
    #[case] is_used_for_s: u64,
) {
    with_daraja(engine, async |host, daraja| {
        daraja.says_lifetime(lifetime);
        pay(host, 1).await;
        daraja.until_came("payment", 1).await;
        host.advance(is_used_for_s - 1);
        pay(host, 2).await;
        presented(&daraja.until_came("payment", 2).await, 1);
        assert_eq!(daraja.came("token").len(), 1);
        host.advance(1);
        pay(host, 3).await;
        let paid = daraja.until_came("payment", 3).await;
        presented(&paid[2..], 2);
        assert_eq!(daraja.came("token").len(), 2);
    })
    .await;
}

/// A network that does not take its token any more says so with a 401: the next request comes with
/// another one. Whether what was refused had been read first nobody knows, so that it is asked
/// about and not sent again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_taken_is_forgotten(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_daraja(engine, async |host, daraja| {
        let first = pay(host, 1).await;
        until(host, &first, "processing").await;
        until_asked(host, &first, 0).await;
        daraja.takes_back_tokens();
        let refused = pay(host, 2).await;
        until(host, &refused, "processing").await;
        until_asked(host, &refused, 0).await;
        presented(&daraja.until_came("payment", 2).await, 1);
        let next = pay(host, 3).await;
        until(host, &next, "processing").await;
        until_asked(host, &next, 0).await;
        presented(&daraja.until_came("payment", 3).await[2..], 2);
        host.advance(60);
        for id in [&first, &refused, &next] {
            until_asked(host, id, 1).await;
            until(host, id, "processing").await;
        }
        presented(&daraja.until_came("status", 3).await, 2);
        assert_eq!((daraja.came("token").len(), daraja.came("payment").len()), (2, 3));
    })
    .await;
}

/// Daraja may say it under 404, in words of its own, and then that nothing was paid: the next request
/// comes with another one all the same.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_found_is_forgotten_as_well(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_daraja(engine, async |host, daraja| {
        daraja.finds_no_token();
        let first = pay(host, 1).await;
        until(host, &first, "processing").await;
        until_asked(host, &first, 0).await;
        daraja.takes_back_tokens();
        let refused = pay(host, 2).await;
        until(host, &refused, "failed").await;
        presented(&daraja.until_came("payment", 2).await, 1);
        // It is the host that was refused, whose route is left alone for a while; but it asks.
        host.advance(60);
        until_asked(host, &first, 1).await;
        presented(&daraja.until_came("status", 1).await, 2);
        assert_eq!(daraja.came("token").len(), 2);
    })
    .await;
}
