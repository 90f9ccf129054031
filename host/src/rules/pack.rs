//! A rule pack that is loaded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::limits;
use crate::id::MerchantId;
use crate::wasm::module::Module;
use crate::wasm::pack::{CONTRACT, PackCode, PackRefused};
use crate::wasm::{CodeCache, Engines};

use super::tariff::Tariffs;

/// What a pack decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PackKind {
    /// What a payout costs.
    Fees,
    /// Whether it may go.
    Fraud,
}

/// A loaded rule pack.
pub struct Pack {
    /// What it says of itself.
    pub about: About,
    /// SHA-256 of its file.
    pub digest: String,
    /// Its cases: file and TOML.
    pub cases: Vec<(String, Vec<u8>)>,
    /// What it does.
    pub code: PackCode,
    failures: Mutex<Failures>,
    /// What it prices by.
    pub(super) tariffs: Tariffs,
}

/// Failures in a row about live payouts.
#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    /// Whose payouts they were about: each merchant once, and no more of them than matter.
    merchants: Vec<MerchantId>,
}

/// How a pack did when it was asked about a payout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'a> {
    /// The merchant who pays.
    pub merchant: &'a MerchantId,
    /// Whether a live payout was made or refused; a test key must not have a pack taken out.
    pub is_live: bool,
    /// Why it did not decide, if it did not.
    pub failure: Option<&'a str>,
}

/// `[pack]` of `rules.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Stable name.
    pub name: String,
    /// Of the rules.
    pub version: String,
    /// What it decides.
    pub kind: PackKind,
    /// The WIT package that it was built against.
    pub contract: String,
    /// A title to show; it decides nothing.
    pub title: String,
    /// Facts that it wants to know.
    pub facts: Vec<String>,
}

#[derive(Deserialize)]
struct Head {
    manifest: u32,
    pack: About,
}

/// Why a pack is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The component or its rules are refused.
    #[error(transparent)]
    Refused(#[from] PackRefused),
    /// What it says of itself cannot be read.
    #[error("rules.toml: {0}")]
    Head(String),
}

impl Pack {
    /// Loads a pack from its component.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn load(engines: &Engines, cache: &CodeCache, bytes: &[u8]) -> Result<Self, OpenError> {
        let module = Module::load(&engines.rules, cache, bytes, CONTRACT);
        let module = module.map_err(PackRefused::from)?;
        let about = about(&module.declaration)?;
        refuse_unknown(&about)?;
        let cases: usize = module.cases.iter().map(|(_, toml)| toml.len()).sum();
        for (what, bytes) in [("rules.toml", module.declaration.len()), ("the cases", cases)] {
            if bytes > limits::PACK_TEXT_BYTES_MAX {
                let most = limits::PACK_TEXT_BYTES_MAX;
                let why = format!("{what} has {bytes} bytes; at most {most} are accepted");
                return Err(OpenError::Head(why));
            }
        }
        let code = PackCode::open(&engines.rules, &module)?;
        let (offers, interface) = match about.kind {
            PackKind::Fees => (code.prices(), "fees"),
            PackKind::Fraud => (code.assesses(), "fraud"),
        };
        if !offers {
            let why = format!("kind is {interface}, but the pack does not export {interface}");
            return Err(OpenError::Head(why));
        }
        let Module { digest, cases, .. } = module;
        Ok(Self {
            about,
            digest,
            cases,
            code,
            failures: Mutex::default(),
            tariffs: Tariffs::default(),
        })
    }

    /// How often in a row it has failed to decide about live payouts.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.seen().in_a_row
    }

    /// Whether it has failed so often, and for so many merchants, that it is to be taken out.
    #[must_use]
    pub fn keeps_failing(&self) -> bool {
        self.seen().are_too_many()
    }

    pub(super) fn forget_failures(&self) {
        *self.seen() = Failures::default();
    }

    /// Counts a decision that it failed to make, or forgets those before one that it made. Once
    /// there were so many in a row that the pack is to be taken out, a success comes too late.
    pub(super) fn observe(&self, Observed { merchant, is_live, failure }: Observed<'_>) {
        if let Some(why) = failure {
            let About { name, version, .. } = &self.about;
            tracing::error!(pack = name, version, %merchant, is_live, why, "a rule pack failed");
        }
        if !is_live {
            return;
        }
        let mut seen = self.seen();
        match failure {
            Some(_) => seen.add(merchant),
            None if seen.are_too_many() => {}
            None => *seen = Failures::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Failures {
    fn are_too_many(&self) -> bool {
        self.in_a_row >= limits::PACK_FAILURES_MAX
            && self.merchants.len() >= limits::PACK_FAILURES_MERCHANTS_MIN
    }

    fn add(&mut self, merchant: &MerchantId) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        let is_full = self.merchants.len() >= limits::PACK_FAILURES_MERCHANTS_MIN;
        if !is_full && !self.merchants.contains(merchant) {
            self.merchants.push(merchant.clone());
        }
    }
}

/// `[pack]` of the text of `rules.toml`.
fn about(text: &str) -> Result<About, OpenError> {
    let head: Head = toml::from_str(text).map_err(|cause| OpenError::Head(cause.to_string()))?;
    match head.manifest {
        1 => Ok(head.pack),
        other => Err(OpenError::Head(format!("manifest is {other}; this host reads 1"))),
    }
}

impl std::fmt::Debug for Pack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.about.name, self.about.version)
    }
}

impl PackKind {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fees => "fees",
            Self::Fraud => "fraud",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Fees, Self::Fraud].into_iter().find(|kind| kind.as_str() == text)
    }

    /// The kind that rules of text are of.
    ///
    /// # Errors
    /// The text says nothing of a pack.
    pub fn of_text(text: &str) -> Result<Self, OpenError> {
        about(text).map(|about| about.kind)
    }

    /// Whether packs of this kind are told this fact.
    fn offers(self, fact: &str) -> bool {
        match self {
            Self::Fees => FEE_FACTS.contains(&fact),
            Self::Fraud => railhead_facts::type_of(fact).is_some(),
        }
    }
}

/// What a price may depend on: nothing that changes between a quote and its payout.
const FEE_FACTS: [&str; 5] = ["merchant", "currency", "method", "kind", "amount_minor"];

/// A pack that asks for what the host does not know would decide on less than it thinks.
fn refuse_unknown(about: &About) -> Result<(), OpenError> {
    let fail = |why: String| Err(OpenError::Head(why));
    if !is_word(&about.name, "_-") || !is_word(&about.version, ".+-") {
        return fail(
            "pack.name and pack.version are words of at most 64 letters, digits, . + - _".into(),
        );
    }
    if about.contract != CONTRACT.package {
        let (found, wanted) = (&about.contract, CONTRACT.package);
        return fail(format!("pack.contract is {found}, and this host speaks {wanted}"));
    }
    if about.facts.len() > limits::PACK_FACTS_MAX {
        return fail(format!("pack.facts has more than {} facts", limits::PACK_FACTS_MAX));
    }
    for (index, fact) in about.facts.iter().enumerate() {
        if about.facts[..index].contains(fact) {
            return fail(format!("pack.facts[{index}]: {fact} is named twice"));
        }
        if !about.kind.offers(fact) {
            let kind = about.kind.as_str();
            let near = railhead_facts::nearest(fact).filter(|near| about.kind.offers(near));
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            return fail(format!("pack.facts[{index}]: {fact} is no fact of {kind} packs{hint}"));
        }
    }
    Ok(())
}

fn is_word(text: &str, also: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
    (1..=64).contains(&text.len()) && text.chars().all(fits)
}
