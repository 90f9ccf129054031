//! Settings of a route that are the host's own, whatever its rail: which amounts it takes, how fast
//! its network may be asked, from where its network speaks, and the address that it is given. They
//! say nothing of the gateway that payments were sent to, and may be changed while payments are
//! open.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use crate::auth::key::parse_network;
use crate::config::limits;
use crate::id::RouteId;
use crate::keyring::Keyring;
use crate::wasm::egress::{Pace, Throttle};

use super::bounds::{Bounds, LEAST, MOST, amount};
use super::declaration::ThrottleTerms;

/// What settings about amounts begin with.
const BOUNDS: &str = "bounds.";
/// What settings about the pace begin with.
const PACE: &str = "throttle.";
/// And those about what the network says by itself.
const NOTICES: &str = "notices.";
/// The networks that it speaks from, separated by commas.
const NETWORKS: &str = "notices.networks";
/// Which address it is given, counted from 1.
const GENERATION: &str = "notices.generation";
/// Addresses that a route can have had.
const GENERATIONS_MAX: u32 = 1_000_000;

/// Whether a setting is the host's own.
#[must_use]
pub fn is_own(name: &str) -> bool {
    [BOUNDS, PACE, NOTICES].iter().any(|it| name.starts_with(it))
}

/// What is wrong with such a setting as an operator gives it.
#[must_use]
pub fn objection(name: &str, value: &str) -> Option<String> {
    let counts = |most: u32| match value.parse().ok().filter(|count| (1..=most).contains(count)) {
        Some(_) => None,
        None => Some(format!("must be a whole number from 1 to {most}")),
    };
    match name {
        "throttle.per_second" | "throttle.at_once" => counts(limits::THROTTLE_MAX),
        GENERATION => counts(GENERATIONS_MAX),
        NETWORKS if networks(value).is_some_and(|found| !found.is_empty()) => None,
        NETWORKS => Some("must be networks, as in 196.201.212.0/22, 2001:db8::/32".to_owned()),
        LEAST | MOST if amount(value).is_some() => None,
        LEAST | MOST => Some("must be a whole number of minor units, from 1".to_owned()),
        _ if name.starts_with(BOUNDS) => Some(format!("must be {LEAST} or {MOST}")),
        _ if name.starts_with(PACE) => Some(format!("must be {PACE}per_second or {PACE}at_once")),
        _ => Some(format!("must be {NETWORKS} or {GENERATION}")),
    }
}

/// What is wrong with bounds that leave nothing between them.
#[must_use]
pub fn objection_to_bounds(settings: &BTreeMap<String, String>) -> Option<(&'static str, String)> {
    let takes = Bounds::of(settings).take_any();
    (!takes).then(|| (MOST, format!("is less than {LEAST}: it would take no payment")))
}

/// What is wrong with the number of an address that comes after another one: whoever knows an old
/// address is let in by it again, and payments are under way whose answers go to the present one.
#[must_use]
pub fn objection_to_step(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Option<(&'static str, String)> {
    let (present, wanted) = (generation(before), generation(after));
    let is_next = wanted == present || wanted == present + 1;
    let is_gone = before.contains_key(GENERATION) && !after.contains_key(GENERATION);
    (!is_next || is_gone).then(|| {
        let next = present + 1;
        (GENERATION, format!("is {present}: it can be {next} next, and nothing else"))
    })
}

fn generation(settings: &BTreeMap<String, String>) -> u32 {
    settings.get(GENERATION).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Reads networks, or single addresses.
fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(parse_network).collect()
}

/// The networks that a route's network speaks from; any, where nothing is set.
///
/// # Errors
/// What is set cannot be read, in words.
pub(super) fn speaks_from(settings: &BTreeMap<String, String>) -> Result<Vec<IpNet>, String> {
    let Some(text) = settings.get(NETWORKS) else { return Ok(Vec::new()) };
    let found = networks(text).filter(|found| !found.is_empty());
    found.ok_or_else(|| format!("{NETWORKS} {text} cannot be read"))
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

/// What stands in the address that a route's network is given, under every master key: it follows
/// from the host's keys. The present one first; the one before it opens as well, because payments
/// are under way whose answers go there.
pub(super) fn door_tokens(
    keyring: &Keyring,
    id: &RouteId,
    settings: &BTreeMap<String, String>,
) -> Vec<String> {
    let present = generation(settings);
    let of = |generation: u32| {
        let place = match generation {
            1 => format!("what the network of {id} is given"),
            later => format!("what the network of {id} is given, address {later}"),
        };
        keyring.settings_tags(&place).collect::<Vec<_>>()
    };
    let before = (present > 1).then(|| of(present - 1));
    of(present).into_iter().chain(before.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_host_are_looked_at() {
        for (name, value) in [
            ("throttle.per_second", "10000"),
            ("notices.generation", "2"),
            ("bounds.least_minor", "100"),
            ("notices.networks", "196.201.212.0/22, 2001:db8::/32,198.51.100.7"),
        ] {
            assert_eq!((is_own(name), objection(name, value)), (true, None), "{name}");
        }
        for (name, value) in [
            ("throttle.per_second", "0"),
            ("throttle.pace", "1"),
            ("notices.generation", "0"),
            ("notices.networks", ""),
            ("notices.networks", "everywhere"),
            ("notices.networks", "10.0.0.0/33"),
            ("notices.other", "1"),
            ("bounds.least_minor", "0"),
            ("bounds.most_minor", "1.5"),
            ("bounds.most_minor", "+5"),
            ("bounds.most", "5"),
        ] {
            assert!(objection(name, value).is_some(), "{name} {value}");
        }
        assert!(!is_own("endpoint.gateway"));
    }

    #[test]
    fn a_declared_pace_holds_where_the_operator_says_nothing() {
        let declared = ThrottleTerms { per_second: Some(10), at_once: Some(2) };
        let pace = |set: &[(&str, &str)]| {
            let set = set.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned()));
            throttle(Some(&declared), &set.collect()).expect("a throttle").pace
        };
        assert_eq!(pace(&[]), Pace { per_second: Some(10), at_once: Some(2) });
        let other = pace(&[("throttle.per_second", "20")]);
        assert_eq!(other, Pace { per_second: Some(20), at_once: Some(2) });
        assert!(throttle(None, &BTreeMap::new()).is_none());
    }

    #[test]
    fn addresses_follow_one_another() {
        let at = |text: &str| {
            let set = (!text.is_empty()).then(|| (GENERATION.to_owned(), text.to_owned()));
            set.into_iter().collect()
        };
        for (before, after, is_fine) in [
            ("", "", true),
            ("", "2", true),
            ("2", "2", true),
            ("2", "3", true),
            ("1", "3", false),
            ("3", "2", false),
            ("3", "", false),
        ] {
            let objection = objection_to_step(&at(before), &at(after));
            assert_eq!(objection.is_none(), is_fine, "{before:?} to {after:?}: {objection:?}");
        }
    }

    #[test]
    fn networks_that_cannot_be_read_are_not_everywhere() {
        let of = |text: &str| speaks_from(&[(NETWORKS.to_owned(), text.to_owned())].into());
        assert!(of("everywhere").is_err() && of("").is_err() && of("10.0.0.0/8").is_ok());
        let mapped = of("::ffff:196.201.212.0/118").expect("networks");
        assert!(mapped[0].contains(&"196.201.213.9".parse::<std::net::IpAddr>().expect("it")));
    }
}
