//! Rate sources: components that read what a provider of rates publishes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::clock::Moment;
use crate::config::limits;
use crate::money::Currency;
use crate::wasm::module::{Module, Refused};
use crate::wasm::rail::Broken;
use crate::wasm::source::{self, CONTRACT, SourceCode};
use crate::wasm::{CodeCache, Engines};

use super::rate::Rate;

/// What is told of what is wrong with an answer.
pub(super) const WORDS_MAX: usize = 300;

/// A loaded rate source.
pub struct RateSource {
    /// What it says of itself.
    pub about: About,
    /// SHA-256 of its file.
    pub digest: String,
    code: SourceCode,
}

/// `[source]` of `rates.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Stable name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The WIT package that it was built against.
    pub contract: String,
    /// A title to show; it decides nothing.
    pub title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    manifest: u32,
    source: About,
}

/// Why a source is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum SourceRefused {
    /// The component is refused.
    #[error(transparent)]
    Component(#[from] Refused),
    /// What it says of itself cannot be used.
    #[error("rates.toml: {0}")]
    Declaration(String),
}

impl RateSource {
    /// Loads a source from its component.
    ///
    /// # Errors
    /// See [`SourceRefused`].
    pub fn load(engines: &Engines, cache: &CodeCache, bytes: &[u8]) -> Result<Self, SourceRefused> {
        let module = Module::load(&engines.rules, cache, bytes, CONTRACT)?;
        let about = about(&module.declaration).map_err(SourceRefused::Declaration)?;
        let code = SourceCode::link(&engines.rules, &module)?;
        Ok(Self { about, digest: module.digest, code })
    }

    /// What to ask its provider for these pairs: what follows the provider's address.
    ///
    /// # Errors
    /// The component failed, or asks for what is no page.
    pub fn requests(&self, pairs: &[(Currency, Currency)]) -> Result<Vec<String>, String> {
        let pair = |(from, to): &(Currency, Currency)| source::Pair {
            from: from.to_string(),
            to: to.to_string(),
        };
        let pairs: Vec<_> = pairs.iter().map(pair).collect();
        let requests = self.code.requests(&pairs).map_err(|cause: Broken| cause.to_string())?;
        let most = limits::SOURCE_PAGES_MAX;
        if !(1..=most).contains(&requests.len()) {
            return Err(format!(
                "the source asks for {} pages, not for 1 to {most}",
                requests.len()
            ));
        }
        let is_path = |path: &String| {
            let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
            path.starts_with('/')
                && !path.starts_with("//")
                && is_plain
                && path.len() <= limits::SOURCE_PATH_MAX
        };
        match requests.iter().find(|path| !is_path(path)) {
            Some(odd) => {
                let odd: String = odd.chars().take(WORDS_MAX).collect();
                Err(format!("the source asks for {odd:?}, which is no path"))
            }
            None => Ok(requests),
        }
    }

    /// What the answers of its provider tell.
    ///
    /// # Errors
    /// The component failed, or cannot use them.
    pub fn read(&self, answers: &[Vec<u8>], now: Moment) -> Result<Published, String> {
        let told = self.code.read(answers).map_err(|cause: Broken| cause.to_string())?;
        let cut = |why: String| why.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect();
        Published::of(told.map_err::<String, _>(cut)?, now)
    }
}

fn about(text: &str) -> Result<About, String> {
    let Declaration { manifest, source } =
        toml::from_str(text).map_err(|cause| cause.to_string())?;
    if manifest != 1 {
        return Err("manifest must be 1".to_owned());
    }
    if !CONTRACT.serves(&source.contract) {
        return Err(format!("source.contract must be {}", CONTRACT.package));
    }
    let is_word = |text: &str| {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !text.is_empty() && text.len() <= limits::PACK_LABEL_MAX && text.bytes().all(is_plain)
    };
    // It stands in the audit log where otherwise it says who set a rate.
    if !is_word(&source.name) || source.name == OPERATOR {
        let what = "lowercase letters, digits and hyphens, and not `operator`";
        return Err(format!("source.name must be {what}"));
    }
    Ok(source)
}

