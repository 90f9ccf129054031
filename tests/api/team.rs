//! A merchant's team: invitations, sessions, passwords and one-time codes.

use http::Method;
use railhead::config::{ApprovalAct, Config};
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{
    Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, with_host, with_host_configured,
};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// A member who has signed in.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub id: String,
    pub email: String,
    pub token: String,
}

pub(crate) async fn ask(
    host: &TestHost,
    who: &str,
    (method, path): (Method, &str),
    body: Value,
) -> Answer {
    let body = Some(body).filter(|body| !body.is_null());
    host.send(method, &format!("/admin/v1/{path}"), who, &[], body).await
}

pub(crate) async fn post(host: &TestHost, who: &str, path: &str, body: Value) -> Answer {
    ask(host, who, (Method::POST, path), body).await
}

/// Invites somebody as an operator; answers the member and the invitation.
pub(crate) async fn invite(host: &TestHost, merchant: &str, (name, role): (&str, &str)) -> Answer {
    let body = json!({ "email": format!("{name}@acme.example"), "name": name, "role": role });
    post(host, OPERATOR_TOKEN, &format!("merchants/{merchant}/members"), body).await
}

pub(crate) async fn accept(host: &TestHost, invited: &Answer, password: &str) -> Answer {
    let token = &invited.json["invitation"]["token"];
    let body = json!({ "token": token, "password": password });
    post(host, "", "invitations/accept", body).await
}

pub(crate) async fn sign_in(host: &TestHost, email: &str, password: &str) -> Answer {
    post(host, "", "sessions", json!({ "email": email, "password": password })).await
}

fn token(session: &Answer) -> String {
    session.json["token"].as_str().unwrap_or_else(|| panic!("{}", session.text)).to_owned()
}

/// Somebody with this role, who has signed in. `name` is theirs alone.
pub(crate) async fn join(host: &TestHost, merchant: &str, (name, role): (&str, &str)) -> Person {
    let invited = invite(host, merchant, (name, role)).await.ok();
    accept(host, &invited, PASSWORD).await.ok();
    let email = format!("{name}@acme.example");
    let session = sign_in(host, &email, PASSWORD).await.ok();
    Person { id: invited.id(), email, token: token(&session) }
}

