//! `rail.toml`: everything about a rail that is not an algorithm.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::money::Currency;
use crate::wasm::keys::{Algorithm, Bits, Use};

use super::fields::whole;
use super::files::FilesTerms;
use super::methods::MethodTerms;
use super::notices::NoticeTerms;
use super::shown::{SeedTerms, ShownTerms};
use super::tokens::TokenTerms;

/// The declaration that travels inside a rail's component.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Version of this format; 2.
    pub manifest: u32,
    /// Name, version, title.
    pub rail: About,
    /// Ways to pay, each of one currency.
    pub methods: Vec<MethodTerms>,
    /// Fields of a recipient.
    pub recipient: Recipient,
    /// Fields of a sender, where a merchant must give them.
    #[serde(default)]
    pub sender: Sender,
    /// Name enquiry.
    pub names: Option<Names>,
    /// Where requests may go.
    #[serde(default)]
    pub endpoints: BTreeMap<String, EndpointTerms>,
    /// Secrets that the operator configures.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretTerms>,
    /// Tokens that the host fetches.
    #[serde(default)]
    pub tokens: BTreeMap<String, TokenTerms>,
    /// Keys that sign what leaves, and that what arrives is checked by.
    #[serde(default)]
    pub keys: BTreeMap<String, KeyTerms>,
    /// Texts that the host makes, and that nobody can guess.
    #[serde(default)]
    pub seeds: BTreeMap<String, SeedTerms>,
    /// What merchants are shown of a payment that is taken on.
    #[serde(default)]
    pub shown: Vec<ShownTerms>,
    /// Mobile money operators whose wallets it pays.
    #[serde(default)]
    pub operators: Vec<OperatorTerms>,
    /// Settings that the operator configures.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingTerms>,
    /// Asking about unknown outcomes.
    pub query: Query,
    /// Payments by file.
    pub files: Option<FilesTerms>,
    /// Messages that the network sends by itself.
    #[serde(default)]
    pub notices: Vec<NoticeTerms>,
    /// What its network's refusals are about.
    #[serde(default)]
    pub refusals: Refusals,
    /// What is masked in records and encrypted at rest.
    #[serde(default)]
    pub redact: Redact,
    /// How fast the network may be asked.
    pub throttle: Option<ThrottleTerms>,
    /// Reference tables.
    #[serde(default)]
    pub tables: BTreeMap<String, TableTerms>,
    /// Days on which its network carries out nothing, where the host has no calendar of them.
    #[serde(default)]
    pub calendars: BTreeMap<String, CalendarTerms>,
    /// Recipients that choose a sandbox scenario.
    pub scenarios: Option<Scenarios>,
}

/// `[rail]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Stable name: lowercase letters, digits, dashes.
    pub name: String,
    /// Of the rail, not of the contract.
    pub version: String,
    /// A title to show; it decides nothing.
    pub title: String,
    /// The WIT package that it was built against.
    pub contract: String,
    /// ISO 3166 alpha-2 codes that it reaches.
    pub countries: Vec<String>,
}

/// `[[operators]]`: a mobile money operator, as `GET /v1/momo_operators` lists it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorTerms {
    /// As recipients name it.
    pub slug: String,
    /// As people call it.
    pub name: String,
    /// ISO 3166 alpha-2.
    pub country: String,
    /// What its wallets hold.
    pub currency: Currency,
}

/// `[recipient]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipient {
    /// Canonical fields that make two recipients the same one.
    pub identity: Vec<String>,
    /// Keeps its recipients apart from those of the currency's other rails, where the same fields
    /// lead elsewhere: an account that is paid by wire is another recipient than by ACH.
    pub shape: Option<String>,
    /// The field shown as the payout's `recipient_account`.
    pub account: String,
    /// The field shown as the payout's `recipient_bank_code`.
    pub bank: Option<String>,
    /// The field that holds the bank's name.
    pub bank_name: Option<String>,
    /// The field that holds the recipient's name.
    pub name: String,
    /// All fields.
    pub fields: Vec<FieldTerms>,
}

