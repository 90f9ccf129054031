//! Rule packs: which ones decide, what they are told, what they said.

mod comparing;
pub mod facts;
mod fees;
mod fraud;
mod pack;
mod seat;
pub mod shelf;
pub mod sql;
mod velocity;

pub use comparing::{Compared, Comparing, comparing};
pub use facts::{PayoutFacts, PayoutKind};
pub use fees::{FeeFacts, Price, PriceLine};
pub use fraud::{Action, Assessment, Hit, Ruling, Verdict};
pub use pack::{About, OpenError, Pack, PackKind};
pub use seat::{Occupant, Packs, Role, Scope, Seat, Seating, Seats};
