//! What banks say of files: believed as far as it fits, and never so that somebody is paid twice.

use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::{UNTIL_TUESDAY, pay_live, reference, status, until_files};
use crate::file_transport::{
    Over, acknowledge, close_window, column, deliver_again, names, put, total, with_files,
};
use crate::hostile::with_hostile;
use crate::live::until;
use crate::sftp_server::Server;
use crate::test_host::{Engine, TestHost};
use crate::under_way::until_it_waits;

/// Puts a report on the first file where the host fetches, and has it fetched.
async fn tell(host: &TestHost, server: &Server, name: &str, changes: Value) {
    let mut report = json!({ "report": "file", "reference_code": "00000001" });
    for (member, value) in changes.as_object().expect("an object") {
        report[member] = value.clone();
    }
    if report["status"] == "accepted" && report["total_credit"].is_null() {
        report["total_credit"] = total(host).await.into();
    }
    put(host, &server.path("incoming").join(name), &report.to_string(), -60);
    host.advance(300);
    // Until it was taken in, or found to be for later.
    host.until_count("SELECT COUNT(*) FROM inbox WHERE lease_until > 0", 0).await;
}

async fn taken(host: &TestHost, wanted: i64) {
    host.until_count("SELECT COUNT(*) FROM inbox", wanted).await;
    host.until_count("SELECT COUNT(*) FROM inbox WHERE lease_until > 0", 0).await;
}

async fn open_cases(host: &TestHost, kind: &str) -> i64 {
    let sql = "SELECT COUNT(*) FROM cases WHERE kind = $1 AND status = 'open'";
    sqlx::query_scalar(sql).bind(kind).fetch_one(host.app().db.pool()).await.expect("a number")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_a_file_left_is_of_another_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        tell(host, server, "old.json", json!({ "status": "accepted" })).await;
        taken(host, 1).await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        for _ in 0..12 {
            host.advance(3_600);
            tokio::time::sleep(std::time::Duration::from_millis(40)).await;
        }
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(status(host, &id).await, "processing");
        acknowledge(host, server, &[id]).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn another_total_or_an_entry_that_nobody_knows_is_no_acknowledgement(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        let wrong = json!({ "status": "accepted", "entries": 1, "total_credit": 1 });
        tell(host, server, "wrong.json", wrong).await;
        taken(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        let rejected = json!([{ "trace_number": "121042889999999", "code": "x", "message": "y" }]);
        let strange = json!({ "status": "accepted", "rejected_entries": rejected });
        tell(host, server, "strange.json", strange).await;
        taken(host, 2).await;
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(open_cases(host, "unknown_reference").await, 1);
        // Nobody understands it at all.
        put(host, &server.path("incoming").join("odd.txt"), "odd", -60);
        host.advance(300);
        taken(host, 3).await;
        assert_eq!(open_cases(host, "unreadable_message").await, 1);
        acknowledge(host, server, &[id]).await;
    })
    .await;
}

/// A report names a payment that nobody knows, so that its word on the file does not count: until a
/// person has looked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_report_counts_once_a_person_has_looked_at_its_strangers(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        let rejected = json!([{ "trace_number": "121042889999999", "code": "x", "message": "y" }]);
        let strange = json!({ "status": "accepted", "rejected_entries": rejected });
        tell(host, server, "strange.json", strange).await;
        taken(host, 1).await;
        for _ in 0..40 {
            host.advance(2 * 3_600);
            let now = host.clock.now().micros();
            let due = format!("SELECT COUNT(*) FROM inbox WHERE state = 'new' AND due_at <= {now}");
            host.until_count(&due, 0).await;
        }
        until_files(host, &[("delivered", 1)]).await;
        resolve(host, "unknown_reference").await;
        host.advance(3_600);
        until_files(host, &[("acknowledged", 1)]).await;
        until(host, &id, "paid").await;
        host.until_count("SELECT COUNT(*) FROM inbox WHERE state = 'unmatched'", 1).await;
        assert_eq!(open_cases(host, "unknown_reference").await, 0);
    })
    .await;
}

/// The same where one of the entries makes no sense, and another file is spoken of first.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_beside_a_stranger_loses_no_word_on_the_file(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, till| {
        let ids = crate::hostile_files::paid_with(host, &["pay", "pay"]).await;
        until_files(host, &[("delivered", 1)]).await;
        let odd = crate::hostile::attempt(host, &ids[0]).await.0;
        let file = crate::hostile_files::identity(host).await;
        till.lay(&format!(
            "returned {odd} 0\naccepted nobodys 0\nreturned a-stranger 5\naccepted {file} 0"
        ));
        host.advance(300);
        taken(host, 1).await;
        until_files(host, &[("delivered", 1)]).await;
        resolve_all(host, "unknown_reference").await;
        host.advance(3_600);
        until_files(host, &[("acknowledged", 1)]).await;
    })
    .await;
}

