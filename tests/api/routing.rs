//! Routes: which rail serves what, in which order, for whom, and what a pause does.

use http::Method;
use railhead::simulator::{self, Simulator};
use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bank::networks;
use crate::lanes::of_nip;
use crate::test_host::{
    Answer, Engine, TestHost, naira, unique, with, with_host, with_host_configured,
};

const NOBODY: &str = "c000000000000000000000000";

async fn routes(host: &TestHost) -> Vec<Value> {
    let list = host.admin(Method::GET, "routes", json!({})).await.ok();
    list.json["data"].as_array().expect("routes").clone()
}

/// The id of the naira route of an environment.
pub(crate) async fn naira_route(host: &TestHost, env: &str) -> String {
    let routes = routes(host).await;
    let found = routes.iter().find(|route| route["env"] == env && route["currency"] == "NGN");
    found.expect("a route")["id"].as_str().expect("an id").to_owned()
}

pub(crate) async fn patch(host: &TestHost, id: &str, changes: Value) -> Answer {
    host.admin(Method::PATCH, &format!("routes/{id}"), changes).await
}

fn second() -> Value {
    json!({ "name": "ngn_second", "env": "test", "currency": "NGN", "rail": "nip" })
}

/// Which route answers a question about a name that nobody saved.
async fn who_answers(host: &TestHost) -> String {
    let body = json!({ "currency": "NGN", "account_number": "0123456785", "bank_code": "058" });
    let answer = host.post("/v1/name-enquiry", body).await.ok();
    answer.json["resolved_by_provider"].as_str().expect("a route").to_owned()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_new_host_has_a_route_for_every_rail_in_both_worlds(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let rails = host.admin(Method::GET, "rails", json!({})).await.ok();
        let routes = routes(host).await;
        for rail in rails.json["data"].as_array().expect("rails") {
            assert_eq!(rail["object"], "rail");
            assert_eq!(rail["digest"].as_str().map(str::len), Some(64), "{rail}");
            for env in ["test", "live"] {
                let served = routes.iter().any(|r| r["rail"] == rail["name"] && r["env"] == env);
                assert!(served, "{env} {rail}");
            }
        }
        assert!(rails.json["data"].as_array().is_some_and(|rails| !rails.is_empty()));
        let packs = host.admin(Method::GET, "rule-packs", json!({})).await.ok();
        let packs = packs.json["data"].as_array().expect("packs");
        let shown: Vec<_> = packs.iter().map(|p| [&p["object"], &p["kind"], &p["state"]]).collect();
        assert_eq!(
            shown,
            [["rule_pack", "fees", "active"], ["rule_pack", "fraud", "checked"]],
            "{packs:?}"
        );
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_is_told_what_a_route_lacks_and_the_merchant_is_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let tokens = ["gateway_token", "notice_token"].map(|name| (name, "a bank's own token"));
    let change = |config: &mut railhead::config::Config| {
        config.routes.insert("ngn_ready".into(), of_nip(tokens));
    };
    with_host_configured(engine, change, async |host| {
        let live = json!({ "name": "ngn_ready", "env": "live", "currency": "NGN", "rail": "nip",
            "position": 9, "settings": { "endpoint.gateway": "https://nip.bank.example" } });
        let ready = host.admin(Method::POST, "routes", live.clone()).await.ok();
        assert!(ready.json["missing"].is_null(), "{}", ready.text);
        let bare = with(live, json!({ "name": "ngn_bare", "settings": null }));
        let bare = host.admin(Method::POST, "routes", bare).await.ok().json;
        assert!(
            bare["missing"].as_str().is_some_and(|why| why.contains("routes.ngn_bare.")),
            "{bare}"
        );
        for route in routes(host).await {
            let missing = route["missing"].as_str();
            // Of the live ones, only the one that was told everything is ready.
            let name = route["name"].as_str().expect("a name");
            match route["env"] == "live" && route["id"] != ready.json["id"] {
                true => assert!(missing.is_some_and(|why| why.contains(name)), "{route}"),
                false => assert_eq!(missing, None, "{route}"),
            }
        }
        let id = ready.id();
        patch(host, &id, json!({ "is_paused": true })).await.ok();
        let refused = host.pay_as(&host.merchant.live_key, &unique(), naira(100_000)).await;
        assert_eq!(refused.refused(), (503, "rail_not_configured"));
        assert!(!refused.text.contains("ngn_"), "{}", refused.text);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn routes_are_tried_in_order_and_for_their_merchants(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let first = naira_route(host, "test").await;
        assert_eq!(who_answers(host).await, "ngn_nip");
        let body = with(second(), json!({ "position": -1 }));
        let made = host.admin(Method::POST, "routes", body).await.ok();
        assert_eq!((made.status, &made.json["method"]), (201, &json!("nip")));
        assert_eq!(who_answers(host).await, "ngn_second");
        let moved = patch(host, &made.id(), json!({ "position": 5 })).await.ok();
        assert_eq!((&moved.json["position"], &moved.json["is_paused"]), (&json!(5), &json!(false)));
        assert_eq!(who_answers(host).await, "ngn_nip");
        patch(host, &first, json!({ "is_paused": true })).await.ok();
        assert_eq!(who_answers(host).await, "ngn_second");
        host.pay("paid", naira(100_000)).await.ok();

        let other = host.new_merchant("Other").await;
        patch(host, &made.id(), json!({ "merchants": [other.id] })).await.ok();
        let refused = host.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "provider_paused"));
        patch(host, &first, json!({ "is_paused": false, "merchants": [other.id] })).await.ok();
        let refused = host.pay("paid", naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "provider_not_entitled"));
        host.pay_as(&other.test_key, &unique(), naira(100_000)).await.ok();
        patch(host, &first, json!({ "merchants": [] })).await.ok();
        host.pay("paid", naira(100_000)).await.ok();

        let log = host.admin(Method::GET, "audit?limit=100", json!({})).await.ok();
        let lines = log.json["data"].as_array().expect("lines");
        let of = |action: &str| lines.iter().filter(|line| line["action"] == action).count();
        assert_eq!((of("route.create"), of("route.update")), (1, 5));
        let update = lines.iter().find(|line| line["action"] == "route.update").expect("one");
        assert!(update["before"]["position"].is_i64() && update["after"]["position"].is_i64());
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_leads_nowhere_is_refused_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let before = routes(host).await;
        let route = naira_route(host, "live").await;
        for (changes, code, field) in [
            (json!({ "name": null }), "missing_field", "name"),
            (json!({ "name": "Bad Name" }), "invalid_field", "name"),
            (json!({ "env": null }), "missing_field", "env"),
            (json!({ "env": "prod" }), "invalid_field", "env"),
            (json!({ "rail": null }), "missing_field", "rail"),
            (json!({ "rail": "swift" }), "invalid_field", "rail"),
            (json!({ "currency": null }), "missing_field", "currency"),
            (json!({ "currency": "GBP" }), "invalid_field", "currency"),
            (json!({ "method": "pigeon" }), "invalid_field", "method"),
            (json!({ "position": "first" }), "invalid_field", "position"),
        ] {
            let body = with(second(), changes.clone());
            let refused = host.admin(Method::POST, "routes", body).await;
            assert_eq!(refused.refused(), (400, code), "{changes}");
            assert_eq!(refused.field(), field, "{changes}");
        }
        let setting = |name: &str, value: &str| json!({ "settings": { name: value } });
        for (changes, field) in [
            (json!({ "merchants": ["acme"] }), "merchants"),
            (json!({ "settings": { "channel_code": 7 } }), "settings.channel_code"),
            (setting("channel_code", "seven"), "settings.channel_code"),
            (setting("colour", "red"), "settings.colour"),
            (setting("gateway_token", "hunter2"), "settings.gateway_token"),
            (setting("endpoint.gateway", "http://bank.example"), "settings.endpoint.gateway"),
            (setting("endpoint.elsewhere", "https://bank.example"), "settings.endpoint.elsewhere"),
        ] {
            let body = with(second(), changes.clone());
            for refused in [
                host.admin(Method::POST, "routes", body).await,
                patch(host, &route, changes.clone()).await,
            ] {
                assert_eq!(refused.refused(), (400, "invalid_field"), "{changes}");
                assert_eq!(refused.field(), field, "{changes}");
                assert!(!refused.text.contains("hunter2"), "a secret is repeated");
            }
        }
        let taken = with(second(), json!({ "name": "ngn_nip" }));
        let refused = host.admin(Method::POST, "routes", taken).await;
        assert_eq!((refused.refused(), refused.field()), ((409, "state_conflict"), "name"));
        for id in [NOBODY, "x"] {
            let refused = patch(host, id, json!({ "is_paused": true })).await;
            assert_eq!(refused.refused(), (404, "not_found"));
        }
        assert_eq!(routes(host).await, before);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_route_keeps_live_payouts_queued(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", bank.local_addr().expect("an address"));
    let live = |config: &mut railhead::config::Config| config.simulator.url = Some(url);
    with_host_configured(engine, live, async |host| {
        let (network, _messages) = Simulator::new(None, host.clock.clone(), networks());
        let closing = CancellationToken::new();
        let serving = tokio::spawn({
            let (network, closing) = (network.clone(), closing.clone());
            async move { simulator::serve(&network, bank, closing).await }
        });
        let key = host.merchant.live_key.clone();
        let path = format!("merchants/{}", host.merchant.id);
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "1" } });
        host.admin(Method::PATCH, &path, threshold).await.ok();
        let draft = host.pay_as(&key, &unique(), naira(100_000)).await.ok();
        assert_eq!(draft.status_word(), "draft");
        let route = naira_route(host, "live").await;
        patch(host, &route, json!({ "is_paused": true })).await.ok();
        let refused = host.pay_as(&key, &unique(), naira(100_000)).await;
        assert_eq!(refused.refused(), (403, "provider_paused"));

        let path = format!("payouts/{}/approve", draft.id());
        let approved = host.admin(Method::POST, &path, json!({})).await.ok();
        assert_eq!(approved.status_word(), "queued");
        // The dispatcher has looked at it, and put it off for half a minute.
        let put_off = host.clock.now().micros() + 30_000_000;
        for _ in 0..2_000 {
            if host.count("SELECT due_at FROM transfers").await == put_off {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(host.count("SELECT due_at FROM transfers").await, put_off);
        let shown = host.get_as(&key, &format!("/v1/payouts/{}", draft.id())).await;
        assert_eq!(shown.status_word(), "queued");
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts").await, 0);
        assert!(network.transfers().await.expect("its memory").is_empty(), "it was sent");

        patch(host, &route, json!({ "is_paused": false })).await.ok();
        host.advance(31);
        host.until(&key, &draft.id(), "paid").await;
        assert_eq!(network.transfers().await.expect("its memory").len(), 1);
        closing.cancel();
        serving.await.expect("served").expect("in order");
    })
    .await;
}

/// What operators see of a rail is what it declares of itself.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn rails_are_shown_as_they_declare_themselves(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let stamp = "[keys.stamp]\ntitle = \"A stamp\"\nalgorithm = \"hmac-sha256\"\nuse = \"verify\"\n\n\
                 [seeds.word]\ntitle = \"A word\"\n\n[query]";
    let changes = [
        ("version = \"0.1.0\"", "version = \"7.8.9\""),
        ("countries = [\"NG\"]", "countries = [\"NG\", \"GH\"]"),
        ("title = \"NIP gateway of the sponsoring bank or of NIBSS\"", "title = \"A gateway\""),
        ("title = \"Bearer token of the gateway\"", "title = \"A token\""),
        ("title = \"KYC level of the settlement account\"", "title = \"A level\""),
        ("[query]", stamp),
    ];
    let folder = crate::repacked::folder("nip", &changes);
    let change = |config: &mut railhead::config::Config| {
        config.modules.dir = Some(folder.path().to_owned());
    };
    with_host_configured(engine, change, async |host| {
        let rails = host.admin(Method::GET, "rails", json!({})).await.ok();
        let mut rails = rails.json["data"].as_array().expect("rails").iter();
        let nip = rails.find(|rail| rail["name"] == "nip").expect("the rail");
        assert_eq!((&nip["version"], &nip["countries"]), (&json!("7.8.9"), &json!(["NG", "GH"])));
        assert_eq!(nip["seeds"], json!([{ "name": "word", "title": "A word" }]));
        let table = &nip["tables"][0];
        assert_eq!((&table["name"], &table["is_there"]), (&json!("banks"), &json!(true)));
        assert!(table["dated"].is_string() && table["source"].is_string(), "{table}");
        for (kind, name, title) in [
            ("endpoint", "endpoint.gateway", "A gateway"),
            ("secret", "gateway_token", "A token"),
            ("setting", "originator_kyc_level", "A level"),
            ("key", "stamp", "A stamp"),
        ] {
            let mut all = nip["configuration"].as_array().expect("a list").iter();
            let shown = all.find(|it| it["kind"] == kind && it["name"] == name).expect(name);
            assert_eq!(shown["title"], title);
        }
    })
    .await;
}
