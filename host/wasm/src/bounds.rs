//! What a component may hold at all, counted before anything is compiled.
//!
//! Compiling takes time and memory that grow with functions, locals, blocks and jump tables, in
//! places faster than the file. Reading costs a few milliseconds whatever the file says.

use wasmparser::{BinaryReaderError, FunctionBody, Operator, Parser, Payload};

use crate::config::limits;

use super::module::Refused;

/// What was found so far.
#[derive(Default)]
struct Found {
    parts: u64,
    depth: u64,
    functions: u64,
    code: u64,
    data: u64,
    items: u64,
}

/// Refuses a component that is larger, in any respect, than any rail or pack needs to be.
pub(super) fn check(bytes: &[u8]) -> Result<(), Refused> {
    at_most("bytes", bytes.len() as u64, limits::COMPONENT_BYTES_MAX as u64)?;
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(bytes) {
        found.add(&payload.map_err(malformed)?)?;
    }
    Ok(())
}

impl Found {
    fn add(&mut self, payload: &Payload<'_>) -> Result<(), Refused> {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.parts += 1;
                self.depth += 1;
                at_most("modules and components in it", self.parts, limits::COMPONENT_PARTS_MAX)?;
                let what = "components around one another";
                at_most(what, self.depth, limits::COMPONENT_DEPTH_MAX)
            }
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(())
            }
            Payload::CodeSectionStart { count, size, .. } => {
                self.functions += u64::from(*count);
                at_most("functions", self.functions, limits::COMPONENT_FUNCTIONS_MAX)?;
                self.code += u64::from(*size);
                at_most("bytes of code", self.code, limits::COMPONENT_CODE_BYTES_MAX)
            }
            Payload::CodeSectionEntry(body) => check_function(body),
            other => {
                if let Payload::DataSection(data) = other {
                    self.data += data.range().len() as u64;
                    at_most("bytes of data", self.data, limits::COMPONENT_DATA_BYTES_MAX)?;
                }
                self.items += u64::from(items(other));
                at_most("items", self.items, limits::COMPONENT_ITEMS_MAX)
            }
        }
    }
}

/// How many things a section lists.
fn items(payload: &Payload<'_>) -> u32 {
    match payload {
        Payload::TypeSection(list) => list.count(),
        Payload::ImportSection(list) => list.count(),
        Payload::TableSection(list) => list.count(),
        Payload::MemorySection(list) => list.count(),
        Payload::TagSection(list) => list.count(),
        Payload::GlobalSection(list) => list.count(),
        Payload::ExportSection(list) => list.count(),
        Payload::ElementSection(list) => list.count(),
        Payload::DataSection(list) => list.count(),
        Payload::InstanceSection(list) => list.count(),
        Payload::CoreTypeSection(list) => list.count(),
        Payload::ComponentInstanceSection(list) => list.count(),
        Payload::ComponentAliasSection(list) => list.count(),
        Payload::ComponentTypeSection(list) => list.count(),
        Payload::ComponentCanonicalSection(list) => list.count(),
        Payload::ComponentImportSection(list) => list.count(),
        Payload::ComponentExportSection(list) => list.count(),
        _ => 0,
    }
}

fn check_function(body: &FunctionBody<'_>) -> Result<(), Refused> {
    at_most("bytes in one function", body.range().len() as u64, limits::FUNCTION_BYTES_MAX)?;
    let mut locals = 0;
    for group in body.get_locals_reader().map_err(malformed)? {
        let (count, _) = group.map_err(malformed)?;
        locals += u64::from(count);
        at_most("locals in one function", locals, limits::FUNCTION_LOCALS_MAX)?;
    }
    let mut depth = 0_u64;
    for operator in body.get_operators_reader().map_err(malformed)? {
        match operator.map_err(malformed)? {
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::TryTable { .. } => {
                depth += 1;
                at_most("blocks around one another", depth, limits::FUNCTION_DEPTH_MAX)?;
            }
            Operator::End => depth = depth.saturating_sub(1),
            Operator::BrTable { targets } => {
                let targets = u64::from(targets.len());
                at_most("targets of one jump", targets, limits::FUNCTION_TARGETS_MAX)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn at_most(what: &'static str, count: u64, most: u64) -> Result<(), Refused> {
    if count > most { Err(Refused::TooMuch { what, count, most }) } else { Ok(()) }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
pub(super) fn malformed(cause: BinaryReaderError) -> Refused {
    Refused::NotAComponent(cause.to_string())
}
