//! Alerts: what an operator has to look at is told once, with what to do, by those who are
//! configured, however many hosts see it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use railhead::config::Config;
use railhead::ledger::verify::Anchor;
use railhead::verify::Wanted;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Bank;
use crate::hostile::with_hostile;
use crate::hostile_files::{self, UNTIL_MONDAY};
use crate::lanes::{absent_gateway, patch, route_before, with_two_routes};
use crate::live::{pay, until as paid, with_bank};
use crate::mail_server::{HANGS, MailServer};
use crate::network::{Sends, beside, with_live_host};
use crate::notices::{RIGHT, deliver, status};
use crate::notifications::{mailing, told};
use crate::packs::{adopt, guard, restart, until};
use crate::receiver::{Manner, Receiver, authority_file};
use crate::rule_hostile::{AMOUNT, adopt_hostile};
use crate::seams::{marked_while_unknown, resolve, until_case};
use crate::secrets::columns_with;
use crate::signatures::{Age, accepted};
use crate::team::invite;
use crate::team_commands::Desk;
use crate::test_host::{
    Engine, OPERATOR_TOKEN, TestHost, beginning, naira, unique, with_host, with_host_configured,
};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const DAY: u64 = 24 * 3600;

/// Everybody who is told.
struct Crew {
    receiver: Receiver,
    mail: MailServer,
}

impl Crew {
    async fn gather() -> Self {
        Self { receiver: Receiver::open().await, mail: MailServer::open().await }
    }

    fn configure(&self, config: &mut Config) {
        mailing(config, &self.mail);
        config.egress.extra_ca_file = Some(authority_file());
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        config.alerts.webhook_url = Some(self.receiver.url("/alerts"));
        config.alerts.webhook_secret = Some(SECRET.to_owned().into());
        config.alerts.email_to = vec!["night@acme.example".to_owned()];
    }

    /// The events that arrived, once there are so many.
    async fn heard(&self, count: usize) -> Vec<String> {
        let got = self.receiver.until("/alerts", count).await;
        got.iter().map(|got| got.header("x-service-event").to_owned()).collect()
    }
}

/// A host whose bank and crew are there.
async fn with_crew(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Bank, &Crew)) {
    let (clock, crew) = (beginning(), Crew::gather().await);
    let bank = Bank::open_at(clock.clone()).await;
    let change = |config: &mut Config| {
        config.simulator.url = Some(bank.url.clone());
        crew.configure(config);
    };
    let mut host = TestHost::open_at(clock, engine, change).await;
    test(&mut host, &bank, &crew).await;
    host.close().await;
}

async fn alerts(host: &TestHost, filters: &str) -> Vec<Value> {
    let path = format!("/admin/v1/alerts{filters}");
    let list = host.send(Method::GET, &path, OPERATOR_TOKEN, &[], None).await.ok();
    list.json["data"].as_array().expect("a list").clone()
}

/// Opens a case: a bank has paid what an operator has marked as failed.
async fn open_case(host: &TestHost, bank: &Bank) {
    let (_, reference) = marked_while_unknown(host, "mark_failed").await;
    bank.control(&reference, "settle").await.ok();
    deliver(host, ("live", RIGHT), &status(&reference, "00")).await.ok();
}

