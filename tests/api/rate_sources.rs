//! Rates that come by themselves.

use std::collections::BTreeMap;

use http::Method;
use railhead::built_in::COMPONENTS;
use railhead::config::{Config, RateSource};
use railhead::start::{Sources, start};
use railhead::wasm::module::{custom_sections, repack};
use rstest::rstest;
use serde_json::{Value, json};

use crate::hostile::{built, packed};
use crate::network::beside;
use crate::receiver::{Manner, Receiver, authority_file};
use crate::test_host::{
    Database, Engine, OPERATOR_TOKEN, TestHost, config, with, with_host_configured,
};

/// Where the page of the European Central Bank's is.
const DAILY: &str = "/stats/eurofxref-daily.xml";

/// A provider's page of a day.
fn page(day: &str, dollars: &str, pounds: &str) -> Manner {
    let text = format!(
        r#"<Envelope><Cube><Cube time="{day}"><Cube currency="USD" rate="{dollars}"/><Cube currency="GBP" rate="{pounds}"/></Cube></Cube></Envelope>"#
    );
    Manner::Says(200, Vec::new(), text)
}

/// A source of live rates at a receiver, which is asked every second.
fn source(receiver: &Receiver, name: &str, currencies: &[&str]) -> RateSource {
    RateSource {
        source: name.to_owned(),
        url: receiver.url("/stats/"),
        headers: BTreeMap::from([("x_api_key".to_owned(), "a key of ours".into())]),
        currencies: currencies.iter().map(ToString::to_string).collect(),
        spread_bps: 100,
        valid_for_s: 3 * 24 * 3600,
        every_s: 1,
        move_max_bps: 1_000,
    }
}

/// Lets a host reach what is on this machine.
fn reach(config: &mut Config) {
    config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config.egress.extra_ca_file = Some(authority_file());
}

fn with_source(source: RateSource) -> impl FnOnce(&mut Config) {
    move |config| {
        reach(config);
        config.rate_sources.live = Some(source);
    }
}

