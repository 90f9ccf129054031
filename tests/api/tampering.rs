//! Whoever changes what is stored behind the host's back is found out: each row of the table is
//! one thing that somebody with the database's password could do, and the check that notices.

use std::collections::HashMap;

use http::Method;
use railhead::db;
use railhead::ledger::verify::Anchor;
use railhead::simulator::OwnMessage;
use railhead::verify::{Report, Wanted, prove};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::accounts::account;
use crate::ach::{self, dollars};
use crate::batch_life;
use crate::batches;
use crate::hooks::{listen, with_receiver};
use crate::live::reference;
use crate::notices::deliver;
use crate::packs::{adopt, guard};
use crate::receiver::Receiver;
use crate::reconcile;
use crate::tamperings::TAMPERINGS;
use crate::team;
use crate::test_host::{Engine, TestHost, naira, unique, with, with_host};

/// The serial number of an account that is saved, and never paid.
const SAVED: u32 = 4_711;

fn to_save() -> Value {
    json!({ "currency": "NGN", "name": "My landlord", "account_number": account(SAVED),
        "bank_code": "058" })
}

/// What people set besides, each with its line of the audit log: a recipient whom nobody pays, a
/// route, and a key that another one has replaced at once.
async fn settings(host: &TestHost, merchant: &str) -> [(&'static str, String); 4] {
    let saved = host.post("/v1/beneficiaries", to_save()).await.ok().id();
    let body = json!({ "name": "spare", "env": "test", "currency": "NGN", "rail": "nip",
        "position": 9 });
    let route = host.admin(Method::POST, "routes", body).await.ok().id();
    let sql = "SELECT id FROM api_keys WHERE merchant_id = $1 AND env = 'test'";
    let pool = host.app().db.pool();
    let key: String = sqlx::query_scalar(sql).bind(merchant).fetch_one(pool).await.expect("one");
    let path = format!("keys/{key}/rotate");
    host.admin(Method::POST, &path, json!({ "grace_seconds": 0 })).await.ok();
    [("{saved}", saved), ("{account}", account(SAVED)), ("{route}", route), ("{replaced}", key)]
}

/// Ordinary traffic: payouts that ended in every way, a receiver, limits, rules, a blacklist.
/// Answers what is called what.
async fn ordinary(host: &TestHost, receiver: &Receiver) -> HashMap<&'static str, String> {
    let merchant = &host.merchant;
    let path = format!("merchants/{}", merchant.id);
    let settings = json!({
        "dual_control_threshold_minor": { "NGN": "300000" },
        "limits": { "NGN": { "daily_minor": "50000000" } },
    });
    host.admin(Method::PATCH, &path, settings).await.ok();
    let rules = [("large", "hold", "amount_minor > 405000 && amount_minor < 450000")];
    let facts = "amount_minor count_per_merchant_1h";
    adopt(host, &guard("1", facts, &rules)).await;
    listen(host, &receiver.url("/a"), json!(["payout.paid"])).await.id();
    host.advance(600);
    let referenced = with(naira(100_000), json!({ "merchant_reference": "invoice 7" }));
    let paid = host.pay("paid", referenced).await.ok().id();
    let failed = host.pay("failed", naira(100_000)).await.ok().id();
    let processing = host.pay("processing", naira(100_000)).await.ok().id();
    let marked = host.pay("processing", naira(100_000)).await.ok().id();
    let evidence = json!({ "evidence": "a letter" });
    host.admin(Method::POST, &format!("payouts/{marked}/mark_paid"), evidence).await.ok();
    let held = host.pay("paid", naira(410_000)).await.ok().id();
    host.admin(Method::POST, &format!("payouts/{held}/release"), json!({})).await.ok();
    host.until(&merchant.test_key, &held, "paid").await;
    let draft = host.pay("paid", naira(400_000)).await.ok().id();
    host.admin(Method::POST, &format!("payouts/{draft}/approve"), json!({})).await.ok();
    host.until(&merchant.test_key, &draft, "paid").await;
    batches::paid(host).await;
    let block = json!({ "scope": "platform", "currency": "NGN", "bank_code": "058",
        "account_number": "0000001015", "reason": "fraud" });
    host.admin(Method::POST, "blacklist", block).await.ok();
    let other = host.new_merchant("Other").await;
    let key = other.test_key.clone();
    let body = json!({ "url": receiver.url("/b"), "events": ["payout.paid"] });
    let once = unique();
    let once = [("Idempotency-Key", once.as_str())];
    let endpoint = host.send(Method::POST, "/v1/webhook_endpoints", &key, &once, Some(body)).await;
    let other_endpoint = endpoint.ok().id();
    host.until_count("SELECT COUNT(*) FROM webhook_queue", 0).await;
    let pool = host.app().db.pool();
    let sql = "SELECT id FROM journals WHERE ref_id = $1 AND kind = 'payout_debit'";
    let journal: String = sqlx::query_scalar(sql).bind(&paid).fetch_one(pool).await.expect("one");
    let sql = "SELECT id FROM api_keys WHERE merchant_id = $1 AND env = 'live'";
    let other_key = sqlx::query_scalar(sql).bind(&other.id).fetch_one(pool).await.expect("one");
    // Two lines about nothing that is proven otherwise, the second one the last of all.
    let mut lines = Vec::new();
    for reason in ["by the desk", "by nobody"] {
        let freeze = json!({ "reason": reason });
        let path = format!("wallets/{}", other.live_wallet);
        host.admin(Method::POST, &format!("{path}/freeze"), freeze.clone()).await.ok();
        host.admin(Method::POST, &format!("{path}/unfreeze"), freeze).await.ok();
        let sql = "SELECT id FROM audit ORDER BY id DESC LIMIT 1";
        let line: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a line");
        lines.push(line);
    }
    HashMap::from([
        ("{line}", lines[0].clone()),
        ("{last_line}", lines[1].clone()),
        ("{paid}", paid),
        ("{failed}", failed),
        ("{processing}", processing),
        ("{marked}", marked),
        ("{held}", held),
        ("{draft}", draft),
        ("{w}", merchant.test_wallet.clone()),
        ("{j}", journal),
        ("{other}", other.id),
        ("{other_key}", other_key),
        ("{other_endpoint}", other_endpoint),
    ])
}

