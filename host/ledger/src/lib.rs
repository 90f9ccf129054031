//! The database on two engines, and the ledger with the one writer that changes it.

pub mod db;
pub mod ledger;

use railhead_core::{clock, config, env, error, id, money};
