//! Reading a component: what travels inside it, what it wants, what it offers.

use std::collections::BTreeMap;

use semver::Version;
use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use super::section::{
    self, CALENDAR_SECTION, CASE_SECTION, CustomSections, DECLARATION_SECTION, SIMULATOR_SECTION,
    TABLE_SECTION,
};
use super::{CodeCache, bounds, inert};
use bounds::malformed;

/// The contract that one kind of component is built against.
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// The WIT package that it implements, with its version.
    pub package: &'static str,
    /// Interfaces that it may import, with their versions.
    pub imports: &'static [&'static str],
}

/// A component that may run here: compiled, its imports known to be harmless.
pub struct Module {
    /// SHA-256 of the file, as hexadecimal.
    pub digest: String,
    /// The declaration's text.
    pub declaration: String,
    /// Reference tables by name, as CSV.
    pub tables: BTreeMap<String, Vec<u8>>,
    /// A rail's calendars by name, as CSV.
    pub calendars: BTreeMap<String, Vec<u8>>,
    /// A rule pack's cases: file and TOML.
    pub cases: Vec<(String, Vec<u8>)>,
    /// The other side of a rail's network: a component that is not compiled yet.
    pub simulator: Option<Vec<u8>>,
    /// Interfaces that it exports, without version.
    pub exports: Vec<String>,
    pub(super) component: Component,
}

/// Why a component is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is larger, in some respect, than any rail or pack needs to be.
    #[error("the component has {count} {what}; at most {most} are accepted")]
    TooMuch {
        /// Of what, in words.
        what: &'static str,
        /// How much there is, as far as it was counted.
        count: u64,
        /// How much there may be.
        most: u64,
    },
    /// Compiling it costs too much.
    #[error("the component cannot be compiled: {0}")]
    Uncompilable(String),
    /// The file is not a component.
    #[error("not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// The declaration was not packed into it.
    #[error("the component carries no declaration (custom section {DECLARATION_SECTION})")]
    NoDeclaration,
    /// The component wants something that no component gets.
    #[error("the component imports {0}, which is not available to it")]
    Import(String),
    /// The component was built against another version of the contract.
    #[error("the component has {found}, and this host speaks {wanted}: build it against that")]
    Version {
        /// The interface that does not fit, with its version.
        found: String,
        /// The version that would fit.
        wanted: String,
    },
    /// The component exports nothing that the host knows, or something of another shape.
    #[error("{0}")]
    Shape(String),
    /// The other side of its network, which a rail brings, is refused.
    #[error("its simulator: {0}")]
    Simulator(Box<Refused>),
}

impl Module {
    /// Reads and compiles a component. Every interface that it has in common
    /// with `contract` must be of that version.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn load(
        engine: &Engine,
        cache: &CodeCache,
        bytes: &[u8],
        contract: Contract,
    ) -> Result<Self, Refused> {
        let Source { sections, bare } = Source::read(bytes)?;
        let CustomSections { declaration, tables, calendars, cases, simulator } = sections;
        let (tables, calendars) = (tables.into_iter().collect(), calendars.into_iter().collect());
        let digest = hex::encode(Sha256::digest(bytes));
        let Code { component, exports } = Code::compile(engine, cache, &bare, contract)?;
        Ok(Self { digest, declaration, tables, calendars, cases, simulator, exports, component })
    }
}

/// Compiled code whose imports are known to be harmless.
pub(super) struct Code {
    pub(super) component: Component,
    /// Interfaces that it exports, without version.
    pub(super) exports: Vec<String>,
}

impl Code {
    /// Compiles the code of a component, which must be within bounds.
    ///
    /// # Errors
    /// It is no component, wants what none gets, or was built against another contract.
    pub(super) fn compile(
        engine: &Engine,
        cache: &CodeCache,
        bare: &[u8],
        contract: Contract,
    ) -> Result<Self, Refused> {
        let component = cache
            .component(engine, bare)
            .map_err(|cause| Refused::NotAComponent(format!("{cause:#}")))?;
        let kind = component.component_type();
        for (name, item) in kind.imports(engine) {
            contract.fits(name)?;
            let harmless = inert::INTERFACES.contains(&interface(name));
            let types_only = matches!(&item.ty, ComponentItem::ComponentInstance(instance)
                if instance.exports(engine).all(|(_, export)| is_type(&export.ty)));
            if !harmless && !types_only && !contract.has_import(name) {
                return Err(Refused::Import(name.to_owned()));
            }
        }
        let mut exports = Vec::new();
        for (name, _) in kind.exports(engine) {
            contract.fits(name)?;
            exports.push(interface(name).to_owned());
        }
        Ok(Self { component, exports })
    }
}

impl Contract {
    /// Whether what was built against this package runs here.
    #[must_use]
    pub fn serves(&self, package: &str) -> bool {
        let names = (interface(self.package), interface(package));
        names.0 == names.1 && is_served(version(self.package), version(package))
    }

    fn has_import(&self, name: &str) -> bool {
        self.imports.iter().any(|known| interface(known) == interface(name))
    }

