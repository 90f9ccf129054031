//! A gateway in earnest: TLS, a certificate that it wants to see, and a pace that it allows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::Method;
use railhead::config::Config;
use rstest::rstest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::hostile::{built, packed};
use crate::live::until;
use crate::notices::RIGHT;
use crate::receiver::{authority_file, certificate_files};
use crate::test_host::{Engine, TestHost, naira, unique, with, with_host_configured};

const DECLARATION: &str = include_str!("../hostile/rail.toml");

/// What came, and how much of it at once.
#[derive(Clone, Default)]
struct Gateway {
    came: Arc<Mutex<Vec<Instant>>>,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// Requests that come over TLS.
pub(crate) struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Serves on loopback, for as long as the test runs; answers where.
    pub(crate) async fn open(server: Arc<rustls::ServerConfig>, router: Router) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let tls = Self { listener, acceptor: TlsAcceptor::from(server) };
        tokio::spawn(async move { axum::serve(tls, router).await });
        url
    }
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.listener.accept().await.expect("a connection");
            // Whoever shows no certificate is turned away, where one is wanted.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Gateway {
    async fn open(&self) -> String {
        let (certificate, key) = certificate_files();
        let chain = vec![CertificateDer::from_pem_file(certificate).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(key).expect("a key");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority_file()).expect("a root")).expect("added");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let known =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(known.build().expect("a verifier"))
            .with_single_cert(chain, key)
            .expect("a server");
        let router = Router::new().route("/pay", post(Self::pay)).with_state(self.clone());
        Tls::open(Arc::new(server), router).await
    }

    async fn pay(State(gateway): State<Self>) {
        gateway.came.lock().expect("a lock").push(Instant::now());
        let under_way = gateway.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        gateway.most.fetch_max(under_way, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(85)).await;
        gateway.under_way.fetch_sub(1, Ordering::SeqCst);
    }

    fn came(&self) -> Vec<Instant> {
        self.came.lock().expect("a lock").clone()
    }
}

/// A host with a route to a gateway; what its configuration has as the certificate.
async fn with_gateway(
    engine: Engine,
    certificate: Option<String>,
    throttle: Value,
    test: impl AsyncFnOnce(&mut TestHost, &Gateway),
) {
    let (gateway, folder) = (Gateway::default(), tempfile::tempdir().expect("a folder"));
    let declaration = DECLARATION
        .replace("[endpoints.bank]", "[endpoints.bank]\nclient_certificate = \"identity\"")
        .replace("[query]", "[secrets.identity]\ntitle = \"Certificate\"\n\n[query]");
    let rail = packed(&built("hostile", ""), &declaration);
    std::fs::write(folder.path().join("hostile.wasm"), rail).expect("written");
    let url = gateway.open().await;
    let change = |config: &mut Config| {
        config.modules.dir = Some(folder.path().to_owned());
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        config.egress.extra_ca_file = Some(authority_file());
        let mut secrets = BTreeMap::from([
            ("door".to_owned(), RIGHT.to_owned()),
            ("stamp".to_owned(), "what both sides sign with".to_owned()),
        ]);
        secrets.extend(certificate.map(|pem| ("identity".to_owned(), pem)));
        config.routes.insert("gateway".to_owned(), secrets);
    };
    with_host_configured(engine, change, async |host| {
        let settings = with(json!({ "endpoint.bank": url }), throttle);
        let body = json!({ "name": "gateway", "env": "live", "currency": "NGN",
            "method": "hostile", "rail": "hostile", "position": -1, "settings": settings });
        host.admin(Method::POST, "routes", body).await.ok();
        test(host, &gateway).await;
    })
    .await;
}

/// A certificate and its key in one text.
fn ours() -> String {
    let (certificate, key) = certificate_files();
    [certificate, key].map(|file| std::fs::read_to_string(file).expect("PEM")).concat()
}

/// One that the gateway does not know.
fn strangers() -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    made.cert.pem() + &made.signing_key.serialize_pem()
}

