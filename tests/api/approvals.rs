//! What one operator cannot do alone: approving what was paid with a key of one's own, and the
//! acts for which the policy asks for two.

use http::Method;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::live::with_bank;
use crate::packs::restart;
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, SOMEBODY_WAITS, TestHost, naira, unique, with_host,
    with_host_configured,
};

const THIRD_TOKEN: &str = "op_test_of_the_third";
const CREDIT: u64 = 100_000_000;

async fn ask(host: &TestHost, who: &str, (method, path): (Method, &str), body: Value) -> Answer {
    host.send(method, &format!("/admin/v1/{path}"), who, &[], Some(body)).await
}

async fn post(host: &TestHost, who: &str, path: &str, body: Value) -> Answer {
    ask(host, who, (Method::POST, path), body).await
}

fn two_people(config: &mut Config) {
    use ApprovalAct::{Credit, Limits, LiveRoute, Mark, Reverse};
    config.approvals.two_people = vec![Credit, Limits, LiveRoute, Mark, Reverse];
    // What test hosts begin with takes one.
    config.approvals.credit_above_minor.insert("ngn".into(), 100_000_000);
    config.admin.operators.insert("third".into(), SecretString::from(THIRD_TOKEN));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_made_the_key_does_not_approve_what_is_paid_with_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let path = format!("merchants/{}", host.merchant.id);
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "100000" } });
        host.admin(Method::PATCH, &path, threshold).await.ok();
        let body = json!({ "env": "live", "label": "own", "capabilities": ["payout_create"] });
        let own = post(host, OPERATOR_TOKEN, &format!("{path}/keys"), body).await.ok();
        let rotate = format!("keys/{}/rotate", own.id());
        let of_desk = post(host, DESK_TOKEN, &rotate, json!({})).await.ok();
        // In the sandbox one is enough.
        let body = json!({ "env": "test", "label": "own", "capabilities": ["payout_create"] });
        let sandbox = post(host, OPERATOR_TOKEN, &format!("{path}/keys"), body).await.ok();
        let secret = sandbox.json["secret"].as_str().expect("a secret").to_owned();
        let draft = host.pay_as(&secret, &unique(), naira(100_001)).await.ok();
        let approve = format!("payouts/{}/approve", draft.id());
        post(host, OPERATOR_TOKEN, &approve, json!({})).await.ok();
        for (key, maker, other) in
            [(own, OPERATOR_TOKEN, DESK_TOKEN), (of_desk, DESK_TOKEN, OPERATOR_TOKEN)]
        {
            let secret = key.json["secret"].as_str().expect("a secret").to_owned();
            let draft = host.pay_as(&secret, &unique(), naira(100_001)).await.ok();
            assert_eq!(draft.status_word(), "draft");
            let approve = format!("payouts/{}/approve", draft.id());
            let refused = post(host, maker, &approve, json!({})).await;
            assert_eq!(refused.refused(), (403, "self_approval_denied"));
            assert_eq!(refused.json["error"]["type"], "self_approval_denied");
            let line = host.last_line().await;
            assert_eq!(line["action"], "payout.approve_denied");
            assert_eq!(line["subject_id"], draft.id());
            let show = format!("/v1/payouts/{}", draft.id());
            let live = &host.merchant.live_key;
            assert_eq!(host.get_as(live, &show).await.status_word(), "draft");
            let approved = post(host, other, &approve, json!({})).await.ok();
            assert_eq!(approved.status_word(), "queued");
            host.until(live, &draft.id(), "paid").await;
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_large_credit_takes_two_who_ask_for_the_same(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let wallet = host.merchant.live_wallet.clone();
        let start = host.balance(&wallet).await;
        let path = format!("wallets/{wallet}/credit");
        let move_by = async |who: &str, path: &str, amount: u64| {
            let body = json!({ "amount_minor": amount.to_string(), "reason": format!("by {who}") });
            post(host, who, path, body).await.ok()
        };
        assert_eq!(move_by(OPERATOR_TOKEN, &path, CREDIT).await.status, 200);
        let waiting = move_by(OPERATOR_TOKEN, &path, CREDIT + 1).await;
        assert_eq!((waiting.status, &waiting.json["object"]), (202, &json!("approval_request")));
        assert_eq!(waiting.status_word(), "awaiting_approval");
        assert_eq!(waiting.json["requested_by"], "operator");
        let shown = |name: &str| waiting.json["wanted"][name].clone();
        assert_eq!(
            [shown("merchant_id"), shown("env"), shown("currency")],
            [json!(host.merchant.id), json!("live"), json!("NGN")]
        );
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["actor"]),
            (&json!("approval.request"), &json!("operator"))
        );
        assert_eq!(line["after"]["wanted"]["amount_minor"], (CREDIT + 1).to_string());
        let list = ask(host, DESK_TOKEN, (Method::GET, "approval_requests"), json!({})).await.ok();
        assert_eq!(list.json["data"], json!([waiting.json]));
        // Not the same person, and not another amount, which takes the place of the first.
        assert_eq!(move_by(OPERATOR_TOKEN, &path, CREDIT + 1).await.status, 202);
        assert_eq!(move_by(DESK_TOKEN, &path, CREDIT + 2).await.status, 202);
        assert_eq!(move_by(THIRD_TOKEN, &path, CREDIT + 1).await.status, 202);
        assert_eq!(host.balance(&wallet).await, start + 100_000_000);
        assert_eq!(move_by(DESK_TOKEN, &path, CREDIT + 1).await.status, 200);
        assert_eq!(host.balance(&wallet).await, start + 200_000_001);
        let line = host.last_line().await;
        assert_eq!((&line["action"], &line["actor"]), (&json!("wallet.credit"), &json!("desk")));
        assert_eq!(line["after"]["requested_by"], "third");
        // It was used up, and a day later nobody remembers.
        assert_eq!(move_by(DESK_TOKEN, &path, CREDIT + 1).await.status, 202);
        host.advance(24 * 3_600);
        assert_eq!(move_by(OPERATOR_TOKEN, &path, CREDIT + 1).await.status, 202);
        host.advance(24 * 3_600 - 1);
        assert_eq!(move_by(DESK_TOKEN, &path, CREDIT + 1).await.status, 200);
        let debit = format!("wallets/{wallet}/debit");
        assert_eq!(move_by(DESK_TOKEN, &debit, CREDIT + 1).await.status, 202);
        assert_eq!(move_by(OPERATOR_TOKEN, &debit, CREDIT + 1).await.status, 200);
    })
    .await;
}

