//! `GET /v1/payouts/{id}/timeline`: everything that happened to a payout, and what shows it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::clock::Moment;
use crate::conversions;
use crate::decisions::{self, Decision};
use crate::error::Problem;
use crate::events;
use crate::fx::{Exchange, Rate};
use crate::ledger::{entry_id, wallets};
use crate::money::{Currency, Minor};
use crate::rules::sql::get_tariff;
use crate::rules::tariff::Tariff;
use crate::rules::{Action, PublicHit};

use crate::transfers::attempt;
use crate::transfers::evidence::{self, Message};

use super::event_body;
use super::model::{Payout, QUEUED};

/// A step of a payout's life.
#[derive(Debug, Serialize, ToSchema)]
pub struct Step {
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Moment,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// One kind of step, and what there is to say about it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// The request was accepted.
    Request {
        /// The key that made it.
        key_id: String,
        /// The sandbox scenario.
        #[serde(skip_serializing_if = "Option::is_none")]
        scenario: Option<String>,
    },
    /// The fee rules decided what it costs.
    Rules {
        /// Name of the fee pack.
        pack: String,
        /// The pack's version.
        version: String,
        /// SHA-256 of its file.
        digest: String,
        /// What it charged.
        lines: Vec<CostLine>,
    },
    /// The fraud rules decided.
    Decision {
        /// Name of the fraud pack; null where none was active.
        pack: Option<String>,
        /// The pack's version.
        version: Option<String>,
        /// SHA-256 of its file.
        digest: Option<String>,
        /// What it decided.
        action: Action,
        /// The rules that matched, and what they say to merchants.
        hits: Vec<PublicHit>,
    },
    /// It was held for review.
    Hold {
        /// Why, in the rules' public words.
        reason: String,
    },
    /// What it takes was bought out of another currency.
    Conversion {
        /// The conversion.
        conversion_id: String,
        /// The currency that paid.
        #[schema(value_type = String)]
        from_currency: Currency,
        /// What left its wallet.
        #[schema(value_type = String)]
        from_amount_minor: Minor,
        /// What came into the wallet that the payout is paid from.
        #[schema(value_type = String)]
        to_amount_minor: Minor,
        /// The rate, a decimal.
        #[schema(value_type = String)]
        rate: Rate,
    },
    /// A route was chosen and its reference fixed.
    Attempt {
        /// The route's name.
        route: String,
        /// The rail's name.
        rail: String,
        /// The rail's version when it was begun.
        rail_version: String,
        /// SHA-256 of its file.
        rail_digest: String,
        /// The reference under which it was sent.
        reference: String,
        /// The network's own name for it, such as a receipt number, once it told one.
        network_reference: Option<String>,
        /// How it stands: open, paid, refused, returned, not_sent, closed.
        state: String,
        /// How often it was sent.
        sends: i64,
        /// How often the rail was asked about it.
        queries: i64,
    },
    /// The rail was called.
    Rail {
        /// The route's name; null where none was chosen yet.
        route: Option<String>,
        /// The rail's name.
        rail: String,
        /// What it was asked for: `prepare`, `submit`, `query`, `recall`, `receive`, or of a file
        /// `assemble`, `settle`, `read`.
        operation: String,
        /// What it came to.
        result: String,
        /// The messages, masked.
        messages: Vec<Message>,
    },
    /// The wallet's ledger.
    Entry {
        /// The wallet transaction.
        id: String,
        /// What kind of movement it is, such as `payout_debit`.
        source: String,
        /// credit or debit.
        direction: &'static str,
        /// The amount in minor units, without a sign.
        #[schema(value_type = String)]
        amount_minor: Minor,
        /// The wallet's balance after it.
        #[schema(value_type = String)]
        balance_after_minor: Minor,
    },
    /// A change of state.
    Event {
        /// The event's name, such as `payout.paid`.
        event: String,
        /// The number of this change of the payout, from 1.
        sequence: i64,
    },
    /// A webhook endpoint is told of an event.
    Delivery {
        /// The delivery's id.
        id: String,
        /// The endpoint that hears of it.
        endpoint_id: String,
        /// The event's name in the endpoint's spelling.
        event: String,
        /// `pending`, `delivered`, `failed` (tried again) or `giving_up`.
        status: String,
        /// How often it was tried.
        attempts: i64,
        /// HTTP status of the last answer.
        response_status: Option<i64>,
    },
}

/// A line of what a payout costs.
#[derive(Debug, Serialize, ToSchema)]
pub struct CostLine {
    /// `fee`, `tax` or `levy`.
    pub kind: String,
    /// The line's name on statements.
    pub label: String,
    /// The amount in minor units.
    #[schema(value_type = String)]
    pub amount_minor: Minor,
}

