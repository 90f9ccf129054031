//! What whoever is in one team can try against those who are in another, or above them.

use http::Method;
use railhead::config::{ApprovalAct, Config, limits};
use rstest::rstest;
use serde_json::{Value, json};

use crate::mail_server::MailServer;
use crate::notifications::mailing;
use crate::team::{PASSWORD, accept, ask, invite, join, post, set_up_codes, sign_in};
use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, with_host, with_host_configured,
};

const WRONG: &str = "wrong, but long enough";

async fn sign_in_to(host: &TestHost, merchant: &str, (email, password): (&str, &str)) -> Answer {
    let body = json!({ "email": email, "password": password, "merchant_id": merchant });
    post(host, "", "sessions", body).await
}

/// Somebody has made himself a member under another one's address in a team of his own: his right
/// password says nothing of hers.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_right_password_clears_the_failures_of_its_member_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (hers, his) = (host.merchant.id.clone(), host.new_merchant("Other").await.id);
        let ada = join(host, &hers, ("ada", "owner")).await;
        let invited = invite(host, &his, ("ada", "viewer")).await.ok();
        let own = "the password of mallory";
        accept(host, &invited, own).await.ok();
        for _ in 0..5 {
            assert_eq!(sign_in(host, &ada.email, WRONG).await.status, 401);
            sign_in_to(host, &his, (&ada.email, own)).await.ok();
        }
        let refused = sign_in_to(host, &hers, (&ada.email, WRONG)).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        // Without saying where, hers is left out, and his is there.
        let session = sign_in(host, &ada.email, own).await.ok();
        assert_eq!(session.json["member"]["merchant_id"], json!(his));
        host.advance(900);
        sign_in_to(host, &hers, (&ada.email, PASSWORD)).await.ok();
    })
    .await;
}

/// As many made-up addresses as anybody likes are told to wait; a member is not, from wherever.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn strangers_by_the_thousand_keep_no_member_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let ada = join(host, &host.merchant.id.clone(), ("ada", "owner")).await;
        let (strangers, now) = (&host.app().team.strangers, host.clock.now());
        // Each is counted under a name of its own until there are too many, and then with others.
        for number in 0..3 * limits::LOG_IN_HOLDERS_MAX {
            let _ = strangers.take(&[format!("log-in/{number}@nowhere.example")], now);
        }
        let stranger = sign_in(host, "one.more@nowhere.example", WRONG).await;
        assert_eq!(stranger.refused(), (429, "rate_limit_exceeded"));
        assert_eq!(sign_in(host, &ada.email, WRONG).await.refused(), (401, "invalid_credentials"));
        sign_in(host, &ada.email, PASSWORD).await.ok();
    })
    .await;
}

/// A session is no way around what strangers may try.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_signed_in_guesses_on_the_budget_of_their_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let few = |config: &mut Config| config.limits.anonymous_per_minute = 5;
    with_host_configured(engine, few, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "viewer")).await;
        for token in [ada.token.as_str(), OPERATOR_TOKEN, &ada.token] {
            let body = json!({ "email": "bola@acme.example", "password": WRONG });
            assert_eq!(post(host, token, "sessions", body).await.status, 401);
        }
        let body = json!({ "email": "cyd@acme.example", "password": WRONG });
        let refused = post(host, &ada.token, "sessions", body).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        // What they do themselves is on a budget of their own.
        let own = ask(host, &ada.token, (Method::GET, "sessions/current"), Value::Null).await;
        assert_eq!(own.ok().json["member"]["id"], json!(ada.id));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_and_confirmations_are_in_the_audit_log(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        set_up_codes(host, &ada).await;
        let body = json!({ "email": ada.email, "password": PASSWORD, "otp": "000000" });
        assert_eq!(post(host, "", "sessions", body).await.refused(), (403, "invalid_otp"));
        let body = json!({ "password": WRONG });
        let refused = post(host, &ada.token, "sessions/current/confirm", body).await;
        assert_eq!(refused.refused(), (401, "invalid_credentials"));
        for action in ["member.otp_failed", "member.confirm_failed"] {
            let told = format!(
                "SELECT COUNT(*) FROM audit WHERE action = '{action}' AND subject_id = '{}'",
                ada.id
            );
            host.until_count(&told, 1).await;
        }
    })
    .await;
}