/// A request is not left behind where one person is enough by now.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_carried_out_is_asked_for_no_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let path = format!("merchants/{}", host.merchant.id);
        let limits = |daily: &str| json!({ "limits": { "NGN": { "daily_minor": daily } } });
        let change = async |host: &TestHost, daily: &str| {
            let body = limits(daily);
            ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), body).await.ok().status
        };
        assert_eq!(change(host, "100000").await, 202);
        restart(host, |_| {}).await;
        host.advance(1);
        // What somebody else has asked for stays.
        assert_eq!(change(host, "200000").await, 200);
        assert_eq!(host.count("SELECT COUNT(*) FROM approval_requests").await, 1);
        assert_eq!(change(host, "100000").await, 200);
        assert_eq!(host.count("SELECT COUNT(*) FROM approval_requests").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_agree_at_once_one_carries_it_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let wallet = host.merchant.live_wallet.clone();
        let start = host.balance(&wallet).await;
        let path = format!("wallets/{wallet}/credit");
        let body = json!({ "amount_minor": "200000000", "reason": "x" });
        assert_eq!(post(host, OPERATOR_TOKEN, &path, body.clone()).await.status, 202);
        let agree = |who| post(host, who, &path, body.clone());
        let asked = [DESK_TOKEN, THIRD_TOKEN].into_iter().cycle().take(8).map(agree);
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 202 | 409)));
        // Those who were late asked anew; two of those may have agreed with each other.
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        let credited = host.balance(&wallet).await - start;
        assert_eq!(credited, 200_000_000 * i64::try_from(done).expect("few"));
        let sql = "SELECT COUNT(*) FROM audit WHERE action = 'approval.request'";
        assert!(host.count(sql).await >= i64::try_from(done).expect("few"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_under_the_same_key_is_told_what_was_done(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let path = format!("/admin/v1/wallets/{}/credit", host.merchant.live_wallet);
        let send = async |who: &str| {
            let body = json!({ "amount_minor": "200000000", "reason": "x" });
            let headers = [("idempotency-key", "once")];
            host.send(Method::POST, &path, who, &headers, Some(body)).await.ok()
        };
        assert_eq!(send(OPERATOR_TOKEN).await.status, 202);
        let done = send(DESK_TOKEN).await;
        let again = send(DESK_TOKEN).await;
        assert_eq!((done.status, again.status, &again.text), (200, 200, &done.text));
        assert_eq!(again.headers["idempotent-replayed"], "true");
        // Whoever asked first hears that as well.
        assert_eq!(send(OPERATOR_TOKEN).await.text, done.text);
        // A call that takes one is carried out once, whoever repeats it.
        let before = host.balance(&host.merchant.live_wallet).await;
        let small = async |who: &str| {
            let body = json!({ "amount_minor": "777", "reason": "deposit 4711" });
            let headers = [("idempotency-key", "deposit-4711")];
            host.send(Method::POST, &path, who, &headers, Some(body)).await.ok()
        };
        let (first, handed_over) = (small(OPERATOR_TOKEN).await, small(DESK_TOKEN).await);
        assert_eq!(first.text, handed_over.text);
        assert_eq!(host.balance(&host.merchant.live_wallet).await, before + 777);
        let under_way = host.pay("processing", naira(100_000)).await.ok().id();
        let path = format!("/admin/v1/payouts/{under_way}/mark_paid");
        let mark = async |who: &str, key: &str| {
            let headers = [("idempotency-key", key)];
            let letter = json!({ "evidence": "a letter" });
            host.send(Method::POST, &path, who, &headers, Some(letter)).await
        };
        let first = mark(OPERATOR_TOKEN, "m1").await;
        assert_eq!((first.status, mark(DESK_TOKEN, "m2").await.status), (202, 200));
        // However late: it asks for nothing more.
        let again = mark(OPERATOR_TOKEN, "m1").await;
        assert_eq!((again.status, &again.text), (202, &first.text));
        assert_eq!(host.count("SELECT COUNT(*) FROM approval_requests").await, 0);
    })
    .await;
}

