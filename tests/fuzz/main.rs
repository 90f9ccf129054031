//! Whatever strangers may send is read or refused, and what is read means what it says.
//!
//! Each target begins with its folder of `corpus`, and makes inputs out of it for as many seconds
//! as `FUZZ_SECONDS` says, one unless it is set. An input that fails is written into the folder:
//! committed, it is tried ever after.

#![allow(missing_docs, reason = "tests")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]
#![allow(clippy::needless_pass_by_value, reason = "tests")]

mod addresses;
mod bodies;
mod conditions;
mod declarations;
mod inputs;
mod lists;
mod notices;
mod statements;