async fn me(host: &TestHost, token: &str) -> Answer {
    ask(host, token, (Method::GET, "sessions/current"), Value::Null).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_invited_sets_a_password_and_signs_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let invited = invite(host, &merchant, ("Ada", "finance")).await.ok();
        assert_eq!((invited.status, invited.status_word()), (201, "invited"));
        assert_eq!(invited.json["email"], "ada@acme.example");
        assert_eq!(invited.json["invitation"]["expires_at"], "2026-11-24T09:00:00.000Z");
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["actor"]),
            (&json!("member.invite"), &json!("operator"))
        );
        let email = "ada@acme.example";
        // Before the password is set, nothing opens.
        let refused = sign_in(host, email, PASSWORD).await;
        assert_eq!(refused.refused(), (401, "invalid_credentials"));
        for weak in ["", "short", "aaaaaaaaaaaaaaaa", "ada@acme.example!"] {
            let refused = accept(host, &invited, weak).await;
            assert_eq!((refused.status, refused.field()), (400, "password"), "{weak}");
        }
        let active = accept(host, &invited, PASSWORD).await.ok();
        assert_eq!((active.status, active.status_word()), (200, "active"));
        assert_eq!(host.last_line().await["actor"], json!(invited.id()));
        // An invitation is taken up once, and a made-up one never.
        assert_eq!(accept(host, &invited, PASSWORD).await.refused(), (404, "not_found"));
        let body = json!({ "token": "rhi_guess", "password": PASSWORD });
        assert_eq!(post(host, "", "invitations/accept", body).await.status, 404);
        for (email, password) in
            [(email, "correct horse batterx"), ("bola@acme.example", PASSWORD), (email, "x")]
        {
            let refused = sign_in(host, email, password).await;
            assert_eq!(refused.refused(), (401, "invalid_credentials"), "{email}");
        }
        // However the address is written.
        let session = sign_in(host, " Ada@Acme.Example ", PASSWORD).await.ok();
        assert_eq!(session.status, 201);
        assert!(token(&session).starts_with("rhs_"));
        assert_eq!(session.json["expires_at"], "2026-11-21T09:30:00.000Z");
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["actor"]),
            (&json!("session.begin"), &json!(invited.id()))
        );
        let shown = me(host, &token(&session)).await.ok();
        assert_eq!(shown.json["member"]["role"], "finance");
        assert_eq!(
            shown.json["member"]["may"],
            json!([
                "payout_create",
                "payout_approve",
                "payout_cancel",
                "customer_transaction_view",
                "beneficiary_manage"
            ])
        );
        assert_eq!((&shown.json["is_current"], &shown.json["token"]), (&json!(true), &Value::Null));
        // Nothing secret is in any answer or line but where it is shown once.
        let members = format!("merchants/{merchant}/members");
        let list = ask(host, DESK_TOKEN, (Method::GET, &members), Value::Null).await.ok();
        let log = ask(host, DESK_TOKEN, (Method::GET, "audit?limit=100"), Value::Null).await.ok();
        for text in [&list.text, &log.text, &shown.text] {
            assert!(!text.contains("argon2") && !text.contains("rhs_") && !text.contains("rhi_"));
        }
        assert_eq!(list.json["data"].as_array().map(Vec::len), Some(1));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_good_for_three_days(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let invited = invite(host, &merchant, ("ada", "owner")).await.ok();
        host.advance(3 * 86_400);
        assert_eq!(accept(host, &invited, PASSWORD).await.refused(), (404, "not_found"));
        let path = format!("members/{}/invite", invited.id());
        let again = post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok();
        accept(host, &again, PASSWORD).await.ok();
        let session = token(&sign_in(host, "ada@acme.example", PASSWORD).await.ok());
        // Whoever has lost the password is invited again: the old one and the session are gone.
        let again = post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok();
        assert_eq!(me(host, &session).await.refused(), (401, "session_expired"));
        assert_eq!(sign_in(host, "ada@acme.example", PASSWORD).await.status, 401);
        accept(host, &again, "another good password").await.ok();
        sign_in(host, "ada@acme.example", "another good password").await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_by_itself_and_with_what_its_member_may_do(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        // Used every now and then it lasts twelve hours, and no longer.
        for _ in 0..35 {
            host.advance(20 * 60);
            me(host, &ada.token).await.ok();
            // Until that is known everywhere.
            while me(host, &ada.token).await.ok().json["seen_at"] != json!(host.clock.now()) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        }
        host.advance(20 * 60 - 1);
        me(host, &ada.token).await.ok();
        host.advance(1);
        assert_eq!(me(host, &ada.token).await.refused(), (401, "session_expired"));
        // Unused, half an hour.
        let again = async || token(&sign_in(host, &ada.email, PASSWORD).await.ok());
        let session = again().await;
        host.advance(30 * 60 - 1);
        me(host, &session).await.ok();
        let session = again().await;
        host.advance(30 * 60);
        assert_eq!(me(host, &session).await.refused(), (401, "session_expired"));
        let member = format!("members/{}", ada.id);
        let change = async |body: Value| {
            ask(host, OPERATOR_TOKEN, (Method::PATCH, &member), body).await.ok()
        };
        for body in [
            json!({ "role": "admin" }),
            json!({ "permissions": ["settings_manage"] }),
            json!({ "status": "disabled" }),
        ] {
            let session = again().await;
            change(json!({ "name": format!("Ada {body}") })).await;
            me(host, &session).await.ok();
            change(body.clone()).await;
            assert_eq!(me(host, &session).await.refused(), (401, "session_expired"), "{body}");
        }
        assert_eq!(sign_in(host, &ada.email, PASSWORD).await.status, 401);
        change(json!({ "status": "active" })).await;
        let session = again().await;
        ask(host, OPERATOR_TOKEN, (Method::DELETE, &member), Value::Null).await.ok();
        assert_eq!(me(host, &session).await.refused(), (401, "session_expired"));
        assert_eq!(sign_in(host, &ada.email, PASSWORD).await.status, 401);
        let shown = ask(host, OPERATOR_TOKEN, (Method::GET, &member), Value::Null).await;
        assert_eq!(shown.refused(), (404, "not_found"));
        // The address is free again.
        join(host, &merchant, ("ada", "viewer")).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_and_ended_by_whose_they_are(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        let bola = join(host, &merchant, ("bola", "owner")).await;
        let other = sign_in(host, &ada.email, PASSWORD).await.ok();
        let list = ask(host, &ada.token, (Method::GET, "sessions"), Value::Null).await.ok();
        let listed = list.json["data"].as_array().expect("sessions");
        assert_eq!(listed.len(), 2);
        assert_eq!(listed.iter().filter(|session| session["is_current"] == true).count(), 1);
        let path = format!("sessions/{}", other.id());
        let stranger = ask(host, &bola.token, (Method::DELETE, &path), Value::Null).await;
        assert_eq!(stranger.refused(), (404, "not_found"));
        ask(host, &ada.token, (Method::DELETE, &path), Value::Null).await.ok();
        assert_eq!(me(host, &token(&other)).await.refused(), (401, "session_expired"));
        ask(host, &ada.token, (Method::DELETE, "sessions/current"), Value::Null).await.ok();
        assert_eq!(host.last_line().await["action"], "session.end");
        assert_eq!(me(host, &ada.token).await.refused(), (401, "session_expired"));
        // Operators have no sessions.
        let refused = me(host, OPERATOR_TOKEN).await;
        assert_eq!(refused.refused(), (403, "permission_denied"));
        // A suspended merchant's people do nothing.
        let path = format!("merchants/{merchant}");
        let suspended = json!({ "status": "suspended" });
        ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), suspended).await.ok();
        assert_eq!(me(host, &bola.token).await.refused(), (403, "merchant_suspended"));
        assert_eq!(sign_in(host, &ada.email, PASSWORD).await.status, 403);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_waits_longer_and_longer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        let guess = async |email: &str| sign_in(host, email, "wrong, but long enough").await;
        // Somebody who is there and somebody who is not are told the same.
        for email in [ada.email.as_str(), "nobody@acme.example"] {
            for _ in 0..5 {
                assert_eq!(guess(email).await.refused(), (401, "invalid_credentials"));
            }
            let refused = guess(email).await;
            assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
            assert_eq!(refused.headers["retry-after"], "30");
            assert_eq!(refused.json["error"]["detail"]["tier"], "log_in");
        }
        // Not even the right one counts meanwhile, and many at once are no way around.
        assert_eq!(sign_in(host, &ada.email, PASSWORD).await.status, 429);
        host.advance(30);
        let at_once = futures::future::join_all((0..8).map(|_| guess(&ada.email))).await;
        assert_eq!(at_once.iter().filter(|answer| answer.status == 401).count(), 1);
        host.advance(60);
        sign_in(host, &ada.email, PASSWORD).await.ok();
        assert_eq!(guess(&ada.email).await.status, 401);
        let told = "SELECT COUNT(*) FROM audit WHERE action = 'member.log_in_failed'";
        host.until_count(told, 3).await;
        let masked = "SELECT COUNT(*) FROM audit WHERE action = 'member.log_in_failed' \
                      AND subject_id LIKE '%ada%'";
        assert_eq!(host.count(masked).await, 0);
        // The same for whoever is signed in and guesses at their own password.
        for _ in 0..5 {
            let body = json!({ "password": "wrong, but long enough" });
            let refused = post(host, &ada.token, "sessions/current/confirm", body).await;
            assert_eq!(refused.refused(), (401, "invalid_credentials"));
        }
        let body = json!({ "password": PASSWORD });
        let refused = post(host, &ada.token, "sessions/current/confirm", body).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_by_whoever_knows_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "viewer")).await;
        let change = async |current: &str, password: &str| {
            let body = json!({ "current_password": current, "password": password });
            post(host, &ada.token, "members/current/password", body).await
        };
        let new = "quite another password";
        assert_eq!(change("not the right one", new).await.refused(), (401, "invalid_credentials"));
        assert_eq!(change(PASSWORD, "short").await.refused(), (400, "invalid_field"));
        change(PASSWORD, new).await.ok();
        assert_eq!(host.last_line().await["action"], "member.password");
        assert_eq!(me(host, &ada.token).await.refused(), (401, "session_expired"));
        assert_eq!(sign_in(host, &ada.email, PASSWORD).await.status, 401);
        sign_in(host, &ada.email, new).await.ok();
    })
    .await;
}

