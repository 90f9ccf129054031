//! Components: those that are built in, and those of the modules folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::built_in;
use crate::calendar::Calendars;
use crate::clock::Clock;
use crate::config::{Config, limits};
use crate::db::Db;
use crate::fx::RateSource;
use crate::keyring::Keyring;
use crate::rails::{Rail, Registry, Versions, registry};
use crate::rules::Pack;
use crate::rules::store::{Loader, SuppliedPack};
use crate::simulator::Network;
use crate::wasm::compiler::Costs;
use crate::wasm::module::Kind;
use crate::wasm::{CodeCache, Compiler, Engines};

use super::StartError;

/// Loaded components.
#[derive(Default)]
pub struct Components {
    /// The rails, built in or from the modules folder.
    pub rails: Vec<Rail>,
    /// The rule packs, built in or from the modules folder.
    pub packs: Vec<SuppliedPack>,
    /// The rate sources, built in or from the modules folder.
    pub sources: Vec<RateSource>,
}

/// All of them, and what opens further ones.
pub(super) fn components(
    config: &Config,
    keyring: &Arc<Keyring>,
) -> Result<(Components, Loader), StartError> {
    let engines = Engines::start_for(config.rail_guests.unwrap_or(limits::RAIL_GUESTS_MAX))?;
    let cache = CodeCache::new(Some(config.data.dir.join("cache")), Arc::clone(keyring));
    let components = load(&engines, &cache, config.modules.dir.as_deref())?;
    let compiler = Compiler::new(config.compiler.clone(), Costs::default())?;
    Ok((components, Loader { engines, cache, compiler }))
}

/// Every version of every rail, the present ones among them.
pub(super) async fn keep_versions(
    (db, keyring): (&Db, &Arc<Keyring>),
    loader: &Loader,
    config: &Config,
    (rails, clock): (&Registry, &Clock),
) -> Result<Versions, StartError> {
    let tables = config.modules.dir.as_deref().map(|folder| folder.join("tables"));
    let with = (loader.engines.clone(), loader.cache.clone());
    let barred = config.modules.barred.iter().map(|digest| digest.to_ascii_lowercase());
    let barred: BTreeSet<String> = barred.collect();
    let kept = (db.clone(), Arc::clone(keyring));
    let versions = Versions::new(kept, with, (tables, barred.clone()));
    let is_digest = |text: &&String| text.len() == 64 && hex::decode(text.as_str()).is_ok();
    if let Some(odd) = config.modules.barred.iter().find(|text| !is_digest(text)) {
        return Err(format!("modules.barred: {odd} is no SHA-256 in hex").into());
    }
    for rail in rails.all() {
        if barred.contains(&rail.digest) {
            let name = &rail.declaration.rail.name;
            return Err(format!("the rail {name} is barred by modules.barred: replace it").into());
        }
        versions.keep(&rail, clock.now()).await?;
    }
    Ok(versions)
}

/// Loads the built-in components, then those of the modules folder, which replace built-in
/// ones of the same name.
///
/// # Errors
/// A component is refused; the message names it.
pub fn load(
    engines: &Engines,
    cache: &CodeCache,
    folder: Option<&Path>,
) -> Result<Components, StartError> {
    let mut components = Components::default();
    let tables = folder.map(|folder| folder.join("tables"));
    for (name, bytes) in built_in::COMPONENTS {
        let origin = format!("built-in component {name}");
        add(&mut components, (engines, cache), (&origin, bytes), tables.as_deref())?;
    }
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for path in modules(folder)? {
        let bytes = std::fs::read(&path).map_err(|cause| format!("{}: {cause}", path.display()))?;
        let origin = path.display().to_string();
        let added = add(&mut components, (engines, cache), (&origin, &bytes), tables.as_deref())?;
        let Some(Added { what, is_replacement }) = added else { continue };
        if let Some(other) = files.insert(what.clone(), origin.clone()) {
            return Err(format!("{other} and {origin} both hold {what}: keep one of them").into());
        }
        if is_replacement {
            tracing::info!(%origin, what, "stands in for the one that is built in");
        }
    }
    Ok(components)
}

