//! Receivers that hang, trickle, fail or never end cost themselves only.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rstest::rstest;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::test_host::{Engine, TestHost, with_host_configured};

/// Slots of the host: far fewer than there are bad endpoints.
const SLOTS: usize = 8;
const BAD_ENDPOINTS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Takes,
    Fails,
    Hangs,
    TricklesItsHead,
    TricklesItsBody,
    NeverEnds,
    IsDown,
}

/// An HTTPS receiver. It leaves everybody alone once it is dropped.
struct Post {
    url: String,
    state: Arc<Mutex<State>>,
    _task: JoinSet<()>,
}

struct State {
    manner: Manner,
    /// Ids of the deliveries that were taken.
    heard: BTreeSet<String>,
    /// How often the host lost its patience.
    left: usize,
}

impl Post {
    /// A receiver that takes everything, whose certificate is added to a file.
    async fn open(certificates: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let known = std::fs::read_to_string(certificates).unwrap_or_default();
        std::fs::write(certificates, known + &made.cert.pem()).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        let state = State { manner: Manner::Takes, heard: BTreeSet::new(), left: 0 };
        let state = Arc::new(Mutex::new(state));
        let mut task = JoinSet::new();
        task.spawn(serve(listener, acceptor, Arc::clone(&state)));
        Self { url, state, _task: task }
    }

    fn turn(&self, manner: Manner) {
        self.state.lock().unwrap().manner = manner;
    }

    fn heard(&self) -> usize {
        self.state.lock().unwrap().heard.len()
    }

    fn left(&self) -> usize {
        self.state.lock().unwrap().left
    }

    async fn until_heard(&self, count: usize) {
        for _ in 0..3000 {
            if self.heard() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{} events were heard and not {count}", self.heard());
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<Mutex<State>>) {
    let mut talks = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        talks.spawn(talk(stream, acceptor.clone(), Arc::clone(&state)));
    }
}

/// Takes one request and closes.
async fn talk(stream: TcpStream, acceptor: TlsAcceptor, state: Arc<Mutex<State>>) {
    if state.lock().unwrap().manner == Manner::IsDown {
        return;
    }
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let Some(delivery) = read(&mut stream).await else { return };
    let manner = state.lock().unwrap().manner;
    let (head, forever) = match manner {
        Manner::Takes => {
            state.lock().unwrap().heard.insert(delivery);
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", "")
        }
        Manner::Fails => ("HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", ""),
        Manner::Hangs | Manner::IsDown => ("", ""),
        Manner::TricklesItsHead => ("HTTP/1.1 200 OK\r\n", "x"),
        Manner::TricklesItsBody => ("HTTP/1.1 200 OK\r\n\r\n", "x"),
        Manner::NeverEnds => ("HTTP/1.1 200 OK\r\n\r\n", BLOCK),
    };
    let _ = stream.write_all(head.as_bytes()).await;
    if matches!(manner, Manner::Takes | Manner::Fails) {
        let _ = stream.shutdown().await;
        return;
    }
    let pause = Duration::from_millis(if forever == BLOCK { 0 } else { 50 });
    let (mut reading, mut writing) = tokio::io::split(stream);
    let write = async {
        while writing.write_all(forever.as_bytes()).await.is_ok() {
            let _ = writing.flush().await;
            tokio::time::sleep(pause).await;
        }
    };
    let mut rest = [0; 64];
    tokio::select! {
        () = write => {}
        _ = reading.read(&mut rest) => {}
    }
    state.lock().unwrap().left += 1;
}

/// Reads a request to its end: the delivery's id.
async fn read(stream: &mut TlsStream<TcpStream>) -> Option<String> {
    let mut request = Vec::new();
    loop {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if serde_json::from_str::<Value>(body).is_ok() {
            return head.lines().find_map(|line| {
                let (name, id) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("x-service-delivery").then(|| id.to_owned())
            });
        }
    }
}

/// A part of an answer without an end.
const BLOCK: &str = match std::str::from_utf8(&[b'x'; 4096]) {
    Ok(block) => block,
    Err(_) => "",
};

/// A test host with a good receiver and a bad one that is still good.
async fn between(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Post, &Post)) {
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("receivers.pem");
    let (good, bad) = (Post::open(&certificates).await, Post::open(&certificates).await);
    let change = |config: &mut railhead::config::Config| {
        config.webhooks.concurrency = SLOTS;
        config.webhooks.allow_private_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.webhooks.extra_ca_file = Some(certificates);
    };
    with_host_configured(engine, change, async |host| {
        test(host, &good, &bad).await;
        drop((good, bad));
    })
    .await;
}

