//! Railhead.
fn main() {}