/// Where a rate comes from that an operator sets without a word about it.
pub const OPERATOR: &str = "operator";

/// A rate, and as of when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// What one major unit comes to.
    pub rate: Rate,
    /// As of when.
    pub as_of: Moment,
}

/// What a provider publishes, and what follows from it.
#[derive(Debug, Default)]
pub struct Published {
    rates: BTreeMap<(Currency, Currency), Told>,
    currencies: BTreeSet<Currency>,
}

impl Published {
    /// Of what a source has read. What is no currency or no rate here, or of a time that is to come,
    /// is left out: providers publish more than anybody exchanges.
    fn of(rates: Vec<source::Rate>, now: Moment) -> Result<Self, String> {
        let most = limits::SOURCE_RATES_MAX;
        if rates.len() > most {
            return Err(format!("the source tells {} rates, more than {most}", rates.len()));
        }
        let mut published = Self::default();
        for source::Rate { of, value, as_of_ms } in rates {
            let codes = Currency::parse(&of.from).zip(Currency::parse(&of.to));
            let Some(((from, to), rate)) = codes.zip(Rate::parse(&value)) else { continue };
            let micros = i64::try_from(as_of_ms).ok().and_then(|ms| ms.checked_mul(1_000));
            let as_of = micros.map(Moment::from_micros);
            // Their clock may be a little ahead of ours.
            let is_past = |as_of: &Moment| *as_of <= now.after(limits::SOURCE_CLOCK_AHEAD);
            let Some(as_of) = as_of.filter(is_past) else { continue };
            published.rates.insert((from, to), Told { rate, as_of: as_of.min(now) });
            published.currencies.extend([from, to]);
        }
        Ok(published)
    }

    /// The rate of a pair: as it was told, or the other direction turned round, or by way of a
    /// third currency, the newest way of them. Each step is rounded down, so that nobody gains by
    /// going there and back, and it is as old as its oldest part.
    #[must_use]
    pub fn rate(&self, from: Currency, to: Currency) -> Option<Told> {
        let by_way = |middle: &Currency| {
            let (first, second) = (self.direct(from, *middle)?, self.direct(*middle, to)?);
            let rate = first.rate.then(second.rate)?;
            Some(Told { rate, as_of: first.as_of.min(second.as_of) })
        };
        // Of ways that are equally new it is always the same one.
        let ways = || self.currencies.iter().rev().filter_map(by_way);
        self.direct(from, to).or_else(|| ways().max_by_key(|told| told.as_of))
    }

    fn direct(&self, from: Currency, to: Currency) -> Option<Told> {
        let turned = |told: &Told| Some(Told { rate: told.rate.inverse()?, ..*told });
        let told = self.rates.get(&(from, to)).copied();
        told.or_else(|| self.rates.get(&(to, from)).and_then(turned))
    }
}

