//! The sandbox's scenarios, played by the simulator against a rail: what a submission comes
//! to, and what a question comes to afterwards.

use std::sync::Arc;

use crate::clock::Clock;
use crate::rails::Rail;
use crate::simulator::Simulator;
use crate::wasm::rail::{Grant, Money, Outcome};

use super::Report;
use super::cases::Cases;
use super::exchange::{finding, grant, outcome, payment};

/// Scenario, outcome of the submission, finding of the question.
const SCENARIOS: &[(&str, &str, &str)] = &[
    ("paid", "paid", "paid"),
    ("processing", "accepted", "accepted"),
    ("failed", "refused", "refused"),
    ("returned", "paid", "paid"),
    ("timeout_then_paid", "unknown", "paid"),
    ("timeout_then_failed", "unknown", "refused"),
    ("timeout_then_unknown", "unknown", "unknown"),
    ("never_received", "unknown", "never-received"),
    ("duplicate_callback", "accepted", "paid"),
    ("provider_down", "unknown", "unknown"),
];

pub(super) async fn run(rail: &Rail, cases: &Cases, report: &mut Report) {
    for (scenario, submitted, queried) in SCENARIOS {
        let result = play(rail, cases, scenario, (submitted, queried)).await;
        report.note(&format!("scenario {scenario}"), result);
    }
    report.note("the same reference twice", repeat(rail, cases).await);
}

async fn play(
    rail: &Rail,
    cases: &Cases,
    scenario: &str,
    (submitted, queried): (&str, &str),
) -> Result<(), String> {
    let payment = payment(rail, cases.code_payment.as_ref())?;
    let simulated = simulated(rail, scenario);
    let called = rail.code.submit(None, &simulated(Money::MayMove), &payment).await;
    let came = outcome(called.result.map_err(|broken| broken.to_string())?);
    if came.kind != submitted {
        return Err(format!("submission came to {came:?}, not {submitted}"));
    }
    let called = rail.code.query(&simulated(Money::Stays), &payment).await;
    let found = finding(called.result.map_err(|broken| broken.to_string())?);
    match found.kind == queried {
        true => Ok(()),
        false => Err(format!("question came to {found:?}, not {queried}")),
    }
}

/// A reference that was used is never paid again, nor refused: its first use counts.
async fn repeat(rail: &Rail, cases: &Cases) -> Result<(), String> {
    let payment = payment(rail, cases.code_payment.as_ref())?;
    let (simulator, _messages) = Simulator::new(None, Clock::System, Default::default());
    let grant = grant(rail, &simulator.router(), Money::MayMove);
    for _ in 0..2 {
        let called = rail.code.submit(None, &grant, &payment).await;
        match called.result.map_err(|broken| broken.to_string())? {
            Outcome::Refused(refusal) => return Err(format!("refused: {}", refusal.message)),
            Outcome::Paid(_) | Outcome::Accepted(_) | Outcome::Unknown(_) => {}
        }
    }
    let transfers = simulator.transfers().await.map_err(|cause| cause.to_string())?;
    let executed: Vec<u32> = transfers.iter().map(|transfer| transfer.executed).collect();
    if executed == [1] { Ok(()) } else { Err(format!("paid {executed:?} times")) }
}

fn simulated<'a>(rail: &'a Rail, scenario: &str) -> impl Fn(Money) -> Arc<Grant> + use<'a> {
    let (simulator, _messages) = Simulator::new(None, Clock::System, Default::default());
    let network = simulator.router();
    let headers = vec![("x-sandbox-scenario".to_owned(), scenario.to_owned())];
    move |money| {
        let plain = grant(rail, &network, money);
        Arc::new(Grant { headers: headers.clone(), ..Grant::clone(&plain) })
    }
}
