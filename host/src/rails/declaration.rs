//! `rail.toml`: everything about a rail that is not an algorithm.

use std::collections::BTreeMap;

use http::Method;
use regex_lite::Regex;
use serde::Deserialize;

use crate::money::Currency;

/// The declaration that travels inside a rail's component.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// Version of this format; 1.
    pub manifest: u32,
    /// Name, version, title.
    pub rail: About,
    /// Currencies, each with its methods and bounds.
    pub currencies: Vec<CurrencyTerms>,
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
    /// Settings that the operator configures.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingTerms>,
    /// Asking about unknown outcomes.
    pub query: Query,
    /// Messages that the network sends by itself.
    pub notices: Option<Notices>,
    /// What is masked in records and encrypted at rest.
    #[serde(default)]
    pub redact: Redact,
    /// Reference tables.
    #[serde(default)]
    pub tables: BTreeMap<String, TableTerms>,
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
    /// When a payment is final.
    pub finality: Finality,
}

/// When a payment is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finality {
    /// With the network's answer.
    Instant,
    /// When the recipient claims it.
    Claimable,
    /// Days later, by notices in files.
    File,
}

/// `[[currencies]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurrencyTerms {
    /// ISO 4217.
    pub code: Currency,
    /// Decimal places of the major unit.
    pub exponent: u8,
    /// Methods; the first is the default.
    pub methods: Vec<String>,
    /// Smallest amount.
    pub amount_minor_min: i64,
    /// Largest amount.
    pub amount_minor_max: i64,
}

/// `[recipient]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipient {
    /// Canonical fields that make two recipients the same one.
    pub identity: Vec<String>,
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
    /// As in the API.
    pub name: String,
    /// What people call the field.
    pub title: String,
    /// A regular expression that the whole value matches.
    pub pattern: Option<String>,
    /// What the pattern wants, for the error message.
    pub hint: Option<String>,
    /// Most characters; 140 if left out.
    pub max_length: Option<usize>,
    /// Whether it must be there.
    #[serde(default)]
    pub required: bool,
    /// Whether records and logs mask it.
    #[serde(default)]
    pub sensitive: bool,
    /// For the docs.
    pub example: Option<String>,
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
}

/// `[endpoints.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointTerms {
    /// What people call the endpoint.
    pub title: String,
    /// Paths below the address; a final `/*` stands for further segments.
    pub paths: Vec<String>,
    /// HTTP methods.
    pub methods: Vec<String>,
    /// Time for a whole exchange.
    pub timeout_ms: u64,
    /// Largest answer.
    pub response_bytes_max: usize,
}

/// `[secrets.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTerms {
    /// What people call the secret.
    pub title: String,
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
}

/// `[notices]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notices {
    /// Paths below the rail's notice address.
    pub paths: Vec<String>,
    /// The secret that the network presents as a bearer token.
    pub bearer_secret: String,
    /// How far what it says by itself is believed.
    #[serde(default)]
    pub trust: Trust,
}

/// How far a network is believed where it speaks by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// A message is a reason to ask, and the answer is believed.
    #[default]
    Hint,
    /// A return is believed as it is told: no question would show it.
    Outcome,
}

/// `[redact]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redact {
    /// XML elements, and keys of JSON, whose contents are masked.
    #[serde(default)]
    pub elements: Vec<String>,
    /// Attributes of a resolution that are encrypted at rest.
    #[serde(default)]
    pub attributes: Vec<String>,
}

/// `[tables.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableTerms {
    /// The CSV file beside the declaration.
    pub file: String,
    /// As of when.
    pub dated: String,
    /// Where the data were taken from.
    pub source: String,
}

/// `[scenarios]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenarios {
    /// The recipient's field that chooses.
    pub field: String,
    /// Value to scenario.
    pub values: BTreeMap<String, String>,
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

    /// The first thing that makes no sense.
    fn nonsense(&self) -> Option<String> {
        let word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if self.manifest != 1 {
            return Some(format!("manifest is {}; this host reads 1", self.manifest));
        }
        if !word(&self.rail.name) {
            return Some("rail.name must be lowercase letters, digits and dashes".into());
        }
        let patterns = self.recipient.fields.iter().filter_map(|field| field.pattern.as_deref());
        let settings = self.settings.values().filter_map(|setting| setting.pattern.as_deref());
        for pattern in patterns.chain(settings) {
            if let Err(cause) = Regex::new(pattern) {
                return Some(format!("{pattern}: {cause}"));
            }
        }
        if self.currencies.iter().any(|terms| terms.methods.is_empty()) {
            return Some("every currency needs a method".into());
        }
        if self.query.schedule_s.is_empty() || self.query.schedule_s.contains(&0) {
            return Some("query.schedule_s needs positive seconds".into());
        }
        if let Some(method) = self
            .endpoints
            .values()
            .flat_map(|endpoint| &endpoint.methods)
            .find(|method| Method::from_bytes(method.as_bytes()).is_err())
        {
            return Some(format!("{method} is not an HTTP method"));
        }
        let notices = self.notices.as_ref();
        let missing = notices.map(|notices| &notices.bearer_secret);
        missing
            .filter(|secret| !self.secrets.contains_key(*secret))
            .map(|secret| format!("notices.bearer_secret names {secret}, which is no secret"))
    }

    /// The terms of a currency that this rail serves.
    #[must_use]
    pub fn currency(&self, code: Currency) -> Option<&CurrencyTerms> {
        self.currencies.iter().find(|terms| terms.code == code)
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
        assert!(nip.currency(Currency::parse("NGN").expect("a code")).is_some());
        let chosen = nip.scenario(|_| Some("0000001022".into()));
        assert_eq!(chosen, Some("failed"));
    }

    #[test]
    fn nonsense_is_named() {
        for (what, instead) in [
            ("name = \"nip\"", "name = \"NIP rail\""),
            ("manifest = 1", "manifest = 2"),
            ("bearer_secret = \"notice_token\"", "bearer_secret = \"other\""),
            ("pattern = \"^[0-9]{10}$\"", "pattern = \"^[0-9{10}$\""),
            ("[query]", "[query]\nunknown = 1"),
        ] {
            assert!(Declaration::read(&NIP.replacen(what, instead, 1)).is_err(), "{instead}");
        }
    }
}
