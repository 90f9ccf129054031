//! Signatures, verified by other people's libraries: that of Standard Webhooks, and that of
//! Stripe, whose form of header many receivers know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::hooks::{listen, reach_loopback_in_file, until_all, until_tried, with_receiver};
use crate::program::Deployment;
use crate::receiver::{Got, Manner, Receiver};
use crate::secrets::columns_with;
use crate::test_host::{Answer, Engine, TestHost, naira};

const LIBRARIES: [&str; 2] = ["standardwebhooks==1.1.0", "stripe==16.1.0"];

/// Whether what is verified was sent just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// By the machine's clock: the libraries look at the time as well.
    Fresh,
    /// By a clock that stands still somewhere.
    Timeless,
}

/// A folder with the libraries. It is kept beside what Cargo builds.
async fn libraries() -> &'static Path {
    static FOLDER: OnceCell<PathBuf> = OnceCell::const_new();
    let get = async || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(LIBRARIES.join("-"));
        if folder.exists() {
            return folder;
        }
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder").keep();
        let installed = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-compile", "--target"])
            .arg(&fresh)
            .args(LIBRARIES)
            .output()
            .await
            .expect("python3 and its pip are needed to verify signatures");
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        // Another run of the tests may have been quicker.
        let _ = std::fs::rename(&fresh, &folder);
        folder
    };
    FOLDER.get_or_init(get).await
}

/// What both libraries say of letters under secrets: nothing, or why they are refused.
async fn verdicts(age: Age, letters: &[(&Got, &str)]) -> Vec<[Option<String>; 2]> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("api/verify_webhooks.py");
    let mut python = Command::new("python3")
        .arg(script)
        .env("PYTHONPATH", libraries().await)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let letters = letters.iter().map(
        |(got, secret)| json!({ "body": got.text(), "headers": got.headers, "secret": secret }),
    );
    let question = json!({ "is_fresh": age == Age::Fresh, "letters": letters.collect::<Vec<_>>() });
    let mut stdin = python.stdin.take().expect("a pipe");
    stdin.write_all(question.to_string().as_bytes()).await.expect("asked");
    drop(stdin);
    let answer = python.wait_with_output().await.expect("an answer");
    assert!(answer.status.success(), "python3 failed");
    serde_json::from_slice(&answer.stdout).expect("verdicts")
}

/// Which of these secrets both libraries accept for a letter. They must agree.
pub(crate) async fn accepted<'a>(age: Age, got: &Got, secrets: &[&'a str]) -> Vec<&'a str> {
    let letters: Vec<_> = secrets.iter().map(|secret| (got, *secret)).collect();
    let verdicts = verdicts(age, &letters).await;
    let mut accepted = Vec::new();
    for (secret, [standard, stripe]) in secrets.iter().zip(verdicts) {
        assert_eq!(standard.is_none(), stripe.is_none(), "{standard:?} {stripe:?}");
        if standard.is_none() {
            accepted.push(*secret);
        }
    }
    accepted
}

fn secret(answer: &Answer) -> String {
    answer.json["secret"].as_str().expect("a secret").to_owned()
}

