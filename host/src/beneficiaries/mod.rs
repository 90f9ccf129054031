//! Beneficiaries: recipients that are saved and named.

pub mod http;
mod upsert;
mod view;
