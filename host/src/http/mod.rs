//! HTTP as every call needs it: bodies, pages, limits, refusals, and what surrounds a handler.

pub mod body;
pub mod idempotency;
pub mod limiter;
pub mod page;
pub mod peer;
pub mod places;
pub mod problem;
pub mod request_log;
pub mod shell;

pub use body::Body;
pub use idempotency::IdempotencyKey;
pub use page::{Page, PageQuery, Query};
