//! Connections from outside: slow ones, many at once, encrypted ones, and doors of their own.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use http::Method;
use railhead::clock::Clock;
use railhead::config::Config;
use railhead::id::IdGenerator;
use railhead::keyring::Keyring;
use railhead::start::{Sources, start};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::receiver::{authority_file, certificate_files};
use crate::team::join;
use crate::test_host::{
    Answer, Database, Engine, OPERATOR_TOKEN, TestHost, client, config, naira, unique, with_host,
    with_host_configured,
};

/// As few as a host can be given.
const PLACES: usize = 16;

fn few(config: &mut Config) {
    config.server.connections_max = PLACES;
}

async fn say(host: &TestHost, words: &str) -> TcpStream {
    let address: SocketAddr = host.base.trim_start_matches("http://").parse().expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(words.as_bytes()).await.expect("sent");
    stream
}

/// Starts a host of one's own making, beside the usual one.
async fn started(
    database: &Database,
    change: impl FnOnce(&mut Config),
) -> Result<railhead::start::Host, railhead::start::StartError> {
    let mut config = config(database);
    change(&mut config);
    let sources = Sources { ids: IdGenerator::seeded(Clock::System, 7), clock: Clock::System };
    start(config, sources).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_half_sent_heads_take_nobody_elses_place(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, few, async |host| {
        let mut half = Vec::new();
        for _ in 0..300 {
            half.push(say(host, "POST /v1/payouts HTTP/1.1\r\nhost: railhead\r\nx-").await);
        }
        let health = client().get(format!("{}/healthz", host.base)).send().await;
        assert_eq!(health.expect("an answer").status(), 200);
        host.pay("paid", naira(100_000)).await.ok();
        // The first ones have given way; the last ones are still waited for.
        let mut heard = Vec::new();
        half[0].read_to_end(&mut heard).await.expect("closed");
        assert!(heard.is_empty());
    })
    .await;
}

/// A request is begun with a good key or session, and its last byte is kept back until that is gone.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_the_right_while_a_body_arrived_has_lost_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let merchant = host.merchant.id.clone();
        let admin = join(host, &merchant, ("ada", "admin")).await;
        let path = format!("/admin/v1/merchants/{merchant}/keys");
        let key = json!({ "env": "test", "label": "mine", "capabilities": ["payout_create"] });
        let live = host.merchant.live_key.clone();
        // Whose limits are others by then is to say it again.
        let mut early = begin(host, (&live, "/v1/payouts"), &naira(100_000)).await;
        let limits = json!({ "limits": { "NGN": { "per_transaction_minor": "1" } } });
        host.admin(Method::PATCH, &format!("merchants/{merchant}"), limits).await.ok();
        tokio::time::sleep(Duration::from_millis(120)).await;
        assert_eq!(finish(&mut early).await, "503");
        let mut begun = vec![
            begin(host, (&live, "/v1/payouts"), &naira(100_000)).await,
            begin(host, (&admin.token, &path), &key).await,
        ];
        let one = format!("members/{}", admin.id);
        host.admin(Method::DELETE, &one, json!({ "reason": "left" })).await.ok();
        host.admin(
            Method::PATCH,
            &format!("merchants/{merchant}"),
            json!({ "status": "suspended" }),
        )
        .await
        .ok();
        // Longer than a body takes that is on its way.
        tokio::time::sleep(Duration::from_millis(120)).await;
        let mut heard = Vec::new();
        for stream in &mut begun {
            heard.push(finish(stream).await);
        }
        assert_eq!(heard, ["403", "401"]);
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
        assert_eq!(host.count("SELECT COUNT(*) FROM api_keys WHERE label = 'mine'").await, 0);
    })
    .await;
}

