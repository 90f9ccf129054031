//! `railhead openapi`, `railhead errors` and `railhead rail check`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use strum::IntoEnumIterator as _;

use crate::config::Config;
use crate::conformance;
use crate::error::ErrorCode;
use crate::fx::RateSource;
use crate::id::IdGenerator;
use crate::keyring::Keyring;
use crate::rails::Rail as LoadedRail;
use crate::rules::Pack;
use crate::start::{Sources, StartError, load};
use crate::wasm::module::{self, Kind};
use crate::wasm::section::{self, CustomSections};
use crate::wasm::{CodeCache, Engines};
use crate::{built_in, routes};

use super::say;

/// The WebAssembly engines. Compiled code is kept nowhere: a document needs no data folder.
pub(super) fn engines() -> Result<(Engines, CodeCache), StartError> {
    let ids: IdGenerator = Sources::system()?.ids;
    let keyring = Keyring::from_hex(&[hex::encode(ids.bytes::<32>())])?;
    Ok((Engines::start()?, CodeCache::new(None, Arc::new(keyring))))
}

/// Prints the OpenAPI document of the built-in rails and those in the modules folder.
pub(super) fn openapi(config: &Config) -> Result<(), StartError> {
    let (engines, cache) = engines()?;
    let components = load(&engines, &cache, config.modules.dir.as_deref())?;
    let rails: Vec<_> = components.rails.into_iter().map(Arc::new).collect();
    say(serde_json::to_string_pretty(&routes::document(&rails))?);
    Ok(())
}

/// Prints every code with its status, type, meaning and remedy.
pub(super) fn errors() -> Result<(), StartError> {
    for code in ErrorCode::iter() {
        let (entry, texts) = (code.entry(), code.texts());
        say(format_args!("{} ({}, {})", entry.code, entry.status, entry.kind.literal()));
        say(format_args!("  {}", texts.message));
        say(format_args!("  Means: {}", texts.meaning));
        say(format_args!("  Do:    {}\n", texts.remedy));
    }
    Ok(())
}

/// Work on rails.
#[derive(Args)]
pub(super) struct Rail {
    #[command(subcommand)]
    command: RailCommand,
}

#[derive(Subcommand)]
enum RailCommand {
    /// Run a rail's conformance cases and the sandbox's scenarios against its component.
    Check {
        /// A packed component, or the name of a built-in rail.
        rail: String,
        /// Folder with the cases.
        #[arg(long)]
        cases: PathBuf,
    },
    /// Pack a component with its declaration, tables and simulator into one file.
    Pack {
        /// The component as its compiler wrote it.
        component: PathBuf,
        /// Its rail.toml, rules.toml or rates.toml.
        declaration: PathBuf,
        /// For a rail, the other side of its network: the component of its simulator.
        #[arg(long)]
        simulator: Option<PathBuf>,
        /// Where to write the packed component.
        #[arg(long, short)]
        output: PathBuf,
    },
}

impl Rail {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        match self.command {
            RailCommand::Check { rail, cases } => check(config, &rail, cases).await,
            RailCommand::Pack { component, declaration, simulator, output } => {
                pack((&component, simulator.as_deref()), &declaration, &output)
            }
        }
    }
}

async fn check(config: &Config, name: &str, cases: PathBuf) -> Result<(), StartError> {
    let (engines, cache) = engines()?;
    let tables = config.modules.dir.as_ref().map(|folder| folder.join("tables"));
    let found = built_in::COMPONENTS.iter().find(|(folder, _)| {
        // One that is a country's of a rail lies within it.
        folder.strip_prefix("rails/").is_some_and(|folder| folder.replace('/', "-") == name)
    });
    let bytes = match found {
        Some((_, bytes)) => bytes.to_vec(),
        None => std::fs::read(name).map_err(|cause| format!("{name}: {cause}"))?,
    };
    let rail = LoadedRail::load(&engines, &cache, &bytes, tables.as_deref())?;
    let report = conformance::check(&rail, &cases).await?;
    let about = &rail.declaration.rail;
    say(format_args!("{} {} ({})", about.name, about.version, &rail.digest[..12]));
    for failure in &report.failures {
        say(format_args!("  FAILED {failure}"));
    }
    say(format_args!("  {} of {} cases hold", report.run - report.failures.len(), report.run));
    match report.failures.len() {
        0 => Ok(()),
        count => Err(format!("{count} cases failed").into()),
    }
}

fn pack(
    (component, simulator): (&Path, Option<&Path>),
    declaration: &Path,
    output: &Path,
) -> Result<(), StartError> {
    let read =
        |path: &Path| std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()));
    let code = read(component)?;
    if module::declaration(&code).is_some() {
        return Err(format!("{} is packed already", component.display()).into());
    }
    let folder = declaration.parent().unwrap_or(Path::new("."));
    let file = declaration.file_name().map(|name| name.to_string_lossy().into_owned());
    let sections = CustomSections {
        simulator: simulator.map(read).transpose()?,
        ..CustomSections::read(folder, &file.unwrap_or_default())?
    };
    let packed = section::pack(&code, &sections);
    // What no host would load is not packed.
    let (engines, cache) = engines()?;
    match Kind::of(&packed) {
        Kind::RulePack => drop(Pack::load(&engines, &cache, &packed)?),
        Kind::RateSource => drop(RateSource::load(&engines, &cache, &packed)?),
        Kind::Rail => drop(LoadedRail::load(&engines, &cache, &packed, None)?),
    }
    std::fs::write(output, &packed)?;
    say(format_args!("{}: {} bytes", output.display(), packed.len()));
    Ok(())
}
