//! Webhooks from an event to a receiver that verified it.

use rstest::rstest;
use serde_json::json;

use crate::hooks::{in_hooked_yard, listen, until_all};
use crate::yard::{Engine, naira};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_paid_payout_is_told_signed_and_recorded(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    in_hooked_yard(engine, async |yard, receiver| {
        let endpoint = listen(yard, &receiver.url("/a"), json!(["payout_paid"])).await;
        let payout = yard.pay("paid", naira(100_000)).await.ok();
        let got = receiver.until("/a", 1).await.remove(0);
        println!("{got:#?} {}", got.text());
        let delivery = until_all(yard, &endpoint.id(), (1, "delivered")).await.remove(0);
        println!("{delivery:#} {payout:?}");
    })
    .await;
}
