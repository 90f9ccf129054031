//! What each role may do, over every operation of `/admin/v1`, and what no member may do about
//! another.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::batches;
use crate::team::{PASSWORD, Person, ask, join, post, set_up_codes, sign_in};
use crate::test_host::{Answer, DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost, naira, with_host};

const ROLES: [&str; 5] = ["owner", "admin", "developer", "finance", "viewer"];
/// An id that has the shape of one and was never given out.
const NOBODY: &str = "c000000000000000000000000";

/// Who may call an operation, besides operators; nobody, if it is not named here.
fn let_in(operation: &str) -> &'static [&'static str] {
    match operation {
        "list_approval_requests"
        | "retrieve_merchant"
        | "list_members"
        | "retrieve_member"
        | "list_batches"
        | "inspect_batch"
        | "inspect_batch_items"
        | "list_waiting_payouts"
        | "inspect_payout"
        | "inspect_payout_timeline"
        | "list_sessions"
        | "retrieve_session"
        | "sign_out"
        | "confirm_session"
        | "change_password"
        | "begin_otp"
        | "confirm_otp"
        | "remove_otp" => &ROLES,
        "approve_payout" | "decline_payout" | "cancel_any_payout" | "refuse_approval_request" => {
            &["owner", "admin", "finance"]
        }
        "approve_batch" | "reject_batch" => &["owner", "admin"],
        "create_key" | "list_keys" | "retrieve_key" | "rotate_key" | "revoke_key" => {
            &["owner", "admin", "developer"]
        }
        "create_member" | "update_member" | "remove_member" | "invite_member_again" => {
            &["owner", "admin"]
        }
        "update_merchant" => &["owner"],
        _ => &[],
    }
}

struct Operation {
    method: Method,
    path: String,
    id: String,
}

/// Every operation of the document, so that a new one is closed to members until it is named here.
fn operations() -> Vec<Operation> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/openapi.json");
    let document = std::fs::read(file).expect("host/openapi.json");
    let document: Value = serde_json::from_slice(&document).expect("a document");
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if let Some(path) = path.strip_prefix("/admin/v1/") {
                operations.push(Operation {
                    method: Method::from_bytes(method.to_uppercase().as_bytes()).expect("one"),
                    path: path.to_owned(),
                    id: operation["operationId"].as_str().expect("an id").to_owned(),
                });
            }
        }
    }
    assert!(operations.len() > 80, "{}", operations.len());
    operations
}

/// What the calls are about: nothing that anybody is sorry for.
struct Things {
    merchant: String,
    member: String,
    request: String,
}

/// The operation's path, about something that is the merchant's.
fn about(operation: &Operation, things: &Things) -> String {
    let id = match operation.id.as_str() {
        id if id.ends_with("merchant") || operation.path.starts_with("merchants/") => {
            &things.merchant
        }
        "refuse_approval_request" => &things.request,
        _ if operation.path.starts_with("members/{") => &things.member,
        _ => NOBODY,
    };
    let path = operation.path.replace("{id}", id);
    path.replace("{name}", "guard").replace("{version}", "1").replace("{payout_id}", NOBODY)
}

async fn call(host: &TestHost, who: &str, operation: &Operation, things: &Things) -> Answer {
    let body = match (operation.method.as_str(), operation.id.as_str()) {
        ("GET" | "DELETE", id) if id != "remove_otp" => Value::Null,
        // A change that is none.
        (_, "update_member") => json!({ "role": "viewer", "status": "disabled" }),
        _ => json!({}),
    };
    ask(host, who, (operation.method.clone(), &about(operation, things)), body).await
}

