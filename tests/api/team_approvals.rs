//! How many people a payment takes, and who they may be: a merchant's own, and operators.

use futures::future::join_all;
use http::Method;
use railhead::config::{ApprovalAct, ApprovalTier, Config};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::batches;
use crate::live::with_bank;
use crate::team::{PASSWORD, Person, ask, code, join, post, set_up_codes};
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, naira, unique, with, with_host,
    with_host_configured,
};

/// Above it a payout is a draft.
const THRESHOLD: u64 = 100_000;

async fn set(host: &TestHost, settings: Value) {
    let path = format!("merchants/{}", host.merchant.id);
    ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), settings).await.ok();
}

async fn threshold(host: &TestHost) {
    set(host, json!({ "dual_control_threshold_minor": { "NGN": THRESHOLD.to_string() } })).await;
}

/// Payouts above the threshold take so many.
async fn takes(host: &TestHost, approvers: u32) {
    let tier = json!([{ "above_minor": THRESHOLD.to_string(), "approvers": approvers }]);
    set(host, json!({ "payout_approval_tiers": { "NGN": tier } })).await;
}

/// A key that somebody made.
async fn key_of(host: &TestHost, who: &str, env: &str) -> String {
    let body = json!({
        "env": env, "label": "x", "capabilities": ["payout_create"],
        "ip_allowlist": ["127.0.0.1"],
    });
    let path = format!("merchants/{}/keys", host.merchant.id);
    let made = post(host, who, &path, body).await.ok();
    made.json["secret"].as_str().expect("a secret").to_owned()
}

async fn draft(host: &TestHost, key: &str) -> String {
    let draft = host.pay_as(key, &unique(), naira(THRESHOLD + 1)).await.ok();
    assert_eq!(draft.status_word(), "draft");
    draft.id()
}

async fn approve(host: &TestHost, who: &str, id: &str) -> Answer {
    post(host, who, &format!("payouts/{id}/approve"), Value::Null).await
}

