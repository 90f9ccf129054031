//! Files that go into an object store and come out of one: paid once, whatever breaks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri};
use railhead::clock::Moment;
use railhead::config::Config;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::ach::{UNTIL_TUESDAY, funded, pay_live, reference, status, until_files};
use crate::file_transport::{
    NAME, close_window, column, deliver_again, set, settings, total, until_deliveries,
};
use crate::live::until;
use crate::test_host::{Engine, TestHost, with_host_configured};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "a secret of forty characters, more or less";

/// How a store fails at the putting of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Break {
    #[default]
    Nowhere,
    /// Nobody is let in.
    Before,
    /// It says that it cannot.
    Refusing,
    /// It keeps the object, and its answer is lost.
    AfterKeeping,
}

#[derive(Default)]
struct Inside {
    objects: BTreeMap<String, (Vec<u8>, Moment)>,
    puts: u32,
    breaks: Break,
    now: Moment,
}

/// A store that speaks as much of S3 as is asked of it, strictly.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Inside>>);

impl Store {
    async fn open(&self) -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        port
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        change(&mut self.0.lock().expect("a lock"))
    }

    fn put(&self, key: &str, content: &str, changed: Moment) {
        self.with(|it| it.objects.insert(key.to_owned(), (content.into(), changed)));
    }

    fn object(&self, key: &str) -> Option<String> {
        self.with(|it| it.objects.get(key).map(|it| String::from_utf8(it.0.clone()).expect("text")))
    }
}

async fn answer(
    State(store): State<Store>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = |name: &str| headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_signed = header("authorization")
        .starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY}/"))
        && header("x-amz-content-sha256") == hex(&Sha256::digest(&body));
    let breaks = store.with(|it| it.breaks);
    if !is_signed || breaks == Break::Before {
        return error(StatusCode::FORBIDDEN, "AccessDenied");
    }
    let key = uri.path().trim_start_matches('/').to_owned();
    let is_listing = uri.query().is_some_and(|query| query.contains("list-type=2"));
    match method {
        Method::GET if is_listing => listing(&store, &key, uri.query().unwrap_or_default()),
        Method::GET | Method::HEAD => found(&store, &key, &method),
        Method::PUT if header("if-none-match") != "*" => error(StatusCode::BAD_REQUEST, "Odd"),
        Method::PUT if breaks == Break::Refusing => {
            error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown")
        }
        Method::PUT => {
            let is_new = store.with(|it| {
                it.puts += 1;
                let now = it.now;
                let is_new = !it.objects.contains_key(&key);
                it.objects.entry(key).or_insert((body.to_vec(), now));
                is_new
            });
            match (is_new, breaks) {
                (_, Break::AfterKeeping) => {
                    let lost = futures::stream::once(async { Err::<Bytes, _>("lost") });
                    Response::builder().body(Body::from_stream(lost)).expect("an answer")
                }
                (true, _) => {
                    Response::builder().header("etag", "\"1\"").body(Body::empty()).expect("one")
                }
                (false, _) => error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed"),
            }
        }
        _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn error(status: StatusCode, code: &str) -> Response {
    let body = format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>");
    Response::builder().status(status).body(Body::from(body)).expect("an answer")
}

fn listing(store: &Store, bucket: &str, query: &str) -> Response {
    let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).unwrap_or_default();
    let prefix = format!("{}/{}", bucket.trim_end_matches('/'), prefix.replace("%2F", "/"));
    let contents = store.with(|it| {
        let listed = it.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        listed.map(|(key, (content, changed))| contents(key, content, *changed)).collect::<String>()
    });
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>\
         <MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
    );
    Response::new(Body::from(body))
}

fn contents(key: &str, content: &[u8], changed: Moment) -> String {
    let (_, key) = key.split_once('/').expect("a bucket");
    format!(
        "<Contents><Key>{key}</Key><LastModified>{changed}</LastModified><ETag>\"1\"</ETag>\
         <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
        content.len()
    )
}

fn found(store: &Store, key: &str, method: &Method) -> Response {
    let Some((content, changed)) = store.with(|it| it.objects.get(key).cloned()) else {
        return error(StatusCode::NOT_FOUND, "NoSuchKey");
    };
    let changed = UNIX_EPOCH + Duration::from_millis(changed.millis());
    let changed = jiff::Timestamp::try_from(changed).expect("an instant");
    let changed = changed.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let answer = Response::builder().header("last-modified", changed).header("etag", "\"1\"");
    let answer = answer.header("content-length", content.len());
    let body = if method == Method::HEAD { Vec::new() } else { content };
    answer.body(Body::from(body)).expect("an answer")
}

