//! Looking things up: banks, names, events, error codes.

pub mod http;
pub mod requests;
pub mod stream;
