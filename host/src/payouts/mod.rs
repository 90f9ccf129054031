//! Payouts: money out of a wallet to a recipient.
//!
//! | file | holds |
//! |---|---|
//! | `model`, `terms` | statuses, changes, the one table of what can happen; what never changes; pure |
//! | `request`, `view` | the body, and the object that merchants see |
//! | `draft` | all that is known of a new one before its wallet is locked |
//! | `create`, `cancel`, `quote`, `retrieve`, `timeline` | the merchant's calls |
//! | `review`, `resolve` | the operator's calls, and decisions about cases |
//! | `accept` | what the writer decides about a new one |
//! | `reply`, `event_body` | what a repeat of the request is answered; what events keep of it |
//! | `recipient`, `costs`, `usage`, `booking` | whom it goes to, what it costs and uses up, what it posts |
//! | `across`, `fx` | paying out of another currency: the arithmetic, and buying what is needed |
//! | `change` | handing a change to the writer |
//! | `contradiction` | the case where a bank contradicts the books |
//! | `transfer` | payouts as the engine that moves money out sees them |

mod accept;
pub mod across;
mod booking;
mod cancel;
pub mod change;
mod contradiction;
mod costs;
mod create;
mod draft;
pub mod event_body;
mod fx;
pub mod http;
pub mod model;
mod quote;
mod receipt;
mod recipient;
mod reply;
pub mod request;
mod resolve;
mod retrieve;
pub mod review;
pub mod sql;
mod status;
mod terms;
mod timeline;
mod transfer;
mod usage;
pub mod verify;
mod view;

pub use accept::{Verdict, compare};
pub use change::changing;
pub use draft::{Deciding, Draft, Named, WithTariff, prepare};
pub use resolve::{Accompanied, resolve};
pub use retrieve::{get, seen};
pub use transfer::PayoutTransfers;
pub use view::PayoutView;
