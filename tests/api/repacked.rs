//! Built-in rails with another declaration.

use railhead::built_in::COMPONENTS;
use railhead::wasm::module;

/// A built-in rail in whose declaration each of these stands in place of the other.
pub(crate) fn component(rail: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    let name = format!("rails/{rail}");
    let mut built_in = COMPONENTS.iter();
    let (_, component) = built_in.find(|(known, _)| *known == name).expect("the rail");
    let mut sections = module::custom_sections(component).expect("its sections");
    for (before, after) in changes {
        assert!(sections.declaration.contains(before), "{rail} declares no {before}");
        sections.declaration = sections.declaration.replacen(before, after, 1);
    }
    module::repack(component, &sections).expect("packed")
}

/// A folder for `modules.dir` with such a rail in it.
pub(crate) fn folder(rail: &str, changes: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(rail).with_extension("wasm");
    std::fs::write(file, component(rail, changes)).expect("written");
    folder
}