async fn decline(host: &TestHost, who: &str, id: &str) -> Answer {
    post(host, who, &format!("payouts/{id}/decline"), json!({ "reason": "not ours" })).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_live_draft_takes_somebody_else_unless_an_owner_made_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        threshold(host).await;
        let merchant = host.merchant.id.clone();
        let owner = join(host, &merchant, ("ada", "owner")).await;
        let admin = join(host, &merchant, ("bola", "admin")).await;
        let finance = join(host, &merchant, ("chidi", "finance")).await;
        let of_admin = key_of(host, &admin.token, "live").await;
        let mine = draft(host, &of_admin).await;
        let refused = approve(host, &admin.token, &mine).await;
        assert_eq!(refused.refused(), (403, "self_approval_denied"));
        assert_eq!(refused.json["error"]["type"], "self_approval_denied");
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["actor"]),
            (&json!("payout.approve_denied"), &json!(admin.id))
        );
        // What waits is found by those who may look.
        let waiting = ask(host, &finance.token, (Method::GET, "payouts?env=live"), Value::Null);
        let waiting = waiting.await.ok();
        let shown = &waiting.json["data"][0];
        assert_eq!((&shown["id"], &shown["approvers"]), (&json!(mine), &json!(1)));
        assert_eq!((&shown["merchant_id"], &shown["env"]), (&json!(merchant), &json!("live")));
        assert_eq!(approve(host, &finance.token, &mine).await.ok().status_word(), "queued");
        let line = host.last_line().await;
        let approved = json!({ "needed": 1, "people": [{ "by": finance.id, "role": "finance" }] });
        assert_eq!(line["after"]["approved"], approved);
        host.until(&host.merchant.live_key, &mine, "paid").await;
        let owners = draft(host, &key_of(host, &owner.token, "live").await).await;
        assert_eq!(approve(host, &owner.token, &owners).await.ok().status_word(), "queued");
        let line = host.last_line().await;
        assert_eq!(line["after"]["approved"]["people"][0]["role"], "owner");
        // To refuse takes a reason, and may be done by whoever made it.
        let other = draft(host, &of_admin).await;
        let path = format!("payouts/{other}/decline");
        let silent = post(host, &admin.token, &path, json!({})).await;
        assert_eq!((silent.refused(), silent.field()), ((400, "missing_field"), "reason"));
        assert_eq!(decline(host, &admin.token, &other).await.ok().status_word(), "cancelled");
        assert_eq!(approve(host, &owner.token, &other).await.refused(), (409, "state_conflict"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn in_the_sandbox_whoever_may_do_both_may_do_both(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        threshold(host).await;
        let merchant = host.merchant.id.clone();
        let admin = join(host, &merchant, ("ada", "admin")).await;
        let developer = join(host, &merchant, ("bola", "developer")).await;
        let member = format!("members/{}", developer.id);
        let more = json!({ "permissions": ["payout_approve"] });
        ask(host, OPERATOR_TOKEN, (Method::PATCH, &member), more).await.ok();
        let body = json!({ "email": developer.email, "password": PASSWORD });
        let session = post(host, "", "sessions", body).await.ok();
        let token = session.json["token"].as_str().expect("a token").to_owned();
        let own = draft(host, &key_of(host, &admin.token, "test").await).await;
        assert_eq!(approve(host, &admin.token, &own).await.ok().status_word(), "queued");
        let own = draft(host, &key_of(host, &token, "test").await).await;
        let refused = approve(host, &token, &own).await;
        assert_eq!(refused.refused(), (403, "self_approval_denied"));
        assert_eq!(approve(host, &admin.token, &own).await.ok().status_word(), "queued");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_large_payout_takes_as_many_as_its_tier_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        takes(host, 3).await;
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "admin")).await;
        let bola = join(host, &merchant, ("bola", "finance")).await;
        let chidi = join(host, &merchant, ("chidi", "finance")).await;
        let key = key_of(host, &ada.token, "live").await;
        let start = host.balance(&host.merchant.live_wallet).await;
        let id = draft(host, &key).await;
        let first = approve(host, &bola.token, &id).await.ok();
        assert_eq!((first.status, &first.json["object"]), (202, &json!("approval_request")));
        assert_eq!((&first.json["act"], &first.json["people"]), (&json!("payout"), &json!(3)));
        assert_eq!(first.json["wanted"]["amount_minor"], (THRESHOLD + 1).to_string());
        assert_eq!(first.json["merchant_id"], json!(merchant));
        // The same person counts once, and whoever made it not at all.
        let again = approve(host, &bola.token, &id).await.ok();
        assert_eq!(again.json["approvals"].as_array().map(Vec::len), Some(1));
        assert_eq!(approve(host, &ada.token, &id).await.refused().1, "self_approval_denied");
        let second = approve(host, OPERATOR_TOKEN, &id).await.ok();
        assert_eq!(second.status, 202);
        let by: Vec<&Value> = second.json["approvals"].as_array().expect("two").iter().collect();
        assert_eq!((&by[0]["by"], &by[1]["by"]), (&json!(bola.id), &json!("operator")));
        let listed = ask(host, &chidi.token, (Method::GET, "approval_requests"), Value::Null);
        assert_eq!(listed.await.ok().json["data"], json!([second.json]));
        assert_eq!(host.balance(&host.merchant.live_wallet).await, start);
        let done = approve(host, &chidi.token, &id).await.ok();
        assert_eq!((done.status, done.status_word()), (200, "queued"));
        let line = host.last_line().await;
        let people = json!([
            { "by": bola.id, "role": "finance" }, { "by": "operator", "role": null },
            { "by": chidi.id, "role": "finance" },
        ]);
        assert_eq!(line["after"]["approved"], json!({ "needed": 3, "people": people }));
        assert_eq!(host.count("SELECT COUNT(*) FROM approval_requests").await, 0);
        host.until(&key, &id, "paid").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whose_word_no_longer_counts_does_not_complete_the_number(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        takes(host, 2).await;
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "finance")).await;
        let bola = join(host, &merchant, ("bola", "finance")).await;
        let voted = async |who: &Person| {
            let id = draft(host, &host.merchant.test_key).await;
            assert_eq!(approve(host, &who.token, &id).await.ok().status, 202);
            id
        };
        let member = format!("members/{}", ada.id);
        let change =
            async |body: Value| ask(host, DESK_TOKEN, (Method::PATCH, &member), body).await.ok();
        // Somebody who may approve no longer.
        let id = voted(&ada).await;
        change(json!({ "role": "viewer" })).await;
        let waiting = approve(host, &bola.token, &id).await.ok();
        assert_eq!(waiting.status, 202);
        assert_eq!(waiting.json["approvals"][0]["by"], json!(bola.id));
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status_word(), "queued");
        // Somebody who has left.
        let id = voted(&bola).await;
        let path = format!("members/{}", bola.id);
        ask(host, DESK_TOKEN, (Method::DELETE, &path), Value::Null).await.ok();
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status, 202);
        assert_eq!(approve(host, OPERATOR_TOKEN, &id).await.ok().status_word(), "queued");
        // A week later nobody remembers.
        let id = draft(host, &host.merchant.test_key).await;
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status, 202);
        host.advance(7 * 86_400);
        assert_eq!(approve(host, OPERATOR_TOKEN, &id).await.ok().status, 202);
        host.advance(7 * 86_400 - 1);
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status_word(), "queued");
        // What was agreed for two is not enough once the merchant asks for three.
        let id = draft(host, &host.merchant.test_key).await;
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status, 202);
        takes(host, 3).await;
        assert_eq!(approve(host, OPERATOR_TOKEN, &id).await.ok().status, 202);
        takes(host, 2).await;
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status_word(), "queued");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_approve_at_once_each_counts_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        takes(host, 2).await;
        let merchant = host.merchant.id.clone();
        let mut tokens = vec![OPERATOR_TOKEN.to_owned(), DESK_TOKEN.to_owned()];
        for name in ["ada", "bola"] {
            tokens.push(join(host, &merchant, (name, "finance")).await.token);
        }
        for _ in 0..5 {
            let start = host.balance(&host.merchant.test_wallet).await;
            let id = draft(host, &host.merchant.test_key).await;
            let mut done = 0;
            for _ in 0..20 {
                let asked = tokens.iter().map(|token| approve(host, token, &id));
                for answer in join_all(asked).await {
                    assert!(matches!(answer.status, 200 | 202 | 409), "{}", answer.text);
                    done += usize::from(answer.status == 200);
                }
                if done > 0 {
                    break;
                }
            }
            assert_eq!(done, 1);
            host.until(&host.merchant.test_key, &id, "paid").await;
            let paid = start - host.balance(&host.merchant.test_wallet).await;
            assert_eq!(paid, i64::try_from(THRESHOLD).expect("small") + 1_076);
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_be_refused_and_taken_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Credit];
    with_host_configured(engine, two, async |host| {
        takes(host, 2).await;
        let merchant = host.merchant.id.clone();
        let finance = join(host, &merchant, ("ada", "finance")).await;
        let viewer = join(host, &merchant, ("bola", "viewer")).await;
        let credit = format!("wallets/{}/credit", host.merchant.test_wallet);
        let body = json!({ "amount_minor": "500", "reason": "x" });
        let asked = post(host, DESK_TOKEN, &credit, body.clone()).await.ok();
        let refuse = async |who: &str, id: &str, reason: Value| {
            post(host, who, &format!("approval_requests/{id}/refuse"), reason).await
        };
        let why = json!({ "reason": "who ordered that?" });
        // Of operators' requests a team knows nothing.
        assert_eq!(refuse(host_token(&finance), &asked.id(), why.clone()).await.status, 404);
        let silent = refuse(OPERATOR_TOKEN, &asked.id(), json!({})).await;
        assert_eq!((silent.refused(), silent.field()), ((400, "missing_field"), "reason"));
        refuse(OPERATOR_TOKEN, &asked.id(), why.clone()).await.ok();
        let line = host.last_line().await;
        assert_eq!(line["action"], "approval.refuse");
        assert_eq!(line["after"]["reason"], "who ordered that?");
        assert_eq!(line["before"]["asked"], json!(["desk"]));
        assert_eq!(refuse(OPERATOR_TOKEN, &asked.id(), why.clone()).await.status, 404);
        assert_eq!(post(host, OPERATOR_TOKEN, &credit, body.clone()).await.ok().status, 202);
        assert_eq!(post(host, DESK_TOKEN, &credit, body).await.ok().status, 200);
        // A vote is taken back by whoever gave it, or by whoever has a say; not by those who look.
        let id = draft(host, &host.merchant.test_key).await;
        let waiting = approve(host, &finance.token, &id).await.ok();
        let denied = refuse(host_token(&viewer), &waiting.id(), why.clone()).await;
        assert_eq!(denied.refused(), (403, "permission_denied"));
        refuse(host_token(&finance), &waiting.id(), why).await.ok();
        assert_eq!(approve(host, DESK_TOKEN, &id).await.ok().status, 202);
        // Cancelled or declined, nothing is left to approve.
        decline(host, &finance.token, &id).await.ok();
        assert_eq!(approve(host, OPERATOR_TOKEN, &id).await.refused(), (409, "state_conflict"));
    })
    .await;
}