/// Sends the last byte of a request; the status of the answer.
async fn finish(stream: &mut TcpStream) -> String {
    stream.write_all(b"}").await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

/// Sends all of a request but its last byte.
async fn begin(host: &TestHost, (who, path): (&str, &str), body: &Value) -> TcpStream {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: railhead\r\nauthorization: Bearer {who}\r\n\
         idempotency-key: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        unique(),
        body.len()
    );
    say(host, &(head + &body[..body.len() - 1])).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_host_says_so_and_says_how_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host_configured(engine, few, async |host| {
        let keys = [host.merchant.test_key.clone(), host.merchant.live_key.clone()];
        let get = async |path: &str| {
            let request = client().get(format!("{}{path}", host.base)).bearer_auth(&keys[0]);
            Answer::of(request.send().await.expect("an answer")).await
        };
        // What takes long takes a quarter of the places, whoever asks for it.
        let listen = async |key: &str| {
            let url = format!("{}/v1/events/stream", host.base);
            client().get(url).bearer_auth(key).send().await.expect("an answer")
        };
        let mut streams = Vec::new();
        for number in 0..PLACES / 4 {
            let stream = listen(&keys[number % 2]).await;
            assert_eq!(stream.status(), 200);
            streams.push(stream);
        }
        // An answer that goes on has a status, and no end.
        let refused = listen(&keys[0]).await;
        assert_eq!(refused.status(), 503);
        assert_eq!(Answer::of(refused).await.refused(), (503, "service_overloaded"));
        assert_eq!(get("/v1/wallets").await.status, 200);
        let mut half = Vec::new();
        for _ in 0..PLACES - PLACES / 4 {
            let head = format!(
                "POST /v1/payouts HTTP/1.1\r\nhost: railhead\r\nauthorization: Bearer {}\r\n\
                 idempotency-key: half\r\ncontent-type: application/json\r\n\
                 expect: 100-continue\r\ncontent-length: 1000\r\n\r\n",
                keys[0]
            );
            let mut stream = say(host, &head).await;
            let mut start = [0; 12];
            stream.read_exact(&mut start).await.expect("it is waited for");
            assert_eq!(&start, b"HTTP/1.1 100");
            half.push(stream);
        }
        let refused = get("/v1/wallets").await;
        assert_eq!(refused.refused(), (503, "service_overloaded"));
        assert_eq!(refused.headers["retry-after"], "1");
        for path in ["/healthz", "/readyz"] {
            assert_eq!(get(path).await.status, 200, "{path}");
        }
        streams.clear();
        half.clear();
        // The host hears of it when it next has something to say to them.
        for _ in 0..3_000 {
            host.advance(16);
            if get("/v1/wallets").await.status == 200 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("places that were left are not free again");
    })
    .await;
}

/// Whoever does not say who it is sends no body that is waited for.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_refused_before_its_body_is_read(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let head = "POST /notices/test/nip/nip/txnstatusresponse HTTP/1.1\r\nhost: railhead\r\n\
                    content-length: 1000\r\n\r\n";
        let mut stream = say(host, head).await;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("an answer, and nothing was sent");
        assert_eq!(&start, b"HTTP/1.1 401");
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stops_waits_for_no_half_request(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut host = TestHost::open(engine, |_| {}).await;
    let head = say(&host, "GET /healthz HT").await;
    let silent = say(&host, "").await;
    host.prove().await;
    let stopped = host.running.take().expect("a host").stop().await;
    stopped.expect("stopped in order");
    drop((head, silent));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_browsers_and_caches_what_they_may(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        for (method, path, key) in [
            (Method::GET, "/healthz", ""),
            (Method::GET, "/nowhere", ""),
            (Method::GET, "/v1/wallets", key.as_str()),
            (Method::GET, "/v1/wallets", ""),
            (Method::POST, "/v1/payouts", key.as_str()),
            (Method::GET, "/admin/v1/routes", OPERATOR_TOKEN),
            (Method::GET, "/docs/", ""),
            (Method::GET, "/errors/not_found", ""),
            (Method::GET, "/openapi.json", ""),
        ] {
            let answer = host.send(method, path, key, &[], None).await;
            assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
            let is_private = path.starts_with("/v1/") || path.starts_with("/admin/");
            let cache = answer.headers.get("cache-control");
            assert_eq!(cache.is_some_and(|said| said == "no-store"), is_private, "{path}");
            let content_type = &answer.headers["content-type"];
            let policy = answer.headers.get("content-security-policy");
            let is_page = content_type.starts_with("text/html");
            assert_eq!(policy.is_some(), is_page, "{path} {content_type}");
            assert!(policy.is_none_or(|policy| policy.contains("frame-ancestors 'none'")));
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn operators_may_have_a_door_of_their_own(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let database = Database::new(engine).await;
    let own = |config: &mut Config| {
        config.admin.address = Some("127.0.0.1:0".parse().expect("an address"));
    };
    let host = started(&database, own).await.expect("a host");
    let operators = host.app.config.admin.address.expect("an address");
    let get = async |address: SocketAddr, path: &str| {
        let request = client().get(format!("http://{address}{path}")).bearer_auth(OPERATOR_TOKEN);
        request.send().await.expect("an answer").status().as_u16()
    };
    for (path, public, own) in [
        ("/healthz", 200, 200),
        ("/readyz", 200, 200),
        ("/openapi.json", 200, 404),
        ("/v1/wallets", 401, 404),
        ("/metrics", 404, 200),
        ("/admin/v1/routes", 404, 200),
    ] {
        let answered = (get(host.address, path).await, get(operators, path).await);
        assert_eq!(answered, (public, own), "{path}");
    }
    // Nobody can try tokens where there is no door for them.
    for path in ["/admin/v1/routes", "/metrics"] {
        let request = client().get(format!("http://{}{path}", host.address)).bearer_auth("guessed");
        assert_eq!(request.send().await.expect("an answer").status(), 404, "{path}");
    }
    host.stop().await.expect("stopped in order");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_a_certificate_speaks_tls_and_nothing_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let database = Database::new(engine).await;
    let (certificate, key) = certificate_files();
    let with = |config: &mut Config| {
        config.server.tls_certificate_file = Some(certificate.clone());
        config.server.tls_key_file = Some(key.clone());
    };
    let host = started(&database, with).await.expect("a host");
    let pem = std::fs::read(authority_file()).expect("a file");
    let trusted = reqwest::Certificate::from_pem(&pem).expect("a certificate");
    let client = reqwest::Client::builder().tls_certs_only([trusted]).build().expect("a client");
    let answer = client.get(format!("https://{}/healthz", host.address)).send().await;
    assert_eq!(answer.expect("an answer").status(), 200);
    assert!(client.get(format!("http://{}/healthz", host.address)).send().await.is_err());
    host.stop().await.expect("stopped in order");

    let database = Database::new(engine).await;
    let half = |config: &mut Config| config.server.tls_key_file = Some(key.clone());
    let refusal = started(&database, half).await.err().expect("a refusal").to_string();
    assert!(refusal.contains("go together"), "{refusal}");
}

#[rstest]
#[case("http://192.0.2.1:8090")]
#[case("http://simulator.example:8090")]
#[case("http://localhost.example")]
#[case("nonsense")]
#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_is_on_this_machine_or_nowhere(#[case] url: &str) {
    let database = Database::new(Engine::Sqlite).await;
    let far = |config: &mut Config| config.simulator.url = Some(url.to_owned());
    let refusal = started(&database, far).await.err().expect("a refusal").to_string();
    assert!(refusal.contains("simulator.url"), "{refusal}");
}

/// Whoever may write the key file, or its folder, may put a key of its own there.
#[test]
fn a_key_file_that_others_may_read_or_replace_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("master.key");
    let ids = IdGenerator::seeded(Clock::System, 1);
    let made = Keyring::from_file(&path, &ids).expect("made");
    for (mode, folder_mode, is_refused) in [
        (0o600, 0o700, false),
        (0o640, 0o755, false),
        (0o660, 0o700, true),
        (0o602, 0o700, true),
        (0o644, 0o700, true),
        (0o600, 0o770, true),
        (0o600, 0o707, true),
    ] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(folder_mode))
            .expect("changed");
        match Keyring::from_file(&path, &ids) {
            Ok(read) => assert!(!is_refused && read.fingerprint() == made.fingerprint()),
            Err(refused) => {
                assert!(is_refused, "{mode:o}: {refused}");
                assert!(refused.to_string().contains("chmod 600"), "{refused}");
            }
        }
    }
}
