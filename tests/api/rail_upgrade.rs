//! A rail is replaced by another version of itself while payments are open.

use http::Method;
use railhead::config::Config;
use railhead::start::{Sources, start};
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::until_files;
use crate::alerts::{advance_until_open, until_over};
use crate::hostile::{Till, attempt, built, hostile, packed};
use crate::hostile_files::{hours_pass, join, made};
use crate::lanes::{patch, route};
use crate::live::{until, until_asked};
use crate::network::start_again;
use crate::news::tell;
use crate::notices::RIGHT;
use crate::test_host::{Engine, TestHost, config, unique, with_host_configured};
use crate::under_way::until_it_waits;

const DECLARATION: &str = include_str!("../hostile/rail.toml");
const BY_FILE: &str = include_str!("../hostile/bulk.toml");

/// The next version: it asks elsewhere, where nobody knows of anything.
fn next() -> String {
    DECLARATION
        .replace("version = \"0.1.0\"", "version = \"0.2.0\"")
        .replace("path = \"/ask\"", "path = \"/ask/again\"")
}

/// A host whose rail can be replaced.
async fn with_versions(
    engine: Engine,
    test: impl AsyncFnOnce(&mut TestHost, &Till, &dyn Fn(&TestHost) -> Config, &dyn Fn(&str)),
) {
    with_versions_of(engine, DECLARATION, test).await;
}

async fn with_versions_of(
    engine: Engine,
    first: &str,
    test: impl AsyncFnOnce(&mut TestHost, &Till, &dyn Fn(&TestHost) -> Config, &dyn Fn(&str)),
) {
    let (till, folder) = (Till::default(), tempfile::tempdir().expect("a folder"));
    let (url, component) = (till.open().await, built("hostile", ""));
    let file = folder.path().join("hostile.wasm");
    let put = |declaration: &str| {
        std::fs::write(&file, packed(&component, declaration)).expect("written");
    };
    put(first);
    let change = |config: &mut Config| {
        config.simulator.url = Some(url.clone());
        config.simulator.token = Some(RIGHT.into());
        config.modules.dir = Some(folder.path().to_owned());
    };
    let again = |host: &TestHost| {
        let mut config = config(&host.database);
        change(&mut config);
        config
    };
    with_host_configured(engine, change, async |host| test(host, &till, &again, &put).await).await;
}

async fn pay(host: &TestHost, deed: &str) -> String {
    let key = host.merchant.live_key.clone();
    let id = host.pay_as(&key, &unique(), hostile(deed)).await.ok().id();
    until(host, &id, "processing").await;
    until_asked(host, &id, 0).await;
    id
}

/// The paths that a payout was asked about at.
async fn asked_at(host: &TestHost, id: &str) -> Vec<Value> {
    let path = format!("/v1/payouts/{id}/timeline");
    let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
    let steps = timeline.json["data"].as_array().expect("steps").clone();
    let asked = steps.into_iter().filter(|step| step["operation"] == "query");
    asked.map(|step| step["messages"][0]["to"].clone()).collect()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_asked_about_by_the_version_that_sent_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, till, again, put| {
        let id = pay(host, "sent, then trap").await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&next());
        start_again(host, again(host)).await;
        host.advance(60);
        until(host, &id, "paid").await;
        assert_eq!(asked_at(host, &id).await, ["POST /ask"]);
        assert_eq!(till.paid(&attempt(host, &id).await.0), 1);
        // What is new goes with the new one.
        let later = pay(host, "sent, then trap").await;
        host.advance(60);
        until_asked(host, &later, 1).await;
        assert_eq!(asked_at(host, &later).await, ["POST /ask/again"]);
        assert_eq!(
            host.count("SELECT COUNT(*) FROM rail_versions WHERE name = 'hostile'").await,
            2
        );
    })
    .await;
}

