//! The bank list that a rail's directory gives.

use serde::Serialize;
use utoipa::ToSchema;

use crate::wasm::tables::{ReferenceTable, TableRow};

/// Name of the table that lists banks.
pub const TABLE: &str = "banks";

/// A bank that can be paid.
#[derive(Debug, Serialize, ToSchema)]
pub struct Bank {
    /// The code to send: `cbn_code`, or `nip_code` where there is none.
    #[schema(example = "058")]
    pub code: String,
    /// The central bank's code.
    pub cbn_code: Option<String>,
    /// The institution's code in NIP.
    pub nip_code: Option<String>,
    /// The bank's name, for people.
    #[schema(example = "Guaranty Trust Bank")]
    pub name: String,
    /// Stable identifier.
    #[schema(example = "guaranty-trust-bank")]
    pub slug: String,
    /// What kind of institution it is.
    #[schema(example = "dmb")]
    pub kind: String,
}

/// Every active bank of a directory, by name.
#[must_use]
pub fn banks(table: &ReferenceTable) -> Vec<Bank> {
    let mut banks: Vec<Bank> =
        table.rows().filter(|row| row.get("status") == "active").map(bank).collect();
    banks.sort_by(|a, b| a.name.cmp(&b.name));
    banks
}

fn bank(row: TableRow<'_>) -> Bank {
    let cell = |column| Some(row.get(column).to_owned()).filter(|cell| !cell.is_empty());
    let (cbn_code, nip_code) = (cell("cbn_code"), cell("nip_code"));
    Bank {
        code: cbn_code.clone().or_else(|| nip_code.clone()).unwrap_or_default(),
        cbn_code,
        nip_code,
        name: row.get("name").to_owned(),
        slug: row.get("slug").to_owned(),
        kind: row.get("kind").to_owned(),
    }
}
