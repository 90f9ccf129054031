//! Every method of every rail that the host brings, in every scenario: what becomes of a payment is
//! computed from the declarations, and nothing here knows a rail by name.

use std::sync::Arc;
use std::time::Duration;

use railhead::rails::declaration::Declaration;
use railhead::rails::{Block, Rail, put};
use rstest::rstest;
use serde_json::{Value, json};

use crate::ach::UNTIL_MONDAY;
use crate::bank::Bank;
use crate::live::with_bank;
use crate::test_host::{Engine, TestHost, unique, with_host};

/// A way to pay, and a recipient of it.
struct Way {
    rail: Arc<Rail>,
    currency: String,
    method: String,
    amount: i64,
    by_file: bool,
}

impl Way {
    fn all(host: &TestHost) -> Vec<Self> {
        let rails = host.app().rails.all();
        let ways = rails.iter().flat_map(|rail| {
            rail.declaration.methods.iter().map(|terms| Self {
                rail: Arc::clone(rail),
                currency: terms.currency.to_string(),
                method: terms.name.clone(),
                amount: terms.amount_minor_min.max(terms.step).max(1_000),
                by_file: format!("{:?}", terms.via) == "Files",
            })
        });
        ways.collect()
    }

    fn declaration(&self) -> &Declaration {
        &self.rail.declaration
    }

    /// A payment to the declared example; `chosen` stands in for the field that chooses a scenario.
    fn payment(&self, chosen: Option<&str>) -> Value {
        let mut recipient = serde_json::Map::new();
        let declaration = self.declaration();
        let chooses = declaration.scenarios.as_ref().map(|scenarios| scenarios.field.as_str());
        let given: Vec<_> = declaration
            .recipient
            .fields
            .iter()
            .filter(|field| field.is_required(Block::Inline) || field.required_when.is_some())
            .collect();
        for field in given {
            let example = field.example.as_deref().unwrap_or("x");
            let is_chosen = chosen.filter(|_| chooses == Some(field.name.as_str()));
            put(&mut recipient, &field.name, is_chosen.unwrap_or(example).into());
        }
        json!({
            "currency": self.currency,
            "method": self.method,
            "amount_minor": self.amount.to_string(),
            "recipient": recipient,
            "allow_duplicate": true,
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.declaration().rail.name, self.method)
    }
}

/// Where a payment may stand after somebody has asked about it.
fn ends(scenario: &str) -> &'static [&'static str] {
    match scenario {
        "paid" | "timeout_then_paid" | "never_received" | "duplicate_callback" => &["paid"],
        "failed" | "timeout_then_failed" => &["failed"],
        "processing" | "timeout_then_unknown" | "provider_down" => &["processing"],
        // Some networks give nothing back.
        "returned" => &["reversed", "paid"],
        "fraud_hold" => &["awaiting_admin_review"],
        _ => &["paid", "failed", "processing", "reversed"],
    }
}

/// Whoever is at a name or a payment that cannot be reached says so.
fn may_be_refused(scenario: &str) -> bool {
    matches!(scenario, "provider_down" | "fraud_block" | "unresolvable" | "name_mismatch")
}

const STOCK: [&str; 11] = [
    "paid",
    "processing",
    "failed",
    "returned",
    "timeout_then_paid",
    "timeout_then_failed",
    "timeout_then_unknown",
    "never_received",
    "duplicate_callback",
    "provider_down",
    "fraud_hold",
];

/// In the sandbox: every scenario that there is, and that a network adds. Nobody is paid twice, and
/// the books balance, which the host proves at the end.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_rail_ends_every_scenario_as_it_is_declared(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let key = host.merchant.test_key.clone();
        let ways = Way::all(host);
        let mut funded = std::collections::BTreeSet::new();
        let mut wrong = Vec::new();
        for way in &ways {
            if funded.insert(way.currency.clone()) {
                host.fund(&key, &way.currency, 100_000_000).await;
            }
            let own = way.declaration().scenario_names().map(String::as_str);
            let scenarios: std::collections::BTreeSet<&str> = own.chain(STOCK).collect();
            for scenario in scenarios {
                let paid = host.pay(scenario, way.payment(None)).await;
                if paid.status >= 400 {
                    if !may_be_refused(scenario) {
                        wrong.push(format!("{} {scenario}: {}", way.name(), paid.text));
                    }
                    continue;
                }
                let later = host.requery(&key, &paid.id()).await;
                if !ends(scenario).contains(&later.status_word()) {
                    wrong.push(format!("{} {scenario}: {}", way.name(), later.text));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ways.len() >= 4);
    })
    .await;
}

/// With live keys, over sockets: the recipient chooses what its network does. Payments that go by
/// file have windows, and tests of their own.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_rail_by_request_pays_and_refuses_over_sockets(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        // Some networks sleep at the weekend.
        host.advance(UNTIL_MONDAY);
        let key = host.merchant.live_key.clone();
        let mut funded = std::collections::BTreeSet::new();
        for way in Way::all(host).iter().filter(|way| !way.by_file) {
            if funded.insert(way.currency.clone()) {
                host.fund(&key, &way.currency, 100_000_000).await;
            }
            let chosen = way.declaration().scenarios.iter().flat_map(|it| &it.values);
            let chosen: Vec<_> =
                chosen.filter(|(_, scenario)| *scenario == "failed").map(|(it, _)| it).collect();
            assert!(!chosen.is_empty(), "{} refuses nobody", way.name());
            for (value, end) in [(None, "paid"), (Some(chosen[0].as_str()), "failed")] {
                let payout = host.pay_as(&key, &unique(), way.payment(value)).await;
                assert!(payout.status < 400, "{}: {}", way.name(), payout.text);
                let ended = async { host.until(&key, &payout.ok().id(), end).await };
                tokio::select! {
                    _ = ended => {}
                    () = carry_messages(host, bank) => {}
                    () = let_time_pass(host) => {}
                }
            }
        }
    })
    .await;
}

/// Some networks are asked after a while only.
async fn let_time_pass(host: &TestHost) {
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        host.advance(61);
    }
}

/// Carries what networks tell by themselves to where they tell it.
async fn carry_messages(host: &TestHost, bank: &Bank) {
    while let Some(message) = bank.next_message().await {
        let given = message.url.as_ref().and_then(|url| url.parse::<http::Uri>().ok());
        let path = given.map_or_else(
            || format!("/notices/live/{}{}", message.rail, message.path),
            |url| url.path().to_owned(),
        );
        let mut request = host.client.post(format!("{}{path}", host.base));
        for (name, value) in &message.headers {
            request = request.header(name, value);
        }
        request.body(message.body.clone()).send().await.expect("an answer");
    }
}
