//! Reading a component: what travels inside it, what it wants, what it offers.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use wasmparser::{Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::config::limits;

use super::section::{DECLARATION_SECTION, TABLE_SECTION};
use super::{CodeCache, inert};

/// A component that may run here: compiled, its imports known to be harmless.
pub struct Module {
    /// SHA-256 of the file, as hexadecimal.
    pub digest: String,
    /// The declaration's text.
    pub declaration: String,
    /// Reference tables by name, as CSV.
    pub tables: BTreeMap<String, Vec<u8>>,
    /// Interfaces that it exports, without version.
    pub exports: Vec<String>,
    pub(super) component: Component,
}

/// Why a component is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The file is larger than any rail or pack needs.
    #[error("the component has {0} bytes; at most {max} are accepted", max = limits::COMPONENT_BYTES_MAX)]
    TooLarge(usize),
    /// The file is not a component.
    #[error("not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// The declaration was not packed into it.
    #[error("the component carries no declaration (custom section {DECLARATION_SECTION})")]
    NoDeclaration,
    /// The component wants something that no component gets.
    #[error("the component imports {0}, which is not available to it")]
    Import(String),
    /// The component exports nothing that the host knows, or something of another shape.
    #[error("{0}")]
    Shape(String),
}

impl Module {
    /// Reads and compiles a component. `host_imports` are the interfaces of the host that this
    /// kind of component may use.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn load(
        engine: &Engine,
        cache: &CodeCache,
        bytes: &[u8],
        host_imports: &[&str],
    ) -> Result<Self, Refused> {
        if bytes.len() > limits::COMPONENT_BYTES_MAX {
            return Err(Refused::TooLarge(bytes.len()));
        }
        let (declaration, tables) = sections(bytes)?;
        let digest = hex::encode(Sha256::digest(bytes));
        let component = cache
            .component(engine, &digest, bytes)
            .map_err(|cause| Refused::NotAComponent(format!("{cause:#}")))?;
        let kind = component.component_type();
        for (name, item) in kind.imports(engine) {
            let interface = name.split('@').next().unwrap_or(name);
            let harmless = inert::INTERFACES.contains(&interface);
            let types_only = matches!(&item.ty, ComponentItem::ComponentInstance(instance)
                if instance.exports(engine).all(|(_, export)| is_type(&export.ty)));
            if !harmless && !types_only && !host_imports.contains(&interface) {
                return Err(Refused::Import(name.to_owned()));
            }
        }
        let exports = kind
            .exports(engine)
            .map(|(name, _)| name.split('@').next().unwrap_or(name).to_owned())
            .collect();
        Ok(Self { digest, declaration, tables, exports, component })
    }
}

/// The declaration that a component carries.
#[must_use]
pub fn declaration(bytes: &[u8]) -> Option<String> {
    sections(bytes).ok().map(|(text, _)| text)
}

/// Whether a component calls itself a rule pack rather than a rail.
#[must_use]
pub fn is_rule_pack(bytes: &[u8]) -> bool {
    let declaration = declaration(bytes).and_then(|text| text.parse::<toml::Table>().ok());
    declaration.is_some_and(|table| table.contains_key("pack"))
}

fn is_type(item: &ComponentItem) -> bool {
    matches!(item, ComponentItem::Type(_))
}

type Sections = (String, BTreeMap<String, Vec<u8>>);

/// The declaration and the tables, from the custom sections of the outermost component.
fn sections(bytes: &[u8]) -> Result<Sections, Refused> {
    let malformed =
        |cause: wasmparser::BinaryReaderError| Refused::NotAComponent(cause.to_string());
    let mut declaration = None;
    let mut tables = BTreeMap::new();
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
                    tables.insert(table.to_owned(), section.data().to_vec());
                }
            }
            _ => {}
        }
    }
    Ok((declaration.ok_or(Refused::NoDeclaration)?, tables))
}