/// On two hosts: what is not there yet cannot be locked.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_are_the_first_to_ask_at_once_neither_word_is_lost() {
    with_host_configured(Engine::Postgres, two_people, async |host| {
        let path = format!("wallets/{}/credit", host.merchant.live_wallet);
        let ask = async |who: &str| {
            let body = json!({ "amount_minor": "200000000", "reason": "x" });
            post(host, who, &path, body).await
        };
        assert_eq!(ask(OPERATOR_TOKEN).await.ok().status, 202);
        host.run(&[
            "CREATE TABLE asked AS SELECT * FROM approval_requests".to_owned(),
            "DELETE FROM approval_requests".to_owned(),
        ])
        .await;
        let database = host.connections().await;
        let mut elsewhere = database.begin().await.expect("a transaction");
        let sql = "INSERT INTO approval_requests SELECT * FROM asked";
        sqlx::query(sql).execute(&mut *elsewhere).await.expect("asked");
        let commit = async {
            host.until_count(SOMEBODY_WAITS, 1).await;
            elsewhere.commit().await.expect("committed");
        };
        let (second, ()) = tokio::join!(ask(DESK_TOKEN), commit);
        assert_eq!(second.refused(), (409, "state_conflict"));
        host.run(&["DROP TABLE asked".to_owned()]).await;
        assert_eq!(ask(DESK_TOKEN).await.ok().status, 200, "two have asked");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn limits_live_routes_and_marks_take_two(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let merchant = format!("merchants/{}", host.merchant.id);
        let routes = ask(host, DESK_TOKEN, (Method::GET, "routes"), json!({})).await.ok().json;
        let of = |env: &str| {
            let routes = routes["data"].as_array().expect("routes");
            let found = routes
                .iter()
                .find(|route| route["env"] == env && route["currency"] == "NGN")
                .expect("a route");
            format!("routes/{}", found["id"].as_str().expect("an id"))
        };
        let marked = host.pay("processing", naira(100_000)).await.ok().id();
        let failed = host.pay("processing", naira(100_000)).await.ok().id();
        let reversed = host.pay("paid", naira(100_000)).await.ok().id();
        let letter = json!({ "evidence": "a letter" });
        let limits = json!({ "limits": { "NGN": { "daily_minor": "900000000" } } });
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "900000" } });
        let gateway = json!({ "settings": { "endpoint.gateway": "https://bank.example/a" } });
        let new = json!({ "name": "second", "env": "live", "currency": "NGN", "rail": "nip",
            "settings": { "endpoint.gateway": "https://bank.example/b" } });
        let pause = |is_paused: bool| json!({ "is_paused": is_paused });
        let (patch, post) = (Method::PATCH, Method::POST);
        let (live, test) = (of("live"), of("test"));
        for (method, path, body, takes_two) in [
            (&patch, merchant.clone(), limits, true),
            (&patch, merchant.clone(), threshold, true),
            // In another timezone it is another day, with limits of its own.
            (&patch, merchant.clone(), json!({ "timezone": "Africa/Accra" }), true),
            (&patch, merchant, json!({ "sender_info_required": true }), false),
            (&patch, live.clone(), gateway, true),
            (&patch, live.clone(), pause(true), false),
            (&patch, live.clone(), pause(false), true),
            (&patch, live.clone(), json!({ "position": 7 }), true),
            (&patch, live, json!({ "merchants": [&host.merchant.id] }), true),
            (&post, "routes".to_owned(), new, true),
            (&patch, test.clone(), pause(true), false),
            (&patch, test, pause(false), false),
            (&post, format!("payouts/{marked}/mark_paid"), letter.clone(), true),
            (&post, format!("payouts/{failed}/mark_failed"), letter, true),
            (&post, format!("payouts/{reversed}/reverse"), json!({ "reason": "sent twice" }), true),
        ] {
            let by = async |who: &str| {
                ask(host, who, (method.clone(), &path), body.clone()).await.ok().status
            };
            if takes_two {
                assert_eq!((by(DESK_TOKEN).await, by(DESK_TOKEN).await), (202, 202), "{path}");
                assert_eq!(host.last_line().await["action"], "approval.request", "{path}");
            }
            assert!(matches!(by(OPERATOR_TOKEN).await, 200 | 201), "{path} {body}");
            let first = if takes_two { json!("desk") } else { Value::Null };
            assert_eq!(host.last_line().await["after"]["requested_by"], first, "{path}");
        }
        for (id, status) in
            [(&marked, "paid_manual"), (&failed, "failed_manual"), (&reversed, "reversed")]
        {
            assert_eq!(host.get(&format!("/v1/payouts/{id}")).await.status_word(), status);
        }
        let routes = ask(host, DESK_TOKEN, (Method::GET, "routes"), json!({})).await.ok().json;
        let routes = routes["data"].as_array().expect("routes");
        let second = routes.iter().find(|route| route["name"] == "second").expect("the route");
        let second = format!("routes/{}", second["id"].as_str().expect("an id"));
        ask(host, DESK_TOKEN, (Method::PATCH, &second), pause(true)).await.ok();
        host.advance(11);
        for (who, status) in [(DESK_TOKEN, 202), (OPERATOR_TOKEN, 200)] {
            let answer = ask(host, who, (Method::DELETE, &second), json!({})).await.ok();
            assert_eq!(answer.status, status);
        }
        let path = format!("payouts/{marked}/reverse");
        let silent = ask(host, DESK_TOKEN, (post.clone(), &path), json!({})).await;
        assert_eq!((silent.refused(), silent.field()), ((400, "missing_field"), "reason"));
        // What is not possible is refused at once.
        let path = format!("payouts/{reversed}/reverse");
        let refused = ask(host, DESK_TOKEN, (post, &path), json!({ "reason": "again" })).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        assert_eq!(host.count("SELECT COUNT(*) FROM approval_requests").await, 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_takes_two_and_the_second_sees_its_secret(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let keys = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Key];
    with_host_configured(engine, keys, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let body = json!({ "env": "live", "label": "x", "capabilities": ["payout_create"] });
        let waiting = post(host, OPERATOR_TOKEN, &path, body.clone()).await;
        assert_eq!((waiting.status, &waiting.json["secret"]), (202, &Value::Null));
        let wider =
            json!({ "env": "live", "label": "x", "capabilities": ["payout_create", "bulk"] });
        assert_eq!(post(host, DESK_TOKEN, &path, wider).await.status, 202);
        assert_eq!(post(host, OPERATOR_TOKEN, &path, body.clone()).await.status, 202);
        let made = post(host, DESK_TOKEN, &path, body).await.ok();
        assert_eq!(made.status, 201);
        let path = format!("keys/{}", made.id());
        let shown = ask(host, DESK_TOKEN, (Method::GET, &path), json!({})).await.ok();
        assert_eq!(shown.json["created_by"], "desk");
        let rotate = format!("keys/{}/rotate", made.id());
        assert_eq!(post(host, DESK_TOKEN, &rotate, json!({})).await.status, 202);
        assert_eq!(post(host, OPERATOR_TOKEN, &rotate, json!({})).await.status, 201);
    })
    .await;
}