/// `[[recipient.fields]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldTerms {
    /// As in the API; with a point, a member of a block: `bank_address.city`.
    pub name: String,
    /// What people call the field.
    pub title: String,
    /// A regular expression that the whole value matches.
    pub pattern: Option<String>,
    /// What the pattern wants, for the error message.
    pub hint: Option<String>,
    /// Most characters; 140 if left out.
    pub max_length: Option<usize>,
    /// Where the body of a recipient that is saved has it: a member of a member, as in
    /// `bank.sort_code`. Its own name does as well.
    pub from: Option<String>,
    /// Whether it must be there.
    #[serde(default)]
    pub required: bool,
    /// Whether it must be there with a payment, of a recipient that is not saved.
    #[serde(default)]
    pub required_inline: bool,
    /// When it must be there, where it need not otherwise.
    pub required_when: Option<RequiredWhen>,
    /// The error that a value of the wrong shape is: `invalid_field` if left out, or one of those
    /// that components name.
    pub code: Option<String>,
    /// Whether records and logs mask it.
    #[serde(default)]
    pub sensitive: bool,
    /// For the docs.
    pub example: Option<String>,
}

/// `[recipient.fields.required_when]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredWhen {
    /// Another field of the recipient.
    pub field: String,
    /// What it is then.
    pub values: Vec<String>,
}

/// `[sender]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sender {
    /// Required of a person.
    #[serde(default)]
    pub required: Vec<String>,
    /// Required of a business: a sender that gives `business_name`.
    #[serde(default)]
    pub required_business: Vec<String>,
}

/// `[names]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// Whether the name on record replaces the one that was sent.
    pub overwrite: bool,
    /// How long a resolved name is used before it is asked for again.
    pub fresh_for_days: u32,
    /// How alike, of a hundred, the name that was given must be to the one on record, where it is
    /// not overwritten: less is refused with `name_mismatch`.
    #[serde(default)]
    pub alike_at_least: i64,
}

/// `[endpoints.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointTerms {
    /// What people call the endpoint.
    pub title: String,
    /// The secret with which this host shows who it is when it connects: PEM with a certificate,
    /// what it is issued by, and its private key. No request can name it.
    pub client_certificate: Option<String>,
    /// What may be asked of it.
    pub calls: Vec<CallTerms>,
}

/// `[[endpoints.<name>.calls]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallTerms {
    /// By which components name it; no other call of the rail has it.
    pub name: String,
    /// The HTTP method.
    pub method: String,
    /// The path below the endpoint's address; a final `*` stands for what the component gives.
    pub path: String,
    /// Whether it may move money. Only `payouts.submit` can make such a call.
    #[serde(default)]
    pub moves_money: bool,
    /// Time for a whole exchange.
    pub timeout_ms: u64,
    /// Largest answer.
    #[serde(default = "answer_bytes_max")]
    pub answer_bytes_max: usize,
}

const fn answer_bytes_max() -> usize {
    65_536
}

/// `[secrets.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTerms {
    /// What people call the secret.
    pub title: String,
    /// The key under which it leaves encrypted, and in no other way.
    pub sealed_with: Option<String>,
}

/// `[settings.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingTerms {
    /// What people call the setting.
    pub title: String,
    /// A regular expression that the whole value matches.
    pub pattern: Option<String>,
    /// Used where the operator sets nothing.
    pub default: Option<String>,
    /// The same where the simulator is on the other side, and only there.
    pub sandbox: Option<String>,
}

/// `[query]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Seconds between one question and the next; the last repeats.
    pub schedule_s: Vec<u64>,
    /// Answers of "never received" in a row that permit sending again.
    pub never_received_answers: i64,
    /// And how long after the last byte left.
    pub never_received_after_s: u64,
    /// How long a payment that was taken on may stay undecided, as where its recipient has to claim
    /// it, before a person is told; a day, if left out.
    pub accepted_for_s: Option<u64>,
}

/// `[refusals]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusals {
    /// Codes with which it is this host that is refused, not the payment: its credentials, or its
    /// own account. The route is left alone for a while after one of them.
    #[serde(default)]
    pub ours: Vec<String>,
}