/// The code that an authenticator with this secret shows now.
pub(crate) fn code(host: &TestHost, secret: &str) -> String {
    let secret = totp_rs::Secret::try_from_base32(secret).expect("base 32");
    let authenticator = totp_rs::Builder::new().with_secret(secret).build().expect("a secret");
    let seconds = u64::try_from(host.clock.now().micros() / 1_000_000).expect("after 1970");
    authenticator.generate(seconds).to_string()
}

/// Sets up one-time codes; answers the secret and the codes for whoever loses theirs.
pub(crate) async fn set_up_codes(host: &TestHost, person: &Person) -> (String, Vec<String>) {
    let begun = post(host, &person.token, "members/current/otp", Value::Null).await.ok();
    let secret = begun.json["secret"].as_str().expect("a secret").to_owned();
    let uri = begun.json["uri"].as_str().expect("an address");
    assert!(uri.starts_with("otpauth://totp/Railhead:") && uri.contains(&secret), "{uri}");
    let body = json!({ "otp": code(host, &secret) });
    let set = post(host, &person.token, "members/current/otp/confirm", body).await.ok();
    let codes = set.json["recovery_codes"].as_array().expect("codes").iter();
    (secret, codes.map(|code| code.as_str().expect("a code").to_owned()).collect())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_one_time_codes_signs_in_with_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        let body = json!({ "otp": "000000" });
        let refused = post(host, &ada.token, "members/current/otp/confirm", body).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        let (secret, recovery) = set_up_codes(host, &ada).await;
        assert_eq!(host.last_line().await["action"], "member.otp_set");
        // What is kept of it is sealed, and the codes are hashed.
        let kept = "SELECT COUNT(*) FROM members WHERE otp_secret LIKE 's1.%' AND recovery LIKE";
        assert_eq!(host.count(&format!("{kept} '%{}%'", recovery[0])).await, 0);
        assert_eq!(host.count(&format!("{kept} '[\"%'")).await, 1);
        let with = async |otp: &str| {
            let body = json!({ "email": ada.email, "password": PASSWORD, "otp": otp });
            post(host, "", "sessions", body).await
        };
        let bare = sign_in(host, &ada.email, PASSWORD).await;
        assert_eq!((bare.refused(), bare.field()), ((403, "otp_required"), "otp"));
        // The code of the set-up counts no second time; the next one does, once.
        let first = code(host, &secret);
        assert_eq!(with(&first).await.refused(), (403, "invalid_otp"));
        host.advance(30);
        let second = code(host, &secret);
        assert_eq!(with("123456").await.refused(), (403, "invalid_otp"));
        let session = with(&second).await.ok();
        assert_eq!(session.json["has_otp"], true);
        assert_eq!(with(&second).await.refused(), (403, "invalid_otp"));
        // A code for whoever has lost theirs counts once, too.
        with(&recovery[0].to_uppercase()).await.ok();
        assert_eq!(with(&recovery[0]).await.refused(), (403, "invalid_otp"));
        host.advance(900);
        // It takes one to go without, and to have been there a short while ago.
        let remove = async |otp: String| {
            let body = json!({ "otp": otp });
            ask(host, &token(&session), (Method::DELETE, "members/current/otp"), body).await
        };
        let recent = remove(code(host, &secret)).await;
        assert_eq!(recent.refused(), (403, "recent_login_required"));
        let body = json!({ "otp": code(host, &secret) });
        post(host, &token(&session), "sessions/current/confirm", body).await.ok();
        assert_eq!(remove(code(host, &secret)).await.refused(), (403, "invalid_otp"));
        host.advance(30);
        remove(code(host, &secret)).await.ok();
        sign_in(host, &ada.email, PASSWORD).await.ok();
    })
    .await;
}

