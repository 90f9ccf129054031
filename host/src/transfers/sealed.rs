//! What an attempt keeps encrypted: what was known of the recipient's account when it was fixed,
//! and the facts that its rail needs in later calls.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::id::AttemptId;
use crate::rails::shown::SeedTerms;
use crate::recipients::resolution;
use crate::wasm::rail::{Field, Resolution};

use super::Transfers;

type Pairs = Vec<(String, String)>;

pub(super) fn seal_resolution(
    engine: &Transfers,
    id: &AttemptId,
    known: Option<&Resolution>,
) -> Result<Option<String>, Problem> {
    let Some(known) = known else { return Ok(None) };
    let keys = (engine.keyring.as_ref(), engine.ids.as_ref());
    resolution::seal(keys, &place("resolution", id), known).map(Some)
}

pub(super) fn open_resolution(
    engine: &Transfers,
    id: &AttemptId,
    sealed: Option<&str>,
) -> Result<Option<Resolution>, Problem> {
    let Some(sealed) = sealed else { return Ok(None) };
    resolution::open(&engine.keyring, &place("resolution", id), sealed).map(Some)
}

pub(super) fn seal_facts(
    engine: &Transfers,
    id: &AttemptId,
    facts: &[Field],
) -> Result<Option<String>, Problem> {
    match facts {
        [] => Ok(None),
        facts => seal(engine, &place("facts", id), &pairs(facts)).map(Some),
    }
}

pub(super) fn open_facts(
    engine: &Transfers,
    id: &AttemptId,
    sealed: Option<&str>,
) -> Result<Vec<Field>, Problem> {
    let Some(sealed) = sealed else { return Ok(Vec::new()) };
    Ok(fields(open(engine, &place("facts", id), sealed)?))
}

/// The texts that a rail's declaration wants for an attempt.
pub(super) fn seal_seeds(
    engine: &Transfers,
    id: &AttemptId,
    wanted: &BTreeMap<String, SeedTerms>,
) -> Result<Option<String>, Problem> {
    let below = |limit| engine.ids.below(limit);
    let seeds: Pairs =
        wanted.iter().map(|(name, terms)| (name.clone(), terms.make(below))).collect();
    match seeds.is_empty() {
        true => Ok(None),
        false => seal(engine, &place("seeds", id), &seeds).map(Some),
    }
}

pub(super) fn open_seeds(
    engine: &Transfers,
    id: &AttemptId,
    sealed: Option<&str>,
) -> Result<BTreeMap<String, SecretString>, Problem> {
    let Some(sealed) = sealed else { return Ok(BTreeMap::new()) };
    let seeds: Pairs = open(engine, &place("seeds", id), sealed)?;
    Ok(seeds.into_iter().map(|(name, text)| (name, text.into())).collect())
}

/// Facts with those that came later in place of earlier ones of the same name.
pub(super) fn merged(mut facts: Vec<Field>, later: &[Field]) -> Vec<Field> {
    facts.retain(|fact| later.iter().all(|new| new.name != fact.name));
    facts.extend_from_slice(later);
    facts
}

fn place(what: &str, id: &AttemptId) -> String {
    format!("attempts/{what}/{id}")
}

fn seal(engine: &Transfers, place: &str, value: &impl Serialize) -> Result<String, Problem> {
    let plain = serde_json::to_vec(value).map_err(Problem::internal)?;
    engine.keyring.seal(&engine.ids, place, &plain).map_err(Problem::internal)
}

fn open<T: for<'a> Deserialize<'a>>(
    engine: &Transfers,
    place: &str,
    sealed: &str,
) -> Result<T, Problem> {
    let plain = engine.keyring.open(place, sealed).map_err(Problem::internal)?;
    serde_json::from_slice(&plain).map_err(Problem::internal)
}

fn pairs(fields: &[Field]) -> Pairs {
    fields.iter().map(|field| (field.name.clone(), field.value.clone())).collect()
}

fn fields(pairs: Pairs) -> Vec<Field> {
    pairs.into_iter().map(|(name, value)| Field { name, value }).collect()
}
