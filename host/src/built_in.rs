//! The components that are built into the binary.

/// Folder and component of every built-in rail and rule pack.
pub const COMPONENTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The declarations of all built-in components.
#[must_use]
pub fn declarations() -> Vec<String> {
    let components = COMPONENTS.iter();
    components.filter_map(|(_, bytes)| crate::wasm::module::declaration(bytes)).collect()
}