/// Codes are guessed at no faster than passwords.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn codes_cannot_be_guessed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let ada = join(host, &merchant, ("ada", "owner")).await;
        let (secret, _) = set_up_codes(host, &ada).await;
        host.advance(30);
        let with = async |otp: &str| {
            let body = json!({ "email": ada.email, "password": PASSWORD, "otp": otp });
            post(host, "", "sessions", body).await
        };
        for number in 0..5 {
            assert_eq!(with(&format!("00000{number}")).await.refused(), (403, "invalid_otp"));
        }
        let refused = with(&code(host, &secret)).await;
        assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        host.advance(30);
        with(&code(host, &secret)).await.ok();
        // An owner or an operator helps whoever has lost everything.
        let path = format!("members/{}/invite", ada.id);
        let body = json!({ "reset_otp": true });
        let invited = post(host, OPERATOR_TOKEN, &path, body).await.ok();
        accept(host, &invited, PASSWORD).await.ok();
        sign_in(host, &ada.email, PASSWORD).await.ok();
    })
    .await;
}

/// One who belongs to several teams says in which one they sign in.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn somebody_may_be_in_several_teams(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let (first, second) = (host.merchant.id.clone(), host.new_merchant("Other").await.id);
        let here = join(host, &first, ("ada", "owner")).await;
        let invited = invite(host, &second, ("ada", "viewer")).await.ok();
        accept(host, &invited, PASSWORD).await.ok();
        let either = sign_in(host, &here.email, PASSWORD).await;
        assert_eq!((either.refused(), either.field()), ((400, "invalid_field"), "merchant_id"));
        let named = either.json["error"]["detail"]["merchant_ids"].as_array().expect("ids");
        assert!(named.contains(&json!(first)) && named.contains(&json!(second)));
        for (merchant, role) in [(&first, "owner"), (&second, "viewer")] {
            let body = json!({
                "email": here.email, "password": PASSWORD, "merchant_id": merchant,
            });
            let session = post(host, "", "sessions", body).await.ok();
            assert_eq!(session.json["member"]["role"], role);
            assert_eq!(session.json["member"]["merchant_id"], json!(merchant));
        }
    })
    .await;
}

