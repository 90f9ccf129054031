//! Rails: what is declared, what is loaded, which route takes what, and how one is called.

pub mod assembled;
pub mod bucket;
pub mod declaration;
pub mod directory;
mod fields;
pub mod file_transport;
pub mod files;
pub mod granted;
pub mod notices;
mod ready;
pub mod redact;
pub mod registry;
pub mod route;
mod sense;
pub mod sql;
pub mod versions;

pub use declaration::Declaration;
pub use fields::{Block, RecipientFields, placed};
pub use ready::ReadyRoute;
pub use registry::{Rail, Registry, nobody};
pub use route::{Route, Routes, Sandbox};
pub use versions::Versions;