/// It waits while its rail is replaced by one that calls an account otherwise: what nobody has checked
/// goes nowhere.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_not_sent_by_a_version_that_does_not_know_its_account(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, till, again, put| {
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        let mut still = again(host);
        still.worker.dispatch = false;
        start_again(host, still).await;
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("pay")).await.ok().id();
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&renamed(DECLARATION));
        start_again(host, again(host)).await;
        until_it_waits(host, &id, "any_route").await;
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 0);
        // The one that knows it sends it.
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(DECLARATION);
        start_again(host, again(host)).await;
        host.advance(600);
        until(host, &id, "paid").await;
        assert_eq!(till.paid(&attempt(host, &id).await.0), 1);
    })
    .await;
}

/// A version that calls an account otherwise.
fn renamed(declaration: &str) -> String {
    declaration.replace("0.1.0", "0.3.0").replace("account_number", "msisdn")
}

/// It has joined its file when that version comes: the file is not made with it, and a person is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_not_made_by_a_version_that_does_not_know_its_accounts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions_of(engine, BY_FILE, async |host, till, again, put| {
        let ids = made(host, &["pay"]).await;
        join(host, &ids).await;
        let reference = attempt(host, &ids[0]).await.0;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&renamed(BY_FILE));
        start_again(host, again(host)).await;
        host.advance(2);
        let stuck = "SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck' AND status = 'open'";
        host.until_count(stuck, 1).await;
        assert_eq!(till.paid(&reference), 0);
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(BY_FILE);
        start_again(host, again(host)).await;
        hours_pass(host).await;
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(till.paid(&reference), 1);
    })
    .await;
}

/// The version that sent it is gone, and its network never had it: the loaded one does not send it
/// again, to an account that it does not know.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_not_sent_again_by_a_version_that_does_not_know_its_account(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, till, again, put| {
        let id = pay(host, "sent, then trap").await;
        till.forget(&attempt(host, &id).await.0);
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&renamed(DECLARATION));
        start_again(host, again(host)).await;
        host.run(&["DELETE FROM rail_versions WHERE version = '0.1.0'".to_owned()]).await;
        for (asked, pause) in [(1, 60), (2, 60), (3, 90_000), (4, 60)] {
            host.advance(pause);
            until_asked(host, &id, asked).await;
        }
        assert_eq!(attempt(host, &id).await.1, 1, "it was sent once");
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(DECLARATION);
        start_again(host, again(host)).await;
        host.advance(60);
        let again =
            format!("SELECT COUNT(*) FROM attempts WHERE transfer_id = '{id}' AND sends = 2");
        host.until_count(&again, 1).await;
    })
    .await;
}

/// The next version wants a setting in addition: with one that has a default what is heard of payments
/// counts as before; without one the network is told to say it again, and the operator sets it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_with_one_more_setting_hears_of_what_was_sent_before(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, _till, again, put| {
        let mut open = Vec::new();
        for _ in 0..2 {
            open.push(pay(host, "sent, then trap").await);
        }
        let with = |version: &str, setting: &str| {
            let next = next().replace("\"0.2.0\"", &format!("\"{version}\""));
            format!("{next}\n[settings.branch]\ntitle = \"Branch\"\n{setting}\n")
        };
        let refused = async |host: &TestHost, id: &str| {
            let reference = attempt(host, id).await.0;
            tell(host, "/told", &format!("refused reference {reference} 0")).await
        };
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&with("0.4.0", "default = \"1\""));
        start_again(host, again(host)).await;
        // What was sent with the default would be asked about in another name.
        let other = patch(host, "ngn_hostile", json!({ "settings": { "branch": "7" } })).await;
        assert_eq!(other.refused(), (409, "state_conflict"));
        refused(host, &open[0]).await.ok();
        until(host, &open[0], "failed").await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&with("0.5.0", ""));
        start_again(host, again(host)).await;
        let later = refused(host, &open[1]).await;
        assert_eq!(later.refused(), (503, "service_unavailable"));
        let stranger = host.client.post(format!("{}/notices/live/hostile/told", host.base));
        let stranger = stranger.bearer_auth("another").body("x").send().await.expect("an answer");
        assert_eq!(stranger.status(), 404);
        let lacking = route(host, "ngn_hostile").await["missing"].clone();
        assert!(lacking.is_string(), "{lacking}");
        // Where it was sent to is not changed on that occasion.
        let more = json!({ "branch": "7", "endpoint.bank": "https://bank.example" });
        let more = patch(host, "ngn_hostile", json!({ "settings": more })).await;
        assert_eq!(more.refused(), (409, "state_conflict"));
        patch(host, "ngn_hostile", json!({ "settings": { "branch": "7" } })).await.ok();
        refused(host, &open[1]).await.ok();
        until(host, &open[1], "failed").await;
    })
    .await;
}