/// `[redact]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redact {
    /// XML elements, and keys of JSON, whose contents are masked.
    #[serde(default)]
    pub elements: Vec<String>,
}

/// `[tables.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableTerms {
    /// Who brings it. What the operator puts into `modules.dir` stands in for a rail's own, too.
    #[serde(default)]
    pub supplied_by: Supplier,
    /// Columns without which it is refused.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The CSV file beside the declaration, of a table that the rail brings.
    pub file: Option<String>,
    /// As of when it is.
    pub dated: Option<String>,
    /// Where the data were taken from.
    pub source: Option<String>,
}

/// `[calendars.<name>]`: packed into the rail, and known to it alone. What the operator puts into
/// `modules.dir` stands in for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalendarTerms {
    /// The CSV file beside the declaration.
    pub file: String,
}

/// Who brings a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Supplier {
    /// It is packed into the rail.
    #[default]
    Rail,
    /// Only the operator may have it, or nobody does.
    Operator,
}

/// `[keys.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyTerms {
    /// How it signs.
    pub algorithm: Algorithm,
    /// Which half of the pair this host has.
    #[serde(rename = "use")]
    pub half: Use,
    /// What people call the key.
    pub title: String,
    /// How many bits it has at least: 2048, or 1024 where a network has no longer one to encrypt
    /// for it.
    #[serde(default)]
    pub bits_min: Bits,
}

/// `[throttle]`: what the network allows a customer. An operator's `throttle.per_second` and
/// `throttle.at_once` of a route stand in for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottleTerms {
    /// Calls that begin within a second.
    pub per_second: Option<u32>,
    /// Calls under way.
    pub at_once: Option<u32>,
}

/// `[scenarios]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenarios {
    /// The recipient's field that chooses.
    pub field: String,
    /// Value to scenario.
    pub values: BTreeMap<String, String>,
    /// Scenarios of this network only, and what happens in them.
    #[serde(default)]
    pub own: BTreeMap<String, String>,
}

/// A declaration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// It is not what the format asks for.
    #[error("rail.toml: {0}")]
    Toml(#[from] toml::de::Error),
    /// It contradicts itself.
    #[error("rail.toml: {0}")]
    Sense(String),
}

impl SettingTerms {
    /// Whether a value is of the declared shape.
    #[must_use]
    pub fn takes(&self, value: &str) -> bool {
        let pattern = self.pattern.as_deref().map(whole);
        pattern.is_none_or(|pattern| pattern.is_ok_and(|pattern| pattern.is_match(value)))
    }

    /// The value where the simulator is on the other side and nothing is set.
    #[must_use]
    pub fn sandboxed(&self) -> Option<String> {
        self.sandbox.clone().or_else(|| self.default.clone())
    }
}

impl Declaration {
    /// Reads and checks a declaration.
    ///
    /// # Errors
    /// See [`Invalid`].
    pub fn read(text: &str) -> Result<Self, Invalid> {
        let declaration: Self = toml::from_str(text)?;
        match declaration.nonsense() {
            Some(why) => Err(Invalid::Sense(why)),
            None => Ok(declaration),
        }
    }

    /// The methods of a currency; the first is the default.
    pub fn methods_of(&self, currency: Currency) -> impl Iterator<Item = &MethodTerms> {
        self.methods.iter().filter(move |terms| terms.currency == currency)
    }

    /// The terms of a method that this rail serves.
    #[must_use]
    pub fn method(&self, currency: Currency, name: &str) -> Option<&MethodTerms> {
        self.methods_of(currency).find(|terms| terms.name == name)
    }

    /// What amounts of a method are multiples of: 100 where its network knows no cents.
    #[must_use]
    pub fn step(&self, currency: Currency, method: &str) -> i64 {
        self.method(currency, method).map_or(1, |terms| terms.step)
    }

    /// Whether any of its calls moves money.
    #[must_use]
    pub fn moves_money(&self) -> bool {
        let mut calls = self.endpoints.values().flat_map(|endpoint| &endpoint.calls);
        calls.any(|call| call.moves_money)
    }

