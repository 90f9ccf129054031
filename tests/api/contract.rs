//! The contract in files: what is committed is what is served.

use rstest::rstest;
use serde_json::Value;

use crate::test_host::{Engine, with_host};

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_served_document_is_the_committed_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let served = host.client.get(format!("{}/openapi.json", host.base)).send().await;
        let served: Value = served.expect("an answer").json().await.expect("a document");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/openapi.json");
        let committed = std::fs::read(path).expect("host/openapi.json");
        let committed: Value = serde_json::from_slice(&committed).expect("a document");
        assert!(served == committed, "host/openapi.json is not current; write it: make openapi");
    })
    .await;
}