/// What nobody of ours wrote is not run: the version that is loaded asks instead.
#[rstest]
#[case::gone("DELETE FROM rail_versions")]
#[case::changed("UPDATE rail_versions SET component = 'AAAA'")]
#[case::forged("UPDATE rail_versions SET tag = '00'")]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_there_any_more_is_done_without(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] what: &str,
) {
    with_versions(engine, async |host, _till, again, put| {
        let id = pay(host, "sent, then trap").await;
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&next());
        start_again(host, again(host)).await;
        host.run(&[what.to_owned()]).await;
        host.advance(60);
        until_asked(host, &id, 1).await;
        assert_eq!(asked_at(host, &id).await, ["POST /ask/again"]);
        until(host, &id, "processing").await;
    })
    .await;
}

/// Why no host starts, once the one before has let go of the database.
async fn refusal(config: &Config) -> String {
    let mut why = String::new();
    for _ in 0..2_000 {
        let sources = Sources::system().expect("sources");
        why = start(config.clone(), sources).await.err().expect("refused").to_string();
        if why.contains("barred") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    why
}

/// A version that an operator bars asks about nothing any more, and is not loaded either.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_barred_does_not_run(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, _till, again, put| {
        let id = pay(host, "sent, then trap").await;
        let sql = "SELECT digest FROM rail_versions WHERE name = 'hostile'";
        let pool = host.app().db.pool();
        let digest: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a digest");
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        let mut config = again(host);
        config.modules.barred = vec![digest];
        let why = refusal(&config).await;
        assert!(why.contains("the rail hostile is barred"), "{why}");
        put(&next());
        start_again(host, config).await;
        host.advance(60);
        until_asked(host, &id, 1).await;
        assert_eq!(asked_at(host, &id).await, ["POST /ask/again"]);
        until(host, &id, "processing").await;
    })
    .await;
}

/// Settings for a rail that is not loaded can be taken away, and none can be set: nobody knows
/// what they should look like.
#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_rail_that_is_not_there_are_not_set() {
    with_versions(Engine::Sqlite, async |host, _till, again, _put| {
        let routes = host.admin(Method::GET, "routes?limit=100", json!({})).await.ok();
        let routes = routes.json["data"].as_array().expect("routes").clone();
        let route = routes.iter().find(|it| it["rail"] == "hostile").expect("a route");
        let path = format!("routes/{}", route["id"].as_str().expect("an id"));
        let long = format!("https://bank.example/{}", "a".repeat(4_000));
        let body = json!({ "settings": { "endpoint.gateway": long } });
        let refused = host.admin(Method::PATCH, &path, body).await;
        assert_eq!(refused.refused(), (400, "invalid_field"));
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        let config = again(host);
        let folder = config.modules.dir.clone().expect("a folder");
        std::fs::remove_file(folder.join("hostile.wasm")).expect("removed");
        start_again(host, config).await;
        let body = json!({ "settings": { "endpoint.gateway": "https://bank.example" } });
        let refused = host.admin(Method::PATCH, &path, body).await;
        assert_eq!(refused.refused(), (400, "invalid_field"));
        assert!(refused.text.contains("not loaded"), "{}", refused.text);
        let body = json!({ "settings": { "endpoint.gateway": null } });
        host.admin(Method::PATCH, &path, body).await.ok();
    })
    .await;
}

