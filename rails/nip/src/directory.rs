//! A bank by whichever of its codes the client knows.
//!
//! Four namespaces meet in one field: the six digits of NIP, the three digits of the Central
//! Bank (CBN) for banks, its five digits for other institutions, and codes of payment
//! aggregators. They are columns of one table; a code must lead to one row only. Codes of
//! banks that merged lead to the successor.

use railhead_rail::host::{self, Row};

/// Mergers followed from a retired code. Nigerian banks have merged twice in a row; a longer
/// chain is a mistake in the table.
const MERGERS_MAX: usize = 4;

/// An institution that can be paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Its six digits in NIP.
    pub institution: String,
    /// The code that the API shows: the CBN's, or NIP's where there is none.
    pub code: String,
    /// The bank's name, for people.
    pub name: String,
    /// Its kind, as the API spells it: `dmb`, `mfb`, `mobile_money` and so on.
    pub kind: String,
    /// CBN codes that the check digit of an account may have been made with. Empty where
    /// the check does not apply.
    pub check_codes: Vec<String>,
}

/// Why a code leads to no bank that can be paid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlisted {
    /// No row has the code.
    Unknown,
    /// Two institutions have it, so the table cannot be believed.
    Ambiguous,
    /// The bank of this name lost its licence.
    Revoked(String),
}

/// The bank with this code, after any mergers.
///
/// # Errors
/// [`Unlisted`] where there is no bank that can be paid under the code.
pub fn find(code: &str) -> Result<Bank, Unlisted> {
    let mut row = row_of(code)?;
    let mut check_codes = Vec::new();
    let mut is_checked = true;
    for _ in 0..=MERGERS_MAX {
        // Accounts keep their numbers when a bank is taken over, so a number may have been
        // made with the code of any bank on the way.
        is_checked &= uses_nuban(&row);
        check_codes.push(row.get("cbn_code").to_owned());
        match row.get("status") {
            "active" if is_checked => return bank(&row, check_codes),
            "active" => return bank(&row, Vec::new()),
            "merged" => row = successor_of(&row)?,
            "revoked" => return Err(Unlisted::Revoked(row.get("name").to_owned())),
            _ => return Err(Unlisted::Unknown),
        }
    }
    Err(Unlisted::Unknown)
}

fn bank(row: &Row, check_codes: Vec<String>) -> Result<Bank, Unlisted> {
    let institution = row.get("nip_code");
    if institution.is_empty() {
        return Err(Unlisted::Unknown);
    }
    let code = match row.get("cbn_code") {
        "" => institution,
        code => code,
    };
    Ok(Bank {
        institution: institution.to_owned(),
        code: code.to_owned(),
        name: row.get("name").to_owned(),
        kind: row.get("kind").to_owned(),
        check_codes,
    })
}

/// Wallets give out telephone numbers as account numbers, so only banks are checked, and
/// only those whose code for the check is known.
fn uses_nuban(row: &Row) -> bool {
    !row.get("cbn_code").is_empty() && matches!(row.get("kind"), "dmb" | "mfb" | "merchant_bank")
}

fn successor_of(row: &Row) -> Result<Row, Unlisted> {
    let successor = row.get("successor");
    only(if successor.is_empty() { Vec::new() } else { rows("nip_code", successor) })
}

fn row_of(code: &str) -> Result<Row, Unlisted> {
    // An empty code would match the empty cells of retired banks.
    if code.is_empty() || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unlisted::Unknown);
    }
    let mut found = Vec::new();
    for column in ["nip_code", "cbn_code", "aliases"] {
        for row in rows(column, code) {
            if !found.contains(&row) {
                found.push(row);
            }
        }
    }
    if found.is_empty() && code.len() == 6 {
        // The revised NUBAN rule writes the five digits of an institution with a nine
        // before them, and some lists publish that form. Its counterpart for banks, "000"
        // before three digits, reads like another bank's NIP code and is not accepted.
        found = code.strip_prefix('9').map_or_else(Vec::new, |ofi| rows("cbn_code", ofi));
    }
    only(found)
}

fn rows(column: &str, value: &str) -> Vec<Row> {
    host::rows("banks", column, value)
}

fn only(found: Vec<Row>) -> Result<Row, Unlisted> {
    let mut rows = found.into_iter();
    match (rows.next(), rows.next()) {
        (Some(row), None) => Ok(row),
        (None, _) => Err(Unlisted::Unknown),
        (Some(_), Some(_)) => Err(Unlisted::Ambiguous),
    }
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
#[path = "directory_tests.rs"]
mod tests;
