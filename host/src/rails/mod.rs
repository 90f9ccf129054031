//! Rails: what is declared, what is loaded, which route takes what, and how one is called.

pub mod assembled;
mod bounds;
pub mod bucket;
mod choosing;
mod configuration;
pub mod declaration;
pub mod directory;
pub mod enquiries;
mod fields;
pub mod file_transport;
pub mod files;
pub mod granted;
mod hours;
pub mod methods;
pub mod notices;
pub mod own_settings;
mod ready;
pub mod redact;
pub mod registry;
pub mod route;
mod sense;
mod sense_recipient;
pub mod shown;
pub mod sql;
mod tokens;
pub mod versions;

pub use configuration::RouteConfiguration;
pub use declaration::Declaration;
pub use fields::{Block, RecipientFields, anchored, placed, put, refuse_no_block};
pub use methods::Choice;
pub use ready::ReadyRoute;
pub use registry::{Rail, Registry};
pub use route::{Route, Routes, Sandbox, seeded_name};
pub use sense_recipient::SENDER_FIELDS;
pub use versions::Versions;