/// However many they are: neither invitations nor other teams stand in the way of the last one.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn somebody_may_be_in_very_many_teams(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let mut invitations = Vec::new();
        for number in 1..=20 {
            let body = json!({ "name": format!("Shop {number}"), "country": "NG" });
            let merchant = host.admin(Method::POST, "merchants", body).await.ok().id();
            invitations.push(invite(host, &merchant, ("ada", "viewer")).await.ok());
        }
        let merchant = host.merchant.id.clone();
        let last = join(host, &merchant, ("ada", "owner")).await;
        for invited in &invitations {
            accept(host, invited, PASSWORD).await.ok();
        }
        let body = json!({ "email": last.email, "password": PASSWORD, "merchant_id": merchant });
        let session = post(host, "", "sessions", body).await.ok();
        assert_eq!(session.json["member"]["id"], json!(last.id));
        let any = sign_in(host, &last.email, PASSWORD).await;
        assert_eq!((any.refused(), any.field()), ((400, "invalid_field"), "merchant_id"));
    })
    .await;
}

/// A platform's operator alone does not make himself the owner of a merchant.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn to_invite_can_take_two(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let two = |config: &mut Config| config.approvals.two_people = vec![ApprovalAct::Member];
    with_host_configured(engine, two, async |host| {
        let merchant = host.merchant.id.clone();
        let path = format!("merchants/{merchant}/members");
        let body = json!({ "email": "ada@acme.example", "name": "Ada", "role": "owner" });
        let waiting = post(host, OPERATOR_TOKEN, &path, body.clone()).await.ok();
        assert_eq!((waiting.status, &waiting.json["invitation"]), (202, &Value::Null));
        assert_eq!(post(host, OPERATOR_TOKEN, &path, body.clone()).await.status, 202);
        let invited = post(host, DESK_TOKEN, &path, body).await.ok();
        assert_eq!(invited.status, 201);
        assert_eq!(host.last_line().await["after"]["requested_by"], "operator");
        accept(host, &invited, PASSWORD).await.ok();
        let member = format!("members/{}", invited.id());
        // To take away needs nobody else; to give back, and another password, does.
        let disabled = json!({ "status": "disabled" });
        let patch = (Method::PATCH, member.as_str());
        assert_eq!(ask(host, OPERATOR_TOKEN, patch.clone(), disabled).await.ok().status, 200);
        let active = json!({ "status": "active" });
        for (token, status) in [(OPERATOR_TOKEN, 202), (DESK_TOKEN, 200)] {
            assert_eq!(ask(host, token, patch.clone(), active.clone()).await.ok().status, status);
        }
        let again = format!("{member}/invite");
        assert_eq!(post(host, OPERATOR_TOKEN, &again, Value::Null).await.ok().status, 202);
        assert_eq!(post(host, DESK_TOKEN, &again, Value::Null).await.ok().status, 200);
    })
    .await;
}

