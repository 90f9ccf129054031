//! `railhead team` and `railhead admin member`, as a merchant's people give them: every command of
//! docs/teams.md, in its order.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use http::Method;
use serde_json::{Value, json};

use crate::program::PROGRAM;
use crate::team::{PASSWORD, code};
use crate::test_host::{Engine, OPERATOR_TOKEN, TestHost, naira, with_host};

/// A terminal of somebody's, as far as commands are concerned.
pub(crate) struct Desk {
    pub url: String,
    pub token: String,
}

impl Desk {
    /// What a command prints, or why it refuses. What is typed in goes to whoever reads it.
    fn run(&self, arguments: &[&str], typed: &str) -> Result<String, String> {
        let output = self.output(arguments, typed);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    fn output(&self, arguments: &[&str], typed: &str) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args(["--url", &self.url]);
        command.env_remove("DATABASE_URL").env("RAILHEAD_OPERATOR_TOKEN", &self.token);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        child.stdin.take().expect("its input").write_all(typed.as_bytes()).expect("typed");
        child.wait_with_output().expect("an end")
    }

    #[track_caller]
    pub(crate) fn says(&self, arguments: &[&str], typed: &str) -> Value {
        let said = self.run(arguments, typed).unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
    }

    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[&str]) -> String {
        self.run(arguments, "").expect_err("a refusal")
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}: {value}")).to_owned()
}

async fn draft(host: &TestHost) -> String {
    let draft = host.pay("paid", naira(100_001)).await.ok();
    assert_eq!(draft.status_word(), "draft");
    draft.id()
}

/// Her own people.
fn her_own_people(ada: &Desk, merchant: &str) {
    let (admin, member) = ("admin", "member");
    let new = ada.says(
        &[
            admin,
            member,
            "invite",
            merchant,
            "--email",
            "bola@acme.example",
            "--name",
            "Bola",
            "--role",
            "viewer",
            "--permission",
            "payout_approve",
        ],
        "",
    );
    let bola = text(&new, "id");
    assert_eq!(ada.says(&[admin, member, "show", &bola], "")["role"], "viewer");
    let set = ada.says(&[admin, member, "set", &bola, r#"{"role":"finance"}"#], "");
    assert_eq!(set["role"], "finance");
    let again = ada.says(&[admin, member, "invite-again", &bola, "--reset-otp"], "");
    assert_ne!(again["invitation"]["token"], new["invitation"]["token"]);
    let list = ada.says(&[admin, member, "list", merchant], "");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2));
    ada.says(&[admin, member, "remove", &bola], "");
}

