//! Payouts: money out of a wallet to a recipient.
//!
//! | file | holds |
//! |---|---|
//! | `model` | statuses, changes, the one table of what can happen; pure |
//! | `request`, `view` | the body, and the object that merchants see |
//! | `create`, `cancel`, `quote`, `retrieve`, `timeline` | the merchant's calls |
//! | `review` | the operator's calls |
//! | `accept` | what the writer decides about a new one |
//! | `recipient`, `usage`, `booking` | whom it goes to, what it uses up, what it posts |
//! | `change` | handing a change to the writer |
//! | `dispatch`, `notice` | sending, asking, and hearing from networks |
//! | `attempt`, `evidence`, `sql` | the tables |

mod accept;
pub mod attempt;
mod booking;
mod cancel;
mod change;
mod create;
pub mod dispatch;
mod evidence;
pub mod http;
pub mod model;
mod notice;
mod quote;
mod recipient;
mod request;
mod retrieve;
pub mod review;
pub mod sql;
mod timeline;
mod usage;
pub mod verify;
mod view;

pub use notice::{Arrived, receive};
pub use retrieve::get;
pub use view::PayoutView;