fn modules(folder: Option<&Path>) -> Result<Vec<PathBuf>, StartError> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|cause| format!("modules.dir {}: {cause}", folder.display()))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "wasm")).collect();
    paths.sort();
    Ok(paths)
}

/// What one takes of which there is one of each name.
struct Added {
    /// What it is, and its name.
    what: String,
    is_replacement: bool,
}

fn add(
    components: &mut Components,
    (engines, cache): (&Engines, &CodeCache),
    (origin, bytes): (&str, &[u8]),
    tables: Option<&Path>,
) -> Result<Option<Added>, StartError> {
    let named = |cause: StartError| -> StartError { format!("{origin}: {cause}").into() };
    match Kind::of(bytes) {
        Kind::RulePack => {
            let pack = Pack::load(engines, cache, bytes).map_err(|cause| named(cause.into()))?;
            let is_built_in =
                built_in::COMPONENTS.iter().any(|(_, known)| std::ptr::eq(*known, bytes));
            let component = bytes.to_vec();
            components.packs.push(SuppliedPack { pack: Arc::new(pack), component, is_built_in });
            Ok(None)
        }
        Kind::RateSource => {
            let source = RateSource::load(engines, cache, bytes);
            let source = source.map_err(|cause| named(cause.into()))?;
            let name = source.about.name.clone();
            let is_replacement =
                put(&mut components.sources, source, |known| known.about.name == name);
            Ok(Some(Added { what: format!("the rate source {name}"), is_replacement }))
        }
        Kind::Rail => {
            let rail =
                Rail::load(engines, cache, bytes, tables).map_err(|cause| named(cause.into()))?;
            let name = rail.declaration.rail.name.clone();
            let is_replacement =
                put(&mut components.rails, rail, |known| known.declaration.rail.name == name);
            Ok(Some(Added { what: format!("the rail {name}"), is_replacement }))
        }
    }
}

/// In the place of the one that it replaces, or at the end; answers whether there was one.
fn put<T>(all: &mut Vec<T>, new: T, is_replaced: impl Fn(&T) -> bool) -> bool {
    match all.iter_mut().find(|known| is_replaced(known)) {
        Some(known) => {
            *known = new;
            true
        }
        None => {
            all.push(new);
            false
        }
    }
}

/// Adds the calendars that rails of the modules folder bring. Nothing is compiled for it.
///
/// # Errors
/// A file cannot be read.
pub fn add_calendars_of_rails(
    calendars: &mut Calendars,
    folder: Option<&Path>,
) -> Result<(), StartError> {
    for path in modules(folder)? {
        let file = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|cause| format!("{file}: {cause}"))?;
        let sections = crate::wasm::module::custom_sections(&bytes);
        let sections = sections.map_err(|cause| format!("{file}: {cause}"))?;
        for (name, csv) in &sections.calendars {
            calendars.add_of_rail(&path, (name, &String::from_utf8_lossy(csv)))?;
        }
    }
    Ok(())
}

/// The other sides of all rails' networks, built in or from the modules folder.
///
/// # Errors
/// A component cannot be read, or is refused.
pub fn networks(
    engines: &Engines,
    cache: &CodeCache,
    folder: Option<&Path>,
) -> Result<BTreeMap<String, Network>, StartError> {
    let mut networks = BTreeMap::new();
    for (name, bytes) in built_in::COMPONENTS {
        let found = registry::network(engines, cache, bytes);
        networks.extend(found.map_err(|cause| format!("built-in component {name}: {cause}"))?);
    }
    for path in modules(folder)? {
        let named = |cause: String| format!("{}: {cause}", path.display());
        let bytes = std::fs::read(&path).map_err(|cause| named(cause.to_string()))?;
        let found = registry::network(engines, cache, &bytes);
        networks.extend(found.map_err(|cause| named(cause.to_string()))?);
    }
    Ok(networks)
}