/// What somebody could do to what is stored about a team, and the check that notices it.
pub(crate) const TAMPERINGS: &[(&str, &str)] = &[
    ("UPDATE members SET role = 'owner' WHERE role = 'viewer'", "member-standing"),
    ("UPDATE members SET permissions = '[\"payout_approve\"]'", "member-standing"),
    ("UPDATE members SET status = 'active' WHERE status = 'disabled'", "member-standing"),
    ("UPDATE members SET name = 'Somebody'", "member-standing"),
    ("UPDATE members SET email = 'mallory@acme.example' WHERE role = 'viewer'", "seal"),
    ("UPDATE members SET merchant_id = '{other}' WHERE role = 'viewer'", "seal"),
    ("UPDATE members SET merchant_id = 'nobody'", "member-merchant"),
    ("UPDATE members SET created_by = 'somebody'", "member-invited"),
    ("UPDATE members SET password = 'correct horse battery' WHERE role = 'owner'", "member-clear"),
    ("UPDATE members SET otp_secret = 'GEZDGNBVGY3TQOJQ'", "member-clear"),
    (
        "UPDATE members SET invitation = 'rhi_token', invitation_until = 1 WHERE role = 'viewer'",
        "member-clear",
    ),
    ("DELETE FROM audit WHERE action = 'member.invite'", "member-invited"),
    ("DELETE FROM audit WHERE action = 'member.accept'", "member-standing"),
    ("UPDATE sessions SET hash = 'rhs_' || id", "session-begun"),
    ("UPDATE sessions SET member_id = 'mem_0'", "session-begun"),
    (
        "INSERT INTO sessions SELECT 'ses_0', REPLACE(hash, 'a', 'b'), member_id, generation, \
         address, created_at, seen_at, has_otp, confirmed_at, ended_at FROM sessions",
        "session-begun",
    ),
    // Approvals: by whoever made it, by fewer than it takes, by somebody else than is told.
    (
        "UPDATE audit SET actor = (SELECT maker FROM payouts WHERE id = '{draft}') \
         WHERE action = 'payout.approve'",
        "payout-approval",
    ),
    (
        "UPDATE audit SET after = REPLACE(after, '\"needed\":1', '\"needed\":2') \
         WHERE action = 'payout.approve'",
        "payout-approval",
    ),
    ("UPDATE audit SET actor = 'desk' WHERE action = 'payout.release'", "payout-release"),
    (
        "UPDATE audit SET after = REPLACE(after, '\"needed\":1', '\"needed\":2') \
         WHERE action = 'payout.release'",
        "payout-release",
    ),
    (
        "UPDATE audit SET after = REPLACE(after, '\"approved\"', '\"x\"') \
         WHERE action = 'batch.approve'",
        "batch-approval",
    ),
];

/// A small team, and a batch that one of them approved.
pub(crate) async fn ordinary(host: &TestHost) {
    let merchant = host.merchant.id.clone();
    join(host, &merchant, ("ada", "owner")).await;
    let viewer = join(host, &merchant, ("bola", "viewer")).await;
    let gone = join(host, &merchant, ("chidi", "finance")).await;
    let path = format!("members/{}", gone.id);
    let disabled = json!({ "status": "disabled" });
    ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), disabled).await.ok();
    let path = format!("members/{}/invite", viewer.id);
    let again = post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok();
    accept(host, &again, PASSWORD).await.ok();
    let batch = crate::batches::waiting(host).await;
    post(host, OPERATOR_TOKEN, &format!("batches/{batch}/approve"), Value::Null).await.ok();
    let under_way =
        format!("SELECT COUNT(*) FROM batches WHERE id = '{batch}' AND completed_at > 0");
    host.until_count(&under_way, 1).await;
    host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
}
