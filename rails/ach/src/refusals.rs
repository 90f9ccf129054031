//! Codes with which the gateway refuses a file, or an entry of one.
//!
//! Only these refuse, and not beside a word of an earlier copy: see
//! [`railhead_rail::file_gateway::refusal`]. Reason codes of returns are not among
//! them: those stand in NACHA files, and [`crate::codes`] has them.

/// Of a file: nothing of it is carried out.
pub const FILE: &[&str] = &[
    "exposure_limit",
    "invalid_file",
    "invalid_name",
    "too_large",
    "unbalanced",
    "unknown_originator",
];

/// Of an entry of a file whose others are carried out.
pub const ENTRY: &[&str] = &["invalid_account", "invalid_entry", "invalid_routing_number", "limit"];

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::{ENTRY, FILE};

    const CASES: &str = include_str!("../cases/refusals.toml");
    const README: &str = include_str!("../README.md");

    #[test]
    fn every_code_has_a_case_and_is_documented() {
        assert!(!FILE.iter().any(|code| ENTRY.contains(code)));
        for code in FILE {
            assert!(CASES.contains(&format!("{{\"code\":\"{code}\"")), "{code}");
        }
        for code in FILE.iter().chain(ENTRY) {
            assert!(CASES.contains(&format!("\"code\": \"{code}\"")), "{code}");
            assert!(README.contains(&format!("`{code}`")), "{code}");
        }
    }
}