async fn pay(host: &TestHost, deed: &str) -> String {
    let body = with(naira(100_000), json!({ "method": "hostile", "narration": deed }));
    let body = with(body, json!({ "allow_duplicate": true }));
    host.pay_as(&host.merchant.live_key.clone(), &unique(), body).await.ok().id()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_wants_to_see_a_certificate_sees_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_gateway(engine, Some(ours()), json!({}), async |host, gateway| {
        let id = pay(host, "accept").await;
        until(host, &id, "processing").await;
        host.until_count("SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'", 1).await;
        assert_eq!(gateway.came().len(), 1);
    })
    .await;
    with_gateway(engine, Some(strangers()), json!({}), async |host, gateway| {
        let id = pay(host, "accept").await;
        until(host, &id, "processing").await;
        host.until_count("SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'", 1).await;
        assert!(gateway.came().is_empty());
    })
    .await;
}

/// What is missing or wrong of it is said before anything is sent, and nothing of it is shown.
#[rstest]
#[case::none(None, "is not configured")]
#[case::not_pem(Some("hunter2"), "BEGIN CERTIFICATE")]
#[case::no_key(Some("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----"), "PRIVATE KEY")]
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_none_is_named(#[case] pem: Option<&str>, #[case] why: &str) {
    with_gateway(Engine::Sqlite, pem.map(str::to_owned), json!({}), async |host, _| {
        let routes = host.admin(Method::GET, "routes", json!({})).await.ok();
        let mut routes = routes.json["data"].as_array().expect("routes").iter();
        let route = routes.find(|route| route["name"] == "gateway").expect("the route");
        let missing = route["missing"].as_str().expect("why");
        assert!(missing.contains("routes.gateway.identity") && missing.contains(why), "{missing}");
        assert!(!missing.contains("hunter2"), "{missing}");
    })
    .await;
}

/// However much waits, a network is not asked faster than it allows, and a slower one of several
/// hosts' lanes keeps nothing that another could send.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_asked_at_its_pace(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const PAYOUTS: usize = 40;
    let pace = json!({ "throttle.per_second": "20", "throttle.at_once": "2" });
    with_gateway(engine, Some(ours()), pace, async |host, gateway| {
        for _ in 0..PAYOUTS {
            pay(host, "accept").await;
        }
        let sent = "SELECT COUNT(*) FROM rail_calls WHERE operation = 'submit'";
        host.until_count(sent, i64::try_from(PAYOUTS).expect("few")).await;
        let came = gateway.came();
        assert_eq!((came.len(), gateway.most.load(Ordering::SeqCst)), (PAYOUTS, 2));
        // Nowhere more than are allowed in a second, and one at the edge; no upper bound: the
        // machine may be slow.
        for pair in came.windows(22) {
            let took = pair[21] - pair[0];
            assert!(took >= Duration::from_millis(950), "22 calls in {took:?}");
        }
        let failed = "SELECT COUNT(*) FROM rail_calls WHERE result LIKE '%others wait%'";
        assert_eq!(host.count(failed).await, 0);
        // It may be changed while payments are open, which where they lead may not.
        let routes = host.admin(Method::GET, "routes", json!({})).await.ok();
        let mut routes = routes.json["data"].as_array().expect("routes").iter();
        let route = routes.find(|route| route["name"] == "gateway").expect("the route").clone();
        let id = route["id"].as_str().expect("an id");
        let set = async |name: &str, value: &str| {
            let settings = with(route["settings"].clone(), json!({ name: value }));
            let body = json!({ "settings": settings });
            host.admin(Method::PATCH, &format!("routes/{id}"), body).await
        };
        set("throttle.per_second", "100").await.ok();
        let refused = set("endpoint.bank", "https://other.example").await;
        assert_eq!(refused.refused(), (409, "state_conflict"));
        for wrong in ["0", "1.5", "-1", "many", "10001"] {
            let refused = set("throttle.at_once", wrong).await;
            assert_eq!(refused.refused(), (400, "invalid_field"), "{wrong}");
        }
        assert_eq!(set("throttle.per_minute", "1").await.refused(), (400, "invalid_field"));
    })
    .await;
}

/// Who shows another certificate is somebody else: what the bank does not know of him it may know
/// of whoever sent the payment.
#[tokio::test(flavor = "multi_thread")]
async fn another_certificate_is_another_customer() {
    let mut seen = Vec::new();
    for certificate in [ours(), ours(), strangers()] {
        with_gateway(Engine::Sqlite, Some(certificate), json!({}), async |host, _| {
            let routes = host.app().routes.all().await.expect("routes");
            let route = routes.iter().find(|it| it.route.name == "gateway").expect("the route");
            let print = route.fingerprints(&host.app().keyring)[0].clone();
            seen.push(print.split_once('.').expect("two parts").1.to_owned());
        })
        .await;
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
}
