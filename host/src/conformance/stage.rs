//! Where scenarios are played: a rail, and the other side of its network.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::clock::Clock;
use crate::rails::Rail;
use crate::simulator::{Network, OwnMessage, Simulator};
use crate::wasm::rail::{Finding, Grant, Message, Money, Notice};

use super::exchange::{grant, pure, refuse_reply};

/// How a payment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// Nobody knows yet.
    Open,
    Paid,
    Refused,
    Returned,
}

impl Stands {
    /// How it stands after something more was learnt: a return ends what was paid, and nothing
    /// else changes an end.
    pub(super) fn after(self, found: &Finding) -> Self {
        match (self, found) {
            (_, Finding::Returned(_)) => Self::Returned,
            (Self::Open, Finding::Paid(_)) => Self::Paid,
            (Self::Open, Finding::Refused(_)) => Self::Refused,
            _ => self,
        }
    }
}

/// A rail and the other side of its network.
pub(super) struct Stage<'a> {
    pub(super) rail: &'a Rail,
    pub(super) scenario: String,
    simulator: Simulator,
    messages: UnboundedReceiver<OwnMessage>,
}

impl<'a> Stage<'a> {
    pub(super) fn new((rail, network): (&'a Rail, &Network), scenario: &str) -> Self {
        let networks = BTreeMap::from([(rail.declaration.rail.name.clone(), network.clone())]);
        let (simulator, messages) = Simulator::new(None, Clock::System, networks);
        Self { rail, simulator, messages, scenario: scenario.to_owned() }
    }

    /// A grant whose calls ask for the scenario.
    pub(super) fn grant(&self, money: Money) -> Arc<Grant> {
        let headers = vec![("x-sandbox-scenario".to_owned(), self.scenario.clone())];
        Arc::new(Grant { headers, ..Grant::clone(&self.plain_grant(money)) })
    }

    /// A grant whose calls ask for nothing: what they are about plays its scenario already.
    pub(super) fn plain_grant(&self, money: Money) -> Arc<Grant> {
        let network = self.simulator.network(&self.rail.declaration.rail.name);
        let now_ms = Clock::System.now().millis();
        Arc::new(Grant { now_ms, ..Grant::clone(&grant(self.rail, &network, money)) })
    }

    /// What the network has told by itself.
    pub(super) async fn messages(&mut self) -> Result<Vec<Notice>, String> {
        let mut notices = Vec::new();
        while let Ok(OwnMessage { method, path, url, headers, body, .. }) = self.messages.try_recv()
        {
            // What the network was given ends with a path of ours.
            let door = url.as_ref().and_then(|url| url.split_once("/route/door"));
            let path = door.map_or(path.as_str(), |(_, path)| path);
            if self.rail.declaration.notice(method.as_str(), path).is_none() {
                return Err(format!("the network tells by {method} {path}, which is not declared"));
            }
            let message = Message {
                method: method.to_string(),
                path: path.to_owned(),
                query: Vec::new(),
                headers,
                body,
            };
            let called = self.rail.code.receive(&pure(&self.grant(Money::Stays)), &message).await;
            let read = called.result.map_err(|broken| broken.to_string())?;
            let (reply, told) = read?;
            refuse_reply(&reply)?;
            notices.extend(told);
        }
        Ok(notices)
    }

    /// How often each payment was made that was made at all.
    pub(super) async fn executed(&self) -> Result<Vec<u32>, String> {
        let transfers = self.simulator.transfers().await.map_err(|cause| cause.to_string())?;
        let executed = transfers.iter().map(|transfer| transfer.executed);
        Ok(executed.filter(|times| *times > 0).collect())
    }
}
