//! Batches: many payouts of one wallet that are made together, or not at all.
//!
//! Once made, its payouts are payouts like any other: each succeeds or fails by itself. What is kept
//! of a batch is what was asked for and what people decided; how far it has come follows from its
//! payouts.
//!
//! | file | holds |
//! |---|---|
//! | `model` | a batch, its stages, and what its payouts' statuses come to |
//! | `request` | the body, row by row |
//! | `findings` | what is wrong with rows, as it is told |
//! | `create`, `cancel` | the merchant's calls that change something |
//! | `retrieve` | finding one |
//! | `review` | approved, rejected or held by an operator |
//! | `complete` | telling that all payouts have ended |

mod cancel;
pub mod complete;
mod create;
mod findings;
pub mod http;
pub mod model;
mod request;
mod retrieve;
pub mod review;
pub mod sql;
pub mod verify;
mod view;

pub use request::{BULK_NAMES, CURRENCY};
pub use retrieve::get;
pub use view::BatchView;
