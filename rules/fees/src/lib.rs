//! The stock fee pack.
//!
//! [`rules`] reads `rules.toml` into what [`price`] works with; `guest` exports both.

#[cfg(target_family = "wasm")]
mod guest;
pub mod percent;
pub mod price;
pub mod rules;