/// A payout's timeline, oldest first.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn timeline(app: &App, payout: &Payout) -> Result<Vec<Step>, Problem> {
    let pool = app.db.pool();
    let mut steps = vec![Step {
        at: payout.created_at,
        what: What::Request { key_id: payout.maker.clone(), scenario: payout.scenario.clone() },
    }];
    steps.extend(price(app, payout).await.map(|what| Step { at: payout.created_at, what }));
    let decided = decisions::sql::get_decision(pool, payout.id.as_str()).await?;
    steps.extend(decided.map(|decision| {
        let Decision { pack, verdict, created_at, .. } = decision;
        let (name, version, digest) = match pack {
            Some(ruler) => (Some(ruler.name), Some(ruler.version), Some(ruler.digest)),
            None => (None, None, None),
        };
        let (action, hits) = (verdict.action, verdict.public());
        Step { at: created_at, what: What::Decision { pack: name, version, digest, action, hits } }
    }));
    steps.extend(
        payout.hold.iter().map(|reason| Step {
            at: payout.created_at,
            what: What::Hold { reason: reason.clone() },
        }),
    );
    steps.extend(bought(app, payout).await?);
    steps.extend(sending(app, payout).await?);
    let entries = wallets::list_entries_about(pool, payout.id.as_str()).await?;
    steps.extend(entries.into_iter().map(|entry| Step {
        at: entry.created_at,
        what: What::Entry {
            id: entry_id(&entry.journal_id, entry.line),
            source: entry.source,
            direction: if entry.amount.is_negative() { "debit" } else { "credit" },
            amount_minor: Minor::new(entry.amount.units().saturating_abs()),
            balance_after_minor: entry.balance_after,
        },
    }));
    let mut history = events::sql::list_history(pool, payout.id.as_str()).await?;
    let first = history.first().map(|(name, sequence, _)| (*sequence, name.as_str()));
    if event_body::went_at_once(payout, first) {
        history.insert(0, (QUEUED.to_owned(), 1, payout.created_at));
    }
    steps.extend(
        history
            .into_iter()
            .map(|(event, sequence, at)| Step { at, what: What::Event { event, sequence } }),
    );
    steps.extend(deliveries(app, payout).await?);
    // Stable: what happened in one instant keeps the order above.
    steps.sort_by_key(|step| step.at);
    Ok(steps)
}

/// What was bought for it.
async fn bought(app: &App, payout: &Payout) -> Result<Option<Step>, Problem> {
    let Some(funded) = &payout.funded else { return Ok(None) };
    let owner = (&payout.merchant_id, payout.env);
    let found = conversions::sql::find(app.db.pool(), owner, &funded.conversion_id).await?;
    Ok(found.map(|conversion| {
        let Exchange { pair, sold, bought, rate } = conversion.exchange;
        let conversion_id = conversion.id.to_string();
        let what = What::Conversion {
            conversion_id,
            from_currency: pair.from,
            from_amount_minor: sold,
            to_amount_minor: bought,
            rate,
        };
        Step { at: conversion.created_at, what }
    }))
}

/// Over which routes it was sent, and what was said there.
async fn sending(app: &App, payout: &Payout) -> Result<Vec<Step>, Problem> {
    let pool = app.db.pool();
    let attempts = attempt::list_attempts(pool, payout.id.as_str()).await?;
    let routes: BTreeMap<String, String> =
        attempts.iter().map(|attempt| (attempt.id.to_string(), attempt.route.clone())).collect();
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(attempts.into_iter().map(|attempt| Step {
        at: attempt.created_at,
        what: What::Attempt {
            route: attempt.route,
            rail: attempt.rail,
            rail_version: attempt.configuration.rail_version.clone(),
            rail_digest: attempt.configuration.rail_digest.clone(),
            reference: attempt.rail_reference,
            network_reference: attempt.network_id,
            state: attempt.state.as_str().to_owned(),
            sends: attempt.sends,
            queries: attempt.queries,
        },
    }));
    let calls = evidence::list_calls(pool, payout.id.as_str()).await?;
    steps.extend(calls.into_iter().map(|call| Step {
        at: call.created_at,
        what: What::Rail {
            route: call.attempt_id.and_then(|id| routes.get(&id).cloned()),
            rail: call.rail,
            operation: call.operation,
            result: call.result,
            messages: call.messages,
        },
    }));
    Ok(steps)
}

/// Which webhook endpoints were told of it.
async fn deliveries(app: &App, payout: &Payout) -> Result<Vec<Step>, Problem> {
    let told = events::sql::list_deliveries_about(app.db.pool(), payout.id.as_str()).await?;
    let steps = told.into_iter().map(|told| Step {
        at: told.created_at,
        what: What::Delivery {
            id: told.id,
            endpoint_id: told.endpoint_id,
            event: told.event,
            status: told.status,
            attempts: told.attempts,
            response_status: told.response_status,
        },
    });
    Ok(steps.collect())
}

/// What it costs, line by line; nothing where its tariff is gone or cannot be read, which `verify`
/// tells.
async fn price(app: &App, payout: &Payout) -> Option<What> {
    let tariff = get_tariff(app.db.pool(), &payout.tariff).await;
    let tariff = tariff.unwrap_or_else(|cause| {
        tracing::error!(%cause, payout.id = %payout.id, "a tariff cannot be read");
        None
    });
    let Tariff { pack, version, digest, lines, .. } = tariff?;
    let line = |((kind, label), amount): ((String, String), &i64)| CostLine {
        kind,
        label,
        amount_minor: Minor::new(*amount),
    };
    let lines = lines.into_iter().zip(&payout.charges).map(line).collect();
    Some(What::Rules { pack, version, digest, lines })
}