/// A payout that was paid with its file, and a part of another one that came back, which is a case.
async fn filed_and_returned(host: &TestHost) -> [(&'static str, String); 3] {
    ach::funded(host, &host.merchant.test_key).await;
    let filed = host.pay("paid", dollars(json!({}))).await.ok();
    assert_eq!(filed.status_word(), "paid");
    let paid = host.pay("paid", naira(100_000)).await.ok();
    let body = format!(
        "<FTSingleCreditRequest><SessionID>000013261122080000000000000077</SessionID>\
         <PaymentReference>RVSL/{}</PaymentReference><Amount>400.00</Amount>\
         </FTSingleCreditRequest>",
        reference(&paid)
    );
    let (rail, path) = ("nip".to_owned(), "/nip/fundtransfersingleitem_dc".to_owned());
    let part = OwnMessage { rail, path, body: body.into_bytes(), ..OwnMessage::default() };
    let token = host.app().sandbox.token.clone();
    deliver(host, ("test", token.expose_secret()), &part).await.ok();
    let pool = host.app().db.pool();
    let one = async |sql: &'static str| -> String {
        sqlx::query_scalar(sql).fetch_one(pool).await.expect("one")
    };
    let case = one("SELECT id FROM cases WHERE kind = 'partial_return'").await;
    let file = one("SELECT id FROM payment_files WHERE state = 'acknowledged'").await;
    [("{filed}", filed.id()), ("{case}", case), ("{file}", file)]
}

/// What somebody sees of everything, and of what came after each of two anchors, who has done this
/// in a transaction that is rolled back; nothing where a constraint of the database does not let it
/// be done.
async fn after(
    host: &TestHost,
    anchors: &[Anchor; 2],
    statements: &[String],
) -> Option<[Report; 3]> {
    let engine = host.app().db.engine();
    let mut tx = host.app().db.pool().begin().await.expect("a transaction");
    for sql in statements {
        let done = sqlx::query(AssertSqlSafe(sql.clone())).execute(&mut *tx).await;
        let done = match done {
            Ok(done) => done,
            Err(cause) if cause.to_string().contains("constraint") => return None,
            Err(cause) => panic!("{sql}: {cause}"),
        };
        let is_schema = sql.starts_with("DROP") || sql.starts_with("ALTER");
        assert!(is_schema || done.rows_affected() > 0, "{sql}");
    }
    let now = host.clock.now();
    let since = |anchor: &Anchor| Wanted { now, against: Some(anchor.clone()), is_since: true };
    let everything = Wanted { now, ..Wanted::default() };
    let mut reports = Vec::new();
    for wanted in [everything, since(&anchors[0]), since(&anchors[1])] {
        reports.push(prove(&mut tx, (engine, &wanted), &mut |_, _| {}).await.expect("read"));
    }
    tx.rollback().await.expect("rolled back");
    Some(reports.try_into().expect("three"))
}

/// What only shows when everything is read: what is counted over all that there was.
const SHOWS_IN_EVERYTHING: &[&str] = &["counter", "conversion-counted"];

/// What shows even in what an anchor covers: sums, settings, and what is under way.
const SHOWS_ALWAYS: &[&str] = &[
    "blacklist-entry",
    "case-opened",
    "case-resolved",
    "case-suspense",
    "delivery-endpoint",
    "delivery-status",
    "endpoint-disabled",
    "endpoint-owner",
    "endpoint-secret",
    "endpoint-settings",
    "file-held",
    "fx-limit-set",
    "key-hash",
    "key-replaced",
    "key-revoked",
    "member-clear",
    "member-invited",
    "member-merchant",
    "member-standing",
    "merchant-settings",
    "pack-assigned",
    "pack-component",
    "pack-generation",
    "pack-pushed",
    "rate-set",
    "recipient-clear",
    "recipient-fields",
    "recipient-identity",
    "route-settings",
    "schema",
    "session-begun",
    "swept",
    "wallet-balance",
    "wallet-frozen",
    "wallet-pending",
];

