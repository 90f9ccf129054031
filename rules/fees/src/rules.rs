//! The rules as people write them.

use railhead_rule::Problem;
use serde::Deserialize;

use crate::percent::Percent;

/// The whole file. What only the host reads is kept as it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "manifest")]
    _manifest: i64,
    pack: Pack,
    /// Prices, the first match counts.
    #[serde(default)]
    pub price: Vec<Price>,
    /// Levies, every match counts.
    #[serde(default)]
    pub levy: Vec<Levy>,
}

/// What the pack says of itself.
#[derive(Clone, Debug, Deserialize)]
struct Pack {
    /// What it is told of a payout.
    #[serde(default)]
    facts: Vec<String>,
    #[serde(flatten)]
    _rest: toml::Table,
}

/// Bytes of a line's name that the host takes.
const LABEL_BYTES_MAX: usize = 64;

/// Which payouts a rule is for. What is left out matches everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// A merchant's id.
    pub merchant: Option<String>,
    /// ISO 4217.
    pub currency: Option<String>,
    /// A method of the currency.
    pub method: Option<String>,
    /// `single` or `batch`.
    pub kind: Option<String>,
}

/// Fee and tax of a payout.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Which payouts it prices; all where nothing is set.
    #[serde(default)]
    pub when: Conditions,
    /// What they cost, by amount; the first tier that reaches the amount counts.
    pub tiers: Vec<Tier>,
    /// Tax on the fee.
    #[serde(default)]
    pub tax_percent: Percent,
}

/// A charge for amounts up to a limit: a fixed part and a part of the amount, within bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The largest amount; left out in the last tier.
    pub up_to_minor: Option<i64>,
    /// A fixed part.
    #[serde(default)]
    pub flat_minor: i64,
    /// A part of the amount.
    #[serde(default)]
    pub percent: Percent,
    /// At least this much.
    #[serde(default)]
    pub min_minor: i64,
    /// At most this much.
    pub max_minor: Option<i64>,
}

/// Something that the state takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levy {
    /// Which payouts it is charged on; all where nothing is set.
    #[serde(default)]
    pub when: Conditions,
    /// Its name, for statements.
    pub label: String,
    /// On amounts from here on.
    #[serde(default)]
    pub from_minor: i64,
    /// What is charged, in minor units.
    pub amount_minor: i64,
}

impl Rules {
    /// Reads and checks the rules.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let rules: Self = toml::from_str(text)
            .map_err(|cause| vec![Problem::new("rules.toml", cause.to_string())])?;
        let facts = &rules.pack.facts;
        let mut problems = Vec::new();
        // A price is one of an amount.
        refuse_unlisted("amount_minor", facts, "pack.facts", &mut problems);
        for (index, price) in rules.price.iter().enumerate() {
            price.check(&format!("price[{index}]"), facts, &mut problems);
        }
        for (index, levy) in rules.levy.iter().enumerate() {
            let at = format!("levy[{index}]");
            levy.when.check(&at, facts, &mut problems);
            if levy.label.len() > LABEL_BYTES_MAX {
                let message = format!("must not be longer than {LABEL_BYTES_MAX} bytes");
                problems.push(Problem::new(format!("{at}.label"), message));
            }
            if levy.amount_minor < 0 || levy.from_minor < 0 {
                problems.push(Problem::new(at, "amounts must not be negative"));
            }
        }
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }
}

/// What the pack is not told matches nothing, and the next price would count in its stead.
fn refuse_unlisted(fact: &str, facts: &[String], at: &str, problems: &mut Vec<Problem>) {
    if !facts.iter().any(|listed| listed == fact) {
        let message = format!("the pack is not told {fact}: list it in pack.facts");
        problems.push(Problem::new(at, message));
    }
}

impl Price {
    fn check(&self, at: &str, facts: &[String], problems: &mut Vec<Problem>) {
        self.when.check(at, facts, problems);
        if self.tiers.is_empty() {
            problems.push(Problem::new(format!("{at}.tiers"), "needs at least one tier"));
        }
        for (index, tier) in self.tiers.iter().enumerate() {
            let at = format!("{at}.tiers[{index}]");
            let is_last = index + 1 == self.tiers.len();
            if tier.up_to_minor.is_none() != is_last {
                problems
                    .push(Problem::new(at.clone(), "every tier but the last needs up_to_minor"));
            }
            let most = tier.max_minor.unwrap_or(i64::MAX);
            if tier.flat_minor < 0 || tier.min_minor < 0 || most < tier.min_minor {
                let message = "needs 0 <= flat_minor and 0 <= min_minor <= max_minor";
                problems.push(Problem::new(at, message));
            }
        }
        let limits: Vec<i64> = self.tiers.iter().filter_map(|tier| tier.up_to_minor).collect();
        if !limits.is_sorted_by(|a, b| a < b) {
            problems.push(Problem::new(format!("{at}.tiers"), "up_to_minor must rise"));
        }
    }
}

impl Conditions {
    /// Each fact that a payout may have to show, with what is wanted of it.
    pub fn wanted(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("merchant", &self.merchant),
            ("currency", &self.currency),
            ("method", &self.method),
            ("kind", &self.kind),
        ];
        all.into_iter().filter_map(|(fact, want)| Some((fact, want.as_deref()?)))
    }

    fn check(&self, at: &str, facts: &[String], problems: &mut Vec<Problem>) {
        for (fact, _) in self.wanted() {
            refuse_unlisted(fact, facts, &format!("{at}.when.{fact}"), problems);
        }
        if !matches!(self.kind.as_deref(), None | Some("single" | "batch")) {
            problems.push(Problem::new(format!("{at}.when.kind"), "must be single or batch"));
        }
        let capitals = |code: &str| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase());
        if self.currency.as_deref().is_some_and(|code| !capitals(code)) {
            problems
                .push(Problem::new(format!("{at}.when.currency"), "must be a code such as NGN"));
        }
    }
}
