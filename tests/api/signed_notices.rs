//! A network that shows who it is in two ways: by a token, and by a signature over what it sends
//! and when.

use hmac::{Hmac, KeyInit as _, Mac as _};
use rstest::rstest;
use sha2::Sha256;

use crate::hostile::with_hostile;
use crate::live::until;
use crate::news::accepted;
use crate::notices::RIGHT;
use crate::test_host::{Answer, Engine, TestHost};

/// What stands for the secret of an HMAC where a network is simulated: the last of the keys.
fn secret() -> &'static str {
    let keys = include_str!("../../host/src/simulator/keys.pem");
    keys[keys.rfind("-----BEGIN").expect("a key")..].trim()
}

fn signature(at: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret().as_bytes()).expect("a key");
    mac.update(format!("{at}.{body}").as_bytes());
    format!("v1={}", hex::encode(mac.finalize().into_bytes()))
}

async fn tell(host: &TestHost, token: &str, (at, signed): (&str, &str), body: &str) -> Answer {
    let url = format!("{}/notices/live/hostile/signed", host.base);
    let request = host.client.post(url).bearer_auth(token).body(body.to_owned());
    let request = request.header("x-at", at).header("x-signature", signed);
    Answer::of(request.send().await.expect("an answer")).await
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_way_that_is_declared_must_hold(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _till| {
        let (id, reference) = accepted(host).await;
        let line = format!("paid reference {reference} 100000");
        let seconds = |offset: i64| (host.clock.now().micros() / 1_000_000 + offset).to_string();
        let now = seconds(0);
        let right = signature(&now, &line);
        let (early, late) = (seconds(-301), seconds(301));
        for (token, at, signed) in [
            ("another", &now, right.clone()),
            ("", &now, right.clone()),
            (RIGHT, &now, signature(&now, "paid reference X 1")),
            (RIGHT, &seconds(1), right.clone()),
            (RIGHT, &now, right.replace("v1=", "v0=")),
            (RIGHT, &now, right.replace("v1=", "")),
            (RIGHT, &now, String::new()),
            // Heard once, it is not heard for ever.
            (RIGHT, &early, signature(&early, &line)),
            (RIGHT, &late, signature(&late, &line)),
        ] {
            let refused = tell(host, token, (at, &signed), &line).await;
            assert_eq!(refused.refused(), (401, "unauthorized"), "{token} {at} {signed}");
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 0);
        until(host, &id, "processing").await;
        tell(host, RIGHT, (&now, &right), &line).await.ok();
        until(host, &id, "paid").await;
    })
    .await;
}