fn host_token(person: &Person) -> &str {
    &person.token
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_can_take_a_one_time_code(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        threshold(host).await;
        set(host, json!({ "approval_otp": true })).await;
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "finance")).await;
        let live = host.merchant.live_key.clone();
        let with = async |who: &str, id: &str, otp: Value| {
            post(host, who, &format!("payouts/{id}/approve"), json!({ "otp": otp })).await
        };
        let id = draft(host, &live).await;
        // Without codes of their own they cannot.
        assert_eq!(with(&ada.token, &id, json!("123456")).await.refused(), (403, "otp_required"));
        let (secret, recovery) = set_up_codes(host, &ada).await;
        assert_eq!(approve(host, &ada.token, &id).await.refused(), (403, "otp_required"));
        assert_eq!(with(&ada.token, &id, json!("123456")).await.refused(), (403, "invalid_otp"));
        host.advance(30);
        let right = code(host, &secret);
        assert_eq!(with(&ada.token, &id, json!(right)).await.ok().status_word(), "queued");
        // One code approves one payout.
        let other = draft(host, &live).await;
        assert_eq!(with(&ada.token, &other, json!(right)).await.refused(), (403, "invalid_otp"));
        with(&ada.token, &other, json!(recovery[0])).await.ok();
        // Nobody is asked for one in the sandbox, nor is an operator.
        let sandbox = draft(host, &host.merchant.test_key).await;
        approve(host, &ada.token, &sandbox).await.ok();
        let third = draft(host, &live).await;
        approve(host, OPERATOR_TOKEN, &third).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_takes_as_many_as_its_total_or_its_largest_row(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let admin = join(host, &merchant, ("ada", "admin")).await;
        let finance = join(host, &merchant, ("bola", "finance")).await;
        let tier = json!([{ "above_minor": "2", "approvers": 2 }]);
        set(host, json!({ "batch_approval_tiers": { "NGN": tier } })).await;
        let id = batches::waiting(host).await;
        let approve =
            async |who: &str| post(host, who, &format!("batches/{id}/approve"), Value::Null).await;
        assert_eq!(approve(&finance.token).await.refused(), (403, "permission_denied"));
        let first = approve(&admin.token).await.ok();
        assert_eq!((first.status, &first.json["act"]), (202, &json!("batch")));
        assert_eq!(first.json["wanted"]["drafts"], 1);
        // Held back meanwhile, it is no longer what was approved.
        let hold = format!("batches/{id}/hold");
        post(host, OPERATOR_TOKEN, &hold, json!({ "reason": "a look" })).await.ok();
        assert_eq!(approve(&admin.token).await.refused(), (403, "permission_denied"));
        assert_eq!(approve(OPERATOR_TOKEN).await.ok().status, 202);
        // What could not be made any more does not go.
        set(host, json!({ "currencies": ["GBP"] })).await;
        assert_eq!(approve(DESK_TOKEN).await.refused(), (422, "unsupported_currency"));
        set(host, json!({ "currencies": null })).await;
        let done = approve(DESK_TOKEN).await.ok();
        assert_eq!(done.status, 200);
        let line = host.last_line().await;
        assert_eq!(line["action"], "batch.approve");
        assert_eq!(line["after"]["approved"]["needed"], 2);
        // A row that is large enough by itself.
        set(host, json!({ "batch_approval_tiers": null })).await;
        takes(host, 2).await;
        let payroll = batches::Payroll::new(host).await;
        let large = with(batches::row(3), json!({ "amount_minor": (THRESHOLD + 1).to_string() }));
        let other = payroll.make(vec![large]).await.ok().id();
        let path = format!("batches/{other}/approve");
        assert_eq!(post(host, &admin.token, &path, Value::Null).await.ok().status, 202);
        let reject = format!("batches/{other}/reject");
        post(host, &admin.token, &reject, json!({ "reason": "no" })).await.ok();
        let late = post(host, OPERATOR_TOKEN, &path, Value::Null).await;
        assert_eq!(late.refused(), (409, "state_conflict"));
    })
    .await;
}

