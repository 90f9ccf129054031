//! Looking things up: banks, names, events, error codes.

pub mod http;
