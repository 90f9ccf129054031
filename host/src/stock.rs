//! The components that travel inside the binary.

/// Folder and component of every stock rail and rule pack.
pub const COMPONENTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/stock.rs"));

/// The declarations of all stock components.
#[must_use]
pub fn declarations() -> Vec<String> {
    let components = COMPONENTS.iter();
    components.filter_map(|(_, bytes)| crate::wasm::module::declaration(bytes)).collect()
}
