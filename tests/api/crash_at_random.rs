//! SIGKILL at any moment, again and again, with callers who repeat what was not answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use railhead::clock::Clock;
use railhead::id::IdGenerator;
use rstest::rstest;
use serde_json::{Value, json};

use crate::program::Deployment;
use crate::test_host::{Answer, Engine, naira, unique, with};

const KILLS: u64 = 6;
const CALLERS: usize = 4;
const A_DAY: Duration = Duration::from_secs(86_400);

/// Accounts with which the bank pays, refuses, and is silent in every way that ends some day.
const ACCOUNTS: [&str; 5] = ["0123456785", "0000001022", "0000001046", "0000001053", "0000001077"];

/// What callers asked for, by idempotency key, and what they were answered first.
type Asked = Arc<Mutex<BTreeMap<String, (Value, Option<(u16, String)>)>>>;

pub(crate) fn payout(index: usize) -> Value {
    let account = ACCOUNTS[index % ACCOUNTS.len()];
    let recipient = json!({ "account_number": account, "bank_code": "058" });
    with(naira(100_000), json!({ "recipient": recipient }))
}

/// Whoever was answered once is answered with the same bytes for ever.
fn note(asked: &Asked, key: &str, answer: &Answer) {
    assert_eq!(answer.status, 201, "{}", answer.text);
    let given = (answer.status, answer.text.clone());
    let mut asked = asked.lock().expect("a lock");
    let (_, first) = asked.get_mut(key).expect("it was asked");
    assert_eq!(first.get_or_insert_with(|| given.clone()), &given, "{key}");
}

/// What the dice of a run begin with: the same every time, unless somebody wants another run.
pub(crate) fn seed() -> u64 {
    let asked = std::env::var("RANDOM_FAULTS_SEED").ok().and_then(|text| text.parse().ok());
    let seed = asked.unwrap_or(1);
    eprintln!("RANDOM_FAULTS_SEED={seed}");
    seed
}

/// Callers who ask for payouts until nobody answers any more.
fn callers(deployment: &Deployment, asked: &Asked) -> Vec<tokio::task::JoinHandle<()>> {
    let caller = |number: usize| {
        let (requests, asked) = (deployment.requests(), Arc::clone(asked));
        tokio::spawn(async move {
            for index in number.. {
                let (key, body) = (unique(), payout(index));
                asked.lock().expect("a lock").insert(key.clone(), (body.clone(), None));
                match requests.pay(&key, &body).await {
                    Ok(answer) => note(&asked, &key, &answer),
                    Err(_) => return,
                }
            }
        })
    };
    (0..CALLERS).map(caller).collect()
}

/// Lets days pass until every payout has come to an end. What is sent for the first time on
/// the first day may be sent again on the second.
pub(crate) async fn until_all_ended(deployment: &mut Deployment) {
    let mut under_way = Vec::new();
    // A slow machine has more days, and on the last one as much time as it needs.
    for turns in [50, 50, 50, 50, 3_000] {
        deployment.kill().await;
        deployment.let_time_pass(A_DAY).await;
        deployment.start(&[]).await;
        for _ in 0..turns {
            under_way = deployment.under_way().await;
            if under_way.is_empty() {
                return;
            }
            for id in &under_way {
                deployment.requery(id).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    panic!("without an end: {under_way:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_nothing_is_lost_and_nobody_is_paid_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut deployment = Deployment::open(engine, "").await;
    let asked = Asked::default();
    let moments = IdGenerator::seeded(Clock::System, seed());
    for _ in 0..KILLS {
        let callers = callers(&deployment, &asked);
        tokio::time::sleep(Duration::from_millis(100 + moments.below(700))).await;
        deployment.kill().await;
        for caller in callers {
            caller.await.expect("no panic");
        }
        deployment.start_and_kill(Duration::from_millis(moments.below(300))).await;
        deployment.start(&[]).await;
    }
    let all = asked.lock().expect("a lock").clone();
    let (answered, lost): (Vec<_>, Vec<_>) =
        all.iter().partition(|(_, (_, first))| first.is_some());
    assert!(!answered.is_empty() && !lost.is_empty(), "the kills came at no interesting moment");
    for (key, (body, _)) in &all {
        note(&asked, key, &deployment.pay(key, body.clone()).await);
    }
    until_all_ended(&mut deployment).await;
    let transfers = deployment.bank.transfers().await.len();
    assert_eq!((transfers, deployment.payouts().await), (all.len(), all.len()));
    assert_paid_as_the_bank_says(&deployment).await;
    deployment.prove().await;
}

/// What the books call paid was executed, what they call failed was not.
async fn assert_paid_as_the_bank_says(deployment: &Deployment) {
    for (reference, status) in deployment.endings().await {
        let executed = deployment.bank.transfer(&reference).await.executed;
        assert_eq!((status == "paid", status == "failed"), (executed == 1, executed == 0));
    }
}