/// What the rules hold is not let go by one person where it would have taken two without them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_no_way_around_the_second_person(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}", host.merchant.id);
        let threshold = json!({ "dual_control_threshold_minor": { "NGN": "100000" } });
        host.admin(Method::PATCH, &path, threshold).await.ok();
        // The test host's keys are the desk's.
        for (amount, status) in [(100_001, 403), (100_000, 200)] {
            let held = host.pay("fraud_hold", naira(amount)).await.ok();
            assert_eq!(held.status_word(), "awaiting_admin_review");
            let release = format!("payouts/{}/release", held.id());
            let released = post(host, DESK_TOKEN, &release, json!({})).await;
            assert_eq!(released.status, status, "{amount}: {}", released.text);
            if status == 403 {
                assert_eq!(released.refused().1, "self_approval_denied");
                post(host, OPERATOR_TOKEN, &release, json!({})).await.ok();
            }
        }
    })
    .await;
}

/// The first one's client may repeat what it asked for, however late: it asks for nothing more.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_the_first_request_asks_for_nothing_new(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let path = format!("/admin/v1/wallets/{}/credit", host.merchant.test_wallet);
        let body = json!({ "amount_minor": (CREDIT + 1).to_string(), "reason": "said first" });
        let send = async |who: &str, key: &str| {
            let headers = [("idempotency-key", key)];
            host.send(Method::POST, &path, who, &headers, Some(body.clone())).await
        };
        let first = send(OPERATOR_TOKEN, "first").await;
        assert_eq!(first.status, 202);
        send(DESK_TOKEN, "second").await.ok();
        let again = send(OPERATOR_TOKEN, "first").await;
        assert_eq!((again.status, &again.text), (202, &first.text));
        let waiting = ask(host, DESK_TOKEN, (Method::GET, "approval_requests"), json!({})).await;
        assert_eq!(waiting.ok().json["data"], json!([]));
        // Why the first one wanted it is kept.
        let log = ask(host, DESK_TOKEN, (Method::GET, "audit?limit=20"), json!({})).await.ok();
        let log = log.json["data"].as_array().cloned().expect("lines");
        let asked = log.iter().find(|line| line["action"] == "approval.request").expect("a line");
        assert_eq!(asked["after"]["said"]["reason"], "said first");
    })
    .await;
}