/// Of two copies that were delivered the bank may refuse one and carry out the other.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_refused_says_nothing_of_the_one_before(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        deliver_again(host).await;
        host.advance(2);
        host.until_count("SELECT deliveries FROM payment_files", 2).await;
        let refused =
            json!({ "status": "rejected", "code": "exposure_limit", "message": "too much" });
        tell(host, server, "refused.json", refused).await;
        taken(host, 1).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        host.advance(24 * 3600);
        assert_ne!(column(host, "state").await, "refused");
        assert_eq!(names(&server.path("outgoing")).len(), 1);
        assert_eq!(status(host, &id).await, "processing");
    })
    .await;
}

/// Refused, and acknowledged after that: nothing of it goes into another file.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_contradicts_itself_is_sent_nothing_more(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let (id, marked) = (pay_live(host, "77").await, pay_live(host, "78").await);
        close_window(host, &[id.clone(), marked.clone()]).await;
        until_files(host, &[("delivered", 1)]).await;
        let path = format!("payouts/{marked}/mark_paid");
        let body = json!({ "reason": "seen", "evidence": "a statement" });
        host.admin(http::Method::POST, &path, body).await.ok();
        let refused =
            json!({ "status": "rejected", "code": "exposure_limit", "message": "too much" });
        tell(host, server, "refused.json", refused).await;
        until_files(host, &[("refused", 1)]).await;
        // What an operator has ended otherwise is a case of its own.
        taken(host, 1).await;
        assert_eq!(open_cases(host, "refused_after_payment").await, 1);
        tell(host, server, "accepted.json", json!({ "status": "accepted" })).await;
        taken(host, 2).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        for _ in 0..30 {
            host.advance(3_600);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        host.advance(UNTIL_TUESDAY);
        until(host, &id, "processing").await;
        assert_eq!(names(&server.path("outgoing")).len(), 1);
        assert!(reference(host, &id).await.starts_with('R'));
    })
    .await;
}

/// Acknowledged, and refused after that: nobody is paid of it by itself, and whatever else would
/// leave waits until a person has decided.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_and_then_refused_is_not_paid_by_itself(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        // A wrong total first: a case about the same file, which a person ends.
        let wrong = json!({ "status": "accepted", "entries": 1, "total_credit": 1 });
        tell(host, server, "wrong.json", wrong).await;
        taken(host, 1).await;
        resolve(host, "file_contradicted").await;
        tell(host, server, "accepted.json", json!({ "status": "accepted" })).await;
        until_files(host, &[("acknowledged", 1)]).await;
        let refused =
            json!({ "status": "rejected", "code": "exposure_limit", "message": "too much" });
        tell(host, server, "refused.json", refused).await;
        taken(host, 3).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        let later = pay_live(host, "78").await;
        until_its_window(host, &later).await;
        until(host, &later, "processing").await;
        for _ in 0..40 {
            host.advance(3_600);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        assert_eq!(status(host, &id).await, "processing");
        until_files(host, &[("acknowledged", 1), ("assembled", 1)]).await;
        assert_eq!(names(&server.path("outgoing")).len(), 1);
        resolve(host, "file_contradicted").await;
        host.advance(60);
        until_files(host, &[("acknowledged", 1), ("delivered", 1)]).await;
        assert_eq!(status(host, &id).await, "processing");
    })
    .await;
}

/// What does not fit keeps its payments back as well, until a person has looked.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stopped_after_it_was_acknowledged_is_not_paid_by_itself(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        tell(host, server, "accepted.json", json!({ "status": "accepted" })).await;
        until_files(host, &[("acknowledged", 1)]).await;
        let stopped =
            json!({ "status": "rejected", "code": "stopped", "message": "by compliance" });
        tell(host, server, "stopped.json", stopped).await;
        taken(host, 2).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        let its = until_it_waits(host, &id, "person").await;
        assert_eq!(its["cases"][0]["kind"], "file_contradicted", "{its}");
        for _ in 0..80 {
            host.advance(3_600);
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
        assert_eq!(status(host, &id).await, "processing");
        resolve(host, "file_contradicted").await;
        host.advance(3_600);
        until(host, &id, "paid").await;
    })
    .await;
}