/// Every ordered pair of these currencies.
pub fn pairs(currencies: &[Currency]) -> Vec<(Currency, Currency)> {
    let others = |from: Currency| currencies.iter().filter(move |to| **to != from);
    currencies.iter().flat_map(|from| others(*from).map(|to| (*from, *to))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(code: &str) -> Currency {
        Currency::parse(code).expect("a currency")
    }

    fn published(rates: &[(&str, &str, &str, u64)]) -> Result<Published, String> {
        let rate = |(from, to, value, as_of_ms): &(&str, &str, &str, u64)| source::Rate {
            of: source::Pair { from: (*from).to_owned(), to: (*to).to_owned() },
            value: (*value).to_owned(),
            as_of_ms: *as_of_ms,
        };
        Published::of(rates.iter().map(rate).collect(), Moment::from_micros(1_000_000))
    }

    #[test]
    fn a_euro_in_each_currency_gives_every_pair_and_never_a_gain() {
        let told = [("EUR", "USD", "1.1520", 900), ("EUR", "GBP", "0.8800", 800)];
        let published = published(&told).expect("rates");
        let rate = |from: &str, to: &str| published.rate(code(from), code(to)).expect("a rate");
        assert_eq!(rate("EUR", "USD").rate.to_string(), "1.152");
        assert_eq!(rate("USD", "EUR").rate.to_string(), "0.868055555555");
        assert_eq!(rate("GBP", "USD").rate.to_string(), "1.30909090909");
        assert_eq!(rate("GBP", "USD").as_of, Moment::from_micros(800_000));
        for (from, to) in pairs(&["EUR", "USD", "GBP"].map(code)) {
            let (there, back) =
                (rate(from.as_str(), to.as_str()), rate(to.as_str(), from.as_str()));
            assert!(!there.rate.gains_with(back.rate), "{from} {to}");
        }
        assert_eq!(published.rate(code("EUR"), code("NGN")), None);
    }

    #[test]
    fn what_is_told_comes_before_what_follows() {
        let told = [("EUR", "USD", "1.2", 1), ("USD", "EUR", "0.8", 1), ("USD", "GBP", "0.7", 1)];
        let published = published(&told).expect("rates");
        let rate = |from: &str, to: &str| {
            published.rate(code(from), code(to)).expect("a rate").rate.to_string()
        };
        assert_eq!((rate("USD", "EUR"), rate("EUR", "GBP")), ("0.8".into(), "0.84".into()));
    }

    #[test]
    fn nothing_is_of_a_time_to_come() {
        let in_a_minute = published(&[("EUR", "USD", "1.2", 60_500)]).expect("a clock ahead");
        let told = in_a_minute.rate(code("EUR"), code("USD")).expect("a rate");
        assert_eq!(told.as_of, Moment::from_micros(1_000_000));
        for later in [61_500, u64::MAX] {
            let told = [("EUR", "USD", "1.2", later), ("EUR", "GBP", "0.8", 1)];
            let published = published(&told).expect("one of two");
            assert_eq!(published.rate(code("EUR"), code("USD")), None);
            assert!(published.rate(code("EUR"), code("GBP")).is_some());
        }
    }

    #[test]
    fn of_two_ways_the_newer_one_is_gone() {
        let old = [("CAD", "USD", "0.7", 1), ("CAD", "GBP", "0.5", 1)];
        let new = [("EUR", "USD", "1.2", 900), ("EUR", "GBP", "0.9", 800)];
        let published = published(&[old, new].concat()).expect("rates");
        let told = published.rate(code("USD"), code("GBP")).expect("a way");
        let (rate, as_of) = (told.rate.to_string(), told.as_of);
        assert_eq!((rate.as_str(), as_of), ("0.749999999999", Moment::from_micros(800_000)));
    }

    #[test]
    fn what_is_no_rate_here_is_left_out() {
        let told = [
            ("EUR", "Gold", "1", 1),
            ("EUR", "USD", "0", 1),
            ("EUR", "GBP", "1e3", 1),
            ("EUR", "CAD", "1000000", 1),
        ];
        let published = published(&told).expect("nothing of use");
        assert_eq!(published.rate(code("EUR"), code("USD")), None);
        assert!(published.currencies.is_empty());
    }

    #[test]
    fn a_declaration_names_its_source() {
        let good = include_str!("../../../rates/ecb/rates.toml");
        assert_eq!(about(good).expect("the built-in one").name, "ecb");
        for (part, instead) in [
            ("manifest = 1", "manifest = 2"),
            ("name = \"ecb\"", "name = \"operator\""),
            ("name = \"ecb\"", "name = \"E C B\""),
            ("rates@0.1.0", "rates@0.2.0"),
            ("title = ", "unknown = 1\ntitle = "),
        ] {
            assert!(about(&good.replacen(part, instead, 1)).is_err(), "{instead}");
        }
    }
}
