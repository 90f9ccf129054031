//! What a network has said of an account, as the database keeps it: sealed.

use serde::{Deserialize, Serialize};

use crate::error::Problem;
use crate::id::IdGenerator;
use crate::keyring::Keyring;
use crate::wasm::rail::{Field, Resolution};

#[derive(Serialize, Deserialize)]
struct Stored {
    name: String,
    reference: String,
    attributes: Vec<(String, String)>,
}

/// Seals it for one place in the database.
///
/// # Errors
/// It cannot be sealed.
pub fn seal(
    (keyring, ids): (&Keyring, &IdGenerator),
    place: &str,
    resolution: &Resolution,
) -> Result<String, Problem> {
    let attributes = resolution.attributes.iter();
    let stored = Stored {
        name: resolution.name.clone(),
        reference: resolution.reference.clone(),
        attributes: attributes.map(|it| (it.name.clone(), it.value.clone())).collect(),
    };
    let plain = serde_json::to_vec(&stored).map_err(Problem::internal)?;
    keyring.seal(ids, place, &plain).map_err(Problem::internal)
}

/// Opens what was sealed for this place.
///
/// # Errors
/// It was sealed for another one, or under a key that is not there.
pub fn open(keyring: &Keyring, place: &str, sealed: &str) -> Result<Resolution, Problem> {
    let plain = keyring.open(place, sealed).map_err(Problem::internal)?;
    let stored: Stored = serde_json::from_slice(&plain).map_err(Problem::internal)?;
    let attributes = stored.attributes.into_iter();
    Ok(Resolution {
        name: stored.name,
        reference: stored.reference,
        attributes: attributes.map(|(name, value)| Field { name, value }).collect(),
    })
}
