//! Pricing a payout: the quote and the charge come from the same call.

use std::sync::Arc;

use crate::config::limits;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::{Currency, Minor, Overflow};
use crate::wasm::pack::{Fact, Kind, Line, Value};

use super::facts::{PayoutKind, text};
use super::pack::{Observed, Pack};
use super::tariff::Tariff;

/// What a price depends on.
#[derive(Clone, Debug)]
pub struct FeeFacts<'a> {
    /// The merchant who pays.
    pub merchant: &'a MerchantId,
    /// The currency of the amount.
    pub currency: Currency,
    /// The payment method.
    pub method: &'a str,
    /// Alone or in a batch.
    pub kind: PayoutKind,
    /// How much the recipient gets.
    pub amount: Minor,
    /// Whether a live payout is charged it: what fails about quotes and in the sandbox does not
    /// count against the pack.
    pub is_live: bool,
}

/// What a payout costs, and who said so.
#[derive(Clone, Debug)]
pub struct Price {
    /// Who said so, and what the lines are called.
    pub tariff: Arc<Tariff>,
    /// The amount of each line, in minor units of the payout's currency.
    pub amounts: Vec<i64>,
}

impl Pack {
    /// The price of one payout.
    ///
    /// # Errors
    /// `rail_not_configured` where none of its rules matches, `api_error` where the pack fails
    /// or answers nonsense.
    pub fn price(&self, facts: &FeeFacts<'_>) -> Result<Price, Problem> {
        let given = facts.wanted(&self.about.facts);
        let prices = self.price_all(&[given]);
        let failure = prices.as_ref().err().map(String::as_str);
        self.observe(Observed { merchant: facts.merchant, is_live: facts.is_live, failure });
        let prices = prices.map_err(Problem::internal)?;
        let lines = prices.into_iter().next().unwrap_or_else(|| Err("no answer".into()));
        let lines = lines.map_err(|why| {
            let message = "Payouts like this one have no price yet.";
            Problem::because(ErrorCode::RailNotConfigured, message).caused_by(why)
        })?;
        let amounts = lines.iter().map(|line| line.amount_minor).collect();
        let named = lines.into_iter().map(|line| (kind(line.kind).to_owned(), line.label));
        let pack = [&self.about.name, &self.about.version, &self.digest].map(String::as_str);
        Ok(Price { tariff: self.tariffs.of(pack, named.collect()), amounts })
    }

    /// What the pack answers about many payouts.
    ///
    /// # Errors
    /// In words: it trapped, ran out of fuel, or answered nonsense.
    pub fn price_all(&self, payouts: &[Vec<Fact>]) -> Result<Vec<Answer>, String> {
        let answers = self.code.price(payouts).map_err(|broken| broken.to_string())?;
        refuse_odd(answers)
    }
}

/// What a pack answers: the lines of a price, or why there is none.
type Answer = Result<Vec<Line>, String>;

/// A price that makes no sense is none that can be charged.
fn refuse_odd(prices: Vec<Answer>) -> Result<Vec<Answer>, String> {
    for lines in prices.iter().flatten() {
        if lines.len() > limits::PACK_LINES_MAX {
            return Err(format!("the pack answered {} lines", lines.len()));
        }
        if lines.iter().any(|line| line.amount_minor < 0) {
            return Err("the pack answered a negative amount".to_owned());
        }
        if lines.iter().any(|line| line.label.len() > limits::PACK_LABEL_MAX) {
            return Err("the label of a line is too long".to_owned());
        }
        let mut amounts = lines.iter().map(|line| line.amount_minor);
        if amounts.try_fold(0i64, i64::checked_add).is_none() {
            return Err("the lines of the price do not add up".to_owned());
        }
    }
    Ok(prices)
}

impl Price {
    /// Everything that the payout costs on top of its amount.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn total(&self) -> Result<Minor, Overflow> {
        Minor::total(self.amounts.iter().map(|amount| Minor::new(*amount)))
    }
}

impl FeeFacts<'_> {
    fn wanted(&self, names: &[String]) -> Vec<Fact> {
        let value = |name: &str| match name {
            "merchant" => text(self.merchant.as_str()),
            "currency" => text(self.currency.as_str()),
            "method" => text(self.method),
            "kind" => text(self.kind.as_str()),
            "amount_minor" => Value::Int(self.amount.units()),
            _ => Value::Absent,
        };
        names.iter().map(|name| Fact { name: name.as_str().into(), value: value(name) }).collect()
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Fee => "fee",
        Kind::Tax => "tax",
        Kind::Levy => "levy",
    }
}
