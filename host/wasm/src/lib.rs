//! The sandbox: loading components, and calling them within limits.
//!
//! Two engines. Rails may wait for a network, so they run asynchronously and are interrupted
//! by epochs; every call has an instance of its own. Rule packs are pure, so they run at once
//! and are metered by fuel, which makes their answers the same on every machine.
//!
//! | limit | rail call | rule pack |
//! |---|---|---|
//! | time | wall clock, and processor time in epoch ticks | fuel, and epoch ticks |
//! | memory, tables | summed over the whole instance | the same |
//! | what crosses the border | bytes, requests, log lines | bytes |
//! | imports | `railhead:host/*` and inert WASI | inert WASI |
//!
//! A simulator, the other side of a rail's network, has the limits of a rail call, about a whole
//! file where the rail makes files; instead of a network it has a book in which it remembers.
//!
//! A rate source, which is pure as well, is limited in the same ways, by figures of its own.
//!
//! A guest that breaks a limit traps. It cannot harm the host, another guest, or the next call.
//!
//! What a component may hold at all is counted before it is compiled (`bounds`), and what
//! somebody uploads is compiled by a process that has limits of its own (`compiler`).

mod bounds;
mod cache;
pub mod compiler;
pub mod egress;
mod engine;
pub mod identity;
mod inert;
pub mod keys;
mod limiter;
pub mod module;
pub mod pack;
mod places;
pub mod rail;
pub mod section;
pub mod simulator;
pub mod source;
pub mod tables;

pub use cache::{CodeCache, Compiled};
pub use compiler::Compiler;
pub use engine::Engines;

use railhead_core::{address, config, error, keyring};
