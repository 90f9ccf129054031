//! Pricing a payout: the quote and the charge come from the same call.

use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::money::{Currency, Minor, Overflow};
use crate::wasm::pack::{Fact, Kind, Line, Value};

use super::pack::Packs;

/// Whether a payout stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayoutKind {
    /// Alone.
    Single,
    /// A row of a batch.
    Batch,
}

/// What a price depends on.
#[derive(Clone, Debug)]
pub struct FeeFacts<'a> {
    /// Who pays.
    pub merchant: &'a MerchantId,
    /// In what.
    pub currency: Currency,
    /// How.
    pub method: &'a str,
    /// Alone or in a batch.
    pub kind: PayoutKind,
    /// How much the recipient gets.
    pub amount: Minor,
}

/// A line of a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceLine {
    /// `fee`, `tax` or `levy`.
    pub kind: String,
    /// For statements.
    pub label: String,
    /// Minor units.
    pub amount_minor: i64,
}

/// What a payout costs, and who said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// The pack's name.
    pub pack: String,
    /// Its version.
    pub version: String,
    /// Its digest.
    pub digest: String,
    /// The parts.
    pub lines: Vec<PriceLine>,
}

impl Packs {
    /// The price of one payout.
    ///
    /// # Errors
    /// `rail_not_configured` where no pack is active or none of its rules matches, `api_error`
    /// where the pack fails or answers nonsense.
    pub fn price(&self, facts: &FeeFacts<'_>) -> Result<Price, Problem> {
        let pack = self.fees().ok_or_else(|| {
            Problem::new(ErrorCode::RailNotConfigured).caused_by("no fee pack is active")
        })?;
        let given = facts.wanted(&pack.about.facts);
        let mut prices = pack.code.price(&[given]).map_err(Problem::internal)?;
        let lines = prices.pop().unwrap_or_else(|| Err("no answer".into())).map_err(|why| {
            let message = "Payouts like this one have no price yet.";
            Problem::because(ErrorCode::RailNotConfigured, message).caused_by(why)
        })?;
        if lines.iter().any(|line| line.amount_minor < 0) {
            return Err(Problem::internal("the fee pack answered a negative amount"));
        }
        Ok(Price {
            pack: pack.about.name.clone(),
            version: pack.about.version.clone(),
            digest: pack.digest.clone(),
            lines: lines.into_iter().map(line).collect(),
        })
    }
}

impl Price {
    /// The sum of the lines of one kind.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn sum(&self, kind: &str) -> Result<Minor, Overflow> {
        let lines = self.lines.iter().filter(|line| line.kind == kind);
        Minor::total(lines.map(|line| Minor::new(line.amount_minor)))
    }

    /// Everything that the payout costs on top of its amount.
    ///
    /// # Errors
    /// The sum does not fit.
    pub fn total(&self) -> Result<Minor, Overflow> {
        Minor::total(self.lines.iter().map(|line| Minor::new(line.amount_minor)))
    }
}

impl FeeFacts<'_> {
    fn wanted(&self, names: &[String]) -> Vec<Fact> {
        let value = |name: &str| match name {
            "merchant" => Value::Text(self.merchant.to_string()),
            "currency" => Value::Text(self.currency.to_string()),
            "method" => Value::Text(self.method.to_owned()),
            "kind" => Value::Text(
                match self.kind {
                    PayoutKind::Single => "single",
                    PayoutKind::Batch => "batch",
                }
                .to_owned(),
            ),
            "amount_minor" => Value::Whole(self.amount.units()),
            _ => Value::Absent,
        };
        names.iter().map(|name| Fact { name: name.clone(), value: value(name) }).collect()
    }
}

fn line(line: Line) -> PriceLine {
    let kind = match line.kind {
        Kind::Fee => "fee",
        Kind::Tax => "tax",
        Kind::Levy => "levy",
    };
    PriceLine { kind: kind.to_owned(), label: line.label, amount_minor: line.amount_minor }
}
