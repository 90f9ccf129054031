//! The sandbox's scenarios, played by the simulator against a rail: how a payment stands once it
//! was sent, what the network told by itself was heard, and it was asked about.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::clock::Clock;
use crate::rails::Rail;
use crate::simulator::{Network, OwnMessage, Simulator};
use crate::wasm::rail::{Finding, Grant, Message, Money, News, Outcome, Payment};

use super::Report;
use super::cases::Cases;
use super::exchange::{grant, payment, pure};

/// How a payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Nobody knows yet.
    Open,
    Paid,
    Refused,
    Returned,
}

/// Scenario, how it stands once it was sent and the network was heard, and after a question.
const SCENARIOS: &[(&str, Stands, Stands)] = &[
    ("paid", Stands::Paid, Stands::Paid),
    ("processing", Stands::Open, Stands::Open),
    ("failed", Stands::Refused, Stands::Refused),
    ("returned", Stands::Returned, Stands::Returned),
    ("timeout_then_paid", Stands::Open, Stands::Paid),
    ("timeout_then_failed", Stands::Open, Stands::Refused),
    ("timeout_then_unknown", Stands::Open, Stands::Open),
    ("never_received", Stands::Open, Stands::Open),
    ("duplicate_callback", Stands::Open, Stands::Paid),
    ("provider_down", Stands::Open, Stands::Open),
];

pub(super) async fn run(rail: &Rail, cases: &Cases, report: &mut Report) {
    let Some(network) = &rail.network else {
        let why = "it brings no simulator, so that nobody can try it in the sandbox".to_owned();
        return report.note("scenarios", Err(why));
    };
    for (scenario, sent, asked) in SCENARIOS {
        if cases.unplayed.iter().any(|unplayed| unplayed == scenario) {
            continue;
        }
        let result = play((rail, network), cases, scenario, (*sent, *asked)).await;
        report.note(&format!("scenario {scenario}"), result);
    }
    report.note("the same reference twice", repeat((rail, network), cases).await);
}

async fn play(
    (rail, network): (&Rail, &Network),
    cases: &Cases,
    scenario: &str,
    (sent, asked): (Stands, Stands),
) -> Result<(), String> {
    let payment = payment(rail, cases.code_payment.as_ref())?;
    let mut stage = Stage::new((rail, network), scenario);
    let first = stage.send(&payment).await?;
    // A network that confirms by itself may have done so already.
    let is_early = scenario == "duplicate_callback" && first == Stands::Paid;
    if first != sent && !is_early {
        return Err(format!("after it was sent it is {first:?}, not {sent:?}"));
    }
    let second = stage.ask(&payment, first).await?;
    if second != asked {
        return Err(format!("after it was asked about it is {second:?}, not {asked:?}"));
    }
    if scenario == "never_received" {
        let third = stage.send(&payment).await?;
        return match third {
            Stands::Paid => Ok(()),
            other => Err(format!("sent again it is {other:?}, not {:?}", Stands::Paid)),
        };
    }
    Ok(())
}

/// A reference that was used is never paid again, nor refused: its first use counts.
async fn repeat((rail, network): (&Rail, &Network), cases: &Cases) -> Result<(), String> {
    let payment = payment(rail, cases.code_payment.as_ref())?;
    let mut stage = Stage::new((rail, network), "paid");
    for _ in 0..2 {
        if stage.send(&payment).await? == Stands::Refused {
            return Err("it is refused".to_owned());
        }
    }
    let transfers = stage.simulator.transfers().await.map_err(|cause| cause.to_string())?;
    let executed: Vec<u32> = transfers.iter().map(|transfer| transfer.executed).collect();
    if executed == [1] { Ok(()) } else { Err(format!("paid {executed:?} times")) }
}

/// A rail and the other side of its network.
struct Stage<'a> {
    rail: &'a Rail,
    simulator: Simulator,
    messages: UnboundedReceiver<OwnMessage>,
    scenario: String,
}

impl<'a> Stage<'a> {
    fn new((rail, network): (&'a Rail, &Network), scenario: &str) -> Self {
        let networks = BTreeMap::from([(rail.declaration.rail.name.clone(), network.clone())]);
        let (simulator, messages) = Simulator::new(None, Clock::System, networks);
        Self { rail, simulator, messages, scenario: scenario.to_owned() }
    }

    fn grant(&self, money: Money) -> Arc<Grant> {
        let network = self.simulator.network(&self.rail.declaration.rail.name);
        let plain = grant(self.rail, &network, money);
        let headers = vec![("x-sandbox-scenario".to_owned(), self.scenario.clone())];
        Arc::new(Grant { headers, ..Grant::clone(&plain) })
    }

    async fn send(&mut self, payment: &Payment) -> Result<Stands, String> {
        let called = self.rail.code.submit(None, &self.grant(Money::MayMove), payment).await;
        let stands = match called.result.map_err(|broken| broken.to_string())? {
            Outcome::Paid(_) => Stands::Paid,
            Outcome::Refused(_) => Stands::Refused,
            Outcome::Accepted(_) | Outcome::Unknown(_) => Stands::Open,
        };
        self.hear(stands).await
    }

    async fn ask(&mut self, payment: &Payment, before: Stands) -> Result<Stands, String> {
        let called = self.rail.code.query(&self.grant(Money::Stays), payment).await;
        let found = called.result.map_err(|broken| broken.to_string())?;
        self.hear(before.after(&found)).await
    }

    /// Takes in what the network has told by itself.
    async fn hear(&mut self, mut stands: Stands) -> Result<Stands, String> {
        while let Ok(OwnMessage { path, url, headers, body, .. }) = self.messages.try_recv() {
            // What the network was given ends with a path of ours.
            let door = url.as_ref().and_then(|url| url.split_once("/route/door"));
            let message = Message {
                method: "POST".to_owned(),
                path: door.map_or(path.as_str(), |(_, path)| path).to_owned(),
                query: Vec::new(),
                headers,
                body: body.into_bytes(),
            };
            let called = self.rail.code.receive(&pure(&self.grant(Money::Stays)), &message).await;
            let read = called.result.map_err(|broken| broken.to_string())?;
            for notice in read?.1 {
                if let News::Found(found) = notice.news {
                    stands = stands.after(&found);
                }
            }
        }
        Ok(stands)
    }
}

impl Stands {
    /// How it stands after something more was learnt: a return ends what was paid, and nothing
    /// else changes an end.
    fn after(self, found: &Finding) -> Self {
        match (self, found) {
            (_, Finding::Returned(_)) => Self::Returned,
            (Self::Open, Finding::Paid(_)) => Self::Paid,
            (Self::Open, Finding::Refused(_)) => Self::Refused,
            _ => self,
        }
    }
}
