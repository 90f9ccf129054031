//! What a pack is told about a payout: the facts that it declares, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use railhead_facts::{Measure, Type, Velocity};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::id::{MerchantId, WalletId};
use crate::ledger::{CounterChange, LockedState};
use crate::money::{Currency, Minor};
use crate::wasm::pack::{Fact, Value};

use super::velocity::{Counted, Places, Together, Tracked, WindowOf};

/// Whether a payout stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayoutKind {
    /// A payout of its own.
    Single,
    /// A row of a batch.
    Batch,
}

impl PayoutKind {
    /// The word that packs read.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
        }
    }
}

/// A payout as a decision about fraud sees it, before its wallet is locked.
#[derive(Clone, Debug)]
pub struct PayoutFacts<'a> {
    /// The merchant who pays.
    pub merchant: &'a MerchantId,
    /// Since when it is a merchant.
    pub merchant_since: Moment,
    /// The merchant's timezone, for the hour and the day.
    pub timezone: &'a TimeZone,
    /// Test or live.
    pub env: Env,
    /// The wallet that pays.
    pub wallet: &'a WalletId,
    /// Since when there is this wallet.
    pub wallet_since: Moment,
    /// The currency of the amount.
    pub currency: Currency,
    /// The payment method.
    pub method: &'a str,
    /// Alone or in a batch.
    pub kind: PayoutKind,
    /// How much the recipient gets.
    pub amount: Minor,
    /// What makes the recipient the same as another one.
    pub recipient: &'a str,
    /// Its name, as the payout gives it.
    pub recipient_name: &'a str,
    /// How well that matches the name on record, from 0 to 100.
    pub name_match: Option<i64>,
    /// The code of the recipient's bank, where the network has banks.
    pub bank: Option<&'a str>,
    /// Since when the merchant knows it.
    pub recipient_since: Moment,
    /// Whether the merchant never paid it before.
    pub is_first: Option<bool>,
    /// The merchant's customer.
    pub customer: Option<&'a str>,
    /// The sender's country.
    pub sender_country: Option<&'a str>,
    /// The currency that pays, where it is another one, and how much of it.
    pub funding: Option<(Currency, Minor)>,
    /// The instant of the payout, which ages are counted to.
    pub now: Moment,
}

/// The facts that a pack declares, understood once.
#[derive(Clone, Debug)]
pub(super) struct WantedFacts {
    facts: Vec<(Arc<str>, Option<Measured>)>,
    /// How many windows velocities are read from.
    windows: usize,
    together: Vec<Together>,
}

/// Where a velocity is read.
#[derive(Clone, Copy, Debug)]
struct Measured {
    measure: Measure,
    /// The index of the window.
    window: usize,
}

/// The facts about a payout, as far as they are known before the writer holds the counters.
#[derive(Clone, Debug)]
pub(super) struct Given {
    facts: Vec<GivenFact>,
    windows: usize,
    /// The counters that windows are kept in; none where the payout has no such thing as a customer.
    pub(super) tracked: Vec<Tracked>,
}

/// A fact, or where it will come from.
#[derive(Clone, Debug)]
enum GivenFact {
    Known(Fact),
    Velocity(Arc<str>, Measured),
}

impl WantedFacts {
    /// The facts of these names, each once.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        let (mut facts, mut windows) = (Vec::<(Arc<str>, _)>::new(), Vec::new());
        let mut window = |Velocity { measure, scope, window_s }| {
            let wanted = WindowOf { scope, window_s };
            let known = windows.iter().position(|known| *known == wanted);
            let window = known.unwrap_or_else(|| {
                windows.push(wanted);
                windows.len() - 1
            });
            Measured { measure, window }
        };
        for name in names {
            if !facts.iter().any(|(known, _)| **known == **name) {
                facts.push((name.as_str().into(), Velocity::parse(name).map(&mut window)));
            }
        }
        Self { facts, windows: windows.len(), together: Together::of(&windows) }
    }

    /// Whether this fact is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.facts.iter().any(|(known, _)| **known == *name)
    }

    /// Works them out for a payout, as far as that is possible without a lock.
    pub(super) fn given(&self, payout: &PayoutFacts<'_>) -> Given {
        let (facts, together) = (self.facts.iter(), self.together.iter());
        let places = payout.places();
        let facts = facts.map(|(name, measured)| match measured {
            Some(measured) => GivenFact::Velocity(name.clone(), *measured),
            None => GivenFact::Known(Fact { name: name.clone(), value: payout.value(name) }),
        });
        Given {
            facts: facts.collect(),
            windows: self.windows,
            tracked: together.filter_map(|of| Tracked::of(of, &places)).collect(),
        }
    }
}

impl Given {
    /// The counters with this payout in them, and all facts as they are then.
    pub(super) fn counted(
        &self,
        locked: &LockedState<'_>,
        amount: Minor,
    ) -> (Vec<CounterChange>, Vec<Fact>) {
        let mut windows = vec![None; self.windows];
        let tracked = self.tracked.iter();
        let changes = tracked.map(|it| it.with(locked, amount, &mut windows)).collect();
        (changes, self.facts(&windows))
    }

    fn facts(&self, windows: &[Option<Counted>]) -> Vec<Fact> {
        let value = |Measured { measure, window }: &Measured| match (measure, &windows[*window]) {
            (_, None) => Value::Absent,
            (Measure::Count, Some(window)) => Value::Int(window.count),
            (Measure::Sum, Some(window)) => Value::Int(window.sum.units()),
        };
        let facts = self.facts.iter().map(|fact| match fact {
            GivenFact::Known(fact) => fact.clone(),
            GivenFact::Velocity(name, measured) => {
                Fact { name: name.clone(), value: value(measured) }
            }
        });
        facts.collect()
    }
}