/// What has left over it is asked about by nobody, and somebody is told.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_whose_rail_is_not_there_are_told_of(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_versions(engine, async |host, _till, again, put| {
        let id = pay(host, "sent, then trap").await;
        let mut config = again(host);
        // Hosts know each other by machine and port.
        config.server.address = host.running.as_ref().expect("a host").address;
        let folder = config.modules.dir.clone().expect("a folder");
        let start = async |host: &mut TestHost| {
            if let Some(running) = host.running.take() {
                running.stop().await.expect("stopped in order");
            }
            start_again(host, config.clone()).await;
        };
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        std::fs::remove_file(folder.join("hostile.wasm")).expect("removed");
        start(host).await;
        until_it_waits(host, &id, "any_route").await;
        // Its five minutes begin when somebody has looked first.
        let alert = advance_until_open(host, 301, "no_route").await;
        let summary = alert["summary"].as_str().expect("what");
        assert!(summary.contains("The rail hostile of"), "{alert}");
        assert_eq!(alert["count"], 1, "{alert}");
        put(DECLARATION);
        start(host).await;
        until_over(host, "no_route").await;
    })
    .await;
}

/// Amounts are counted as they were from the first day on, and nothing goes by a method that the
/// next version does not have.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_version_counts_as_the_one_before_and_may_lack_a_method(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let kwacha = DECLARATION.replace("\"NGN\"", "\"ZMW\"");
    with_versions_of(engine, &kwacha, async |host, _till, again, put| {
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        put(&kwacha.replace("0.1.0", "0.2.0").replace("exponent = 2", "exponent = 0"));
        let sources = Sources::system().expect("sources");
        let why = start(again(host), sources).await.err().expect("refused").to_string();
        assert!(
            why.contains("amounts in ZMW have 2 decimal places in this database, and 0 by"),
            "{why}"
        );
        put(&kwacha
            .replace("0.1.0", "0.3.0")
            .replace("name = \"hostile\"\ncur", "name = \"h2h\"\ncur"));
        start_again(host, again(host)).await;
        let missing = route(host, "zmw_hostile").await["missing"].take();
        assert_eq!(missing, "the rail hostile has no method hostile in ZMW");
        assert!(route(host, "zmw_h2h").await["missing"].is_null());
    })
    .await;
}

/// What a file is called says nothing: the rail that was there first checks the recipients of its
/// method, and no two files are one rail, or count a currency otherwise.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rail_that_is_added_takes_nothing_from_the_one_that_was_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (till, folder) = (Till::default(), tempfile::tempdir().expect("a folder"));
    let (url, component) = (till.open().await, built("hostile", ""));
    let put = |name: &str, declaration: &str| {
        std::fs::write(folder.path().join(name), packed(&component, declaration)).expect("written");
    };
    let change = |config: &mut Config| {
        config.simulator.url = Some(url.clone());
        config.simulator.token = Some(RIGHT.into());
        config.modules.dir = Some(folder.path().to_owned());
    };
    put("rail.wasm", DECLARATION);
    with_host_configured(engine, change, async |host| {
        let mut again = config(&host.database);
        change(&mut again);
        let stop = async |host: &mut TestHost| {
            host.running.take().expect("a host").stop().await.expect("stopped in order");
        };
        // Of another identity, and before the other one by its file's name.
        let rival = DECLARATION.replace("name = \"hostile\"\nversion", "name = \"rival\"\nversion");
        let of_names = "identity = [\"bank_code\", \"account_number\", \"name\"]";
        let rival = rival.replace("identity = [\"bank_code\", \"account_number\"]", of_names);
        assert_ne!(rival, DECLARATION);
        put("a.wasm", &rival);
        stop(host).await;
        start_again(host, again.clone()).await;
        let key = host.merchant.live_key.clone();
        let id = host.pay_as(&key, &unique(), hostile("pay")).await.ok().id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        stop(host).await;
        for (declaration, why) in [
            (DECLARATION.to_owned(), "both hold the rail hostile: keep one of them"),
            (
                rival.replace("exponent = 2", "exponent = 0"),
                "amounts in NGN have 2 decimal places by the rail",
            ),
        ] {
            put("a.wasm", &declaration);
            let sources = Sources::system().expect("sources");
            let refused = start(again.clone(), sources).await.err().expect("refused").to_string();
            assert!(refused.contains(why), "{refused}");
        }
        std::fs::remove_file(folder.path().join("a.wasm")).expect("removed");
        start_again(host, again).await;
    })
    .await;
}