/// Another endpoint of the one who has this key.
async fn listen(host: &TestHost, key: &str, post: &Post) {
    let body = json!({ "url": post.url, "events": ["wallet_funded"] });
    let path = "/v1/webhook_endpoints";
    host.send(http::Method::POST, path, key, &[], Some(body)).await.ok();
}

/// Makes an event for the one who has this key.
async fn fund(host: &TestHost, key: &str) {
    let body = json!({ "currency": "NGN", "amount_minor": "100" });
    host.send(http::Method::POST, "/v1/sandbox/fund", key, &[], Some(body)).await.ok();
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_good_receiver_hears_everything_whatever_bad_ones_do(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Manner::Hangs, Manner::TricklesItsHead, Manner::TricklesItsBody, Manner::Fails)]
    manner: Manner,
) {
    between(engine, async |host, good, bad| {
        let bad_key = host.merchant.test_key.clone();
        let good_key = host.new_merchant("Good").await.test_key;
        listen(host, &good_key, good).await;
        for _ in 0..BAD_ENDPOINTS {
            listen(host, &bad_key, bad).await;
        }
        // They earn trust before they break it.
        for _ in 0..4 {
            fund(host, &bad_key).await;
        }
        bad.until_heard(4 * BAD_ENDPOINTS).await;
        bad.turn(manner);
        for _ in 0..4 {
            fund(host, &bad_key).await;
        }
        for _ in 0..20 {
            fund(host, &good_key).await;
        }
        good.until_heard(20).await;
        // Nobody's patience had to run out for it.
        assert_eq!(bad.left(), 0);
        assert_eq!(bad.heard(), 4 * BAD_ENDPOINTS);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn bad_receivers_that_come_back_hear_of_everything(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Manner::IsDown, Manner::Fails)] manner: Manner,
) {
    between(engine, async |host, good, bad| {
        let key = host.merchant.test_key.clone();
        for _ in 0..3 {
            listen(host, &key, bad).await;
        }
        listen(host, &key, good).await;
        bad.turn(manner);
        for _ in 0..40 {
            fund(host, &key).await;
        }
        good.until_heard(40).await;
        assert_eq!(bad.heard(), 0);
        bad.turn(Manner::Takes);
        for _ in 0..300 {
            // Past every pause and head start, a little at a time.
            host.advance(60);
            tokio::time::sleep(Duration::from_millis(50)).await;
            if bad.heard() == 3 * 40 {
                break;
            }
        }
        bad.until_heard(3 * 40).await;
        let path = "/v1/webhook_deliveries?limit=1&status=giving_up";
        assert_eq!(host.get(path).await.ok().json["data"], json!([]));
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_end_is_read_in_part(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    between(engine, async |host, _, bad| {
        let key = host.merchant.test_key.clone();
        listen(host, &key, bad).await;
        bad.turn(Manner::NeverEnds);
        fund(host, &key).await;
        let mut delivery = Value::Null;
        for _ in 0..1000 {
            delivery = host.get("/v1/webhook_deliveries").await.ok().json["data"][0].clone();
            if delivery["status"] == "delivered" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(delivery["status"], "delivered");
        assert_eq!(delivery["response_body"].as_str().map(str::len), Some(16 * 1024));
    })
    .await;
}