/// A misspelt field would mean "everybody" where somebody meant one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn operators_are_told_of_fields_that_there_are_not(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = format!("merchants/{}", host.merchant.id);
        let wallet = format!("wallets/{}", host.merchant.test_wallet);
        for (path, body) in [
            (
                format!("{merchant}/keys"),
                json!({ "env": "live", "label": "x", "ip_allow_list": [] }),
            ),
            ("merchants".to_owned(), json!({ "name": "B", "country": "NG", "timezon": "UTC" })),
            (
                format!("{wallet}/credit"),
                json!({ "amount_minor": "5", "reason": "x", "sourc": "y" }),
            ),
            (format!("{wallet}/freeze"), json!({ "why": "x" })),
            ("rule-packs/guard/versions/1/activate".to_owned(), json!({ "merchantId": "x" })),
            ("rule-packs/guard/versions/1/retire".to_owned(), json!({ "merchant": "x" })),
        ] {
            let refused = post(host, OPERATOR_TOKEN, &path, body).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{path}: {}", refused.text);
        }
    })
    .await;
}

/// A page goes on after its last request, even where that one is gone by then.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_more_people_comes_in_pages(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, two_people, async |host| {
        let mut asked = Vec::new();
        for wallet in [&host.merchant.test_wallet, &host.merchant.live_wallet] {
            let body = json!({ "amount_minor": (CREDIT + 1).to_string(), "reason": "a deposit" });
            let path = format!("wallets/{wallet}/credit");
            asked.push(post(host, OPERATOR_TOKEN, &path, body).await.ok().id());
        }
        let list = async |query: &str| {
            let path = format!("approval_requests?{query}");
            ask(host, DESK_TOKEN, (Method::GET, &path), json!({})).await
        };
        let ids = |page: &Answer| page.json["data"][0]["id"].as_str().map(str::to_owned);
        let first = list("limit=1").await.ok();
        assert_eq!((ids(&first).as_ref(), &first.json["has_more"]), (asked.get(1), &json!(true)));
        let follows = async || {
            let second = list(&format!("limit=1&starting_after={}", asked[1])).await.ok();
            assert_eq!(
                (ids(&second).as_ref(), &second.json["has_more"]),
                (asked.first(), &json!(false))
            );
        };
        follows().await;
        // It follows just as well once what it follows has gone.
        let why = json!({ "reason": "no" });
        post(host, DESK_TOKEN, &format!("approval_requests/{}/refuse", asked[1]), why).await.ok();
        follows().await;
        assert_eq!(list("limit=0").await.refused(), (400, "invalid_limit"));
        assert_eq!(list("starting_after=me").await.refused(), (400, "invalid_field"));
    })
    .await;
}
