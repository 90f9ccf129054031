//! What calls over a route are made of: settings, keys, tokens and declared calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use ipnet::IpNet;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use crate::config::limits;
use crate::simulator::sandbox_keys;
use crate::wasm::egress::{Call, Target, Throttle, TokenSource, TokenWord};
use crate::wasm::keys::{Key, Use};

use super::declaration::{CallTerms, Declaration, KeyTerms, SettingTerms};
use super::file_transport::CARRIED;
use super::route::Route;
use super::tokens::{Said, TokenTerms};

/// The values of the declared settings, and what is missing of them.
pub(super) fn settings(
    route: &str,
    declaration: &Declaration,
    given: impl Fn(&str, &SettingTerms) -> Option<String>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut settings, mut missing) = (BTreeMap::new(), Vec::new());
    for (name, terms) in &declaration.settings {
        match given(name, terms) {
            Some(value) if terms.takes(&value) => {
                settings.insert(name.clone(), value);
            }
            Some(_) => missing.push(format!("routes.{route}.{name} is not of its declared shape")),
            None => missing.push(format!("routes.{route}.{name} is not configured")),
        }
    }
    (settings, missing)
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// To a bank.
    ToANetwork,
    /// To where no money is.
    ToTheSimulator,
}

/// A key as it is configured. What everybody knows is nobody's key in earnest.
pub(super) fn configured_key(terms: &KeyTerms, pem: &str, leads: Leads) -> Result<Key, String> {
    let key = Key::read_of((terms.algorithm, terms.half, terms.bits_min), pem)?;
    match leads == Leads::ToANetwork && key.is_half_of(&sandbox_keys()) {
        true => Err("this is the sandbox's key, which everybody knows".to_owned()),
        false => Ok(key),
    }
}

/// What stands for a key where the network is simulated.
///
/// # Errors
/// Its algorithm is for another use.
pub fn simulated_key(terms: &KeyTerms) -> Result<Key, String> {
    let pairs = sandbox_keys();
    Ok(match terms.half {
        Use::Sign => Key::Sign(pairs.signing(terms.algorithm)?),
        Use::Verify => Key::Verify(pairs.signing(terms.algorithm)?.verifying()),
        Use::Seal => Key::Seal(pairs.sealing(terms.algorithm)),
    })
}

/// Where a declared token comes from; nothing where its call or its secrets are not there.
#[must_use]
pub fn token_source(
    terms: &TokenTerms,
    calls: &HashMap<String, Arc<Call>>,
    secrets: &BTreeMap<String, SecretString>,
) -> Option<TokenSource> {
    let basic = match &terms.basic {
        Some([user, password]) => {
            Some([secrets.get(user)?.clone(), secrets.get(password)?.clone()])
        }
        None => None,
    };
    let word = |(name, said): (&String, &Said)| {
        let said = match said {
            Said::Text(text) => TokenWord::Text(text.clone()),
            Said::Secret(name) => TokenWord::Secret(secrets.get(name)?.clone()),
        };
        Some((name.clone(), said))
    };
    Some(TokenSource {
        call: Arc::clone(calls.get(&terms.call)?),
        query: terms.query.clone(),
        basic,
        headers: terms.headers.iter().map(word).collect::<Option<_>>()?,
        body: terms.body.iter().map(word).collect::<Option<_>>()?,
        encoding: terms.encoding,
        token: terms.token.clone(),
        lifetime_s: terms.lifetime_s.clone(),
        refused: terms.refused.clone(),
        kept: tokio::sync::Mutex::default(),
    })
}

/// A declared call to this target.
#[must_use]
pub fn call_to(
    terms: &CallTerms,
    target: &Arc<Target>,
    (throttle, makes_files): (Option<&Arc<Throttle>>, bool),
) -> Option<Call> {
    let most = if makes_files { limits::FILE_BYTES_MAX } else { limits::ANSWER_BYTES_MAX };
    Some(Call {
        name: terms.name.clone(),
        target: Arc::clone(target),
        method: Method::from_bytes(terms.method.as_bytes()).ok()?,
        path: terms.path.clone(),
        moves_money: terms.moves_money,
        timeout: Duration::from_millis(terms.timeout_ms).min(limits::RAIL_WALL_MAX),
        answer_bytes_max: terms.answer_bytes_max.min(most),
        throttle: throttle.map(Arc::clone),
    })
}

/// The header that tells the simulator which scenario to play.
#[must_use]
pub fn scenario_header(scenario: Option<&str>) -> Vec<(String, String)> {
    scenario.map(|name| ("x-sandbox-scenario".to_owned(), name.to_owned())).into_iter().collect()
}

pub(super) fn loopback() -> Vec<IpNet> {
    ["127.0.0.0/8", "::1/128"].iter().filter_map(|network| network.parse().ok()).collect()
}

/// Which certificates are shown when a route's calls connect, as texts that give nothing of their
/// keys away.
pub(super) fn certificates(
    declaration: &Declaration,
    configured: &BTreeMap<String, String>,
) -> Vec<String> {
    let shown = declaration.secrets.keys().filter(|name| declaration.is_client_certificate(name));
    let shown = shown.filter_map(|name| configured.get(name));
    shown.map(|pem| hex::encode(Sha256::digest(pem.trim()))).collect()
}

/// Says what is configured for a route and that nobody reads: a name may be misspelt.
pub(super) fn warn_of_unread(
    route: &Route,
    declaration: &Declaration,
    configured: &BTreeMap<String, String>,
) {
    let Declaration { secrets, keys, settings, .. } = declaration;
    let is_read = |name: &String| {
        let is_declared =
            secrets.contains_key(name) || keys.contains_key(name) || settings.contains_key(name);
        is_declared || CARRIED.contains(&name.as_str())
    };
    for name in configured.keys().filter(|name| !is_read(name)) {
        let (route, rail) = (&route.name, &declaration.rail.name);
        tracing::warn!("routes.{route}.{name} is configured, and the rail {rail} has no such name");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1024 bits.
    const SHORT: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/AHACJn2MFqWu+SvBpnF4gn0I\n\
nTOvfB6Qq8/B0CBBbPrOQKmOrabRFqkLfi0YkuBakdccbhw1Ra7dQhRpyzPZKcGF\n\
dbbSa5DaTWQUvY4reS9x9N0F5PgSZ41mb1JbUYLf9mC4ZJ0JfxMFqU6VGFt/R5bE\n\
hzUeIiMhPgnnXNJz2wIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

    #[test]
    fn a_key_is_as_long_as_is_declared() {
        let key = |bits: &str| {
            let terms =
                format!("title = \"PINs\"\nalgorithm = \"rsa-pkcs1\"\nuse = \"seal\"\n{bits}");
            configured_key(&toml::from_str(&terms).expect("terms"), SHORT, Leads::ToANetwork)
        };
        assert!(key("bits_min = \"1024\"").is_ok() && key("").is_err());
    }
}