/// A draft of the merchant's that one of two has approved.
async fn half_approved(host: &TestHost) -> String {
    let path = format!("merchants/{}", host.merchant.id);
    let tiers = json!({ "payout_approval_tiers": { "NGN": [
        { "above_minor": "100000", "approvers": 2 } ] } });
    ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), tiers).await.ok();
    let draft = host.pay("paid", naira(100_001)).await.ok();
    assert_eq!(draft.status_word(), "draft");
    let path = format!("payouts/{}/approve", draft.id());
    let waiting = post(host, OPERATOR_TOKEN, &path, Value::Null).await.ok();
    assert_eq!(waiting.status, 202);
    waiting.id()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_open_to_the_roles_that_are_named_here(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let mut people = Vec::new();
        for role in ROLES {
            people.push((role, join(host, &merchant, (role, role)).await));
        }
        let request = half_approved(host).await;
        let other = join(host, &merchant, ("other", "viewer")).await;
        let things = Things { merchant, member: other.id, request };
        for operation in operations() {
            let id = &operation.id;
            for (role, person) in &people {
                let is_let_in = let_in(id).contains(role);
                // Those who are let in change things: they come last, and only what they may see.
                let goes_on = is_let_in && (operation.method != Method::GET);
                if goes_on {
                    continue;
                }
                let answer = call(host, &person.token, &operation, &things).await;
                match (is_let_in, id.as_str()) {
                    (true, _) => {
                        assert!(matches!(answer.status, 200 | 404), "{role} {id}: {}", answer.text);
                    }
                    (false, "sign_in" | "accept_invitation") => {
                        assert_eq!(answer.refused(), (400, "missing_field"), "{role} {id}");
                    }
                    (false, _) => {
                        assert_eq!(answer.refused(), (403, "permission_denied"), "{role} {id}");
                    }
                }
            }
            let nobody = call(host, "", &operation, &things).await;
            let merchants_key = call(host, &host.merchant.live_key, &operation, &things).await;
            if !matches!(id.as_str(), "sign_in" | "accept_invitation") {
                assert_eq!(nobody.refused(), (401, "missing_api_key"), "{id}");
                assert_eq!(merchants_key.refused(), (401, "invalid_api_key"), "{id}");
            }
        }
        // What they may change, they are let at: refused for what is missing, if at all.
        for operation in operations().iter().filter(|it| it.method != Method::GET) {
            for role in let_in(&operation.id) {
                if matches!(operation.id.as_str(), "sign_out" | "refuse_approval_request") {
                    continue;
                }
                let person = &people.iter().find(|(known, _)| known == role).expect("one").1;
                let answer = call(host, &person.token, operation, &things).await;
                let code = answer.json["error"]["code"].as_str().unwrap_or_default();
                assert!(
                    !matches!(code, "permission_denied" | "recent_login_required"),
                    "{role} {}: {}",
                    operation.id,
                    answer.text
                );
            }
        }
        let denied = "SELECT COUNT(*) FROM audit WHERE action = 'member.denied'";
        assert!(host.count(denied).await > 0, "nobody was told on");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn another_merchants_people_see_nothing_of_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let request = half_approved(host).await;
        let batch = batches::waiting(host).await;
        let draft = host.pay("paid", naira(100_001)).await.ok().id();
        let key = json!({ "env": "test", "label": "x" });
        let path = format!("merchants/{}/keys", host.merchant.id);
        let key = post(host, OPERATOR_TOKEN, &path, key).await.ok().id();
        let ours = join(host, &host.merchant.id.clone(), ("ada", "owner")).await;
        let other = host.new_merchant("Other").await.id;
        let stranger = join(host, &other, ("bola", "owner")).await;
        let (get, send, patch) = (Method::GET, Method::POST, Method::PATCH);
        let merchant = &host.merchant.id;
        let new_member = json!({ "email": "x@acme.example", "name": "X", "role": "viewer" });
        let why = json!({ "reason": "a test" });
        for (method, path, id, body) in [
            (&get, "merchants/{}", merchant, Value::Null),
            (&patch, "merchants/{}", merchant, json!({ "terms": { "fx_payouts": true } })),
            (&get, "merchants/{}/members", merchant, Value::Null),
            (&send, "merchants/{}/members", merchant, new_member),
            (&get, "merchants/{}/keys", merchant, Value::Null),
            (&send, "merchants/{}/keys", merchant, json!({ "env": "test", "label": "x" })),
            (&get, "keys/{}", &key, Value::Null),
            (&send, "keys/{}/rotate", &key, Value::Null),
            (&send, "keys/{}/revoke", &key, Value::Null),
            (&get, "members/{}", &ours.id, Value::Null),
            (&patch, "members/{}", &ours.id, json!({ "role": "viewer" })),
            (&Method::DELETE, "members/{}", &ours.id, Value::Null),
            (&send, "members/{}/invite", &ours.id, Value::Null),
            (&get, "payouts/{}", &draft, Value::Null),
            (&send, "payouts/{}/approve", &draft, Value::Null),
            (&send, "payouts/{}/decline", &draft, why.clone()),
            (&get, "batches/{}", &batch, Value::Null),
            (&get, "batches/{}/items", &batch, Value::Null),
            (&send, "batches/{}/approve", &batch, Value::Null),
            (&send, "batches/{}/reject", &batch, why.clone()),
            (&send, "approval_requests/{}/refuse", &request, why),
        ] {
            let nobody =
                if id.starts_with("mem_") { "mem_000000000000000000000000" } else { NOBODY };
            let call = async |id: &str| {
                let path = path.replace("{}", id);
                ask(host, &stranger.token, (method.clone(), &path), body.clone()).await
            };
            let (theirs, nobodys) = (call(id).await, call(nobody).await);
            assert_eq!(theirs.status, 404, "{method} {path}: {}", theirs.text);
            assert_eq!(theirs.json, nobodys.json, "{method} {path}");
        }
        for list in [
            "payouts",
            &format!("payouts?merchant_id={merchant}"),
            "batches",
            &format!("batches?merchant_id={merchant}"),
            "approval_requests",
        ] {
            let shown = ask(host, &stranger.token, (get.clone(), list), Value::Null).await.ok();
            assert_eq!(shown.json["data"], json!([]), "{list}");
            let shown = ask(host, &ours.token, (get.clone(), list), Value::Null).await.ok();
            assert_ne!(shown.json["data"], json!([]), "{list}");
        }
        let shown = ask(host, &ours.token, (get, "members/current"), Value::Null).await.ok();
        assert_eq!(shown.id(), ours.id);
    })
    .await;
}

