//! Rule packs: which one is active, what it is told, what it decided.

mod fees;
mod pack;

pub use fees::{FeeFacts, PayoutKind, Price, PriceLine};
pub use pack::{About, OpenError, Pack, Packs};
