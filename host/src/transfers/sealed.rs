//! What an attempt keeps encrypted: what was known of the recipient's account when it was fixed,
//! and the facts that its rail needs in later calls.

use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::id::AttemptId;
use crate::wasm::rail::{Field, Resolution};

use super::Transfers;

type Pairs = Vec<(String, String)>;

/// A resolution as it is sealed.
#[derive(Serialize, Deserialize)]
struct SealedResolution {
    name: String,
    reference: String,
    attributes: Pairs,
}

pub(super) fn seal_resolution(
    engine: &Transfers,
    id: &AttemptId,
    known: Option<&Resolution>,
) -> Result<Option<String>, Problem> {
    let Some(known) = known else { return Ok(None) };
    let sealed = SealedResolution {
        name: known.name.clone(),
        reference: known.reference.clone(),
        attributes: pairs(&known.attributes),
    };
    seal(engine, &place("resolution", id), &sealed).map(Some)
}

pub(super) fn open_resolution(
    engine: &Transfers,
    id: &AttemptId,
    sealed: Option<&str>,
) -> Result<Option<Resolution>, Problem> {
    let Some(sealed) = sealed else { return Ok(None) };
    let SealedResolution { name, reference, attributes } =
        open(engine, &place("resolution", id), sealed)?;
    Ok(Some(Resolution { name, reference, attributes: fields(attributes) }))
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
