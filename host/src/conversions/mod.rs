//! Conversions: money of a merchant's that moves between its own wallets, at a rate.
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | what a body asks for |
//! | `create` | a conversion that somebody asks for, and its quote |
//! | `offer` | at which rate something could be exchanged now |
//! | `plan` | a conversion as the writer decides it |
//! | `auto` | converting what comes in |
//! | `sql`, `view` | rows, and what merchants see of them |
//! | `verify` | proving each conversion against the ledger |

mod auto;
mod create;
pub mod http;
mod offer;
mod plan;
mod request;
pub mod sql;
pub mod verify;
mod view;

pub use auto::AutoConversion;
pub use create::PLAYED;
pub use offer::{Offer, shift};
pub use plan::Plan;
pub use request::Wanted;
pub use sql::Conversion;
pub use view::ConversionView;