/// Whatever was going to be told has been: every host has looked twice.
pub(crate) async fn let_them_look() {
    tokio::time::sleep(Duration::from_millis(4_500)).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_case_is_told_once_with_what_to_do_and_when_it_is_over(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, bank, crew| {
        open_case(host, bank).await;
        let case = until_case(host, "paid_after_failure").await;
        assert_eq!(crew.heard(1).await, ["alert.opened"]);
        let got = crew.receiver.got("/alerts").remove(0);
        assert_eq!(accepted(Age::Timeless, &got, &["whsec_b3RoZXI=", SECRET]).await, [SECRET]);
        let alert = got.json()["data"].clone();
        assert_eq!(
            (&got.json()["type"], &alert["status"]),
            (&json!("alert.opened"), &json!("open"))
        );
        assert_eq!(alert["summary"], "1 case is open: paid_after_failure on ngn_nip");
        let advice = alert["advice"].as_str().expect("advice");
        assert!(
            advice.contains("Check the bank's statement") && advice.contains("admin case list")
        );
        let letter = crew.mail.letters("[Alert]", 1).await.remove(0);
        assert_eq!(letter.to, "night@acme.example");
        assert!(letter.text.contains(advice), "{}", letter.text);
        assert_eq!(alerts(host, "?status=open").await, std::slice::from_ref(&alert));
        host.until_count("SELECT COUNT(*) FROM notifications WHERE status = 'sent'", 2).await;
        let sent = told(host, "?status=sent").await;
        assert!(sent.iter().all(|it| it["subject_id"] == alert["id"]), "{sent:?}");
        assert_eq!(sent.len(), 2);
        assert_eq!(
            got.header("webhook-id"),
            sent.iter().find(|it| it["channel"] == "webhook").expect("one")["id"]
        );
        // Money that has been in question for a day is another matter.
        host.advance(DAY);
        let mut heard = crew.heard(3).await;
        // What is told at once arrives in any order.
        heard[1..].sort();
        assert_eq!(heard, ["alert.opened", "alert.opened", "alert.reminder"]);
        let old = alerts(host, "?limit=1").await.remove(0);
        assert_eq!(
            old["summary"],
            "NGN 1000.00 in 1 case has been in question for more than a day"
        );
        resolve(host, &case, "recovered").await.ok();
        assert_eq!(crew.heard(5).await[3..], ["alert.ended", "alert.ended"]);
        assert_eq!(alerts(host, "?status=open").await, Vec::<Value>::new());
        assert_eq!(alerts(host, "?status=ended").await.len(), 2);
        assert_eq!(crew.mail.letters("[Over]", 2).await.len(), 2);
    })
    .await;
}