/// Who says the same again once it has acknowledged the file says something else.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_again_after_an_acknowledgement_is_news(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_files(host, &[("delivered", 1)]).await;
        let stopped =
            json!({ "status": "rejected", "code": "stopped", "message": "by compliance" });
        tell(host, server, "first.json", stopped.clone()).await;
        taken(host, 1).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        tell(host, server, "accepted.json", json!({ "status": "accepted" })).await;
        until_files(host, &[("acknowledged", 1)]).await;
        tell(host, server, "again.json", stopped).await;
        taken(host, 3).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 2);
        resolve_all(host, "file_contradicted").await;
        host.advance(80 * 3_600);
        until(host, &id, "paid").await;
    })
    .await;
}

/// A delivery of which nothing arrived is no copy: what is refused then goes with another file.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_delivered_once_is_refused_whole(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let (outgoing, aside) = (server.path("outgoing"), server.path("aside"));
        std::fs::rename(&outgoing, &aside).expect("moved");
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        host.until_count("SELECT deliveries FROM payment_files", 1).await;
        until_files(host, &[("assembled", 1)]).await;
        // For a day: that nothing of it has left is what a person is told.
        host.advance(24 * 3600);
        host.until_count("SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck'", 1).await;
        assert_eq!(open_cases(host, "file_unacknowledged").await, 0);
        std::fs::rename(&aside, &outgoing).expect("moved back");
        host.advance(3_700);
        until_files(host, &[("delivered", 1)]).await;
        assert!(host.count("SELECT deliveries FROM payment_files").await > 1);
        assert_eq!(host.count("SELECT copies FROM payment_files").await, 1);
        let refused =
            json!({ "status": "rejected", "code": "exposure_limit", "message": "too much" });
        tell(host, server, "refused.json", refused).await;
        host.until_count("SELECT COUNT(*) FROM payment_files WHERE state = 'refused'", 1).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 0);
        let stuck = "SELECT COUNT(*) FROM cases WHERE kind = 'file_stuck' AND status = 'open'";
        host.until_count(stuck, 0).await;
        // Nothing of it was carried out: it waits for the next window, and its file's case is told.
        let its = until_it_waits(host, &id, "window").await;
        assert_eq!(its["file"]["state"], "refused");
        assert_eq!(its["cases"][0]["kind"], "file_refused", "{its}");
        until_its_window(host, &id).await;
        host.until_count("SELECT COUNT(*) FROM payment_files", 2).await;
        host.advance(2);
        host.until_count("SELECT COUNT(*) FROM payment_files WHERE state = 'delivered'", 1).await;
        assert_eq!(names(&outgoing).len(), 2);
    })
    .await;
}

/// The refusal of a copy ends nobody's payment, those not either that an operator has ended.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_copy_contradicts_no_mark(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let (id, marked) = (pay_live(host, "77").await, pay_live(host, "78").await);
        close_window(host, &[id.clone(), marked.clone()]).await;
        until_files(host, &[("delivered", 1)]).await;
        deliver_again(host).await;
        host.advance(2);
        host.until_count("SELECT copies FROM payment_files", 2).await;
        let path = format!("payouts/{marked}/mark_paid");
        let body = json!({ "reason": "seen", "evidence": "a statement" });
        host.admin(http::Method::POST, &path, body).await.ok();
        let refused =
            json!({ "status": "rejected", "code": "exposure_limit", "message": "too much" });
        tell(host, server, "refused.json", refused).await;
        taken(host, 1).await;
        assert_eq!(open_cases(host, "file_contradicted").await, 1);
        assert_eq!(open_cases(host, "refused_after_payment").await, 0);
        acknowledge(host, server, &[id]).await;
        assert_eq!(status(host, &marked).await, "paid_manual");
    })
    .await;
}

/// Lets the window close that a payment waits for.
async fn until_its_window(host: &TestHost, id: &str) {
    let now = host.clock.now().micros();
    let waits = format!("SELECT COUNT(*) FROM transfers WHERE id = '{id}' AND due_at > {now}");
    host.until_count(&waits, 1).await;
    let due = format!("SELECT due_at FROM transfers WHERE id = '{id}'");
    let micros = host.count(&due).await - now;
    host.advance(u64::try_from(micros / 1_000_000).expect("later") + 1);
}

/// Has a person end every open case of a kind.
async fn resolve_all(host: &TestHost, kind: &str) {
    while open_cases(host, kind).await > 0 {
        resolve(host, kind).await;
    }
}

/// Has a person end the open case of a kind.
async fn resolve(host: &TestHost, kind: &str) {
    let sql = "SELECT id FROM cases WHERE kind = $1 AND status = 'open' LIMIT 1";
    let pool = host.app().db.pool();
    let case: String = sqlx::query_scalar(sql).bind(kind).fetch_one(pool).await.expect("a case");
    let body = json!({ "resolution": "acknowledge", "evidence": "a call with the bank" });
    host.admin(http::Method::POST, &format!("cases/{case}/resolve"), body).await.ok();
}