async fn rotate(host: &TestHost, id: &str) -> String {
    let path = format!("/v1/webhook_endpoints/{id}/rotate_secret");
    secret(&host.post(&path, json!({})).await.ok())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn other_peoples_libraries_accept_what_is_sent_and_nothing_else(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let receiver = Receiver::open().await;
    let deployment = Deployment::open(engine, &reach_loopback_in_file()).await;
    let host = &deployment.host;
    let endpoint = listen(host, &receiver.url("/a"), json!(["payout_paid"])).await;
    let right = secret(&endpoint);
    host.pay("paid", naira(100_000)).await.ok();
    receiver.until("/a", 1).await;
    host.post(&format!("/v1/webhook_endpoints/{}/test", endpoint.id()), json!({})).await.ok();
    let got = receiver.until("/a", 2).await;
    let changed = |change: fn(&mut Got)| {
        let mut got = got[0].clone();
        change(&mut got);
        got
    };
    let later = |got: &mut Got| {
        let at = got.sent_at();
        for name in ["webhook-timestamp", "x-service-signature"] {
            let text = got.header(name).replace(&at.to_string(), &(at + 1).to_string());
            got.headers.insert(name.to_owned(), text);
        }
    };
    let forged = [
        changed(|got| {
            let last = got.bytes.len() - 1;
            got.bytes[last - 1] ^= 1;
        }),
        changed(|got| got.bytes.push(b' ')),
        changed(later),
        // As if it had been signed by nobody, and as if it were a long time ago.
        changed(|got| {
            got.headers.insert("webhook-signature".into(), "v1,".into());
            got.headers.insert("x-service-signature".into(), "t=1,v1=".into());
        }),
    ];
    let wrong = right.replace("whsec_", "whsec_AAAA");
    let mut letters = vec![(&got[0], right.as_str()), (&got[1], right.as_str())];
    letters.push((&got[0], wrong.as_str()));
    letters.extend(forged.iter().map(|forged| (forged, right.as_str())));
    let verdicts = verdicts(Age::Fresh, &letters).await;
    for (number, verdict) in verdicts.iter().enumerate() {
        for refusal in verdict {
            assert_eq!(refusal.is_none(), number < 2, "letter {number}: {refusal:?}");
        }
    }
    // An id of another delivery does not fit, for the one standard that signs it.
    let mut other = got[0].clone();
    other.headers.insert("webhook-id".into(), got[1].header("webhook-id").to_owned());
    let said = self::verdicts(Age::Fresh, &[(&other, right.as_str())]).await.remove(0);
    assert!(said[0].is_some() && said[1].is_none(), "{said:?}");
    assert_ne!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    deployment.prove().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_both_secrets_sign_for_an_hour(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let endpoint = listen(host, &receiver.url("/a"), json!(["payout_paid"])).await;
        let (id, first) = (endpoint.id(), secret(&endpoint));
        receiver.behave("/a", Manner::status(500));
        host.pay("paid", naira(100_000)).await.ok();
        until_tried(host, &id, 1).await;
        receiver.behave("/a", Manner::status(200));
        let second = rotate(host, &id).await;
        assert_ne!(first, second);
        let both = [first.as_str(), second.as_str()];
        // What is tried again is signed anew.
        host.advance(6);
        let got = receiver.until("/a", 2).await;
        assert_eq!(accepted(Age::Timeless, &got[0], &both).await, both[..1]);
        assert_eq!(accepted(Age::Timeless, &got[1], &both).await, both);
        // A second before the hour is over, and when it is.
        for (seconds, count, accepts) in [(3593, 3, &both[..]), (1, 4, &both[1..])] {
            host.advance(seconds);
            host.pay("paid", naira(100_000)).await.ok();
            let got = receiver.until("/a", count).await;
            assert_eq!(accepted(Age::Timeless, &got[count - 1], &both).await, accepts);
            until_all(host, &id, (count - 1, "delivered")).await;
        }
        // Two in one hour: each counts for its own.
        let third = rotate(host, &id).await;
        let fourth = rotate(host, &id).await;
        host.pay("paid", naira(100_000)).await.ok();
        let got = receiver.until("/a", 5).await.remove(4);
        let all = [&first, &second, &third, &fourth].map(String::as_str);
        assert_eq!(accepted(Age::Timeless, &got, &all).await, all[1..]);
        host.advance(3_600);
        host.pay("paid", naira(100_000)).await.ok();
        let got = receiver.until("/a", 6).await.remove(5);
        assert_eq!(accepted(Age::Timeless, &got, &all).await, all[3..]);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_table_and_in_no_other_answer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_receiver(engine, async |host, receiver| {
        let body = json!({ "url": receiver.url("/a"), "events": ["*"] });
        let headers = [("idempotency-key", "once")];
        let (path, key) = ("/v1/webhook_endpoints", host.merchant.test_key.clone());
        let endpoint = host.send(Method::POST, path, &key, &headers, Some(body)).await.ok();
        let id = endpoint.id();
        let secrets = [secret(&endpoint), rotate(host, &id).await];
        host.pay("paid", naira(100_000)).await.ok();
        host.post(&format!("{path}/{id}/test"), json!({})).await.ok();
        until_all(host, &id, (3, "delivered")).await;
        let parts = secrets.each_ref().map(|secret| secret["whsec_".len()..][..20].to_owned());
        assert_eq!(columns_with(&host.app().db, &parts).await, BTreeSet::new());
        for path in [
            path.to_owned(),
            format!("{path}/{id}"),
            "/v1/webhook_deliveries".into(),
            "/v1/events".into(),
        ] {
            let answer = host.get(&path).await.ok();
            assert!(!parts.iter().any(|part| answer.text.contains(part)), "{path}");
        }
        for got in receiver.got("/a") {
            assert!(!parts.iter().any(|part| format!("{:?}", got.headers).contains(part)));
            assert_ne!(got.json()["data"], Value::Null);
        }
    })
    .await;
}
