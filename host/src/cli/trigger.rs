//! `railhead trigger`: an event in the sandbox, by making happen what it tells of.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::config::Config;
use crate::events::canonical;
use crate::id::IdGenerator;
use crate::start::StartError;

use super::account::{Account, Api, say};

/// What is paid, in minor units.
const AMOUNT: &str = "150000";
/// What a wallet is funded with: it pays some payouts with their fees.
const FUNDED: &str = "1500000";
/// How often the feed is asked for the event, and how many times.
const LOOK: (Duration, u32) = (Duration::from_millis(250), 40);

/// What makes an event.
#[derive(Clone, Copy)]
enum Cause {
    /// A payout in a scenario.
    Payout(&'static str),
    /// Money into a test wallet.
    Funding,
}

/// The events that the sandbox makes.
const CAUSES: &[(&str, Cause)] = &[
    ("payout.processing", Cause::Payout("processing")),
    ("payout.paid", Cause::Payout("paid")),
    ("payout.failed", Cause::Payout("failed")),
    ("payout.reversed", Cause::Payout("returned")),
    ("wallet_funded", Cause::Funding),
];

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Trigger {
    /// The event's name in either spelling, for example payout.failed.
    event: String,
    /// Of which currency.
    #[arg(long, default_value = "NGN")]
    currency: String,
    #[command(flatten)]
    account: Account,
}

impl Trigger {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let name = canonical(&self.event).unwrap_or(&self.event);
        let cause = CAUSES.iter().find(|(known, _)| *known == name);
        let (name, cause) = cause.ok_or_else(|| {
            let known: Vec<&str> = CAUSES.iter().map(|(known, _)| *known).collect();
            format!("the sandbox does not make {}; it makes {}", self.event, known.join(", "))
        })?;
        let api = self.account.open(config)?;
        if !api.is_test() {
            return Err(
                "events are triggered in the sandbox: give a key that begins sk_test_".into()
            );
        }
        let made = match cause {
            Cause::Funding => {
                let body = json!({ "currency": self.currency, "amount_minor": FUNDED });
                let funded = api.post("/v1/sandbox/fund", &[], &body).await?;
                text(&funded["provider_event_id"])
            }
            Cause::Payout(scenario) => pay(&api, &self.currency, scenario).await?,
        };
        let event = find(&api, name, &made).await?;
        Ok(say(&format!("{name}  {event}  of {made}"))?)
    }
}

/// Pays the first recipient that the sandbox pays in this currency.
async fn pay(api: &Api, currency: &str, scenario: &str) -> Result<String, StartError> {
    let known = api.get("/v1/sandbox/recipients").await?.body;
    let known: Vec<&Value> = known["data"].as_array().into_iter().flatten().collect();
    let of = |scenario: &str| {
        known.iter().find(|it| it["currency"] == currency && it["scenario"] == scenario)
    };
    let paid = of("paid").ok_or_else(|| format!("no rail pays {currency}"))?;
    // Some networks send nothing back.
    if scenario == "returned" && of(scenario).is_none() {
        return Err(format!("no payment in {currency} comes back in the sandbox").into());
    }
    let body = json!({
        "amount_minor": AMOUNT,
        "currency": currency,
        "method": paid["method"],
        "recipient": paid["recipient"],
        "narration": format!("railhead trigger: {scenario}"),
        // The same again within minutes is no mistake.
        "allow_duplicate": true,
    });
    let key = IdGenerator::new(Clock::System)?.secret();
    let headers = [("idempotency-key", key.as_str()), ("x-sandbox-scenario", scenario)];
    let payout = api.post("/v1/payouts", &headers, &body).await?;
    Ok(text(&payout["id"]))
}

/// Waits for the event of this object: some follow a little later.
async fn find(api: &Api, name: &str, object: &str) -> Result<String, StartError> {
    let (pause, times) = LOOK;
    for _ in 0..times {
        let events = api.get(&format!("/v1/events?type={name}&limit=20")).await?.body;
        let events = events["data"].as_array().into_iter().flatten();
        let mut of_object = events.filter(|event| {
            event["data"]["id"] == object || event["data"]["providerEventId"] == object
        });
        if let Some(event) = of_object.next() {
            return Ok(text(&event["id"]));
        }
        tokio::time::sleep(pause).await;
    }
    Err(format!("{object} was made, and no {name} came of it").into())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