/// And not in minor units.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn money_whose_rail_is_not_loaded_any_more_is_shown_with_two_places(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, bank, crew| {
        open_case(host, bank).await;
        crew.heard(1).await;
        let armed = host.disarm("cases").await;
        let now_in = async |currency: &str| {
            host.run(&[format!("UPDATE cases SET currency = '{currency}'")]).await;
        };
        now_in("ZZZ").await;
        host.advance(DAY);
        crew.heard(3).await;
        let summaries: Vec<Value> =
            alerts(host, "").await.iter().map(|alert| alert["summary"].clone()).collect();
        let told = "ZZZ 1000.00 in 1 case has been in question for more than a day";
        assert!(summaries.contains(&json!(told)), "{summaries:?}");
        now_in("NGN").await;
        host.run(&armed).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_after_it_is_not_reminded_but_of_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, bank, crew| {
        open_case(host, bank).await;
        crew.heard(1).await;
        let id = alerts(host, "").await[0]["id"].as_str().expect("an id").to_owned();
        let path = format!("alerts/{id}/acknowledge");
        let mine = host.admin(Method::POST, &path, Value::Null).await.ok();
        assert_eq!(
            (&mine.json["status"], &mine.json["acknowledged_by"]),
            (&json!("acknowledged"), &json!("operator"))
        );
        let line = host.last_line().await;
        assert_eq!(
            (&line["action"], &line["subject_id"]),
            (&json!("alert.acknowledge"), &json!(id))
        );
        host.advance(3 * 3600);
        let_them_look().await;
        assert_eq!(crew.heard(1).await.len(), 1);
        open_case(host, bank).await;
        assert_eq!(crew.heard(2).await[1], "alert.reminder");
        let alert = alerts(host, "").await.remove(0);
        assert_eq!((&alert["count"], &alert["status"]), (&json!(2), &json!("open")));
        host.admin(Method::POST, &path, Value::Null).await.ok();
        for (path, refused) in [
            ("alerts/alert_00000000000000000000000000/acknowledge", (404, "not_found")),
            ("alerts/x/acknowledge", (404, "not_found")),
        ] {
            let answer = host.admin(Method::POST, path, Value::Null).await;
            assert_eq!(answer.refused(), refused);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_tell_it_once() {
    with_crew(Engine::Postgres, async |host, bank, crew| {
        let url = bank.url.clone();
        let beside = beside(host, |config| {
            config.simulator.url = Some(url);
            crew.configure(config);
        })
        .await;
        open_case(host, bank).await;
        let case = until_case(host, "paid_after_failure").await;
        crew.heard(1).await;
        let_them_look().await;
        resolve(&beside, &case, "recovered").await.ok();
        crew.heard(2).await;
        let_them_look().await;
        assert_eq!(crew.heard(2).await, ["alert.opened", "alert.ended"]);
        assert_eq!(crew.mail.letters("", 2).await.len(), 2);
        assert_eq!(host.count("SELECT COUNT(*) FROM alerts").await, 1);
        beside.close().await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_down_is_told_later_and_one_that_stays_down_is_the_matter(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, bank, crew| {
        crew.receiver.behave("/alerts", Manner::status(503));
        open_case(host, bank).await;
        crew.mail.letters("[Alert]", 1).await;
        let tried = "SELECT COUNT(*) FROM notifications WHERE channel = 'webhook' AND tries = ";
        for (tries, later) in [(1, 60), (2, 300), (3, 1_800), (4, 7_200), (5, 28_800), (6, 86_400)]
        {
            host.until_count(&format!("{tried}{tries}"), 1).await;
            host.advance(later);
        }
        let given_up = "SELECT COUNT(*) FROM notifications WHERE status = 'given_up'";
        host.until_count(given_up, 1).await;
        assert!(
            told(host, "?status=given_up").await[0]["error"].as_str().expect("why").contains("503")
        );
        crew.mail.letters("[Alert] 1 messages to people were given up", 1).await;
        // What was said is not in the database any more, and the secret never was.
        assert!(columns_with(&host.app().db, &[SECRET.to_owned()]).await.is_empty());
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whether_word_arrives_can_be_tried(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, _, crew| {
        let tried = host.admin(Method::POST, "alerts/test", Value::Null).await.ok();
        assert_eq!(tried.json["queued"], 2);
        assert_eq!(host.last_line().await["action"], "alert.test");
        assert_eq!(crew.heard(1).await, ["alert.test"]);
        let letter = crew.mail.letters("[Test]", 1).await.remove(0);
        assert!(letter.text.contains("Nothing is the matter: operator"), "{}", letter.text);
        assert_eq!(alerts(host, "").await, Vec::<Value>::new());
        let path = "/admin/v1/alerts?status=lost";
        let refused = host.send(Method::GET, path, OPERATOR_TOKEN, &[], None).await;
        assert_eq!(refused.refused(), (400, "invalid_filter"));
    })
    .await;
    with_host(engine, async |host| {
        let refused = host.admin(Method::POST, "alerts/test", Value::Null).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        assert!(refused.text.contains("alerts.webhook_url"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_about_alerts_work() {
    with_crew(Engine::Sqlite, async |host, bank, crew| {
        let desk = Desk { url: host.base.clone(), token: OPERATOR_TOKEN.into() };
        let run = |arguments: &[&str]| desk.says(&[&["admin"], arguments].concat(), "");
        assert_eq!(run(&["alert", "test"])["queued"], 2);
        open_case(host, bank).await;
        crew.heard(2).await;
        let open = run(&["alert", "list"])["data"][0].clone();
        let id = open["id"].as_str().expect("an id");
        assert_eq!(run(&["alert", "acknowledge", id])["status"], "acknowledged");
        assert_eq!(run(&["alert", "list", "--status", "ended"])["data"], json!([]));
        assert_eq!(run(&["notifications", "--status", "given_up"])["data"], json!([]));
        let why = desk.refuses(&["admin", "alert", "list", "--status", "x"]);
        assert!(why.contains("invalid_filter"), "{why}");
    })
    .await;
}

/// However many other cases are open, none that is open is called over.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_cases_hides_none(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_crew(engine, async |host, bank, crew| {
        open_case(host, bank).await;
        until_open(host, "cases").await;
        crew.heard(1).await;
        // Twice as many each time: 2,048 of a kind that stands before it.
        let columns = "status, version, env, merchant_id, subject_type, subject_id, route, currency, \
                       amount_minor, summary, evidence, opened_at";
        let doubled = (0..12).map(|turn| {
            let kind = if turn == 0 { "paid_after_failure" } else { "file_refused" };
            format!(
                "INSERT INTO cases (id, kind, fingerprint, batch_id, {columns}) \
                 SELECT id || '{turn:02}', 'file_refused', fingerprint || '/{turn}', batch_id, \
                 {columns} FROM cases WHERE kind = '{kind}'"
            )
        });
        host.run(&doubled.collect::<Vec<_>>()).await;
        let flood = "SELECT COUNT(*) FROM cases WHERE kind = 'file_refused'";
        assert!(host.count(flood).await > 2_000);
        let open = async || alerts(host, "?status=open").await;
        until("both", async || open().await.len() == 2).await;
        let_them_look().await;
        let summaries: Vec<Value> =
            open().await.iter().map(|alert| alert["summary"].clone()).collect();
        assert!(summaries.contains(&json!("1 case is open: paid_after_failure on ngn_nip")));
        host.run(&["DELETE FROM cases WHERE kind = 'file_refused'".to_owned()]).await;
    })
    .await;
}

/// A mail server that says nothing keeps nobody else waiting, nor the host from its end.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_hangs_is_no_other_receivers_matter(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, _, crew| {
        crew.mail.refuse(HANGS);
        let merchant = host.merchant.id.clone();
        for name in ["ada", "bola", "cyd", "dan", "eve", "fay"] {
            invite(host, &merchant, (name, "viewer")).await.ok();
        }
        host.admin(Method::POST, "alerts/test", Value::Null).await.ok();
        assert_eq!(crew.heard(1).await, ["alert.test"]);
        let test = crew.receiver.until("/alerts", 1).await.remove(0);
        let body: Value = serde_json::from_slice(&test.bytes).expect("JSON");
        assert_eq!(body["data"]["kind"], "test", "{body}");
    })
    .await;
}

/// Nobody is told, and it is there all the same for whoever looks.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn alerts_are_listed_where_nobody_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        open_case(host, bank).await;
        until("an alert", async || alerts(host, "?status=open").await.len() == 1).await;
        assert_eq!(told(host, "").await, Vec::<Value>::new());
    })
    .await;
}

/// The one alert of a kind, once it is open.
pub(crate) async fn until_open(host: &TestHost, kind: &str) -> Value {
    let open = async || {
        let open = alerts(host, "?status=open").await;
        open.into_iter().find(|alert| alert["kind"] == kind)
    };
    until(kind, async || open().await.is_some()).await;
    open().await.expect("it is open")
}

/// Lets so much time pass until an alert is open: what has to last does since somebody looked first.
pub(crate) async fn advance_until_open(host: &TestHost, seconds: u64, kind: &str) -> Value {
    for _ in 0..5 {
        host.advance(seconds);
        let_them_look().await;
        let open = alerts(host, "?status=open").await;
        if let Some(alert) = open.into_iter().find(|alert| alert["kind"] == kind) {
            return alert;
        }
    }
    panic!("{kind} is not open");
}

pub(crate) async fn until_over(host: &TestHost, kind: &str) {
    let is_over = async || {
        let open = alerts(host, "?status=open").await;
        open.iter().all(|alert| alert["kind"] != kind)
    };
    until(kind, is_over).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_left_alone_is_told_by_the_host_that_does(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_two_routes(engine, async |host, _| {
        route_before(host, &absent_gateway(), &[]).await;
        for _ in 0..20 {
            let id = pay(host, "0123456785").await.ok().id();
            paid(host, &id, "paid").await;
        }
        let_them_look().await;
        assert_eq!(alerts(host, "").await, Vec::<Value>::new(), "it may be over in a moment");
        let alert = advance_until_open(host, 120, "route_left_alone").await;
        assert!(alert["summary"].as_str().expect("what").contains("ngn_other"), "{alert}");
        assert!(alert["host"].is_string());
        // A route that is gone is nobody's matter.
        let paused = patch(host, "ngn_other", json!({ "is_paused": true })).await.ok();
        assert_eq!(paused.json["is_paused"], true);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_quarantine_is_told_and_when_it_is_over(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.run(&["UPDATE meta SET value = '77' WHERE key = 'timeline'".to_owned()]).await;
        restart(host, |_| {}).await;
        let alert = until_open(host, "quarantine").await;
        assert!(alert["advice"].as_str().expect("advice").contains("quarantine release"));
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        until_over(host, "quarantine").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_was_taken_out_is_told(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_live_host(engine, Sends::No, async |host| {
        adopt_hostile(host, "1", "trap").await;
        let merchants =
            [host.merchant.clone(), host.new_merchant("B").await, host.new_merchant("C").await];
        for merchant in merchants.iter().cycle().take(5) {
            host.pay_as(&merchant.live_key, &unique(), naira(AMOUNT)).await.ok();
        }
        let alert = until_open(host, "rules_held").await;
        assert_eq!(alert["summary"], "Payouts are held: the fraud pack of platform kept failing");
        adopt(host, &guard("1", "", &[])).await;
        until_over(host, "rules_held").await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_books_are_anchored_beside_the_database(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("anchors");
    let anchored = |config: &mut Config| config.anchors.dir = Some(place.clone());
    with_host_configured(engine, anchored, async |host| {
        let kept = || -> Vec<Value> {
            let Ok(files) = std::fs::read_dir(&place) else { return Vec::new() };
            let texts = files.filter_map(|file| std::fs::read(file.ok()?.path()).ok());
            texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
        };
        until("an anchor", async || kept().len() == 1).await;
        assert_eq!(kept()[0]["taken_at"], "2026-11-21T09:00:00.000Z");
        host.advance(DAY);
        restart(host, anchored).await;
        until("another anchor", async || kept().len() == 2).await;
        let newest = kept().into_iter().max_by_key(|it| it["taken_at"].to_string()).expect("one");
        let heads: BTreeMap<i64, String> =
            serde_json::from_value(newest["heads"].clone()).expect("heads");
        assert!(!heads.is_empty());
        let against = |heads| Wanted { against: Some(Anchor { heads }), ..Wanted::default() };
        let report = host.report(&against(heads.clone())).await;
        assert!(report.faults.is_empty(), "{:#?}", report.faults);
        let forged = heads.into_iter().map(|(id, hash)| (id, hash.replace(['a', 'b'], "c")));
        assert!(!host.report(&against(forged.collect())).await.faults.is_empty());
        // From now on nothing can be written there.
        std::fs::remove_dir_all(&place).expect("removed");
        std::fs::write(&place, "in the way").expect("written");
        let_them_look().await;
        assert_eq!(alerts(host, "").await, Vec::<Value>::new());
        host.advance(300);
        let alert = until_open(host, "anchor_missed").await;
        assert_eq!(alert["summary"], "The books were not anchored");
        std::fs::remove_file(&place).expect("removed");
        // Another port is another host: the one that saw it has not been there for a while.
        restart(host, anchored).await;
        host.advance(600);
        until_over(host, "anchor_missed").await;
    })
    .await;
}

/// What cannot be written down outside the database does not leave, and somebody is told why.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_write_down_what_leaves_says_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_crew(engine, async |host, bank, _| {
        let intents = host.app().config.data.dir.join("intents");
        let aside = intents.with_extension("aside");
        std::fs::rename(&intents, &aside).expect("moved");
        let id = pay(host, "0123456785").await.ok().id();
        let alert = until_open(host, "intents_unwritten").await;
        assert!(alert["summary"].as_str().expect("what").contains("No such file"), "{alert}");
        assert!(alert["host"].is_string(), "{alert}");
        assert_eq!(bank.transfers().await.len(), 0, "it left");
        std::fs::rename(&aside, &intents).expect("moved back");
        // Before anything else is about to leave.
        until_over(host, "intents_unwritten").await;
        assert_eq!(bank.transfers().await.len(), 0, "it left");
        let sql = format!("SELECT COUNT(*) FROM payouts WHERE id = '{id}' AND status = 'paid'");
        let is_paid = async || {
            host.advance(1);
            host.count(&sql).await == 1
        };
        until("it is paid", is_paid).await;
    })
    .await;
}

/// Every route that takes them is paused: somebody is told, and when it is over.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn payouts_that_no_route_takes_are_told_of(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _| {
        let id = hostile_files::pay(host, "pay").await;
        hostile_files::pay(host, "pay").await;
        patch(host, "ngn_bulk", json!({ "is_paused": true })).await.ok();
        host.advance(UNTIL_MONDAY);
        let unrouted = "SELECT COUNT(*) FROM transfers WHERE unrouted_since IS NOT NULL";
        host.until_count(unrouted, 2).await;
        // It is looked at again and again, and has waited since the first time.
        for _ in 0..11 {
            host.advance(30);
            let now = host.clock.now().micros();
            let looked_at = format!("SELECT COUNT(*) FROM transfers WHERE due_at > {now}");
            host.until_count(&looked_at, 2).await;
        }
        let alert = until_open(host, "no_route").await;
        assert!(alert["summary"].as_str().expect("what").contains("ngn_bulk"), "{alert}");
        assert_eq!((&alert["count"], &alert["host"]), (&json!(2), &Value::Null));
        paid(host, &id, "queued").await;
        patch(host, "ngn_bulk", json!({ "is_paused": false })).await.ok();
        host.advance(30);
        until_over(host, "no_route").await;
    })
    .await;
}
