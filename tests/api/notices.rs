//! What a network sends by itself: believed only as far as it must be, and never twice.

use http::Method;
use railhead::simulator::{OwnMessage, State};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::bank::{Bank, Hold};
use crate::live::{TOTAL, pay, reference, until, until_asked, with_bank};
use crate::repacked;
use crate::routing::{naira_route, patch};
use crate::test_host::{Answer, Engine, OPERATOR_TOKEN, TestHost, naira, with_host_configured};

/// What the simulated banks of live routes present.
pub(crate) const RIGHT: &str = "a bank's own token";

/// Delivers a message at a host's door, for an environment and with a token.
pub(crate) async fn deliver(
    host: &TestHost,
    (env, token): (&str, &str),
    message: &OwnMessage,
) -> Answer {
    let url = format!("{}/notices/{env}/{}{}", host.base, message.rail, message.path);
    let mut request = host.client.post(url).body(message.body.clone());
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    Answer::of(request.send().await.expect("an answer")).await
}

/// A pushed status, as a network would write it.
pub(crate) fn status(reference: &str, code: &str) -> OwnMessage {
    let body = format!(
        "<TSQuerySingleResponse><SessionID>{reference}</SessionID>\
         <ResponseCode>{code}</ResponseCode></TSQuerySingleResponse>"
    );
    OwnMessage {
        rail: "nip".to_owned(),
        path: "/nip/txnstatusresponse".to_owned(),
        body: body.into_bytes(),
        ..OwnMessage::default()
    }
}

/// A payout that is paid, and the message by which the bank sends it back.
async fn returned(host: &TestHost, bank: &Bank) -> (String, OwnMessage) {
    let id = pay(host, "0123456785").await.ok().id();
    let paid = until(host, &id, "paid").await;
    bank.control(&reference(&paid), "return").await.ok();
    (id, bank.message().await)
}

async fn balance(host: &TestHost) -> i64 {
    host.balance(&host.merchant.live_wallet).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_status_makes_the_host_ask_and_believe_only_the_answer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001015").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        // The bank has not decided, whatever the message says.
        for (queries, code) in [(1, "00"), (2, "05"), (3, "25")] {
            let told = deliver(host, ("live", RIGHT), &status(&reference(&payout), code)).await;
            assert_eq!(told.ok().status, 200);
            until_asked(host, &id, queries).await;
            until(host, &id, "processing").await;
        }
        bank.control(&reference(&payout), "settle").await.ok();
        // Out of order: "failed" first, and "in progress" after the end.
        for code in ["05", "00", "09", "05"] {
            deliver(host, ("live", RIGHT), &status(&reference(&payout), code)).await.ok();
            until(host, &id, "paid").await;
        }
        assert_eq!(balance(host).await, 100_000_000 - TOTAL);
        assert_eq!(bank.transfer(&reference(&payout)).await.received, 1);
    })
    .await;
}

