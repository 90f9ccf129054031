//! A provider of rates: who is asked, and what is made of the answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Url};
use rustls::ClientConfig;
use secrecy::ExposeSecret as _;

use crate::clock::Moment;
use crate::config::{self, Config, limits};
use crate::env::Env;
use crate::money::Currency;
use crate::outbound;

use super::market::{Pair, SetRate};
use super::rate::WHOLE_BPS;
use super::source::{Published, RateSource, Told, WORDS_MAX, pairs};

/// The setting that opens a private network, named in refusals.
const SETTING: &str = "egress.allow_private_networks";
/// After a failure a provider is asked again so soon at least.
const AGAIN: Duration = Duration::from_secs(60);

/// A provider of rates in one environment.
pub struct Provider {
    /// Whose rates it keeps up.
    pub env: Env,
    /// What reads its answers.
    pub source: Arc<RateSource>,
    /// Rates of all pairs of these are kept up.
    pub currencies: Vec<Currency>,
    /// As it is configured.
    pub terms: config::RateSource,
    url: Url,
    headers: HeaderMap,
    client: Client,
    state: Mutex<State>,
}

/// How a provider fares on this host.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// When it was asked last.
    pub asked_at: Option<Moment>,
    /// As of when the newest of its rates is.
    pub as_of: Option<Moment>,
    /// Attempts in a row that came to nothing.
    pub failures: u32,
    /// Why the last one did.
    pub problem: Option<String>,
    /// Rates that are not kept up, by id, and why.
    pub left_alone: Vec<(String, String)>,
}

/// What becomes of a rate when its provider has said something.
#[derive(Debug)]
pub enum Next {
    /// It is set.
    Set(SetRate),
    /// Nothing is new.
    AsItIs,
    /// It is somebody else's, or nobody can be sure about it.
    LeftAlone(String),
    /// It cannot be right any more, and nobody can be sure about what comes instead: nothing is
    /// exchanged at it.
    TakenOut(SetRate, String),
}

/// The providers of rates that are configured.
#[derive(Clone, Default)]
pub struct Providers(Arc<Vec<Arc<Provider>>>);

impl Providers {
    /// Those of the configuration. `serves` tells whether somebody can hold a currency.
    ///
    /// # Errors
    /// Something configured cannot be used, in words that name it.
    pub fn open(
        config: &Config,
        sources: Vec<RateSource>,
        (tls, serves): (&ClientConfig, impl Fn(Currency) -> bool),
    ) -> Result<Self, String> {
        let sources: Vec<_> = sources.into_iter().map(Arc::new).collect();
        let config::RateSources { test, live } = &config.rate_sources;
        let mut providers = Vec::new();
        for (env, terms) in [(Env::Test, test), (Env::Live, live)] {
            let Some(terms) = terms else { continue };
            let named = |(key, why): (&str, String)| format!("rate_sources.{env}.{key}: {why}");
            let known = sources.iter().find(|source| source.about.name == terms.source);
            let source = known.cloned().ok_or_else(|| {
                let names: Vec<_> = sources.iter().map(|it| it.about.name.as_str()).collect();
                let known = names.join(", ");
                named(("source", format!("{} is not loaded; there is {known}", terms.source)))
            })?;
            let allowed = &config.egress.allow_private_networks;
            let client = outbound::operators_client(tls, (allowed.clone(), SETTING));
            providers.push(Arc::new(Provider {
                env,
                source,
                currencies: currencies(terms, &serves).map_err(named)?,
                url: address(&terms.url, allowed).map_err(|why| named(("url", why)))?,
                headers: headers(terms).map_err(named)?,
                client: client.map_err(|cause| named(("url", cause.to_string())))?,
                terms: checked(terms).map_err(named)?,
                state: Mutex::default(),
            }));
        }
        Ok(Self(Arc::new(providers)))
    }