impl PayoutFacts<'_> {
    fn places(&self) -> Places<'_> {
        Places {
            merchant: self.merchant.as_str(),
            env: self.env,
            currency: self.currency,
            wallet: self.wallet.as_str(),
            recipient: self.recipient,
            amount: self.amount,
            customer: self.customer,
            bank: self.bank,
        }
    }

    fn value(&self, name: &str) -> Value {
        let text_or_absent = |value: Option<&str>| value.map_or(Value::Absent, text);
        let age = |since: Moment| Value::Int((self.now.seconds() - since.seconds()).max(0));
        match name {
            "merchant" => text(self.merchant.as_str()),
            "env" => text(self.env.as_str()),
            "currency" => text(self.currency.as_str()),
            "method" => text(self.method),
            "kind" => text(self.kind.as_str()),
            "amount_minor" => Value::Int(self.amount.units()),
            "recipient" => text(self.recipient),
            "recipient_name" => text(self.recipient_name),
            "bank_code" => text_or_absent(self.bank),
            "name_match" => self.name_match.map_or(Value::Absent, Value::Int),
            "first_payment" => self.is_first.map_or(Value::Absent, Value::Bool),
            "recipient_age_s" => age(self.recipient_since),
            "merchant_age_s" => age(self.merchant_since),
            "wallet_age_s" => age(self.wallet_since),
            "hour" => Value::Int(self.now.hour_in(self.timezone)),
            "weekday" => Value::Int(self.now.weekday_in(self.timezone)),
            "customer" => text_or_absent(self.customer),
            "sender_country" => text_or_absent(self.sender_country),
            "funding_currency" => {
                self.funding.map_or(Value::Absent, |(currency, _)| text(currency.as_str()))
            }
            "funding_amount_minor" => {
                self.funding.map_or(Value::Absent, |(_, amount)| Value::Int(amount.units()))
            }
            _ => Value::Absent,
        }
    }
}

/// A text as a pack is told it: a longer one is cut, so that no decision runs out of fuel over it.
pub(super) fn text(text: &str) -> Value {
    Value::String(text[..text.floor_char_boundary(limits::FACT_TEXT_BYTES_MAX)].into())
}

/// A value as it is stored.
struct Stored<'a>(&'a Value);

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::String(text) => serializer.serialize_str(text),
            Value::Absent => serializer.serialize_unit(),
        }
    }
}

/// Facts as they are stored: a JSON object by name, absent ones as null, and its SHA-256.
#[must_use]
pub fn stored(facts: &[Fact]) -> (String, String) {
    let object: BTreeMap<&str, Stored<'_>> =
        facts.iter().map(|fact| (&*fact.name, Stored(&fact.value))).collect();
    let text = serde_json::to_string(&object).unwrap_or_default();
    let digest = hex::encode(Sha256::digest(&text));
    (text, digest)
}

/// The facts that a pack wants, from stored ones, in its order.
///
/// # Errors
/// The names of those that are missing or hold something else than a fact.
pub fn recalled(
    names: &[String],
    stored: &serde_json::Map<String, Json>,
) -> Result<Vec<Fact>, Vec<String>> {
    let (mut facts, mut missing) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        let value = match stored.get(name) {
            Some(Json::Null) => Some(Value::Absent),
            Some(Json::Bool(value)) => Some(Value::Bool(*value)),
            Some(Json::Number(number)) => number.as_i64().map(Value::Int),
            Some(Json::String(text)) => Some(Value::String(text.as_str().into())),
            _ => None,
        };
        match value {
            Some(value) => facts.push(Fact { name: name.as_str().into(), value }),
            None => missing.push(name.clone()),
        }
    }
    if missing.is_empty() { Ok(facts) } else { Err(missing) }
}

/// Whether a value is of the type that the fact has; absent always is.
#[must_use]
pub fn fits(name: &str, value: &Value) -> bool {
    let Some(kind) = railhead_facts::type_of(name) else { return false };
    matches!(
        (kind, value),
        (_, Value::Absent)
            | (Type::Bool, Value::Bool(_))
            | (Type::Int, Value::Int(_))
            | (Type::String, Value::String(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decisions are made again from what is stored of them, years later, and its digest is compared.
    #[test]
    fn facts_are_stored_as_they_always_were() {
        let fact = |name: &str, value| Fact { name: name.into(), value };
        let (text, digest) = stored(&[
            fact("wallet_age_s", Value::Int(-7)),
            fact("first_payment", Value::Bool(true)),
            fact("name_match", Value::Absent),
            fact("recipient_name", Value::String("Ádá \"Obi\"\n".into())),
        ]);
        let known = r#"{"first_payment":true,"name_match":null,"recipient_name":"Ádá \"Obi\"\n","wallet_age_s":-7}"#;
        assert_eq!(text, known);
        assert_eq!(digest, hex::encode(Sha256::digest(known)));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let most = limits::FACT_TEXT_BYTES_MAX;
        for (given, told) in [
            ("Ada Obi".to_owned(), "Ada Obi".to_owned()),
            ("x".repeat(most), "x".repeat(most)),
            ("x".repeat(1 << 20), "x".repeat(most)),
            (format!("{}\u{1F600}", "x".repeat(most - 1)), "x".repeat(most - 1)),
            ("\u{e1}".repeat(most), "\u{e1}".repeat(most / 2)),
        ] {
            assert_eq!(text(&given), Value::String(told.into()));
        }
    }
}
