//! Files that the host carries itself, over SFTP and through a folder: paid once, whatever breaks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use russh::keys::decode_secret_key;
use russh::keys::ssh_key::LineEnding;
use serde_json::{Value, json};

use crate::ach::{UNTIL_MONDAY, UNTIL_TUESDAY, funded, pay_live, reference, status, until_files};
use crate::live::until;
use crate::network::start_again;
use crate::restores::{back_up, restore};
use crate::sftp_server::{Break, PASSWORD, RSA, Server, USER, key};
use crate::test_host::{Answer, Engine, TestHost, config, with, with_host_configured};

/// What the first file of these tests is called.
pub(crate) const NAME: &str = "ACH-20261123-00000001.ach";

/// How files travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Sftp,
    Folder,
}

/// The settings of the route that a bank would have given.
pub(crate) fn settings(deliver_to: &str, fetch_from: &str) -> Value {
    json!({
        "company_name": "ACME",
        "company_id": "1234567890",
        "origin": "121042882",
        "origin_name": "ACME INC",
        "destination": "121042882",
        "destination_name": "A BANK",
        "odfi": "12104288",
        "files.deliver_to": deliver_to,
        "files.fetch_from.incoming": fetch_from,
    })
}

fn addresses(over: Over, server: &Server) -> Value {
    let (port, root) = (server.port, server.folder.path().display());
    let of = |name: &str| match over {
        Over::Sftp => format!("sftp://{USER}@127.0.0.1:{port}/{name}"),
        Over::Folder => format!("file://{root}/{name}"),
    };
    settings(&of("outgoing"), &of("incoming"))
}