/// An invitation makes somebody be whoever was invited: it is no way around what limits a team.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn to_invite_again_brings_nobody_back_and_takes_no_codes_away(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let owners = [
            join(host, &merchant, ("ada", "owner")).await,
            join(host, &merchant, ("bola", "owner")).await,
            join(host, &merchant, ("cyd", "owner")).await,
        ];
        let member = format!("members/{}", owners[0].id);
        let disabled = json!({ "status": "disabled" });
        ask(host, OPERATOR_TOKEN, (Method::PATCH, &member), disabled).await.ok();
        invite(host, &merchant, ("dan", "owner")).await.ok();
        let again = post(host, OPERATOR_TOKEN, &format!("{member}/invite"), json!({})).await;
        assert_eq!(again.refused(), (409, "state_conflict"));
        assert!(again.text.contains("make them active first"), "{}", again.text);
        let admin = join(host, &merchant, ("eve", "admin")).await;
        let finance = join(host, &merchant, ("fay", "finance")).await;
        set_up_codes(host, &finance).await;
        let path = format!("members/{}/invite", finance.id);
        let taken = post(host, &admin.token, &path, json!({ "reset_otp": true })).await;
        assert_eq!(taken.refused(), (403, "permission_denied"));
        post(host, &owners[1].token, &path, json!({ "reset_otp": true })).await.ok();
    })
    .await;
}

/// Whoever has set no password is nobody who may sign in, whatever is done to them meanwhile.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_invited_is_so_again_after_being_disabled(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let invited = invite(host, &merchant, ("ada", "owner")).await.ok();
        let member = format!("members/{}", invited.id());
        let set = async |status: &str| {
            let body = json!({ "status": status });
            ask(host, OPERATOR_TOKEN, (Method::PATCH, &member), body).await
        };
        assert_eq!(set("active").await.refused(), (409, "state_conflict"));
        assert_eq!(set("disabled").await.ok().status_word(), "disabled");
        assert_eq!(accept(host, &invited, PASSWORD).await.refused(), (404, "not_found"));
        assert_eq!(set("active").await.ok().status_word(), "invited");
        assert_eq!(host.last_line().await["after"]["status"], "invited");
        assert_eq!(sign_in(host, "ada@acme.example", PASSWORD).await.status, 401);
        assert_eq!(accept(host, &invited, PASSWORD).await.ok().status_word(), "active");
        sign_in(host, "ada@acme.example", PASSWORD).await.ok();
        // With a password they are as before, too.
        assert_eq!(set("disabled").await.ok().status_word(), "disabled");
        assert_eq!(set("active").await.ok().status_word(), "active");
        sign_in(host, "ada@acme.example", PASSWORD).await.ok();
    })
    .await;
}

/// It is given back what it takes two to give, though no password is.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn to_enable_an_invitation_takes_as_many_as_to_invite(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Member];
    with_host_configured(engine, two, async |host| {
        let path = format!("merchants/{}/members", host.merchant.id);
        let body = json!({ "email": "ada@acme.example", "name": "Ada", "role": "owner" });
        assert_eq!(post(host, OPERATOR_TOKEN, &path, body.clone()).await.ok().status, 202);
        let invited = post(host, DESK_TOKEN, &path, body).await.ok();
        let member = format!("members/{}", invited.id());
        let set = async |who: &str, status: &str| {
            ask(host, who, (Method::PATCH, &member), json!({ "status": status })).await.ok()
        };
        assert_eq!(set(OPERATOR_TOKEN, "disabled").await.status, 200);
        assert_eq!(set(OPERATOR_TOKEN, "active").await.status, 202);
        assert_eq!(set(DESK_TOKEN, "active").await.status_word(), "invited");
    })
    .await;
}

/// Where the invited get their token by mail, whoever invites them cannot be them.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn members_are_not_shown_what_was_mailed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = MailServer::open().await;
    let configured = |config: &mut Config| mailing(config, &server);
    with_host_configured(engine, configured, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "admin")).await;
        let body = json!({ "email": "bola@acme.example", "name": "Bola", "role": "finance" });
        let path = format!("merchants/{merchant}/members");
        let invited = post(host, &ada.token, &path, body).await.ok();
        assert_eq!((invited.status, &invited.json["invitation"]["token"]), (201, &Value::Null));
        let letters = server.letters("Your invitation to Acme", 2).await;
        let letter = letters.iter().find(|it| it.to == "bola@acme.example").expect("hers");
        let token = letter.text.lines().find(|line| line.starts_with("rhi_")).expect("a token");
        let body = json!({ "token": token, "password": PASSWORD });
        post(host, "", "invitations/accept", body).await.ok();
    })
    .await;
}

/// Members count for what is about their own merchant, so that whoever could make one alone would be
/// two people.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_a_key_takes_two_so_does_a_member(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    for act in [ApprovalAct::Key, ApprovalAct::Limits] {
        let two = |config: &mut Config| config.approvals.two_people = vec![act];
        with_host_configured(engine, two, async |host| {
            let invited = invite(host, &host.merchant.id.clone(), ("ada", "owner")).await.ok();
            assert_eq!((invited.status, &invited.json["invitation"]), (202, &Value::Null));
        })
        .await;
    }
}