/// What waits, and how many it takes.
async fn waiting_and_how_many_it_takes(host: &TestHost, ada: &Desk, merchant: &str) {
    let admin = "admin";
    let merchant_set =
        |settings: &str| ada.says(&[admin, "merchant", "set", merchant, settings], "");
    merchant_set(r#"{"dual_control_threshold_minor":{"NGN":"100000"}}"#);
    let first = draft(host).await;
    let waiting = ada.says(&[admin, "waiting", "--status", "draft"], "");
    assert_eq!(waiting["data"][0]["id"], json!(first));
    assert_eq!(ada.says(&[admin, "payout", "show", &first], "")["approvers"], 1);
    assert_eq!(ada.says(&[admin, "payout", "approve", &first], "")["status"], "queued");
    let second = draft(host).await;
    assert!(ada.refuses(&[admin, "payout", "decline", &second]).contains("reason"));
    let declined =
        ada.says(&[admin, "payout", "decline", &second, "--reason", "not our invoice"], "");
    assert_eq!(declined["status"], "cancelled");
    merchant_set(
        r#"{"payout_approval_tiers":{"NGN":[{"above_minor":"100000","approvers":2},{"above_minor":"5000000000","approvers":3}]}}"#,
    );
    merchant_set(r#"{"batch_approval_tiers":{"NGN":[{"above_minor":"500000000","approvers":2}]}}"#);
    let third = draft(host).await;
    let approve = ada.output(&[admin, "payout", "approve", &third], "");
    let warned = String::from_utf8_lossy(&approve.stderr).into_owned();
    assert!(warned.contains("nothing has happened yet: 1 of 2 people"), "{warned}");
    let request: Value = serde_json::from_slice(&approve.stdout).expect("a request");
    assert_eq!(request["object"], "approval_request");
    assert_eq!(ada.says(&[admin, "approvals"], "")["data"][0]["id"], request["id"]);
    let refused =
        ada.says(&[admin, "refuse", &text(&request, "id"), "--reason", "wait for the invoice"], "");
    assert_eq!(refused["status"], "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_about_teams_work() {
    with_host(Engine::Sqlite, async |host| {
        let operator = Desk { url: host.base.clone(), token: OPERATOR_TOKEN.into() };
        let merchant = host.merchant.id.clone();
        let email = "ada@acme.example";
        let (admin, member) = ("admin", "member");
        let invited = operator.says(
            &[
                admin, member, "invite", &merchant, "--email", email, "--name", "Ada Obi",
                "--role", "owner",
            ],
            "",
        );
        let (id, token) = (text(&invited, "id"), text(&invited["invitation"], "token"));
        let nobody = Desk { url: host.base.clone(), token: String::new() };
        let typed = format!("{PASSWORD}\n");
        assert_eq!(nobody.says(&["team", "accept", &token], &typed)["status"], "active");
        let sign_in = |more: &[&str]| {
            let arguments = [&["team", "sign-in", "--email", email], more].concat();
            let said = nobody.run(&arguments, &typed).expect("a session");
            let token = said.trim().strip_prefix("export RAILHEAD_OPERATOR_TOKEN=").expect(&said);
            Desk { url: host.base.clone(), token: token.to_owned() }
        };
        let ada = sign_in(&["--merchant", &merchant]);
        assert_eq!(ada.says(&["team", "me"], "")["member"]["id"], json!(id));
        // What belongs to operators says so.
        assert!(ada.refuses(&[admin, "route", "list"]).contains("permission_denied"));
        her_own_people(&ada, &merchant);
        waiting_and_how_many_it_takes(host, &ada, &merchant).await;
        // One-time codes, on the clock of the host.
        let secret = text(&ada.says(&["team", "otp", "begin"], ""), "secret");
        let set = ada.says(&["team", "otp", "confirm", &code(host, &secret)], "");
        assert_eq!(set["recovery_codes"].as_array().map(Vec::len), Some(8));
        host.advance(16 * 60);
        let key = ["--env", "test", "--label", "x", "--allow", "127.0.0.1"];
        let make = [&[admin, "key", "create", merchant.as_str()], &key[..]].concat();
        assert!(ada.refuses(&make).contains("recent_login_required"));
        ada.says(&["team", "confirm"], &typed);
        ada.says(&make, "");
        ada.says(&["team", "confirm", "--otp", &code(host, &secret)], "");
        host.advance(30);
        let again = sign_in(&["--otp", &code(host, &secret)]);
        host.advance(30);
        again.says(&["team", "otp", "remove", &code(host, &secret)], "");
        // A password is typed as it is; what is piped in is read line by line.
        let wrong = format!("{PASSWORD}\nshort\n");
        assert!(
            again.run(&["team", "password"], &wrong).is_err_and(|why| why.contains("password"))
        );
        again.says(&["team", "password"], &format!("{PASSWORD}\nanother good password\n"));
        assert!(again.refuses(&["team", "sign-out"]).contains("session_expired"));
        let body = json!({ "email": email, "password": "another good password" });
        let session = host.send(Method::POST, "/admin/v1/sessions", "", &[], Some(body)).await.ok();
        let last = Desk { url: host.base.clone(), token: text(&session.json, "token") };
        assert_eq!(last.says(&["team", "sign-out"], "")["ended"], true);
    })
    .await;
}

/// Whoever looks for something old gets there.
#[tokio::test(flavor = "multi_thread")]
async fn commands_that_list_take_a_page() {
    with_host(Engine::Sqlite, async |host| {
        let operator = Desk { url: host.base.clone(), token: OPERATOR_TOKEN.into() };
        let merchant = host.merchant.id.as_str();
        let id = |page: &Value| text(&page["data"][0], "id");
        let newest = operator.says(&["admin", "audit", "--limit", "1"], "");
        assert_eq!(newest["data"].as_array().map(Vec::len), Some(1));
        let after = ["admin", "audit", "--limit", "1", "--starting-after", &id(&newest)];
        assert!(id(&operator.says(&after, "")) < id(&newest));
        for list in [
            &["merchant", "list"][..],
            &["key", "list", merchant],
            &["notifications"],
            &["audit"],
            &["waiting"],
            &["approvals"],
            &["blacklist", "list"],
            &["case", "list"],
            &["alert", "list"],
            &["batch", "list"],
            &["rate", "list"],
            &["file", "list"],
            &["settlement", "list"],
        ] {
            let command = [&["admin"], list, &["--limit", "0"]].concat();
            let why = operator.refuses(&command);
            assert!(why.contains("invalid_limit"), "{list:?}: {why}");
        }
    })
    .await;
}
