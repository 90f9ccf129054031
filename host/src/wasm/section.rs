//! Packing a declaration and its tables into a component, as custom sections.

use wasm_encoder::{ComponentSection, CustomSection};

/// Custom section that holds the declaration of a rail or the rules of a pack.
pub const DECLARATION_SECTION: &str = "railhead:declaration";
/// Prefix of the custom sections that hold reference tables.
pub const TABLE_SECTION: &str = "railhead:table/";

/// Appends the declaration and the tables (name, CSV) to a component. The result is a valid
/// component still: custom sections may stand anywhere.
#[must_use]
pub fn pack(component: &[u8], declaration: &str, tables: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut packed = component.to_vec();
    append(&mut packed, DECLARATION_SECTION, declaration.as_bytes());
    for (name, csv) in tables {
        append(&mut packed, &format!("{TABLE_SECTION}{name}"), csv);
    }
    packed
}

fn append(component: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    CustomSection { name: name.into(), data: bytes.into() }.append_to_component(component);
}
