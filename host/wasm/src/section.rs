//! Packing a declaration, its tables and calendars into a component, as custom sections.

use std::path::{Path, PathBuf};

use wasm_encoder::{ComponentSection, CustomSection};

/// Custom section that holds the declaration of a rail or the rules of a pack.
pub const DECLARATION_SECTION: &str = "railhead:declaration";
/// Prefix of the custom sections that hold reference tables.
pub const TABLE_SECTION: &str = "railhead:table/";
/// Prefix of the custom sections that hold a rail's calendars.
pub const CALENDAR_SECTION: &str = "railhead:calendar/";
/// Prefix of the custom sections that hold a rule pack's cases.
pub const CASE_SECTION: &str = "railhead:case/";
/// Custom section that holds the other side of a rail's network, a component itself.
pub const SIMULATOR_SECTION: &str = "railhead:simulator";

/// What travels in a component besides its code.
#[derive(Clone, Debug, Default)]
pub struct CustomSections {
    /// The declaration of a rail, or the rules of a pack.
    pub declaration: String,
    /// Reference tables: name and CSV.
    pub tables: Vec<(String, Vec<u8>)>,
    /// A rail's calendars: name and CSV.
    pub calendars: Vec<(String, Vec<u8>)>,
    /// A rule pack's cases: file and TOML.
    pub cases: Vec<(String, Vec<u8>)>,
    /// The other side of a rail's network: a component itself.
    pub simulator: Option<Vec<u8>>,
}

impl CustomSections {
    /// The declaration in `folder`, the tables that come with it, and, for a rule pack, its cases:
    /// whoever is given the pack can check it.
    ///
    /// # Errors
    /// A file cannot be read, in words.
    pub fn read(folder: &Path, declaration: &str) -> Result<Self, String> {
        let text = read(&folder.join(declaration))?;
        let text = String::from_utf8(text).map_err(|cause| format!("{declaration}: {cause}"))?;
        let parsed: toml::Table =
            text.parse().map_err(|cause| format!("{declaration}: {cause}"))?;
        let beside = |kind: &str| {
            let named = parsed.get(kind).and_then(toml::Value::as_table);
            let operators = |table: &toml::Value| {
                table.get("supplied_by").and_then(toml::Value::as_str) == Some("operator")
            };
            let own = named.into_iter().flatten().filter(|(_, table)| !operators(table));
            own.map(|(name, table)| {
                let file = table.get("file").and_then(toml::Value::as_str);
                let file =
                    file.ok_or_else(|| format!("{declaration}: {kind}.{name} names no file"))?;
                Ok((name.clone(), read(&folder.join(file))?))
            })
            .collect::<Result<Vec<_>, String>>()
        };
        let (tables, calendars) = (beside("tables")?, beside("calendars")?);
        let is_pack = parsed.contains_key("pack");
        let cases = if is_pack { cases(&folder.join("cases"))? } else { Vec::new() };
        Ok(Self { declaration: text, tables, calendars, cases, simulator: None })
    }
}

fn cases(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths.iter().map(|path| Ok((name(path).unwrap_or_default(), read(path)?))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))
}

/// Appends what travels with a component to its code. The result is a valid component still:
/// custom sections may stand anywhere.
#[must_use]
pub fn pack(component: &[u8], sections: &CustomSections) -> Vec<u8> {
    let mut packed = component.to_vec();
    append(&mut packed, DECLARATION_SECTION, sections.declaration.as_bytes());
    for (name, csv) in &sections.tables {
        append(&mut packed, &format!("{TABLE_SECTION}{name}"), csv);
    }
    for (name, csv) in &sections.calendars {
        append(&mut packed, &format!("{CALENDAR_SECTION}{name}"), csv);
    }
    for (file, toml) in &sections.cases {
        append(&mut packed, &format!("{CASE_SECTION}{file}"), toml);
    }
    if let Some(simulator) = &sections.simulator {
        append(&mut packed, SIMULATOR_SECTION, simulator);
    }
    packed
}

fn append(component: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    CustomSection { name: name.into(), data: bytes.into() }.append_to_component(component);
}
