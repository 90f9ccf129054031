//! What every part of Railhead is built on: refusals, ids, money, time, keys, configuration.

pub mod address;
pub mod clock;
pub mod config;
pub mod env;
pub mod error;
pub mod id;
pub mod keyring;
pub mod money;
