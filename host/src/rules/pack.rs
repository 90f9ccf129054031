//! The packs that are loaded, and the one that decides.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use serde::Deserialize;

use crate::wasm::module::Module;
use crate::wasm::pack::{PackCode, PackRefused};
use crate::wasm::{CodeCache, Engines};

/// A loaded rule pack.
pub struct Pack {
    /// What it says of itself.
    pub about: About,
    /// SHA-256 of its file.
    pub digest: String,
    /// What it does.
    pub code: PackCode,
}

/// `[pack]` of `rules.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Stable name.
    pub name: String,
    /// Of the rules.
    pub version: String,
    /// `fees` or `fraud`.
    pub kind: String,
    /// The WIT package that it was built against.
    pub contract: String,
    /// For people.
    pub title: String,
    /// Facts that it wants to know.
    pub facts: Vec<String>,
}

#[derive(Deserialize)]
struct Head {
    manifest: u32,
    pack: About,
}

/// Why a pack is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The component or its rules are refused.
    #[error(transparent)]
    Refused(#[from] PackRefused),
    /// What it says of itself cannot be read.
    #[error("rules.toml: {0}")]
    Head(String),
}

impl Pack {
    /// Loads a pack from its component.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn load(engines: &Engines, cache: &CodeCache, bytes: &[u8]) -> Result<Self, OpenError> {
        let module = Module::load(&engines.rules, cache, bytes, HOST_IMPORTS);
        let module = module.map_err(PackRefused::from)?;
        let head: Head = toml::from_str(&module.declaration)
            .map_err(|cause| OpenError::Head(cause.to_string()))?;
        if head.manifest != 1 {
            let why = format!("manifest is {}; this host reads 1", head.manifest);
            return Err(OpenError::Head(why));
        }
        let code = PackCode::open(&engines.rules, &module)?;
        if head.pack.kind == "fees" && !code.prices() {
            return Err(OpenError::Head("kind is fees, but the pack exports no prices".into()));
        }
        Ok(Self { about: head.pack, digest: module.digest, code })
    }
}

/// Packs import types and nothing else.
const HOST_IMPORTS: &[&str] = &[];

/// The packs that decide.
#[derive(Default)]
pub struct Packs {
    fees: ArcSwapOption<Pack>,
}

impl Packs {
    /// Has this pack price payouts from now on.
    pub fn activate_fees(&self, pack: Pack) {
        self.fees.store(Some(Arc::new(pack)));
    }

    /// The pack that prices payouts.
    #[must_use]
    pub fn fees(&self) -> Option<Arc<Pack>> {
        self.fees.load_full()
    }
}