/// Everything that waits for more people.
async fn waiting(host: &TestHost) -> Value {
    let list = ask(host, OPERATOR_TOKEN, (Method::GET, "approval_requests"), Value::Null).await;
    list.ok().json["data"].clone()
}

/// What has come to its end hides nothing that waits.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn with_a_payout_goes_what_others_were_asked_about_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        takes(host, 2).await;
        let voted = async |verb: &str, id: &str| {
            let path = format!("payouts/{id}/{verb}");
            assert_eq!(post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok().status, 202);
            assert_eq!(waiting(host).await[0]["subject_id"], json!(id));
        };
        let cancelled = draft(host, &host.merchant.test_key).await;
        voted("approve", &cancelled).await;
        let path = format!("/v1/payouts/{cancelled}/cancel");
        host.post(&path, json!({ "reason": "a mistake" })).await.ok();
        assert_eq!(waiting(host).await, json!([]));
        let declined = draft(host, &host.merchant.test_key).await;
        voted("approve", &declined).await;
        decline(host, DESK_TOKEN, &declined).await.ok();
        assert_eq!(waiting(host).await, json!([]));
        for (verb, body) in [
            ("reject", json!({ "reason": "not theirs" })),
            ("mark_failed", json!({ "evidence": "a letter" })),
        ] {
            let held = host.pay("fraud_hold", naira(THRESHOLD + 1)).await.ok();
            assert_eq!(held.status_word(), "awaiting_admin_review");
            voted("release", &held.id()).await;
            let path = format!("payouts/{}/{verb}", held.id());
            post(host, DESK_TOKEN, &path, body).await.ok();
            assert_eq!(waiting(host).await, json!([]), "{verb}");
        }
        // What waits besides is left alone.
        let one = draft(host, &host.merchant.test_key).await;
        voted("approve", &one).await;
        let other = draft(host, &host.merchant.test_key).await;
        voted("approve", &other).await;
        decline(host, DESK_TOKEN, &one).await.ok();
        assert_eq!(waiting(host).await[0]["subject_id"], json!(other));
        assert_eq!(approve(host, DESK_TOKEN, &other).await.ok().status_word(), "queued");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn with_a_batch_goes_what_others_were_asked_about_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let payroll = batches::Payroll::new(host).await;
        let tier = json!([{ "above_minor": "2", "approvers": 2 }]);
        set(host, json!({ "batch_approval_tiers": { "NGN": tier } })).await;
        for verb in ["reject", "hold"] {
            let id = batches::waiting(host).await;
            let path = format!("batches/{id}/approve");
            assert_eq!(post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok().status, 202);
            assert_eq!(waiting(host).await[0]["subject_id"], json!(id));
            payroll.decide(OPERATOR_TOKEN, verb, &id).await.ok();
            assert_eq!(waiting(host).await, json!([]), "{verb}");
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn operators_have_tiers_of_their_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let tiers = |config: &mut Config| {
        let tier = |above_minor: i64, people: u32| ApprovalTier {
            act: ApprovalAct::Credit,
            currency: "NGN".into(),
            above_minor,
            people,
        };
        config.approvals.tiers = vec![tier(200_000_000, 2), tier(500_000_000, 3)];
        config.admin.operators.insert("third".into(), SecretString::from("op_test_of_the_third"));
    };
    with_host_configured(engine, tiers, async |host| {
        let wallet = host.merchant.live_wallet.clone();
        let credit = async |who: &str, amount: u64| {
            let body = json!({ "amount_minor": amount.to_string(), "reason": who });
            post(host, who, &format!("wallets/{wallet}/credit"), body).await.ok().status
        };
        assert_eq!(credit(OPERATOR_TOKEN, 200_000_000).await, 200);
        assert_eq!(credit(OPERATOR_TOKEN, 200_000_001).await, 202);
        assert_eq!(credit(DESK_TOKEN, 200_000_001).await, 200);
        let people = [OPERATOR_TOKEN, DESK_TOKEN, DESK_TOKEN, "op_test_of_the_third"];
        for (who, status) in people.into_iter().zip([202, 202, 202, 200]) {
            assert_eq!(credit(who, 500_000_001).await, status, "{who}");
        }
        let line = host.last_line().await;
        assert_eq!(line["after"]["requested_by"], "operator");
        assert_eq!(line["after"]["also_asked"], json!(["desk"]));
    })
    .await;
}
