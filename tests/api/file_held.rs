//! Files that stand still, held back or over a route that is paused, and what people do meanwhile.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{pay_live, reference, status, until_files};
use crate::file_transport::{
    Over, acknowledge, close_window, column, configure, names, route, secrets, until_deliveries,
    with_files,
};
use crate::network::start_again;
use crate::restores::{back_up, restore};
use crate::sftp_server::Server;
use crate::test_host::{Engine, TestHost, config};

/// A dollar payout in a file that was made and cannot be delivered: its folder is gone.
async fn undelivered(host: &TestHost, server: &Server, accounts: &[&str]) -> Vec<String> {
    std::fs::rename(server.path("outgoing"), server.path("aside")).expect("moved");
    let mut ids = Vec::new();
    for account in accounts {
        ids.push(pay_live(host, account).await);
    }
    close_window(host, &ids).await;
    until_deliveries(host, 1).await;
    until_files(host, &[("assembled", 1)]).await;
    ids
}

fn deliverable(server: &Server) {
    std::fs::rename(server.path("aside"), server.path("outgoing")).expect("moved back");
}

async fn act(host: &TestHost, verb: &str) {
    let file = column(host, "id").await;
    let body = json!({ "reason": "a call with the bank" });
    host.admin(Method::POST, &format!("files/{file}/{verb}"), body).await.ok();
}

async fn hours_pass(host: &TestHost, hours: u64) {
    for _ in 0..hours {
        host.advance(3_600);
        let now = host.clock.now().micros();
        let due = format!(
            "SELECT COUNT(*) FROM payment_files WHERE due_at <= {now} \
             AND state NOT IN ('acknowledged', 'refused', 'empty')"
        );
        host.until_count(&due, 0).await;
    }
}

/// An operator has a file delivered after one loss of the database, and it is lost again: what was
/// decided then says nothing of what left since.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_loss_is_noticed_as_the_first_was(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let ids = undelivered(host, server, &["77"]).await;
        act(host, "deliver").await;
        until_deliveries(host, 2).await;
        let backup = back_up(host).await;
        deliverable(server);
        let mut with = config(&host.database);
        configure(&mut with, server, secrets(server));
        start_again(host, with.clone()).await;
        hours_pass(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        // The bank has fetched it.
        let outgoing = server.path("outgoing");
        let [name] = names(&outgoing).try_into().expect("one file");
        std::fs::remove_file(outgoing.join(name)).expect("removed");
        restore(host, &backup).await;
        start_again(host, with).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        hours_pass(host, 3).await;
        assert_eq!(names(&outgoing), [""; 0]);
        until_files(host, &[("assembled", 1)]).await;
        let held = "SELECT COUNT(*) FROM payment_files WHERE is_held = 1 AND may_have_left = 1";
        assert_eq!(host.count(held).await, 1);
        let open = "SELECT COUNT(*) FROM cases WHERE kind = 'file_forgotten' AND status = 'open'";
        assert_eq!(host.count(open).await, 1);
        acknowledge(host, server, &ids).await;
    })
    .await;
}

/// A file that does not leave is somebody's case once its network should have answered, whoever
/// keeps it back.
#[rstest]
#[case::held(Some("hold"))]
#[case::paused(None)]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_kept_back_past_its_time_is_somebodys_case(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] verb: Option<&str>,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let ids = undelivered(host, server, &["77"]).await;
        match verb {
            Some(verb) => act(host, verb).await,
            None => change_route(host, json!({ "is_paused": true })).await,
        }
        deliverable(server);
        let stuck = "SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck' AND status = 'open'";
        hours_pass(host, 1).await;
        assert_eq!(host.count(stuck).await, 0);
        host.advance(25 * 3_600);
        hours_pass(host, 1).await;
        assert_eq!(host.count(stuck).await, 1);
        assert_eq!(names(&server.path("outgoing")), [""; 0]);
        match verb {
            Some(_) => act(host, "release").await,
            None => change_route(host, json!({ "is_paused": false })).await,
        }
        hours_pass(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        acknowledge(host, server, &ids).await;
        assert_eq!(host.count(stuck).await, 0);
    })
    .await;
}

async fn change_route(host: &TestHost, body: Value) {
    let id = route(host).await["id"].as_str().expect("an id").to_owned();
    host.admin(Method::PATCH, &format!("routes/{id}"), body).await.ok();
}

/// Of a file that has not left and is held back a payment can be ended: the file is made again
/// without it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ended_in_a_file_that_is_held_back_does_not_leave_in_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let ids = undelivered(host, server, &["77", "78"]).await;
        let body = json!({ "reason": "a fraud", "evidence": "a call" });
        let path = format!("payouts/{}/mark_failed", ids[1]);
        let refused = host.admin(Method::POST, &path, body.clone()).await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        act(host, "hold").await;
        host.admin(Method::POST, &path, body).await.ok();
        assert_eq!(status(host, &ids[1]).await, "failed_manual");
        deliverable(server);
        hours_pass(host, 1).await;
        assert_eq!(names(&server.path("outgoing")), [""; 0]);
        act(host, "release").await;
        hours_pass(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        let outgoing = server.path("outgoing");
        let [name] = names(&outgoing).try_into().expect("one file");
        let content = std::fs::read_to_string(outgoing.join(name)).expect("a file");
        for (id, times) in ids.iter().zip([1, 0]) {
            assert_eq!(content.matches(&reference(host, id).await).count(), times, "{content}");
        }
        acknowledge(host, server, &ids[..1]).await;
        assert_eq!(status(host, &ids[1]).await, "failed_manual");
        assert_eq!(host.count("SELECT COUNT(*) FROM cases WHERE status = 'open'").await, 0);
    })
    .await;
}

/// The file left after the backup, and nobody has looked at it since the restore: until then no
/// operator decides anything about it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_about_a_file_before_it_is_seen_that_it_may_have_left(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let ids = undelivered(host, server, &["77"]).await;
        let backup = back_up(host).await;
        deliverable(server);
        let mut with = config(&host.database);
        configure(&mut with, server, secrets(server));
        start_again(host, with.clone()).await;
        hours_pass(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        restore(host, &backup).await;
        start_again(host, with).await;
        let file = column(host, "id").await;
        let refused = async |path: String| {
            let why = json!({ "reason": "it does not move", "evidence": "a look" });
            let why = if path.starts_with("files") { json!({ "reason": "a look" }) } else { why };
            assert_eq!(host.admin(Method::POST, &path, why).await.refused().0, 409, "{path}");
        };
        refused(format!("files/{file}/deliver")).await;
        refused(format!("payouts/{}/mark_failed", ids[0])).await;
        act(host, "hold").await;
        refused(format!("payouts/{}/mark_failed", ids[0])).await;
        refused(format!("files/{file}/release")).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        refused(format!("files/{file}/release")).await;
        let held = "SELECT COUNT(*) FROM payment_files WHERE is_held = 1 AND may_have_left = 1";
        host.until_count(held, 1).await;
        // The bank has had it all along.
        acknowledge(host, server, &ids).await;
    })
    .await;
}