    /// Whether it pays in this currency.
    #[must_use]
    pub fn serves(&self, currency: Currency) -> bool {
        self.methods_of(currency).next().is_some()
    }

    /// Its currencies, each once, in the order of the declaration.
    #[must_use]
    pub fn currencies(&self) -> Vec<Currency> {
        let mut found = Vec::new();
        for terms in &self.methods {
            if !found.contains(&terms.currency) {
                found.push(terms.currency);
            }
        }
        found
    }

    /// What is declared of a message that comes by this method on this path.
    #[must_use]
    pub fn notice(&self, method: &str, path: &str) -> Option<&NoticeTerms> {
        let is_it = |notice: &&NoticeTerms| {
            let is_its = match notice.path.strip_suffix('*') {
                Some(before) => path.strip_prefix(before).is_some_and(|rest| !rest.is_empty()),
                None => notice.path == path,
            };
            is_its && notice.methods.iter().any(|known| known == method)
        };
        self.notices.iter().find(is_it)
    }

    /// Whether a secret is one that its network presents to this host.
    #[must_use]
    pub fn is_presented(&self, secret: &str) -> bool {
        self.notices.iter().any(|notice| notice.auth.bearer.as_deref() == Some(secret))
    }

    /// Whether a secret is what shows this host to its network when it connects.
    #[must_use]
    pub fn is_client_certificate(&self, secret: &str) -> bool {
        let mut shown = self.endpoints.values().map(|endpoint| &endpoint.client_certificate);
        shown.any(|shown| shown.as_deref() == Some(secret))
    }

    /// The secrets that leave encrypted only, and under which key.
    #[must_use]
    pub fn sealed_with(&self) -> BTreeMap<String, String> {
        let secrets = self.secrets.iter();
        secrets.filter_map(|(name, it)| Some((name.clone(), it.sealed_with.clone()?))).collect()
    }

    /// Every scenario that its sandbox names.
    pub fn scenario_names(&self) -> impl Iterator<Item = &String> {
        let named = self.scenarios.iter();
        named.flat_map(|scenarios| scenarios.values.values().chain(scenarios.own.keys()))
    }

    /// The scenario that a recipient chooses by itself.
    #[must_use]
    pub fn scenario(&self, field: impl Fn(&str) -> Option<String>) -> Option<&str> {
        let scenarios = self.scenarios.as_ref()?;
        let value = field(&scenarios.field)?;
        scenarios.values.get(&value).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIP: &str = include_str!("../../../rails/nip/rail.toml");

    #[test]
    fn the_built_in_declaration_makes_sense() {
        let nip = Declaration::read(NIP).expect("valid");
        assert_eq!(nip.rail.name, "nip");
        let naira = Currency::parse("NGN").expect("a code");
        assert_eq!(nip.currencies(), [naira]);
        assert!(nip.method(naira, "nip").is_some() && nip.method(naira, "wire").is_none());
        let chosen = nip.scenario(|_| Some("0000001022".into()));
        assert_eq!(chosen, Some("failed"));
    }

    #[test]
    fn nonsense_is_named() {
        for (what, instead) in [
            ("name = \"nip\"", "name = \"NIP rail\""),
            ("manifest = 2", "manifest = 1"),
            ("rail@1.0.0", "rail@0.1.0"),
            ("amount_minor_min = 100", "amount_minor_min = 0"),
            ("amount_minor_min = 100", "amount_minor_min = 100\nstep = 7"),
            ("name = \"status_query\"", "name = \"transfer\""),
            ("/nip/nameenquirysingleitem", "/nip/*/nameenquirysingleitem"),
            ("/nip/nameenquirysingleitem", "/nip/../admin"),
            ("bearer = \"notice_token\"", "bearer = \"other\""),
            ("pattern = \"^[0-9]{10}$\"", "pattern = \"^[0-9{10}$\""),
            ("[query]", "[query]\nunknown = 1"),
        ] {
            assert!(Declaration::read(&NIP.replacen(what, instead, 1)).is_err(), "{instead}");
        }
    }
}
