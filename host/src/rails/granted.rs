//! What calls over a route are made of: settings, keys, tokens and declared calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use ipnet::IpNet;
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use crate::config::limits;
use crate::id::RouteId;
use crate::keyring::Keyring;
use crate::simulator::{sandbox_key, sandbox_keys};
use crate::wasm::egress::{Call, Pace, Target, Throttle, TokenSource};
use crate::wasm::keys::{Key, Use};

use super::declaration::{
    CallTerms, Declaration, KeyTerms, SettingTerms, ThrottleTerms, TokenTerms,
};
use super::file_transport::CARRIED;
use super::route::Route;

/// The values of the declared settings, and what is missing of them.
pub(super) fn settings(
    route: &str,
    declaration: &Declaration,
    given: impl Fn(&str, &SettingTerms) -> Option<String>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut settings, mut missing) = (BTreeMap::new(), Vec::new());
    for (name, terms) in &declaration.settings {
        match given(name, terms) {
            Some(value) => {
                settings.insert(name.clone(), value);
            }
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
    let key = Key::read(terms.algorithm, terms.half, pem)?;
    match leads == Leads::ToANetwork && key.is_half_of(&sandbox_key()) {
        true => Err("this is the sandbox's key, which everybody knows".to_owned()),
        false => Ok(key),
    }
}

/// What stands for a key where the network is simulated.
#[must_use]
pub fn simulated_key(terms: &KeyTerms) -> Key {
    match terms.half {
        Use::Sign => Key::Sign(sandbox_key()),
        Use::Verify => Key::Verify(sandbox_key().verifying()),
        Use::Seal => Key::Seal(sandbox_keys().sealing(terms.algorithm)),
    }
}

/// What stands in the address that a route's network is given: it follows from the host's keys.
pub(super) fn door_tokens(keyring: &Keyring, id: &RouteId) -> Vec<String> {
    keyring.settings_tags(&format!("what the network of {id} is given")).collect()
}

/// Where a declared token comes from; nothing where its call or its secrets are not there.
#[must_use]
pub fn token_source(
    terms: &TokenTerms,
    calls: &HashMap<String, Arc<Call>>,
    secrets: &BTreeMap<String, SecretString>,
) -> Option<TokenSource> {
    let [user, password] = &terms.basic;
    Some(TokenSource {
        call: Arc::clone(calls.get(&terms.call)?),
        query: terms.query.clone(),
        basic: [secrets.get(user)?.clone(), secrets.get(password)?.clone()],
        token: terms.token.clone(),
        lifetime_s: terms.lifetime_s.clone(),
        kept: tokio::sync::Mutex::default(),
    })
}

/// What a setting about the pace of a route begins with.
const PACE: &str = "throttle.";

/// Whether a setting is about the pace of a route.
#[must_use]
pub fn is_about_pace(name: &str) -> bool {
    name.starts_with(PACE)
}

/// What is wrong with such a setting as an operator gives it.
#[must_use]
pub fn pace_objection(name: &str, value: &str) -> Option<String> {
    let most = limits::THROTTLE_MAX;
    let is_count = |value: &u32| (1..=most).contains(value);
    match name.strip_prefix(PACE) {
        Some("per_second" | "at_once") if value.parse().ok().filter(is_count).is_some() => None,
        Some("per_second" | "at_once") => Some(format!("must be a whole number from 1 to {most}")),
        _ => Some(format!("must be {PACE}per_second or {PACE}at_once")),
    }
}

/// The pace of a live route: what its operator says, and otherwise what the rail declares.
pub(super) fn throttle(
    declared: Option<&ThrottleTerms>,
    settings: &BTreeMap<String, String>,
) -> Option<Arc<Throttle>> {
    let set = |limit: &str| settings.get(&format!("{PACE}{limit}"))?.parse().ok();
    let pace = Pace {
        per_second: set("per_second").or_else(|| declared?.per_second),
        at_once: set("at_once").or_else(|| declared?.at_once),
    };
    Throttle::new(pace).map(Arc::new)
}

/// A declared call to this target.
#[must_use]
pub fn call_to(
    terms: &CallTerms,
    target: &Arc<Target>,
    throttle: Option<&Arc<Throttle>>,
) -> Option<Call> {
    Some(Call {
        name: terms.name.clone(),
        target: Arc::clone(target),
        method: Method::from_bytes(terms.method.as_bytes()).ok()?,
        path: terms.path.clone(),
        moves_money: terms.moves_money,
        timeout: Duration::from_millis(terms.timeout_ms).min(limits::RAIL_WALL_MAX),
        answer_bytes_max: terms.answer_bytes_max.min(limits::ANSWER_BYTES_MAX),
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

/// Which certificate it is, as text that gives nothing of its key away.
pub(super) fn digest(pem: &str) -> String {
    hex::encode(Sha256::digest(pem.trim()))
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
