//! What people are told by e-mail: invitations, and receipts.

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::live::until;
use crate::mail_server::MailServer;
use crate::team::{PASSWORD, post, sign_in};
use crate::test_host::{
    Answer, Engine, OPERATOR_TOKEN, TestHost, beginning, naira, unique, with, with_host_configured,
};

/// A host whose letters go to a server.
pub(crate) fn mailing(config: &mut Config, server: &MailServer) {
    config.email.smtp_url = Some(server.url.clone().into());
    config.email.from = Some("Acme Pay <pay@acme.example>".to_owned());
}

/// What operators see of what people were told.
pub(crate) async fn told(host: &TestHost, filters: &str) -> Vec<Value> {
    let path = format!("/admin/v1/notifications{filters}");
    let list = host.send(Method::GET, &path, OPERATOR_TOKEN, &[], None).await.ok();
    list.json["data"].as_array().expect("a list").clone()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_mailed_and_kept_nowhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = MailServer::open().await;
    let configured = |config: &mut Config| mailing(config, &server);
    with_host_configured(engine, configured, async |host| {
        let path = format!("merchants/{}/members", host.merchant.id);
        let body = json!({ "email": "ada@acme.example", "name": "Ada\u{e9}", "role": "finance" });
        let invited = post(host, OPERATOR_TOKEN, &path, body).await.ok();
        let shown = invited.json["invitation"]["token"].as_str().expect("a token");
        let letter = server.letters("Your invitation to Acme", 1).await.remove(0);
        assert_eq!(
            (letter.from.as_str(), letter.to.as_str()),
            ("pay@acme.example", "ada@acme.example")
        );
        // It says nothing in the words of whoever invites.
        assert!(letter.text.starts_with("Hello,"), "{}", letter.text);
        assert!(!letter.text.contains("Ada"), "{}", letter.text);
        assert!(letter.text.contains(shown), "{}", letter.text);
        host.until_count("SELECT COUNT(*) FROM notifications WHERE status = 'sent'", 1).await;
        let notification = told(host, "?status=sent").await.remove(0);
        assert_eq!(notification["subject_id"], json!(invited.id()));
        assert_eq!(
            (&notification["kind"], &notification["tries"]),
            (&json!("invitation"), &json!(1))
        );
        let id = notification["id"].as_str().expect("an id");
        assert_eq!(letter.header("message-id"), format!("<{id}@acme.example>"));
        // Neither what it said nor the token is anywhere.
        host.until_count("SELECT COUNT(*) FROM notifications WHERE content = ''", 1).await;
        let path = format!("members/{}/invite", invited.id());
        let again = post(host, OPERATOR_TOKEN, &path, json!({})).await.ok();
        let token = again.json["invitation"]["token"].clone();
        let letters = server.letters("Your invitation to Acme", 2).await;
        assert!(letters[1].text.contains(token.as_str().expect("a token")));
        let body = json!({ "token": token, "password": PASSWORD });
        post(host, "", "invitations/accept", body).await.ok();
        sign_in(host, "ada@acme.example", PASSWORD).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_waiting_to_be_said_is_sealed_and_outlives_a_refusal(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = MailServer::open().await;
    server.refuse("451 not now");
    let configured = |config: &mut Config| mailing(config, &server);
    with_host_configured(engine, configured, async |host| {
        let path = format!("merchants/{}/members", host.merchant.id);
        let body = json!({ "email": "ada@acme.example", "name": "Ada", "role": "finance" });
        let invited = post(host, OPERATOR_TOKEN, &path, body).await.ok();
        let tried = "SELECT COUNT(*) FROM notifications WHERE status = 'queued' AND tries = ";
        host.until_count(&format!("{tried}1"), 1).await;
        let notification = told(host, "").await.remove(0);
        assert_eq!(notification["status"], "queued");
        assert_eq!(notification["next_try_at"], "2026-11-21T09:01:00.000Z");
        assert!(notification["error"].as_str().expect("why").contains("not now"));
        let content: String = sqlx::query_scalar("SELECT content FROM notifications")
            .fetch_one(host.app().db.pool())
            .await
            .expect("content");
        let token = invited.json["invitation"]["token"].as_str().expect("a token");
        assert!(!content.is_empty() && !content.contains(token) && !content.contains("ada"));
        host.advance(60);
        host.until_count(&format!("{tried}2"), 1).await;
        assert_eq!(server.refused(), 2);
        server.refuse("");
        host.advance(300);
        server.letters("Your invitation", 1).await;
        // Whoever sends may be let in another time.
        let body = json!({ "email": "cyd@acme.example", "name": "Cyd", "role": "viewer" });
        server.refuse("550 5.7.1 not from you");
        post(host, OPERATOR_TOKEN, &path, body).await.ok();
        host.until_count(&format!("{tried}1"), 1).await;
        server.refuse("");
        host.advance(60);
        server.letters("Your invitation", 2).await;
        // What is no address of anybody is not tried again.
        server.refuse("550 nobody of that name");
        let body = json!({ "email": "bola@acme.example", "name": "Bola", "role": "viewer" });
        post(host, OPERATOR_TOKEN, &path, body).await.ok();
        host.until_count("SELECT COUNT(*) FROM notifications WHERE status = 'given_up'", 1).await;
        let given_up = told(host, "?status=given_up").await.remove(0);
        assert_eq!((&given_up["tries"], &given_up["next_try_at"]), (&json!(1), &Value::Null));
        assert_eq!(told(host, "?limit=1").await.len(), 1);
        let path = "/admin/v1/notifications?status=lost";
        let refused = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await;
        assert_eq!(refused.refused(), (400, "invalid_filter"));
    })
    .await;
}

async fn pay(host: &TestHost, key: &str, account: &str) -> Answer {
    let recipient =
        json!({ "account_number": account, "bank_code": "058", "email": "ngozi@mail.example" });
    let body = json!({ "recipient": recipient, "narration": "Rent of May" });
    host.pay_as(key, &unique(), with(naira(150_005), body)).await.ok()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_live_payouts_get_a_receipt_where_the_merchant_wants_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (server, clock) = (MailServer::open().await, beginning());
    let bank = Bank::open_at(clock.clone()).await;
    let change = |config: &mut Config| {
        config.simulator.url = Some(bank.url.clone());
        mailing(config, &server);
    };
    let host = TestHost::open_at(clock, engine, change).await;
    let (live, test) = (host.merchant.live_key.clone(), host.merchant.test_key.clone());
    // Off by default.
    let unwanted = pay(&host, &live, "0123456785").await.id();
    until(&host, &unwanted, "paid").await;
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, json!({ "receipts": true })).await.ok();
    assert_eq!(pay(&host, &test, "0123456785").await.status_word(), "paid");
    let failed = pay(&host, &live, "0000001022").await.id();
    until(&host, &failed, "failed").await;
    let paid = pay(&host, &live, "0123456785").await;
    until(&host, &paid.id(), "paid").await;
    let letter = server.letters("has paid you", 1).await.remove(0);
    assert_eq!(letter.header("subject"), "Acme has paid you NGN 1500.05");
    assert_eq!(letter.to, "ngozi@mail.example");
    let reference = paid.json["reference"].as_str().expect("a reference");
    for line in [
        "Acme has paid you NGN 1500.05.",
        &format!("Reference: {reference}"),
        "For: Rent of May",
        "Paid: 2026-11-21 10:00 (Africa/Lagos)",
    ] {
        assert!(letter.text.lines().any(|said| said == line), "{line} in\n{}", letter.text);
    }
    // A saved recipient is written to at the address that was saved.
    let saved = json!({ "beneficiary_id": paid.json["beneficiary_id"], "recipient": null });
    let again = host.pay_as(&live, &unique(), with(naira(100_000), saved)).await.ok();
    until(&host, &again.id(), "paid").await;
    server.letters("has paid you", 2).await;
    // What an operator marks as paid has arrived, too.
    let marked = format!("payouts/{failed}/mark_paid");
    let evidence = json!({ "reason": "by cheque", "evidence": "statement 7" });
    host.admin(Method::POST, &marked, evidence).await.ok();
    server.letters("has paid you", 3).await;
    let receipts: Vec<_> = told(&host, "").await.iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(receipts, vec![json!("receipt"); 3]);
    bank.prove().await;
    host.close().await;
}
