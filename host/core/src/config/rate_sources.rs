//! Where rates come from by themselves.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use super::read::listed;

/// Where rates come from by themselves, in each environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateSources {
    /// In the sandbox.
    pub test: Option<RateSource>,
    /// In earnest.
    pub live: Option<RateSource>,
}

/// A provider of rates, and what is made of what it says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSource {
    /// The rate source that reads what it says: built in, or from `modules.dir`.
    pub source: String,
    /// Its address, with https.
    pub url: String,
    /// Headers that go with each request, by name; an underscore stands for a hyphen.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// Rates of all pairs of these currencies are kept up.
    #[serde(deserialize_with = "listed")]
    pub currencies: Vec<String>,
    /// What the platform keeps of each, in basis points.
    #[serde(default)]
    pub spread_bps: i64,
    /// Seconds after its own instant from which on a rate is too old to be used.
    pub valid_for_s: u64,
    /// How often the provider is asked, in seconds.
    #[serde(default = "every")]
    pub every_s: u64,
    /// A rate that moves further at once, in basis points, is left to a person.
    #[serde(default = "move_max")]
    pub move_max_bps: u32,
}

fn every() -> u64 {
    600
}

fn move_max() -> u32 {
    1_000
}