    /// # Errors
    /// It is an interface of the contract in a version that is not served.
    fn fits(&self, name: &str) -> Result<(), Refused> {
        let (own, wanted) = self.package.split_once('@').unwrap_or((self.package, ""));
        let known = self.imports.iter().find(|known| interface(known) == interface(name));
        let is_own = name.split_once('/').is_some_and(|(package, _)| package == own);
        let fitting = match known {
            Some(known) => (*known).to_owned(),
            None if is_own => format!("{}@{wanted}", interface(name)),
            None => return Ok(()),
        };
        match is_served(version(&fitting), version(name)) {
            true => Ok(()),
            false => Err(Refused::Version { found: name.to_owned(), wanted: fitting }),
        }
    }
}

/// An interface, or a package, without its version.
fn interface(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn version(name: &str) -> &str {
    name.split_once('@').map_or("", |(_, version)| version)
}

/// Whether what was built against a version runs where another one is spoken: from 1.0 on one of the
/// same major version that knows no more, and before that the very same.
fn is_served(spoken: &str, built: &str) -> bool {
    let (Ok(own), Ok(its)) = (Version::parse(spoken), Version::parse(built)) else {
        return spoken == built;
    };
    let is_released = own.pre.is_empty() && its.pre.is_empty();
    let is_older = own.major == its.major && its.minor <= own.minor;
    own == its || (own.major > 0 && is_released && is_older)
}

/// A component that is within bounds, taken apart; nothing of it is compiled yet.
pub(super) struct Source {
    /// What travels with the code.
    pub(super) sections: CustomSections,
    /// The code alone: packs that differ in their rules only are compiled once.
    pub(super) bare: Vec<u8>,
}

impl Source {
    /// # Errors
    /// It is too large in some respect, no component, or carries no declaration.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Refused> {
        bounds::check(bytes)?;
        Ok(Self { sections: custom_sections(bytes)?, bare: bare(bytes)? })
    }
}

/// The declaration that a component carries.
#[must_use]
pub fn declaration(bytes: &[u8]) -> Option<String> {
    custom_sections(bytes).ok().map(|sections| sections.declaration)
}

/// What a component calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rail; whatever calls itself nothing else is taken for one.
    Rail,
    /// A rule pack.
    RulePack,
    /// A source of exchange rates.
    RateSource,
}

impl Kind {
    /// What the declaration in a component says.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let declaration = declaration(bytes).and_then(|text| text.parse::<toml::Table>().ok());
        let has = |section: &str| declaration.as_ref().is_some_and(|it| it.contains_key(section));
        match (has("pack"), has("source")) {
            (true, _) => Self::RulePack,
            (false, true) => Self::RateSource,
            (false, false) => Self::Rail,
        }
    }
}

fn is_type(item: &ComponentItem) -> bool {
    matches!(item, ComponentItem::Type(_))
}

/// The same code with other sections: how rules that are only text become a pack.
///
/// # Errors
/// It is not a component.
pub fn repack(bytes: &[u8], sections: &CustomSections) -> Result<Vec<u8>, Refused> {
    Ok(section::pack(&bare(bytes)?, sections))
}

/// A component's code without what travels with it.
fn bare(bytes: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut depth = 0usize;
    let mut bare = Vec::with_capacity(bytes.len());
    let mut kept_to = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section)
                if depth == 0 && section.name().starts_with("railhead:") =>
            {
                let whole = section.range();
                // The section's id and length stand before its range.
                let start = header(bytes, kept_to, whole.start);
                bare.extend_from_slice(&bytes[kept_to..start]);
                kept_to = whole.end;
            }
            _ => {}
        }
    }
    bare.extend_from_slice(&bytes[kept_to..]);
    Ok(bare)
}

/// Where a section begins whose contents begin at `contents`: its length in LEB128 and its id
/// stand before them.
fn header(bytes: &[u8], from: usize, contents: usize) -> usize {
    let mut start = contents.saturating_sub(1);
    while start > from + 1 && bytes[start - 1] & 0x80 != 0 {
        start -= 1;
    }
    start.saturating_sub(1)
}

/// What travels with a component: the custom sections of the outermost one.
///
/// # Errors
/// It is not a component, or carries no declaration.
pub fn custom_sections(bytes: &[u8]) -> Result<CustomSections, Refused> {
    let mut declaration = None;
    let mut sections = CustomSections::default();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 => {
                if section.name() == DECLARATION_SECTION {
                    let text = std::str::from_utf8(section.data());
                    declaration = text.ok().map(str::to_owned);
                } else if let Some(table) = section.name().strip_prefix(TABLE_SECTION) {
                    sections.tables.push((table.to_owned(), section.data().to_vec()));
                } else if let Some(name) = section.name().strip_prefix(CALENDAR_SECTION) {
                    sections.calendars.push((name.to_owned(), section.data().to_vec()));
                } else if let Some(file) = section.name().strip_prefix(CASE_SECTION) {
                    sections.cases.push((file.to_owned(), section.data().to_vec()));
                } else if section.name() == SIMULATOR_SECTION {
                    sections.simulator = Some(section.data().to_vec());
                }
            }
            _ => {}
        }
    }
    sections.declaration = declaration.ok_or(Refused::NoDeclaration)?;
    Ok(sections)
}