    /// The one that keeps a rate up which bears this name.
    #[must_use]
    pub fn keeper(&self, pair: Pair, name: &str) -> Option<&Arc<Provider>> {
        let keeps = |provider: &&Arc<Provider>| {
            provider.source.about.name == name && provider.kept().any(|kept| kept == pair)
        };
        self.all().find(keeps)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Provider>> {
        self.0.iter()
    }
}

type Objection = (&'static str, String);

fn checked(terms: &config::RateSource) -> Result<config::RateSource, Objection> {
    let of = |key, is_so: bool, what: &str| match is_so {
        true => Ok(()),
        false => Err((key, format!("must be {what}"))),
    };
    of("spread_bps", (0..WHOLE_BPS).contains(&terms.spread_bps), "0 to 9999")?;
    let valid = (1..=limits::RATE_VALID_S_MAX).contains(&terms.valid_for_s);
    of("valid_for_s", valid, "1 second to ten years")?;
    of("every_s", (1..=86_400).contains(&terms.every_s), "1 second to a day")?;
    of("valid_for_s", terms.valid_for_s > terms.every_s, "more than every_s")?;
    of("move_max_bps", terms.move_max_bps > 0, "above 0")?;
    Ok(terms.clone())
}

fn currencies(
    terms: &config::RateSource,
    serves: &impl Fn(Currency) -> bool,
) -> Result<Vec<Currency>, Objection> {
    let mut currencies = Vec::new();
    for code in &terms.currencies {
        let currency = Currency::parse(code).filter(|currency| serves(*currency));
        let why = || format!("{code} is no currency that a loaded rail serves");
        let currency = currency.ok_or_else(|| ("currencies", why()))?;
        if currencies.contains(&currency) {
            return Err(("currencies", format!("{code} is there twice")));
        }
        currencies.push(currency);
    }
    let most = limits::SOURCE_CURRENCIES_MAX;
    match (2..=most).contains(&currencies.len()) {
        true => Ok(currencies),
        false => Err(("currencies", format!("must be 2 to {most}"))),
    }
}

fn address(text: &str, allowed: &[ipnet::IpNet]) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|cause| format!("{text} is not an address: {cause}"))?;
    let is_bare = url.query().is_none() && url.fragment().is_none();
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    if url.scheme() != "https" || !is_bare || !is_anonymous {
        return Err("must be an https address without user, query and fragment".to_owned());
    }
    outbound::refuse_private(url.host_str().unwrap_or_default(), (allowed, SETTING))?;
    Ok(url)
}