/// A host whose dollars go into a bucket, and whose reports come out of another one.
async fn with_store(engine: Engine, test: impl AsyncFnOnce(&mut TestHost, &Store)) {
    let store = Store::default();
    let port = store.open().await;
    let change = |config: &mut Config| {
        config.egress.allow_private_networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let keys = [("s3_access_key", KEY), ("s3_secret_key", SECRET)];
        let keys = keys.map(|(name, value)| (name.to_owned(), value.to_owned()));
        config.routes.insert("usd_ach".to_owned(), keys.into());
    };
    with_host_configured(engine, change, async |host| {
        let of = |place: &str| format!("s3://{place}?endpoint=http://127.0.0.1:{port}");
        let route = set(host, settings(&of("to-bank/ach/out"), &of("from-bank"))).await.ok();
        assert_eq!(route.json["missing"], json!(null));
        funded(host, &host.merchant.live_key).await;
        test(host, &store).await;
    })
    .await;
}

/// One payout in a file that is delivered, or was tried to be.
async fn delivered(host: &TestHost, store: &Store, state: &str) -> String {
    let id = pay_live(host, "77").await;
    close_window(host, std::slice::from_ref(&id)).await;
    store.with(|it| it.now = host.clock.now());
    until_deliveries(host, 1).await;
    until_files(host, &[(state, 1)]).await;
    id
}

/// The bank's report comes, and the value date; and the file lies there once.
async fn paid(host: &TestHost, store: &Store, id: &str) {
    let content = store.object(&format!("to-bank/ach/out/{NAME}")).expect("a file");
    assert_eq!(content.matches(&reference(host, id).await).count(), 1, "{content}");
    let code = column(host, "identity").await;
    let report = json!({ "report": "file", "reference_code": code, "status": "accepted",
        "total_credit": total(host).await });
    let before = Moment::from_micros(host.clock.now().micros() - 60_000_000);
    store.put("from-bank/elsewhere/report.json", "not in the folder", before);
    store.put("from-bank/report.json", &report.to_string(), before);
    host.advance(300);
    until_files(host, &[("acknowledged", 1)]).await;
    host.advance(UNTIL_TUESDAY);
    until(host, id, "paid").await;
    assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_go_into_a_bucket_and_come_out_of_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_store(engine, async |host, store| {
        let id = delivered(host, store, "delivered").await;
        paid(host, store, &id).await;
        assert_eq!(store.with(|it| it.puts), 1);
    })
    .await;
}

/// Whoever is not let in has delivered nothing: the same bytes go again.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_no_bucket_takes_goes_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_store(engine, async |host, store| {
        store.with(|it| it.breaks = Break::Before);
        let id = delivered(host, store, "assembled").await;
        assert_eq!(host.count("SELECT may_have_left FROM payment_files").await, 0);
        let message = column(host, "message").await;
        assert!(
            message.contains("looking into the bucket") && !message.contains(SECRET),
            "{message}"
        );
        store.with(|it| it.breaks = Break::Nowhere);
        host.advance(61);
        until_files(host, &[("delivered", 1)]).await;
        paid(host, store, &id).await;
        assert_eq!(store.with(|it| it.puts), 1);
    })
    .await;
}

/// The store has it, and nobody heard so: it is found there.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_there_is_found_and_not_put_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_store(engine, async |host, store| {
        store.with(|it| it.breaks = Break::AfterKeeping);
        let id = delivered(host, store, "unclear").await;
        store.with(|it| it.breaks = Break::Nowhere);
        host.advance(11);
        until_files(host, &[("delivered", 1)]).await;
        paid(host, store, &id).await;
        assert_eq!(store.with(|it| it.puts), 1);
    })
    .await;
}

/// A store that says after it was asked that it cannot may have it all the same: a person decides.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_put_there_goes_again_by_an_operator_only(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_store(engine, async |host, store| {
        store.with(|it| it.breaks = Break::Refusing);
        let id = delivered(host, store, "unclear").await;
        store.with(|it| it.breaks = Break::Nowhere);
        host.advance(3_600);
        tokio::time::sleep(Duration::from_millis(100)).await;
        until_files(host, &[("unclear", 1)]).await;
        assert_eq!((status(host, &id).await.as_str(), store.with(|it| it.puts)), ("processing", 0));
        deliver_again(host).await;
        until_files(host, &[("delivered", 1)]).await;
        paid(host, store, &id).await;
    })
    .await;
}

/// What lies there under its name is nobody's to write over.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_lies_there_is_left_as_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_store(engine, async |host, store| {
        let key = format!("to-bank/ach/out/{NAME}");
        store.put(&key, "somebody else's", host.clock.now());
        delivered(host, store, "unclear").await;
        host.advance(11);
        until_deliveries(host, 1).await;
        assert_eq!(store.object(&key).as_deref(), Some("somebody else's"));
        assert_eq!(store.with(|it| it.puts), 0);
    })
    .await;
}
