//! The sandbox's scenarios, played by the simulator against a rail: how a payment stands once it
//! was sent, what the network told by itself was heard, and it was asked about.

use crate::rails::Rail;
use crate::rails::methods::Via;
use crate::simulator::Network;
use crate::wasm::rail::{Money, News, Outcome, Payment};

use super::Report;
use super::cases::Cases;
use super::exchange::payment;
use super::files::Filed;
use super::stage::{Stage, Stands};

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
    let is_played = |scenario: &str| !cases.unplayed.iter().any(|it| it == scenario);
    for (scenario, sent, asked) in SCENARIOS {
        if is_played(scenario) {
            let result = play((rail, network), cases, scenario, (*sent, *asked)).await;
            report.note(&format!("scenario {scenario}"), result);
        }
    }
    let own = rail.declaration.scenarios.iter().flat_map(|scenarios| scenarios.own.keys());
    for scenario in own.filter(|own| !SCENARIOS.iter().any(|(name, ..)| name == own)) {
        if is_played(scenario) {
            let result = play_own((rail, network), cases, scenario).await;
            report.note(&format!("scenario {scenario}"), result);
        }
    }
    report.note("the same reference twice", repeat((rail, network), cases).await);
}

async fn play(
    place: (&Rail, &Network),
    cases: &Cases,
    scenario: &str,
    (sent, asked): (Stands, Stands),
) -> Result<(), String> {
    let mut playing = Playing::new(place, cases, scenario).await?;
    let first = playing.send().await?;
    // A network that confirms by itself may have done so already.
    let is_early = scenario == "duplicate_callback" && first == Stands::Paid;
    if first != sent && !is_early {
        return Err(format!("after it was sent it is {first:?}, not {sent:?}"));
    }
    let second = playing.ask().await?;
    if second != asked {
        return Err(format!("after it was asked about it is {second:?}, not {asked:?}"));
    }
    if scenario == "never_received" {
        let third = playing.send().await?;
        return match third {
            Stands::Paid => Ok(()),
            other => Err(format!("sent again it is {other:?}, not {:?}", Stands::Paid)),
        };
    }
    Ok(())
}

/// What a scenario of the rail's own comes to is its own business, if only it can be played.
async fn play_own(place: (&Rail, &Network), cases: &Cases, scenario: &str) -> Result<(), String> {
    let mut playing = Playing::new(place, cases, scenario).await?;
    playing.send().await?;
    playing.ask().await.map(drop)
}

/// A reference that was used is never paid again, nor refused: its first use counts.
async fn repeat(place: (&Rail, &Network), cases: &Cases) -> Result<(), String> {
    let mut playing = Playing::new(place, cases, "paid").await?;
    for _ in 0..2 {
        if playing.send().await? == Stands::Refused {
            return Err("it is refused".to_owned());
        }
    }
    if let Playing::ByFile(filed) = &mut playing {
        filed.send_in_another().await?;
    }
    let executed = match &playing {
        Playing::OneByOne(sent) => sent.stage.executed().await?,
        Playing::ByFile(filed) => filed.executed().await?,
    };
    if executed == [1] { Ok(()) } else { Err(format!("paid {executed:?} times")) }
}

/// A payment on its way.
enum Playing<'a> {
    OneByOne(Box<Sent<'a>>),
    ByFile(Box<Filed<'a>>),
}

impl<'a> Playing<'a> {
    async fn new(
        (rail, network): (&'a Rail, &Network),
        cases: &Cases,
        scenario: &str,
    ) -> Result<Self, String> {
        let payment = payment(rail, cases.code_payment.as_ref())?;
        let stage = Stage::new((rail, network), scenario);
        let is_its = |name: &str, currency: &str| {
            (name, currency) == (payment.method.as_str(), payment.currency.as_str())
        };
        let mut methods = rail.declaration.methods.iter();
        let method = methods.find(|terms| is_its(&terms.name, terms.currency.as_str()));
        Ok(match method.map(|terms| terms.via) {
            Some(Via::Files) => Self::ByFile(Box::new(Filed::new(stage, &payment).await?)),
            _ => Self::OneByOne(Box::new(Sent { stage, payment, stands: Stands::Open })),
        })
    }

    async fn send(&mut self) -> Result<Stands, String> {
        match self {
            Self::OneByOne(sent) => sent.send().await,
            Self::ByFile(filed) => filed.send().await,
        }
    }

    async fn ask(&mut self) -> Result<Stands, String> {
        match self {
            Self::OneByOne(sent) => sent.ask().await,
            Self::ByFile(filed) => filed.ask().await,
        }
    }
}

/// A payment by request and answer.
struct Sent<'a> {
    stage: Stage<'a>,
    payment: Payment,
    stands: Stands,
}

impl Sent<'_> {
    async fn send(&mut self) -> Result<Stands, String> {
        let grant = self.stage.grant(Money::MayMove);
        let called = self.stage.rail.code.submit(None, &grant, &self.payment).await;
        self.stands = match called.result.map_err(|broken| broken.to_string())? {
            Outcome::Paid(_) => Stands::Paid,
            Outcome::Refused(_) => Stands::Refused,
            Outcome::Accepted(_) | Outcome::Unknown(_) => Stands::Open,
        };
        self.hear().await
    }

    async fn ask(&mut self) -> Result<Stands, String> {
        let grant = self.stage.grant(Money::Stays);
        let called = self.stage.rail.code.query(&grant, &self.payment).await;
        let found = called.result.map_err(|broken| broken.to_string())?;
        self.stands = self.stands.after(&found);
        self.hear().await
    }

    /// Takes in what the network has told by itself.
    async fn hear(&mut self) -> Result<Stands, String> {
        for notice in self.stage.messages().await? {
            if let News::Found(found) = notice.news {
                self.stands = self.stands.after(&found);
            }
        }
        Ok(self.stands)
    }
}