async fn set(host: &TestHost, who: &Person, other: &Person, body: Value) -> Answer {
    ask(host, &who.token, (Method::PATCH, &format!("members/{}", other.id)), body).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_more_than_they_have(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let owner = join(host, &merchant, ("ada", "owner")).await;
        let admin = join(host, &merchant, ("bola", "admin")).await;
        let viewer = join(host, &merchant, ("chidi", "viewer")).await;
        let invite = async |who: &Person, name: &str, role: &str, more: Value| {
            let body = json!({
                "email": format!("{name}@acme.example"), "name": name, "role": role,
                "permissions": more,
            });
            post(host, &who.token, &format!("merchants/{merchant}/members"), body).await
        };
        let denied = (403, "permission_denied");
        // An admin makes admins, but no owners, and hands out nothing of an owner's.
        assert_eq!(invite(&admin, "d", "owner", json!([])).await.refused(), denied);
        let more = json!(["settings_manage"]);
        assert_eq!(invite(&admin, "d", "viewer", more.clone()).await.refused(), denied);
        invite(&admin, "d", "admin", json!(["payout_create"])).await.ok();
        invite(&owner, "e", "viewer", more.clone()).await.ok();
        assert_eq!(set(host, &admin, &viewer, json!({ "role": "owner" })).await.refused(), denied);
        let body = json!({ "permissions": ["payout_bulk_upload"] });
        assert_eq!(set(host, &admin, &viewer, body).await.refused(), denied);
        // Nor do they touch an owner, or whoever an owner has given more.
        for body in [
            json!({ "role": "viewer" }),
            json!({ "status": "disabled" }),
            json!({ "name": "Whoever" }),
        ] {
            assert_eq!(set(host, &admin, &owner, body).await.refused(), denied);
        }
        set(host, &owner, &viewer, json!({ "permissions": more })).await.ok();
        let disabled = json!({ "status": "disabled" });
        assert_eq!(set(host, &admin, &viewer, disabled.clone()).await.refused(), denied);
        let path = format!("members/{}/invite", owner.id);
        assert_eq!(post(host, &admin.token, &path, Value::Null).await.refused(), denied);
        // Nobody changes what they may do themselves, but their name they do.
        for person in [&owner, &admin, &viewer] {
            let refused = set(host, person, person, json!({ "role": "finance" })).await;
            assert_eq!(
                refused.refused().1,
                if person.id == viewer.id { "session_expired" } else { "permission_denied" }
            );
        }
        let renamed = set(host, &admin, &admin, json!({ "name": "Bola B." })).await.ok();
        assert_eq!(renamed.json["name"], "Bola B.");
        ask(host, &admin.token, (Method::GET, "members/current"), Value::Null).await.ok();
        // The last owner stays one, unless the operator says otherwise.
        let second = join(host, &merchant, ("dayo", "owner")).await;
        set(host, &second, &owner, json!({ "role": "admin" })).await.ok();
        let owner = sign_in(host, &owner.email, PASSWORD).await.ok();
        let demoted =
            Person { token: owner.json["token"].as_str().expect("one").into(), ..admin.clone() };
        assert_eq!(set(host, &demoted, &second, disabled.clone()).await.refused(), denied);
        let path = format!("members/{}", second.id);
        ask(host, OPERATOR_TOKEN, (Method::PATCH, &path), disabled).await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_has_three_owners_and_one_of_each_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let owner = join(host, &merchant, ("ada", "owner")).await;
        let path = format!("merchants/{merchant}/members");
        let invite = async |who: &str, name: String, role: &str| {
            let email = format!("{name}@acme.example");
            let body = json!({ "email": email, "name": "N", "role": role });
            post(host, who, &path, body).await
        };
        // Many at once: those who did not see the others are told to look again.
        let asked = (0..8).map(|number| invite(&owner.token, format!("o{number}"), "owner"));
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 409)));
        let owners = "SELECT COUNT(*) FROM members WHERE role = 'owner'";
        while host.count(owners).await < 3 {
            let number = host.count("SELECT COUNT(*) FROM members").await;
            invite(&owner.token, format!("p{number}"), "owner").await.ok();
        }
        let full = invite(OPERATOR_TOKEN, "fourth".into(), "owner").await;
        assert_eq!((full.refused(), full.field()), ((409, "state_conflict"), "role"));
        let viewer = join(host, &merchant, ("viewer", "viewer")).await;
        let full = set(host, &owner, &viewer, json!({ "role": "owner" })).await;
        assert_eq!(full.refused(), (409, "state_conflict"));
        assert_eq!(host.count(owners).await, 3);
        let taken = invite(&owner.token, "viewer".into(), "admin").await;
        assert_eq!((taken.refused(), taken.field()), ((409, "state_conflict"), "email"));
        let bad = json!({ "email": "nobody", "name": "N", "role": "viewer" });
        let refused = post(host, &owner.token, &path, bad).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "email"));
        let bad = json!({ "email": "x@acme.example", "name": "N", "role": "king" });
        assert_eq!(post(host, &owner.token, &path, bad).await.refused(), (400, "invalid_field"));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_team_can_do_no_more_than_whoever_makes_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let admin = join(host, &merchant, ("ada", "admin")).await;
        let developer = join(host, &merchant, ("bola", "developer")).await;
        let path = format!("merchants/{merchant}/keys");
        let make = async |who: &Person, env: &str, capabilities: Value, permissions: Value| {
            let body = json!({
                "env": env, "label": "x", "capabilities": capabilities,
                "permissions": permissions, "ip_allowlist": ["127.0.0.1"],
            });
            post(host, &who.token, &path, body).await
        };
        let bare = json!({ "env": "test", "label": "x" });
        let refused = post(host, &admin.token, &path, bare).await;
        assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), "ip_allowlist"));
        let missing = |refused: &Answer| {
            assert_eq!(refused.refused(), (403, "permission_denied"));
            refused.json["error"]["detail"]["missing"].clone()
        };
        let pay = json!(["payout_create"]);
        let refused = make(&developer, "live", pay.clone(), json!([])).await;
        assert_eq!(missing(&refused), json!(["payout_create"]));
        let refused = make(&admin, "live", json!(["bulk"]), json!(["payout_bulk_upload"])).await;
        assert_eq!(missing(&refused), json!(["payout_bulk_upload"]));
        // In the sandbox, where no money moves, whoever builds may try everything.
        make(&developer, "test", json!(["payout_create", "bulk"]), json!([])).await.ok();
        make(&developer, "live", json!(["collections_create"]), json!(["webhook_manage"]))
            .await
            .ok();
        let made = make(&admin, "live", pay, json!(["payout_cancel"])).await.ok();
        assert_eq!(made.json["created_by"], json!(admin.id));
        // Nor does replacing one make more of it.
        let rotate = format!("keys/{}/rotate", made.id());
        let refused = post(host, &developer.token, &rotate, Value::Null).await;
        assert_eq!(missing(&refused), json!(["payout_create", "payout_cancel"]));
        post(host, &admin.token, &rotate, Value::Null).await.ok();
        let odd = make(&admin, "test", json!([]), json!(["key_manage"])).await;
        assert_eq!((odd.refused(), odd.field()), ((400, "invalid_field"), "permissions[0]"));
        // A quarter of an hour later they say once more who they are.
        host.advance(15 * 60);
        let refused = make(&admin, "test", json!([]), json!([])).await;
        assert_eq!(refused.refused(), (403, "recent_login_required"));
        let body = json!({ "password": PASSWORD });
        post(host, &admin.token, "sessions/current/confirm", body).await.ok();
        make(&admin, "test", json!([]), json!([])).await.ok();
        // The key outlives what its maker may do.
        let key = made.json["secret"].as_str().expect("a secret").to_owned();
        let member = format!("members/{}", admin.id);
        ask(host, DESK_TOKEN, (Method::DELETE, &member), Value::Null).await.ok();
        host.get_as(&key, "/v1/wallets").await.ok();
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_accepts_terms_and_says_how_many_it_takes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let owner = join(host, &merchant, ("ada", "owner")).await;
        let path = format!("merchants/{merchant}");
        let set = async |body: Value| ask(host, &owner.token, (Method::PATCH, &path), body).await;
        let tiers = json!([{ "above_minor": "5000000", "approvers": 2 }]);
        set(json!({
            "terms": { "fx_payouts": true },
            "dual_control_threshold_minor": { "NGN": "100000" },
            "payout_approval_tiers": { "NGN": tiers },
            "approval_otp": true,
        }))
        .await
        .ok();
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["actor"]),
            (&json!("merchant.update"), &json!(owner.id))
        );
        for body in [
            json!({ "limits": { "NGN": { "daily_minor": "1" } } }),
            json!({ "features": { "fx_payouts": true } }),
            json!({ "status": "closed" }),
        ] {
            assert_eq!(set(body).await.refused(), (403, "permission_denied"));
        }
        for (tiers, field) in [
            (json!([{ "above_minor": "1", "approvers": 6 }]), "payout_approval_tiers.NGN"),
            (json!([{ "above_minor": "1", "approvers": 0 }]), "payout_approval_tiers.NGN"),
            (json!([["1", 2]]), "payout_approval_tiers.NGN"),
            (
                json!([{ "above_minor": 1, "approvers": 2 }]),
                "payout_approval_tiers.NGN[0].above_minor",
            ),
        ] {
            let refused = set(json!({ "payout_approval_tiers": { "NGN": tiers } })).await;
            assert_eq!((refused.refused(), refused.field()), ((400, "invalid_field"), field));
        }
        host.advance(16 * 60);
        let refused = set(json!({ "approval_otp": false })).await;
        assert_eq!(refused.refused(), (403, "recent_login_required"));
        let (_, codes) = {
            let body = json!({ "password": PASSWORD });
            post(host, &owner.token, "sessions/current/confirm", body).await.ok();
            set_up_codes(host, &owner).await
        };
        host.advance(16 * 60);
        let body = json!({ "otp": codes[0] });
        post(host, &owner.token, "sessions/current/confirm", body).await.ok();
        set(json!({ "approval_otp": false })).await.ok();
    })
    .await;
}

/// Nor is it written down that somebody did.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn who_may_manage_nobody_changes_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let owner = join(host, &merchant, ("eve", "owner")).await;
        let ada = join(host, &merchant, ("ada", "viewer")).await;
        for body in [json!({}), json!({ "name": "Somebody" })] {
            let path = format!("members/{}", owner.id);
            let refused = ask(host, &ada.token, (Method::PATCH, &path), body.clone()).await;
            assert_eq!(refused.refused(), (403, "permission_denied"), "{body}");
        }
        // What changes nothing is not written down either.
        let path = format!("members/{}", ada.id);
        ask(host, &ada.token, (Method::PATCH, &path), json!({})).await.ok();
        let changes = "SELECT COUNT(*) FROM audit WHERE action = 'member.update'";
        assert_eq!(host.count(changes).await, 0);
    })
    .await;
}