/// Statements that take the triggers away.
async fn disarming(host: &TestHost) -> Vec<String> {
    let sql = match host.app().db.engine() {
        db::Engine::Postgres => {
            "SELECT DISTINCT 'ALTER TABLE ' || CAST(CAST(tgrelid AS REGCLASS) AS TEXT) \
             || ' DISABLE TRIGGER USER' FROM pg_trigger WHERE NOT tgisinternal"
        }
        db::Engine::Sqlite => {
            "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
        }
    };
    sqlx::query_scalar(sql).fetch_all(host.app().db.pool()).await.expect("triggers")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_tampering_is_noticed_by_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let before = host.report(&Wanted::default()).await.books.anchor;
        let further = filed_and_returned(host).await;
        let mut names = ordinary(host, receiver).await;
        names.extend(further);
        crate::conversions::ordinary(host).await;
        crate::cross_currency::ordinary(host).await;
        team::ordinary(host).await;
        reconcile::ordinary(host).await;
        let set = settings(host, &names["{other}"]).await;
        names.extend(set);
        let anchors = [before, host.report(&Wanted::default()).await.books.anchor];
        let clean = after(host, &anchors, &[]).await.expect("read");
        assert!(clean.iter().all(|report| report.faults.is_empty()), "{clean:#?}");
        let disarming = disarming(host).await;
        let disarmed = after(host, &anchors, &disarming).await.expect("read");
        for report in &disarmed {
            assert_eq!(report.faults.counts.keys().copied().collect::<Vec<_>>(), ["schema"]);
        }
        let of_disarming = disarmed[0].faults.counts["schema"];
        let mut unnoticed = Vec::new();
        let all = [TAMPERINGS, batch_life::TAMPERINGS, team::TAMPERINGS, reconcile::TAMPERINGS];
        for (does, noticed) in all.concat() {
            let named = names.iter().fold(does.to_owned(), |sql, (name, id)| sql.replace(name, id));
            let does: Vec<String> = named.split("; ").map(str::to_owned).collect();
            let does = [disarming.clone(), does].concat();
            let Some(reports) = after(host, &anchors, &does).await else { continue };
            let of = ["everything", "what came later", "what came before"];
            for (report, of) in reports.iter().zip(of) {
                let mut counts = report.faults.counts.clone();
                if noticed == "schema" {
                    counts.retain(|_, count| *count > of_disarming);
                }
                let may_be_missed = match of {
                    "everything" => false,
                    "what came later" => SHOWS_IN_EVERYTHING.contains(&noticed),
                    _ => !SHOWS_ALWAYS.contains(&noticed),
                };
                if !counts.contains_key(noticed) && !may_be_missed {
                    unnoticed.push(format!("{of}: {named}\n  {noticed}: {counts:?}"));
                }
            }
        }
        assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
    })
    .await;
}

/// Somebody who knows how all this works can make every chain anew. Then only what was kept
/// elsewhere tells.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_that_was_kept_elsewhere_shows_a_history_that_was_made_anew(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, _| {
        host.pay("paid", naira(100_000)).await.ok();
        let anchor = host.report(&Wanted::default()).await.books.anchor;
        assert!(!anchor.heads.is_empty());
        host.pay("failed", naira(100_000)).await.ok();
        let against = Wanted { against: Some(anchor.clone()), ..Wanted::default() };
        assert!(host.report(&against).await.faults.is_empty());
        let since = Wanted { is_since: true, ..against };
        let later = host.report(&since).await;
        assert!(later.faults.is_empty(), "{:#?}", later.faults);
        assert_eq!(later.payouts, 1, "only what came after it");
        // Another head is another history.
        let forged = anchor.heads.iter().map(|(id, hash)| (*id, hash.replace(['a', 'b'], "c")));
        let forged = Anchor { heads: forged.collect() };
        let against = Wanted { against: Some(forged), ..Wanted::default() };
        let report = host.report(&against).await;
        assert_eq!(report.faults.counts.keys().copied().collect::<Vec<_>>(), ["anchor"]);
    })
    .await;
}

/// Limits and blocks go by whom a recipient is known as, and money by its fields.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_saved_recipient_who_was_given_another_account_is_not_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let id = host.post("/v1/beneficiaries", to_save()).await.ok().id();
        let to_it = json!({ "beneficiary_id": id, "currency": "NGN", "amount_minor": "100000",
            "allow_duplicate": true });
        host.pay("paid", to_it.clone()).await.ok();
        let (own, others) = (account(SAVED), account(SAVED + 1));
        for (from, to) in [(&own, &others), (&others, &own)] {
            host.run(&[format!(
                "UPDATE beneficiaries SET recipient = REPLACE(recipient, '{from}', '{to}') \
                 WHERE id = '{id}'"
            )])
            .await;
            let answer = host.pay("paid", to_it.clone()).await;
            match to == &own {
                true => drop(answer.ok()),
                false => assert_eq!(answer.refused(), (409, "state_conflict")),
            }
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 2);
    })
    .await;
}
