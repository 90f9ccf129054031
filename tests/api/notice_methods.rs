//! Messages of a network come by the methods that its rail declares for them.

use http::Method;
use rstest::rstest;

use crate::hostile::with_hostile;
use crate::live::{until, until_asked};
use crate::news::accepted;
use crate::notices::RIGHT;
use crate::test_host::{Answer, Engine, TestHost};

async fn tell(host: &TestHost, method: Method, path: &str, (token, line): (&str, &str)) -> Answer {
    let url = format!("{}/notices/live/hostile{path}", host.base);
    let request = host.client.request(method, url).bearer_auth(token).body(line.to_owned());
    Answer::of(request.send().await.expect("an answer")).await
}

/// What is declared for PUT is heard by PUT, by whoever shows who he is; by a method that is not
/// declared nothing is there.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_taken_by_the_methods_that_are_declared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _till| {
        let (id, reference) = accepted(host).await;
        let line = format!("paid reference {reference} 100000");
        let wrong = tell(host, Method::PUT, "/hinted", ("not the token", &line)).await;
        assert_eq!(wrong.refused(), (401, "unauthorized"));
        for (asked, method) in [(1, Method::PUT), (2, Method::POST)] {
            let told = tell(host, method, "/hinted", (RIGHT, &line)).await.ok();
            assert_eq!(told.text, "heard");
            until_asked(host, &id, asked).await;
            until(host, &id, "processing").await;
        }
        for (method, path) in [
            (Method::PATCH, "/hinted"),
            (Method::DELETE, "/hinted"),
            (Method::GET, "/hinted"),
            // Without any, it is declared for POST.
            (Method::PUT, "/told"),
        ] {
            let refused = tell(host, method.clone(), path, (RIGHT, &line)).await;
            assert_eq!(refused.refused(), (404, "not_found"), "{method} {path}");
        }
        let kept = "SELECT COUNT(*) FROM inbox WHERE state = 'taken' AND name = ";
        for name in ["'PUT /hinted'", "'POST /hinted'"] {
            host.until_count(&format!("{kept}{name}"), 1).await;
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM inbox").await, 2);
        tell(host, Method::POST, "/told", (RIGHT, &line)).await.ok();
        until(host, &id, "paid").await;
    })
    .await;
}

/// What the network is answered has the status that its rail gives, if that says that the message
/// was taken; no other one leaves, and the message is not lost by it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_answered_with_the_rails_own_status(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_hostile(engine, async |host, _till| {
        let (id, reference) = accepted(host).await;
        let url = format!("{}/notices/live/hostile/told", host.base);
        let tell = async |status: &str, line: String| {
            let request = host.client.post(&url).bearer_auth(RIGHT).body(line);
            let sent = request.header("x-answer-with", status).send().await;
            Answer::of(sent.expect("an answer")).await
        };
        let line = format!("unknown reference {reference} 100000");
        for status in ["200", "202", "299"] {
            let told = tell(status, line.clone()).await;
            assert_eq!((told.status.to_string(), told.text.as_str()), (status.to_owned(), "heard"));
        }
        for status in ["0", "199", "302", "404", "999"] {
            let refused = tell(status, line.clone()).await;
            assert_eq!(refused.refused(), (500, "api_error"), "{status}");
        }
        until(host, &id, "processing").await;
        let paid = format!("paid reference {reference} 100000");
        assert_eq!(tell("404", paid).await.status, 500);
        until(host, &id, "paid").await;
    })
    .await;
}
