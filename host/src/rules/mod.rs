//! Rule packs: which ones decide, what they are told, what they said.

mod assignment;
mod comparing;
pub mod facts;
mod fees;
mod fraud;
mod pack;
pub mod sql;
pub mod store;
pub mod tariff;
mod velocity;
pub mod verify;

pub use assignment::{
    AssignedPack, AssignedPacks, Assignment, Assignments, Missing, Packs, Role, Scope,
};
pub use comparing::{Compared, Comparing, comparing};
pub use facts::{PayoutFacts, PayoutKind};
pub use fees::{FeeFacts, Price};
pub use fraud::{Action, Assessment, Hit, PublicHit, Ruling, Verdict};
pub use pack::{About, OpenError, Pack, PackKind};
