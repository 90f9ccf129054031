//! Two rails serve one method: the other one carries what the first cannot, if the recipient is
//! one of its own, too.

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::hostile::{Till, attempt, built, hostile, packed};
use crate::live::{until, until_asked};
use crate::notices::RIGHT;
use crate::test_host::{Engine, TestHost, unique, with_host_configured};

const DECLARATION: &str = include_str!("../hostile/rail.toml");

/// A host with two rails of one method, the bank of the first of which is not there; the other
/// one's is.
async fn with_two(engine: Engine, second: &str, test: impl AsyncFnOnce(&mut TestHost, &Till)) {
    let (till, folder) = (Till::default(), tempfile::tempdir().expect("a folder"));
    let (url, component) = (till.open().await, built("hostile", ""));
    let named = second.replace("name = \"hostile\"\nversion", "name = \"bulk\"\nversion");
    assert_ne!(named, second);
    // Rails are loaded in the order of their files.
    for (file, declaration) in [("a.wasm", DECLARATION), ("b.wasm", &named)] {
        let path = folder.path().join(file);
        std::fs::write(path, packed(&component, declaration)).expect("written");
    }
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(url.clone());
        config.simulator.token = Some(RIGHT.into());
        config.modules.dir = Some(folder.path().to_owned());
        let secrets = [("door", RIGHT), ("stamp", "what both sides sign with")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        config.routes.insert("ngn_hostile".into(), secrets.into());
    };
    with_host_configured(engine, change, async |host| {
        let routes = host.admin(Method::GET, "routes", json!(null)).await.ok();
        let mut routes = routes.json["data"].as_array().expect("routes").iter();
        let first = routes.find(|it| it["env"] == "live" && it["rail"] == "hostile");
        let first = first.expect("a route");
        assert_eq!(first["name"], "ngn_hostile");
        let path = format!("routes/{}", first["id"].as_str().expect("an id"));
        // Nobody listens there.
        let nobody = json!({ "settings": { "endpoint.bank": "https://bank.invalid" } });
        host.admin(Method::PATCH, &path, nobody).await.ok();
        let second = json!({ "name": "ngn_other", "env": "live", "currency": "NGN",
            "method": "hostile", "rail": "bulk", "position": 5 });
        host.admin(Method::POST, "routes", second).await.ok();
        test(host, &till).await;
    })
    .await;
}

async fn pay(host: &TestHost) -> String {
    host.pay_as(&host.merchant.live_key.clone(), &unique(), hostile("sent, then claim"))
        .await
        .ok()
        .id()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn another_rail_carries_what_the_first_one_cannot(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two(engine, DECLARATION, async |host, till| {
        let id = pay(host).await;
        until(host, &id, "paid").await;
        let sql = "SELECT rail_reference FROM attempts WHERE transfer_id = $1 AND rail = 'bulk'";
        let pool = &host.app().db;
        let reference: String =
            sqlx::query_scalar(sql).bind(&id).fetch_one(pool.pool()).await.expect("an attempt");
        assert_eq!(till.paid(&reference), 1);
    })
    .await;
}

/// A recipient that is none of the other rail's, and an amount beyond its bounds, wait for the
/// first one.
#[rstest]
#[case::of_another_shape("title = \"Account number\"", "pattern = \"^[0-9]{3}$\"")]
#[case::of_another_kind("[recipient]", "shape = \"other\"")]
#[case::too_much("amount_minor_min = 100", "amount_minor_max = 99_900")]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_other_rail_does_not_take_is_not_given_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] after: &str,
    #[case] line: &str,
) {
    let most = DECLARATION.replace("amount_minor_max = 1_000_000_000\n", "");
    let whole = if line.contains("max") { most.as_str() } else { DECLARATION };
    let second = whole.replacen(after, &format!("{after}\n{line}"), 1);
    assert_ne!(second, DECLARATION);
    with_two(engine, &second, async |host, till| {
        let id = pay(host).await;
        until_asked(host, &id, 0).await;
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts WHERE rail = 'bulk'").await, 0);
        assert_eq!(till.paid(&attempt(host, &id).await.0), 0);
        until(host, &id, "processing").await;
    })
    .await;
}