/// The bank speaks while its answer to the transfer itself is still on its way: the payout is
/// asked about as soon as that answer is there, and not when its turn comes.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn news_that_comes_while_the_bank_is_being_called_is_followed_up_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        bank.door.hold(Hold::Answer);
        let id = pay(host, "0000001015").await.ok().id();
        let reference = reference(&until(host, &id, "processing").await);
        bank.door.until_held().await;
        bank.control(&reference, "settle").await.ok();
        deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
        bank.door.hold(Hold::Nothing);
        until(host, &id, "paid").await;
        assert_eq!(bank.transfer(&reference).await.received, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_confirms_twice_and_out_of_order_is_paid_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001084").await.ok().id();
        until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        for _ in 0..3 {
            deliver(host, ("live", RIGHT), &bank.message().await).await.ok();
            until(host, &id, "paid").await;
        }
        let events = "SELECT COUNT(*) FROM events WHERE type = 'payout.paid'";
        assert_eq!(host.count(events).await, 1);
        assert_eq!(balance(host).await, 100_000_000 - TOTAL);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_gives_the_wallet_back_exactly_once_however_often_it_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, message) = returned(host, bank).await;
        let told = async || deliver(host, ("live", RIGHT), &message).await.status;
        let both = tokio::join!(told(), told());
        // Who comes second may be told to come again, as a network does.
        for status in [both.0, both.1] {
            assert!([200, 409].contains(&status), "{status}");
        }
        for _ in 0..2 {
            assert_eq!(told().await, 200);
        }
        until(host, &id, "reversed").await;
        assert_eq!(balance(host).await, 100_000_000);
        let events = "SELECT COUNT(*) FROM events WHERE type = 'payout.reversed'";
        assert_eq!(host.count(events).await, 1);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_may_be_told_before_the_payment_is_known(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0000001015").await.ok().id();
        let payout = until(host, &id, "processing").await;
        until_asked(host, &id, 0).await;
        for step in ["settle", "return"] {
            bank.control(&reference(&payout), step).await.ok();
        }
        deliver(host, ("live", RIGHT), &bank.message().await).await.ok();
        until(host, &id, "reversed").await;
        assert_eq!(bank.transfer(&reference(&payout)).await.state, State::Returned);
        assert_eq!(balance(host).await, 100_000_000);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_does_not_prove_itself_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, message) = returned(host, bank).await;
        let reference = reference(&until(host, &id, "paid").await);
        let changed = |from: &str, to: &str| {
            let body = message.text().replace(from, to).into_bytes();
            assert_ne!(body, message.body);
            OwnMessage { body, ..message.clone() }
        };
        let elsewhere =
            OwnMessage { path: "/nip/nameenquirysingleitem".to_owned(), ..message.clone() };
        let stranger = OwnMessage { rail: "swift".to_owned(), ..message.clone() };
        let not_xml = OwnMessage { body: "{}".into(), ..message.clone() };
        let unknown = changed(&reference[18..], "000000000000");
        let sandbox = host.app().sandbox.token.clone();
        for (env, token, message, refusal) in [
            ("live", "", &message, 401),
            ("live", "simulator", &message, 401),
            ("live", "a bank's own toke", &message, 401),
            ("live", host.merchant.live_key.as_str(), &message, 401),
            ("test", "simulator", &message, 401),
            ("test", RIGHT, &message, 401),
            ("test", sandbox.expose_secret(), &message, 200),
            ("moon", RIGHT, &message, 404),
            ("live", RIGHT, &elsewhere, 404),
            ("live", RIGHT, &stranger, 404),
            ("live", RIGHT, &unknown, 200),
            ("live", RIGHT, &changed("RVSL/", "SALARY/"), 400),
            ("live", RIGHT, &changed("</ns2:FTSingleCreditRequest>", ""), 400),
            ("live", RIGHT, &not_xml, 400),
        ] {
            let told = deliver(host, (env, token), message).await;
            assert_eq!(told.status, refusal, "{env} {token} {}: {}", message.text(), told.text);
        }
        until(host, &id, "paid").await;
        assert_eq!(balance(host).await, 100_000_000 - TOTAL);
        // The network is not to repeat for ever what nobody here can make anything of: where
        // money is concerned a person hears of it.
        let cases = host.send(Method::GET, "/admin/v1/cases", OPERATOR_TOKEN, &[], None).await.ok();
        let cases = cases.json["data"].as_array().cloned().expect("cases");
        let kinds: Vec<_> = cases.iter().map(|case| (&case["kind"], &case["env"])).collect();
        assert_eq!(kinds, [(&json!("unknown_reference"), &json!("live"))]);
        assert_eq!(deliver(host, ("live", RIGHT), &message).await.status, 200);
        until(host, &id, "reversed").await;
    })
    .await;
}