fn headers(terms: &config::RateSource) -> Result<HeaderMap, Objection> {
    let mut headers = HeaderMap::new();
    for (name, value) in &terms.headers {
        let odd = || ("headers", format!("{name} is no header, or its value is none"));
        let name = HeaderName::try_from(name.replace('_', "-")).map_err(|_| odd())?;
        let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| odd())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Provider {
    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// How it fares.
    #[must_use]
    pub fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note of what came of asking it.
    pub fn note(&self, at: Moment, heard: Result<Heard, String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked_at = Some(at);
        match heard {
            Ok(Heard { as_of, left_alone }) => {
                *state = State { asked_at: Some(at), as_of, left_alone, ..State::default() };
            }
            Err(why) => {
                state.failures = state.failures.saturating_add(1);
                state.problem = Some(why);
            }
        }
    }

    /// When it is asked again.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let every = Duration::from_secs(self.terms.every_s);
        if self.state().failures > 0 { every.min(AGAIN) } else { every }
    }

    /// Asks it; `now` is read when it has answered.
    ///
    /// # Errors
    /// There is no whole answer, or it cannot be used; in words, without what it was told in
    /// confidence.
    pub async fn ask(&self, now: impl Fn() -> Moment) -> Result<Published, String> {
        self.try_ask(now).await.map_err(|why| self.without_secrets(why))
    }

    async fn try_ask(&self, now: impl Fn() -> Moment) -> Result<Published, String> {
        let mut answers = Vec::new();
        let wanted = pairs(&self.currencies);
        for path in self.beside(move |source| source.requests(&wanted)).await? {
            let page = tokio::time::timeout(limits::SOURCE_WALL_MAX, self.page(&path)).await;
            let page = page.unwrap_or_else(|_| {
                Err(format!("no whole answer within {:?}", limits::SOURCE_WALL_MAX))
            });
            answers.push(page.map_err(|why| format!("{path}: {why}"))?);
        }
        let now = now();
        let read = self.beside(move |source| source.read(&answers, now)).await;
        read.map_err(|why| format!("reading the answer: {why}"))
    }

    /// Calls the source where it may take a moment of a processor.
    async fn beside<T: Send + 'static>(
        &self,
        call: impl FnOnce(&RateSource) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let source = Arc::clone(&self.source);
        let called = tokio::task::spawn_blocking(move || call(&source)).await;
        called.map_err(|cause| cause.to_string())?
    }

    /// A text in which the provider repeats none of the headers that it was sent.
    fn without_secrets(&self, mut text: String) -> String {
        for value in self.terms.headers.values() {
            let value = value.expose_secret();
            // `Bearer` and the like may be left out.
            for secret in [value, value.rsplit(' ').next().unwrap_or(value)] {
                if !secret.is_empty() {
                    text = text.replace(secret, "***");
                }
            }
        }
        text
    }

    async fn page(&self, path: &str) -> Result<Vec<u8>, String> {
        let url = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|cause| cause.to_string())?;
        // Whatever follows the address stays below it.
        let below = url.path().strip_prefix(self.url.path().trim_end_matches('/'));
        if url.origin() != self.url.origin() || !below.is_some_and(|it| it.starts_with('/')) {
            return Err("is not below the provider's address".to_owned());
        }
        let request = self.client.get(url).headers(self.headers.clone());
        let mut response = request.send().await.map_err(|cause| outbound::reason(&cause))?;
        let (status, mut page) = (response.status(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(|cause| outbound::reason(&cause))? {
            page.extend_from_slice(&chunk);
            if page.len() > limits::SOURCE_PAGE_BYTES_MAX {
                let most = limits::SOURCE_PAGE_BYTES_MAX / 1024;
                return Err(format!("the answer has more than {most} KiB"));
            }
        }
        if status != StatusCode::OK {
            let said = String::from_utf8_lossy(&page);
            let said: String = said.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect();
            return Err(format!("answered {status}: {said}"));
        }
        Ok(page)
    }

    /// The pairs that are kept up, as rates are known by.
    pub fn kept(&self) -> impl Iterator<Item = Pair> {
        pairs(&self.currencies).into_iter().map(|(from, to)| Pair { env: self.env, from, to })
    }

    /// What becomes of a rate now that its provider says something.
    ///
    /// A rate belongs to whoever its `source` names: one that a person has set, or taken away, is
    /// nobody else's until it is set under this source's name.
    #[must_use]
    pub fn next(
        &self,
        (pair, told): (Pair, Option<Told>),
        before: Option<&SetRate>,
        now: Moment,
    ) -> Next {
        let Some(Told { rate, as_of }) = told else {
            return Next::LeftAlone("the provider tells no such rate".to_owned());
        };
        let name = &self.source.about.name;
        let config::RateSource { spread_bps, valid_for_s, .. } = self.terms;
        let set = SetRate {
            pair,
            merchant: None,
            rate,
            spread_bps,
            source: name.clone(),
            as_of,
            valid_until: Some(SetRate::until(as_of, valid_for_s)),
            is_active: true,
            version: before.map_or(1, |before| before.version + 1),
            updated_at: now,
        };
        if set.effective().is_none() {
            return Next::LeftAlone("the spread leaves nothing of it".to_owned());
        }
        let Some(before) = before else { return Next::Set(set) };
        if before.source != *name {
            let whose = &before.source;
            return Next::LeftAlone(format!(
                "it comes from `{whose}`: set it with the source `{name}` to have it kept up"
            ));
        }
        if !before.is_active {
            return Next::LeftAlone(format!(
                "it was taken away, and the provider says {rate} now: set it with the source `{name}` \
                 to have it kept up"
            ));
        }
        if as_of < before.as_of || !self.is_news(before, &set, now) {
            return Next::AsItIs;
        }
        let advice = format!("if that is right, set it with the source `{name}`");
        if as_of == before.as_of && rate != before.rate {
            return Next::LeftAlone(format!("it would be {rate} as of the same instant: {advice}"));
        }
        let most = self.terms.move_max_bps;
        match before.rate.moves_within(rate, most) {
            true => Next::Set(set),
            false => Next::TakenOut(
                SetRate {
                    is_active: false,
                    version: set.version,
                    updated_at: now,
                    ..before.clone()
                },
                format!(
                    "it is taken out of use: it would have moved from {} to {rate}, by more than \
                     {most} basis points at once; {advice}",
                    before.rate
                ),
            ),
        }
    }
}

impl Provider {
    /// Whether a rate is worth a line in the audit log: it is another one, or it has not changed, and
    /// half of its time is over.
    fn is_news(&self, before: &SetRate, set: &SetRate, now: Moment) -> bool {
        let (rate, span) = ((set.rate, set.spread_bps), self.terms.valid_for_s);
        let is_long = before.valid_until == Some(SetRate::until(before.as_of, span));
        let is_old = SetRate::until(before.as_of, span / 2) <= now;
        (before.rate, before.spread_bps) != rate || !is_long || is_old && set.as_of != before.as_of
    }
}

/// What a provider said, and what came of it.
#[derive(Debug, Default)]
pub struct Heard {
    /// As of when the newest rate is.
    pub as_of: Option<Moment>,
    /// Rates that are not kept up, by id, and why.
    pub left_alone: Vec<(String, String)>,
}
