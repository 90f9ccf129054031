//! Payouts that the host itself fails at: what cannot be read, and what cannot be written down.

use http::Method;
use rstest::rstest;
use serde_json::json;

use crate::ach::until_files;
use crate::file_kills::holding;
use crate::hostile::with_hostile;
use crate::hostile_files::{identity, paid_with};
use crate::live::{pay, reference, until, with_bank};
use crate::network::{Sends, live};
use crate::packs::restart;
use crate::test_host::{Engine, TestHost};

/// Whoever had the work has had it, and it is due.
const HAD: &str = "UPDATE transfers SET lease_until = 1, due_at = 1";

/// It is tried again and again, and comes to nothing; a person is told.
async fn until_told(host: &TestHost, id: &str) {
    let told = "SELECT COUNT(*) FROM cases WHERE kind = 'cannot_send'";
    let waits = "SELECT COUNT(*) FROM transfers WHERE due_at > queued_at";
    for _ in 1..5 {
        host.until_count(waits, 1).await;
        assert_eq!(host.count(told).await, 0);
        // Nobody is asked twice in an instant.
        host.advance(600);
        host.run(&[HAD.to_owned()]).await;
    }
    host.until_count(waits, 1).await;
    assert_eq!(host.count(told).await, 1);
    let cases = host.admin(Method::GET, "cases?status=open", json!({})).await.ok();
    let mut cases = cases.json["data"].as_array().expect("cases").iter();
    let case = cases.find(|case| case["kind"] == "cannot_send").expect("a case");
    assert_eq!((&case["subject_id"], &case["subject_type"]), (&json!(id), &json!("payout")));
    assert!(case["evidence"]["problem"].is_string(), "{case}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_somebodys_case_and_goes_on_once_it_can(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let url = bank.url.clone();
        restart(host, |config| live(config, url, Sends::No)).await;
        let id = pay(host, "0123456785").await.ok().id();
        let sql = "SELECT charges FROM payouts WHERE id = $1";
        let pool = host.app().db.pool();
        let kept: String = sqlx::query_scalar(sql).bind(&id).fetch_one(pool).await.expect("one");
        host.run(&["UPDATE payouts SET charges = '{'".to_owned()]).await;
        let url = bank.url.clone();
        restart(host, |config| live(config, url, Sends::Yes)).await;
        until_told(host, &id).await;
        assert_eq!(bank.transfers().await.len(), 0);
        host.run(&[format!("UPDATE payouts SET charges = '{kept}'"), HAD.to_owned()]).await;
        until(host, &id, "paid").await;
    })
    .await;
}

/// The bank carries out its file, and the rail is not there when the day comes to say that it is
/// paid.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_file_for_a_rail_that_is_gone_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = paid_with(host, &["pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        till.lay(&format!("accepted {} 0", identity(host).await));
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        restart(host, |_| {}).await;
        host.advance(4 * 86_400);
        host.run(&[HAD.to_owned()]).await;
        until_told(host, &ids[0]).await;
        until(host, &ids[0], "processing").await;
    })
    .await;
}

/// The bank has paid, and was asked all the while: it is never paid again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_it_is_written_down_once_it_can_be(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let [hold_fast, let_go] = holding(engine, ("payouts", "NEW.status = 'paid'"));
        host.run(&hold_fast).await;
        let id = pay(host, "0123456785").await.ok().id();
        until_told(host, &id).await;
        until(host, &id, "processing").await;
        host.run(&let_go).await;
        host.run(&[HAD.to_owned()]).await;
        let paid = until(host, &id, "paid").await;
        assert_eq!(bank.transfer(&reference(&paid)).await.received, 1);
        assert_eq!(host.count("SELECT COUNT(*) FROM attempts WHERE queries > 0").await, 1);
    })
    .await;
}