/// What the configuration says of a bank's server.
pub(crate) fn secrets(server: &Server) -> BTreeMap<String, String> {
    let secrets = [("sftp_host_key", server.print()), ("sftp_password", PASSWORD.to_owned())];
    secrets.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(crate) fn configure(config: &mut Config, server: &Server, secrets: BTreeMap<String, String>) {
    config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
    config.files.folders = vec![server.folder.path().to_owned()];
    config.routes.insert("usd_ach".to_owned(), secrets);
}

pub(crate) async fn route(host: &TestHost) -> Value {
    let routes = host.admin(Method::GET, "routes", json!({})).await.ok();
    let mut routes = routes.json["data"].as_array().expect("routes").clone().into_iter();
    routes.find(|route| route["name"] == "usd_ach" && route["env"] == "live").expect("a route")
}

/// Gives the route these settings and no others.
pub(crate) async fn set(host: &TestHost, settings: Value) -> Answer {
    let before = route(host).await;
    let id = before["id"].as_str().expect("an id").to_owned();
    let gone = before["settings"].as_object().expect("settings").keys();
    let gone: Value = gone.map(|name| (name.clone(), Value::Null)).collect();
    let body = json!({ "settings": with(gone, settings) });
    host.admin(Method::PATCH, &format!("routes/{id}"), body).await
}

/// A host whose dollars travel like this.
pub(crate) async fn with_files(
    engine: Engine,
    over: Over,
    test: impl AsyncFnOnce(&mut TestHost, &Server),
) {
    let server = Server::open().await;
    let change = |config: &mut Config| configure(config, &server, secrets(&server));
    with_host_configured(engine, change, async |host| {
        let route = set(host, addresses(over, &server)).await.ok();
        assert_eq!(route.json["missing"], json!(null));
        funded(host, &host.merchant.live_key).await;
        test(host, &server).await;
    })
    .await;
}

/// Lets the window close on what waits.
pub(crate) async fn close_window(host: &TestHost, ids: &[String]) {
    host.advance(UNTIL_MONDAY);
    for id in ids {
        until(host, id, "processing").await;
    }
    host.advance(2);
}

pub(crate) async fn until_deliveries(host: &TestHost, wanted: i64) {
    host.until_count("SELECT deliveries FROM payment_files", wanted).await;
    let idle = "SELECT COUNT(*) FROM payment_files WHERE lease_until = 0";
    host.until_count(idle, 1).await;
}

pub(crate) async fn column(host: &TestHost, name: &str) -> String {
    let sql = format!("SELECT {name} FROM payment_files");
    let sql = sqlx::AssertSqlSafe(sql);
    sqlx::query_scalar(sql).fetch_one(host.app().db.pool()).await.expect("a file")
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// What a bank would carry out: how often each reference lies there.
async fn prove_once(host: &TestHost, server: &Server, ids: &[String]) {
    assert_eq!(names(&server.path("outgoing")), [NAME]);
    let content = std::fs::read_to_string(server.path("outgoing").join(NAME)).expect("a file");
    for id in ids {
        assert_eq!(content.matches(&reference(host, id).await).count(), 1, "{content}");
    }
}

/// Puts a file where the host fetches, of so many seconds from now on the host's clock.
pub(crate) fn put(host: &TestHost, path: &Path, content: &str, seconds: i64) {
    let (folder, name) = (path.parent().expect("a folder"), path.file_name().expect("a name"));
    let begun = folder.join(format!(".begun-{}", name.to_string_lossy()));
    std::fs::write(&begun, content).expect("written");
    let now = UNIX_EPOCH + Duration::from_millis(host.clock.now().millis());
    let by = Duration::from_secs(seconds.unsigned_abs());
    let date = if seconds < 0 { now - by } else { now + by };
    let file = std::fs::File::options().write(true).open(&begun).expect("a file");
    file.set_modified(date).expect("a date");
    std::fs::rename(begun, path).expect("renamed");
}

/// What the largest file comes to; a cent where there is none.
pub(crate) async fn total(host: &TestHost) -> i64 {
    host.count("SELECT CAST(COALESCE(MAX(amount_minor), 1) AS BIGINT) FROM payment_files").await
}

async fn report(host: &TestHost) -> String {
    let (code, total) = (column(host, "identity").await, total(host).await);
    json!({ "report": "file", "reference_code": code, "status": "accepted", "total_credit": total })
        .to_string()
}

/// The bank's report comes, and the value date.
pub(crate) async fn acknowledge(host: &TestHost, server: &Server, ids: &[String]) {
    put(host, &server.path("incoming").join("report.json"), &report(host).await, -60);
    host.advance(300);
    until_files(host, &[("acknowledged", 1)]).await;
    host.advance(UNTIL_TUESDAY);
    for id in ids {
        until(host, id, "paid").await;
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_are_delivered_and_fetched(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Over::Sftp, Over::Folder)] over: Over,
) {
    with_files(engine, over, async |host, server| {
        let ids = [pay_live(host, "77").await, pay_live(host, "78").await];
        close_window(host, &ids).await;
        until_files(host, &[("delivered", 1)]).await;
        prove_once(host, server, &ids).await;
        let incoming = server.path("incoming");
        std::fs::create_dir(incoming.join("archive")).expect("a folder");
        for name in [".report.json", "report.json.part", "report.json.filepart", "later.tmp"] {
            put(host, &incoming.join(name), "not finished", -60);
        }
        put(host, &incoming.join("other.txt"), "what nobody understands", -90);
        // Of this very moment: it may still grow.
        put(host, &incoming.join("report.json"), &report(host).await, 0);
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        assert_eq!(column(host, "state").await, "delivered");
        host.advance(300);
        until_files(host, &[("acknowledged", 1)]).await;
        host.until_count("SELECT COUNT(*) FROM inbox", 2).await;
        // Many at once, of which one was put there late with an early date.
        for number in 0..45 {
            let name = format!("many-{number:02}.txt");
            put(host, &incoming.join(name), &format!("number {number}"), -200 + number);
        }
        host.advance(300);
        host.until_count("SELECT COUNT(*) FROM inbox", 47).await;
        put(host, &incoming.join("late.txt"), "late", -80_000);
        // A copy of what was read is read again, and is not new.
        put(host, &incoming.join("report.json"), &report(host).await, -120);
        host.advance(300);
        host.until_count("SELECT COUNT(*) FROM inbox", 48).await;
        host.advance(UNTIL_TUESDAY);
        for id in &ids {
            until(host, id, "paid").await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 48);
        assert_eq!(names(&incoming).len(), 53, "what was fetched is left");
        prove_once(host, server, &ids).await;
        if over == Over::Sftp {
            let seen = server.seen();
            assert_eq!((seen.renames, seen.syncs), (1, 1));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_before_the_renaming_goes_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Break::Writing, Break::Losing)] at: Break,
) {
    with_files(engine, Over::Sftp, async |host, server| {
        server.breaks(at);
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_deliveries(host, 1).await;
        until_files(host, &[("assembled", 1)]).await;
        assert_eq!(host.count("SELECT may_have_left FROM payment_files").await, 0);
        host.advance(61);
        until_deliveries(host, 2).await;
        assert_eq!(names(&server.path("outgoing")), [format!(".{NAME}.part")]);
        server.breaks(Break::Nowhere);
        host.advance(121);
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(server.seen().renames, 1);
        prove_once(host, server, &ids).await;
        acknowledge(host, server, &ids).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_renamed_is_found_and_not_delivered_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Break::BeforeAnswering, Break::AfterAnswering)] at: Break,
) {
    with_files(engine, Over::Sftp, async |host, server| {
        server.breaks(at);
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_deliveries(host, 1).await;
        if at == Break::BeforeAnswering {
            until_files(host, &[("unclear", 1)]).await;
            host.advance(11);
        }
        until_files(host, &[("delivered", 1)]).await;
        host.advance(3_600);
        acknowledge(host, server, &ids).await;
        assert_eq!((server.seen().renames, host.count(DELIVERIES).await), (1, 1));
        prove_once(host, server, &ids).await;
    })
    .await;
}

const DELIVERIES: &str = "SELECT deliveries FROM payment_files";
const CASES: &str = "SELECT COUNT(*) FROM cases WHERE kind = 'file_unacknowledged' \
                     AND status = 'open'";

pub(crate) async fn deliver_again(host: &TestHost) {
    let path = format!("files/{}/deliver", column(host, "id").await);
    let body = json!({ "reason": "the bank says that it never had it" });
    // Whoever looks at the file this moment comes first.
    let mut answer = host.admin(Method::POST, &path, body.clone()).await;
    for _ in 0..600 {
        if answer.status != 409 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        answer = host.admin(Method::POST, &path, body.clone()).await;
    }
    answer.ok();
    host.advance(2);
}

/// Nobody knows whether the server has renamed the file, and the bank may have fetched it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_renamed_is_delivered_again_by_an_operator_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Break::BeforeRenaming, Break::Refusing)] at: Break,
) {
    with_files(engine, Over::Sftp, async |host, server| {
        server.breaks(at);
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_files(host, &[("unclear", 1)]).await;
        server.breaks(Break::Nowhere);
        for _ in 0..5 {
            host.advance(3_700);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        host.until_count(CASES, 1).await;
        assert_eq!((server.seen().renames, host.count(DELIVERIES).await), (1, 1));
        assert_eq!(status(host, &ids[0]).await, "processing");
        deliver_again(host).await;
        until_files(host, &[("delivered", 1)]).await;
        acknowledge(host, server, &ids).await;
        host.until_count(CASES, 0).await;
        prove_once(host, server, &ids).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_lies_there_is_left_as_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Over::Sftp, Over::Folder)] over: Over,
) {
    with_files(engine, over, async |host, server| {
        let lies = server.path("outgoing").join(NAME);
        std::fs::write(&lies, "somebody else's").expect("written");
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_files(host, &[("unclear", 1)]).await;
        host.advance(11);
        until_deliveries(host, 1).await;
        assert!(column(host, "message").await.contains("another file"), "and not found either");
        assert_eq!(std::fs::read_to_string(&lies).expect("a file"), "somebody else's");
        // A person has it moved away; then the very bytes lie there, and are not written again.
        std::fs::remove_file(&lies).expect("removed");
        deliver_again(host).await;
        until_files(host, &[("delivered", 1)]).await;
        prove_once(host, server, &ids).await;
        let before = std::fs::metadata(&lies).expect("a file").modified().expect("a date");
        deliver_again(host).await;
        until_deliveries(host, 3).await;
        until_files(host, &[("delivered", 1)]).await;
        let after = std::fs::metadata(&lies).expect("a file").modified().expect("a date");
        assert_eq!(before, after);
        acknowledge(host, server, &ids).await;
    })
    .await;
}

/// Stops the host and starts it with other secrets.
async fn restart(host: &mut TestHost, server: &Server, secrets: BTreeMap<String, String>) {
    host.running.take().expect("a host").stop().await.expect("stopped in order");
    let mut config = config(&host.database);
    configure(&mut config, server, secrets);
    start_again(host, config).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_leaves_for_another_server_or_without_being_let_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_files(engine, Over::Sftp, async |host, server| {
        let right = secrets(server);
        let other = key(9).public_key().to_openssh().expect("a line");
        let with = |name: &str, value: &str| {
            let mut secrets = right.clone();
            secrets.insert(name.to_owned(), value.to_owned());
            secrets
        };
        restart(host, server, with("sftp_host_key", &other)).await;
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_deliveries(host, 1).await;
        let why = column(host, "message").await;
        assert!(why.contains(&server.print()), "{why}");
        assert!(server.seen().passwords.is_empty(), "who is not known is told no password");
        restart(host, server, with("sftp_password", "wrong horse")).await;
        host.advance(61);
        until_deliveries(host, 2).await;
        let why = column(host, "message").await;
        assert!(why.contains("does not let acme in") && !why.contains("horse"), "{why}");
        assert_eq!(server.seen().passwords, ["wrong horse"]);
        // What is not allowed to be reached is not reached.
        host.running.take().expect("a host").stop().await.expect("stopped in order");
        let mut closed = config(&host.database);
        configure(&mut closed, server, right.clone());
        closed.egress.allow_private_networks.clear();
        start_again(host, closed).await;
        let before = server.seen().connections;
        host.advance(121);
        until_deliveries(host, 3).await;
        assert!(column(host, "message").await.contains("no public address"));
        assert_eq!(server.seen().connections, before);
        assert!(names(&server.path("outgoing")).is_empty());
        restart(host, server, right.clone()).await;
        host.advance(241);
        until_files(host, &[("delivered", 1)]).await;
        acknowledge(host, server, &ids).await;
        prove_once(host, server, &ids).await;
    })
    .await;
}

/// Every kind of key, on both sides: the server is known by a line or by one of several.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn keys_log_in(#[values("ed25519", "rsa")] kind: &str) {
    let rsa = decode_secret_key(RSA, None).expect("a key");
    let (own, pem) = match kind {
        "rsa" => (rsa, RSA.to_owned()),
        _ => (key(1), key(2).to_openssh(LineEnding::LF).expect("a key").to_string()),
    };
    let server = Server::open_with(own).await;
    let line = server.key.to_openssh().expect("a line");
    let other = key(7).public_key().to_openssh().expect("a line");
    let known = format!("{other} an old one\n\n{line} sftp.bank.example\n");
    let secrets = [("sftp_host_key", known), ("sftp_key", pem)];
    let secrets = secrets.map(|(name, value)| (name.to_owned(), value));
    let change = |config: &mut Config| configure(config, &server, BTreeMap::from(secrets));
    with_host_configured(Engine::Sqlite, change, async |host| {
        set(host, addresses(Over::Sftp, &server)).await.ok();
        funded(host, &host.merchant.live_key).await;
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_files(host, &[("delivered", 1)]).await;
        acknowledge(host, &server, &ids).await;
        prove_once(host, &server, &ids).await;
        assert!(server.seen().passwords.is_empty());
    })
    .await;
}

/// Whoever may write into the folder leads the host nowhere else.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn links_lead_out_of_no_folder(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_files(engine, Over::Folder, async |host, server| {
        let elsewhere = tempfile::tempdir().expect("a folder");
        let secret: PathBuf = elsewhere.path().join("secret");
        put(host, &secret, "a secret", -60);
        let (outgoing, incoming) = (server.path("outgoing"), server.path("incoming"));
        std::fs::remove_dir(&outgoing).expect("removed");
        std::os::unix::fs::symlink(elsewhere.path(), &outgoing).expect("a link");
        std::os::unix::fs::symlink(&secret, incoming.join("report.json")).expect("a link");
        let ids = [pay_live(host, "77").await];
        close_window(host, &ids).await;
        until_deliveries(host, 1).await;
        until_files(host, &[("assembled", 1)]).await;
        assert_eq!(names(elsewhere.path()), ["secret"]);
        std::fs::remove_file(&outgoing).expect("removed");
        std::fs::create_dir(&outgoing).expect("a folder");
        // What is written under is a link, too.
        let part = outgoing.join(format!(".{NAME}.part"));
        std::os::unix::fs::symlink(&secret, &part).expect("a link");
        host.advance(61);
        until_files(host, &[("delivered", 1)]).await;
        assert_eq!(std::fs::read_to_string(&secret).expect("a file"), "a secret");
        host.advance(300);
        std::fs::remove_file(incoming.join("report.json")).expect("removed");
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 0);
        acknowledge(host, server, &ids).await;
        prove_once(host, server, &ids).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_route_lacks_is_said(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = Server::open().await;
    let change = |config: &mut Config| configure(config, &server, BTreeMap::new());
    with_host_configured(engine, change, async |host| {
        let sftp = |path: &str| format!("sftp://{USER}@127.0.0.1:{}/{path}", server.port);
        let inside = format!("file://{}/x", server.folder.path().display());
        for (deliver, fetch, lacks) in [
            (sftp("out"), sftp("in"), "routes.usd_ach.sftp_host_key is not configured"),
            (inside.clone(), sftp("in"), "files.fetch_from.incoming: routes.usd_ach.sftp_host_key"),
            ("file:///etc".to_owned(), inside.clone(), "none of the folders of files.folders"),
            (inside.clone(), format!("{inside}/"), "is where files are delivered to"),
        ] {
            let route = set(host, settings(&deliver, &fetch)).await.ok().json;
            assert!(route["missing"].as_str().is_some_and(|why| why.contains(lacks)), "{route}");
        }
        // What the rail fetches itself takes its own address and key.
        let half = with(settings(&inside, &inside), json!({ "files.fetch_from.incoming": null }));
        let route = set(host, half).await.ok().json;
        let missing = route["missing"].as_str().expect("something is missing");
        assert!(missing.contains("api_key") || missing.contains("endpoint.gateway"), "{missing}");
        for wrong in [
            "ftp://a@bank.example/out",
            "https://bank.example/out",
            "sftp://a:secret@bank.example/out",
            "sftp://bank.example/out",
            "file://etc",
            "file:///srv/../etc",
        ] {
            let refused = set(host, settings(wrong, &inside)).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{wrong}");
            assert!(!refused.text.contains("secret"), "{}", refused.text);
        }
        let feed =
            with(settings(&inside, &inside), json!({ "files.fetch_from.other": "file:///x" }));
        assert_eq!(set(host, feed).await.refused(), (400, "invalid_field"));
    })
    .await;
}

/// The file left after the backup, and the database says that nothing of it has. It is held back;
/// what the bank says of it counts, what an operator ends stays ended, and then no copy leaves.
#[rstest]
#[case::acknowledged(true)]
#[case::given_back(false)]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_left_after_the_backup_is_the_banks_to_tell_of(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] is_acknowledged: bool,
) {
    with_files(engine, Over::Folder, async |host, server| {
        let (outgoing, aside) = (server.path("outgoing"), server.path("aside"));
        std::fs::rename(&outgoing, &aside).expect("moved");
        let id = pay_live(host, "77").await;
        close_window(host, std::slice::from_ref(&id)).await;
        until_deliveries(host, 1).await;
        let backup = back_up(host).await;
        std::fs::rename(&aside, &outgoing).expect("moved back");
        let mut with = config(&host.database);
        configure(&mut with, server, secrets(server));
        start_again(host, with.clone()).await;
        host.advance(61);
        until_files(host, &[("delivered", 1)]).await;
        restore(host, &backup).await;
        start_again(host, with).await;
        let body = json!({ "reason": "the statement was compared" });
        host.admin(Method::POST, "quarantine/release", body).await.ok();
        host.advance(3_600);
        host.until_count("SELECT COUNT(*) FROM payment_files WHERE restored_at > 0", 1).await;
        until_files(host, &[("assembled", 1)]).await;
        let file: String = column(host, "id").await;
        if is_acknowledged {
            acknowledge(host, server, &[id]).await;
            let open = "SELECT COUNT(*) FROM cases WHERE kind = 'file_forgotten' \
                        AND status = 'open'";
            host.until_count(open, 0).await;
        } else {
            let body = json!({ "reason": "lost", "evidence": "a call from the bank" });
            host.admin(Method::POST, &format!("payouts/{id}/mark_failed"), body).await.ok();
            for verb in ["release", "deliver"] {
                let body = json!({ "reason": "the bank never had it" });
                let refused = host.admin(Method::POST, &format!("files/{file}/{verb}"), body).await;
                assert_eq!(refused.refused(), (409, "state_conflict"), "{verb}");
            }
        }
        assert_eq!(names(&outgoing), [NAME]);
        let received = std::fs::metadata(outgoing.join(NAME)).expect("a file");
        assert!(received.len() > 0);
        assert_eq!(host.count("SELECT copies FROM payment_files").await, 0);
    })
    .await;
}