/// How the source fares, once that is as it should be.
async fn until(host: &TestHost, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..1_000 {
        let path = "/admin/v1/rate_sources";
        let list = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await.ok().json;
        last = list["data"][0].clone();
        if is_so(&last) {
            return last;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{last:#}");
}

/// A live rate as the operator sees it.
async fn rate(host: &TestHost, from: &str, to: &str) -> Value {
    let list = host.send(Method::GET, "/admin/v1/rates", OPERATOR_TOKEN, &[], None).await.ok().json;
    let id = format!("live/-/{from}/{to}");
    let mut rates = list["data"].as_array().expect("a list").iter();
    rates.find(|rate| rate["id"] == *id).cloned().unwrap_or_default()
}

async fn set(host: &TestHost, over: Value) {
    let rate = json!({ "env": "live", "from": "USD", "to": "GBP", "rate": "0.7" });
    host.admin(Method::PUT, "rates", with(rate, over)).await.ok();
}

fn left_alone(fares: &Value, why: &str) -> bool {
    let left = fares["left_alone"].as_array().expect("a list");
    left.iter().any(|it| it["why"].as_str().expect("a text").contains(why))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn rates_are_kept_up_as_their_provider_tells_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-19", "1.25", "0.8"));
    let ecb = source(&receiver, "ecb", &["USD", "GBP", "EUR"]);
    with_host_configured(engine, with_source(ecb), async |host| {
        let fares = until(host, |fares| fares["as_of"] == "2026-11-19T13:15:00.000Z").await;
        assert_eq!((&fares["name"], &fares["failures"]), (&json!("ecb"), &json!(0)), "{fares}");
        assert_eq!(fares["left_alone"], json!([]), "{fares}");
        assert_eq!(receiver.got(DAILY)[0].header("x-api-key"), "a key of ours");
        let pounds = rate(host, "USD", "GBP").await;
        assert_eq!(
            (&pounds["rate"], &pounds["effective_rate"]),
            (&json!("0.64"), &json!("0.6336"))
        );
        assert_eq!((&pounds["source"], &pounds["refused_as"]), (&json!("ecb"), &json!(null)));
        assert_eq!(pounds["valid_until"], "2026-11-22T13:15:00.000Z", "by its own instant");
        assert_eq!(rate(host, "GBP", "USD").await["rate"], "1.5625");
        let path = "/v1/rates?from=USD&to=GBP";
        let told = host.get_as(&host.merchant.live_key, path).await.ok().json;
        assert_eq!(told["data"][0]["rate"], "0.6336", "{told}");
        assert_eq!(host.get(path).await.ok().json["data"], json!([]), "not in the sandbox");
        let lines = "SELECT COUNT(*) FROM audit WHERE action = 'rate.set' AND actor = 'host'";
        assert_eq!(host.count(lines).await, 6);

        // What is newer is set, and what is older is not.
        receiver.behave(DAILY, page("2026-11-20", "1.25", "0.81"));
        until(host, |fares| fares["as_of"] == "2026-11-20T13:15:00.000Z").await;
        assert_eq!(rate(host, "USD", "GBP").await["rate"], "0.648");
        receiver.behave(DAILY, page("2026-11-18", "1.25", "0.82"));
        until(host, |fares| fares["as_of"] == "2026-11-18T13:15:00.000Z").await;
        let lines = host.count("SELECT COUNT(*) FROM audit WHERE action = 'rate.set'").await;
        assert_eq!(lines, 12, "six pairs, twice");
        assert_eq!(rate(host, "USD", "GBP").await["rate"], "0.648");

        // A provider that says nothing new for too long is not believed for ever.
        host.advance(3 * 24 * 3600);
        assert_eq!(rate(host, "USD", "GBP").await["refused_as"], "fx_rate_stale");
        let metrics = host.send(Method::GET, "/metrics", "", &[], None).await.text;
        assert!(metrics.contains(r#"railhead_rate_source_failures{source="ecb",env="live"} 0"#));
        assert!(metrics.contains("railhead_rate_source_age_seconds"), "{metrics}");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_a_person_set_or_took_away_is_left_alone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-18", "1.25", "0.8"));
    let ecb = source(&receiver, "ecb", &["USD", "GBP"]);
    with_host_configured(engine, with_source(ecb), async |host| {
        until(host, |fares| fares["as_of"] == "2026-11-18T13:15:00.000Z").await;
        set(host, json!({ "rate": "0.7", "as_of": "2026-11-18T13:15:00Z" })).await;
        receiver.behave(DAILY, page("2026-11-19", "1.25", "0.81"));
        until(host, |fares| left_alone(fares, "it comes from `operator`")).await;
        assert_eq!(rate(host, "USD", "GBP").await["rate"], "0.7");
        assert_eq!(rate(host, "GBP", "USD").await["source"], "ecb", "its neighbour is kept up");

        // Given back, it has the source's terms, and is kept up from its next instant on.
        set(host, json!({ "source": "ecb" })).await;
        let given_back = rate(host, "USD", "GBP").await;
        assert_eq!((&given_back["rate"], &given_back["spread_bps"]), (&json!("0.7"), &json!(100)));
        assert_eq!(given_back["as_of"], "2026-11-19T13:15:00.000Z", "{given_back}");
        assert_eq!(given_back["valid_until"], "2026-11-22T13:15:00.000Z", "{given_back}");
        until(host, |fares| left_alone(fares, "would be 0.648 as of the same instant")).await;
        receiver.behave(DAILY, page("2026-11-20", "1.25", "0.815"));
        until(host, |fares| fares["left_alone"] == json!([])).await;
        assert_eq!(rate(host, "USD", "GBP").await["rate"], "0.652");

        let path = "rates?env=live&from=USD&to=GBP";
        host.admin(Method::DELETE, path, json!(null)).await.ok();
        until(host, |fares| left_alone(fares, "it was taken away")).await;
        assert_eq!(rate(host, "USD", "GBP").await["rate"], json!(null));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_leap_is_left_to_a_person_and_a_page_that_is_none_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-18", "1.25", "0.8"));
    // The euro's rates with the naira are nowhere on the page.
    let ecb = source(&receiver, "ecb", &["USD", "EUR", "NGN"]);
    with_host_configured(engine, with_source(ecb), async |host| {
        let fares = until(host, |fares| left_alone(fares, "the provider tells no such rate")).await;
        assert_eq!(fares["left_alone"].as_array().map(Vec::len), Some(4), "{fares}");
        // Neither the old one nor the new one can be trusted, in either direction.
        receiver.behave(DAILY, page("2026-11-19", "1.376", "0.8"));
        until(host, |fares| left_alone(fares, "from 1.25 to 1.376")).await;
        for (from, to) in [("EUR", "USD"), ("USD", "EUR")] {
            assert_eq!(rate(host, from, to).await["refused_as"], "fx_rate_unavailable");
        }
        until(host, |fares| left_alone(fares, "the provider says 1.376 now")).await;
        for (from, to, rate) in [("EUR", "USD", "1.376"), ("USD", "EUR", "0.726744186046")] {
            set(host, json!({ "from": from, "to": to, "rate": rate, "source": "ecb" })).await;
        }
        until(host, |fares| fares["left_alone"].as_array().is_some_and(|it| it.len() == 4)).await;
        assert_eq!(rate(host, "EUR", "USD").await["refused_as"], json!(null));

        let long = "<x/>".repeat(200_000);
        for (manner, why) in [
            (Manner::status(503), "answered 503"),
            (
                Manner::Says(401, Vec::new(), "a key of ours is wrong".into()),
                "401 Unauthorized: *** is wrong",
            ),
            (Manner::Says(302, vec![("location", "/elsewhere".into())], String::new()), "302"),
            (Manner::Says(200, Vec::new(), "under maintenance".into()), "reading the answer"),
            (Manner::Says(200, Vec::new(), long), "more than 400 KiB"),
            (Manner::Resets, ""),
            (Manner::Babbles, ""),
        ] {
            receiver.behave(DAILY, manner);
            let failures = until(host, |_| true).await["failures"].as_u64().expect("a number");
            let fares = until(host, |fares| {
                let told = fares["problem"].as_str().unwrap_or_default();
                fares["failures"].as_u64() > Some(failures) && told.contains(why)
            });
            let fares = fares.await;
            assert!(fares["problem"].as_str().expect("a text").len() < 500, "{fares}");
            assert_eq!(fares["as_of"], "2026-11-19T13:15:00.000Z", "as it was heard last");
        }
        receiver.behave(DAILY, page("2026-11-20", "1.36", "0.8"));
        let fares = until(host, |fares| fares["failures"] == 0).await;
        assert_eq!(fares["problem"], json!(null), "{fares}");
        assert_eq!(rate(host, "EUR", "USD").await["rate"], "1.36");
    })
    .await;
}

/// The second host finds done what the first one did.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_keep_up_the_same_rates() {
    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-19", "1.25", "0.8"));
    let ecb = source(&receiver, "ecb", &["USD", "GBP", "EUR"]);
    with_host_configured(Engine::Postgres, with_source(ecb.clone()), async |host| {
        let beside = beside(host, with_source(ecb)).await;
        for (day, dollars) in [("2026-11-19", "1.25"), ("2026-11-20", "1.26")] {
            receiver.behave(DAILY, page(day, dollars, "0.8"));
            for host in [&*host, &beside] {
                until(host, |fares| {
                    fares["as_of"] == format!("{day}T13:15:00.000Z") && fares["failures"] == 0
                })
                .await;
            }
        }
        let lines = host.count("SELECT COUNT(*) FROM audit WHERE action = 'rate.set'").await;
        assert_eq!(lines, 12, "six pairs, twice, by one host or the other");
        beside.close().await;
    })
    .await;
}

/// One from a folder, and one that is no good in any way.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_of_ones_own_comes_as_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, ecb) = COMPONENTS.iter().find(|(name, _)| *name == "rates/ecb").expect("built in");
    let mut sections = custom_sections(ecb).expect("packed");
    sections.declaration = sections.declaration.replace("\"ecb\"", "\"frankfurt\"");
    let own = repack(ecb, &sections).expect("a component");
    std::fs::write(folder.path().join("frankfurt.wasm"), own).expect("written");
    let declaration = sections.declaration.replace("\"frankfurt\"", "\"hostile\"");
    let hostile = packed(&built("hostile-source", ""), &declaration);
    std::fs::write(folder.path().join("hostile.wasm"), hostile).expect("written");
    let in_folder = |source: RateSource| {
        let folder = folder.path().to_owned();
        move |config: &mut Config| {
            config.modules.dir = Some(folder);
            with_source(source)(config);
        }
    };

    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-19", "1.25", "0.8"));
    let own = in_folder(source(&receiver, "frankfurt", &["USD", "GBP"]));
    with_host_configured(Engine::Sqlite, own, async |host| {
        until(host, |fares| fares["as_of"] == "2026-11-19T13:15:00.000Z").await;
        assert_eq!(rate(host, "USD", "GBP").await["source"], "frankfurt");
    })
    .await;

    let hostile = in_folder(source(&receiver, "hostile", &["USD", "NGN"]));
    with_host_configured(Engine::Sqlite, hostile, async |host| {
        for (says, why) in [
            ("a trap", "the component failed"),
            ("spin", "fuel"),
            ("fill", "the component failed"),
            ("flood", "10001 rates, more than 10000"),
            ("tomorrow", "tells none of the rates"),
            ("nonsense", "tells none of the rates"),
            ("refuse", "xxx"),
        ] {
            receiver.behave("/stats/page", Manner::Says(200, Vec::new(), says.to_owned()));
            let fares =
                until(host, |fares| fares["problem"].as_str().unwrap_or_default().contains(why));
            assert!(fares.await["problem"].as_str().expect("a text").len() < 1_000);
        }
        receiver.behave("/stats/page", Manner::Says(200, Vec::new(), "good".into()));
        until(host, |fares| fares["left_alone"] == json!([]) && fares["failures"] == 0).await;
        assert_eq!(rate(host, "USD", "NGN").await["refused_as"], "fx_rate_stale", "of 1970");
    })
    .await;

    for (code, why) in [
        ("GBP", "not below the provider's address"),
        ("CAD", "which is no path"),
        ("GHS", "which is no path"),
        ("KES", "asks for 9 pages"),
        ("EUR", "asks for 0 pages"),
    ] {
        let hostile = in_folder(source(&receiver, "hostile", &["USD", code]));
        with_host_configured(Engine::Sqlite, hostile, async |host| {
            until(host, |fares| fares["problem"].as_str().unwrap_or_default().contains(why)).await;
        })
        .await;
    }
    assert!(receiver.got("/elsewhere").is_empty());
}

/// What is configured is looked at before anything is served.
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_source_keeps_the_host_from_starting() {
    let receiver = Receiver::open().await;
    let good = || source(&receiver, "ecb", &["USD", "GBP"]);
    let currencies = |codes: &[&str]| source(&receiver, "ecb", codes);
    let headers = |name: &str, value: &str| {
        BTreeMap::from([(name.to_owned(), secrecy::SecretString::from(value))])
    };
    for (source, why) in [
        (source(&receiver, "fed", &["USD", "GBP"]), "source: fed is not loaded; there is ecb"),
        (RateSource { url: "http://example.com".into(), ..good() }, "url: must be an https"),
        (RateSource { url: "https://a:b@example.com".into(), ..good() }, "url: must be an https"),
        (RateSource { url: "https://10.0.0.1/x".into(), ..good() }, "url: 10.0.0.1 is not public"),
        (RateSource { url: "example.com".into(), ..good() }, "url: example.com is not an address"),
        (currencies(&["USD"]), "currencies: must be 2 to 30"),
        (currencies(&["USD", "USD"]), "currencies: USD is there twice"),
        (currencies(&["USD", "XYZ"]), "currencies: XYZ is no currency"),
        (RateSource { spread_bps: 10_000, ..good() }, "spread_bps: must be"),
        (RateSource { valid_for_s: 0, ..good() }, "valid_for_s: must be"),
        (RateSource { every_s: 0, ..good() }, "every_s: must be"),
        (RateSource { every_s: 60, valid_for_s: 60, ..good() }, "valid_for_s: must be more than"),
        (RateSource { move_max_bps: 0, ..good() }, "move_max_bps: must be"),
        (RateSource { headers: headers("x y", "z"), ..good() }, "headers: x y is no header"),
        (RateSource { headers: headers("x", "a\nb"), ..good() }, "headers: x is no header"),
    ] {
        let database = Database::new(Engine::Sqlite).await;
        let mut config = config(&database);
        with_source(source)(&mut config);
        let sources = Sources::system().expect("randomness");
        let refused = start(config, sources).await.err().expect("refused").to_string();
        assert!(refused.contains(&format!("rate_sources.live.{why}")), "{refused}");
    }
}

/// A page that is always new, and says the same, fills no log.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_has_not_changed_is_written_when_half_of_its_time_is_over() {
    let receiver = Receiver::open().await;
    receiver.behave(DAILY, page("2026-11-18", "1.25", "0.8"));
    let ecb = source(&receiver, "ecb", &["USD", "GBP"]);
    with_host_configured(Engine::Sqlite, with_source(ecb), async |host| {
        let lines = "SELECT COUNT(*) FROM audit WHERE action = 'rate.set'";
        // The first one is older than half of its three days already, the second one is not.
        for (hours, day, written) in [(0, 18, 2), (0, 20, 4), (6, 21, 4)] {
            host.advance(hours * 3600);
            receiver.behave(DAILY, page(&format!("2026-11-{day}"), "1.25", "0.8"));
            until(host, |fares| fares["as_of"] == format!("2026-11-{day}T13:15:00.000Z")).await;
            assert_eq!(host.count(lines).await, written, "{day}");
        }
        host.advance(12 * 3600);
        for _ in 0..1_000 {
            if host.count(lines).await == 6 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(host.count(lines).await, 6);
        assert_eq!(rate(host, "USD", "GBP").await["as_of"], "2026-11-21T13:15:00.000Z");
    })
    .await;
}