/// A test key's payouts cannot be touched through the live door, nor the other way round.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn worlds_do_not_hear_each_others_messages(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let test = host.pay("processing", naira(100_000)).await.ok();
        let message = status(&reference(&test), "00");
        let told = deliver(host, ("live", RIGHT), &message).await;
        assert_eq!(told.ok().status, 200);
        let path = format!("/v1/sandbox/payouts/{}/settle", test.id());
        let key = host.merchant.live_key.clone();
        let settled = host.send(Method::POST, &path, &key, &[], Some(json!({}))).await;
        assert_eq!(settled.refused(), (400, "sandbox_only"));
        let sandbox = host.app().sandbox.token.clone();
        let token = sandbox.expose_secret();
        assert_eq!(deliver(host, ("test", token), &message).await.ok().status, 200);
        let still = host.get(&format!("/v1/payouts/{}", test.id())).await;
        assert_eq!(still.status_word(), "processing");
    })
    .await;
}

/// The built-in rail, with a declaration that takes its notices for no more than hints.
fn hinting() -> tempfile::TempDir {
    repacked::folder("nip", &[("trust = \"outcome\"", "trust = \"hint\"")])
}

/// Who can tell only hints takes no money out of a bank by them: they are asked about.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_is_only_a_hint_is_asked_about(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (bank, folder) = (Bank::open().await, hinting());
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(bank.url.clone());
        config.modules.dir = Some(folder.path().to_owned());
    };
    with_host_configured(engine, change, async |host| {
        let (id, message) = returned(host, &bank).await;
        for asked in 1..3 {
            deliver(host, ("live", RIGHT), &message).await.ok();
            host.until_count("SELECT COUNT(*) FROM rail_calls WHERE operation = 'query'", asked)
                .await;
        }
        // The bank says what it said before: this network has no word for a return to a question.
        until(host, &id, "paid").await;
        assert_eq!(balance(host).await, 100_000_000 - TOTAL);
        let path = format!("/v1/payouts/{id}/timeline");
        let timeline = host.get_as(&host.merchant.live_key, &path).await.ok();
        assert!(timeline.text.contains("told: 100000 came back (RVSL)"), "{}", timeline.text);
    })
    .await;
}

/// A bank that says something while its route is paused is to say it again; nothing is believed
/// meanwhile, and nothing is lost.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_route_takes_no_messages(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let (id, message) = returned(host, bank).await;
        let route = naira_route(host, "live").await;
        patch(host, &route, json!({ "is_paused": true })).await.ok();
        let told = deliver(host, ("live", RIGHT), &message).await;
        assert_eq!(told.refused(), (503, "service_unavailable"));
        assert!(told.headers.contains_key("retry-after"));
        until(host, &id, "paid").await;
        patch(host, &route, json!({ "is_paused": false })).await.ok();
        deliver(host, ("live", RIGHT), &message).await.ok();
        until(host, &id, "reversed").await;
    })
    .await;
}

/// Without a token that somebody configured, nobody speaks for a bank of live payments.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn no_credential_for_live_messages_is_built_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(bank.url.clone());
        config.simulator.token = None;
    };
    with_host_configured(engine, change, async |host| {
        let (id, message) = returned(host, &bank).await;
        for token in ["simulator", RIGHT, "", "notice_token", "null"] {
            assert_eq!(deliver(host, ("live", token), &message).await.status, 401, "{token:?}");
        }
        until(host, &id, "paid").await;
        assert_eq!(balance(host).await, 100_000_000 - TOTAL);
    })
    .await;
}

/// A token that was configured as nothing is nobody's.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_token_lets_nobody_speak(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let bank = Bank::open().await;
    let change = |config: &mut railhead::config::Config| {
        config.simulator.url = Some(bank.url.clone());
        config.simulator.token = None;
        let empty = [("notice_token".to_owned(), String::new())];
        config.routes.insert("ngn_nip".to_owned(), empty.into());
        config.limits.anonymous_per_minute = 4;
    };
    with_host_configured(engine, change, async |host| {
        let (id, message) = returned(host, &bank).await;
        for token in ["", " ", "x"] {
            assert_eq!(deliver(host, ("live", token), &message).await.status, 401, "{token:?}");
        }
        // Guessing is on the budget of the address that guesses.
        assert_eq!(deliver(host, ("live", "y"), &message).await.status, 401);
        assert_eq!(deliver(host, ("live", "z"), &message).await.status, 429);
        until(host, &id, "paid").await;
    })
    .await;
}
