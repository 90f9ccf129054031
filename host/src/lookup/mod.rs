//! Looking things up: banks, names, events, error codes.

pub mod http;
mod progress;
pub mod requests;
pub mod stream;
