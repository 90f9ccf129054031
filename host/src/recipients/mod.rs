//! Who is paid: saved beneficiaries, names on record, blacklists.
//!
//! Payouts, beneficiaries and name enquiry all need the same answer to "who is this?", so the
//! answer is found in one place.

mod beneficiary;
mod directory;
mod identity;
mod known;
pub mod names;
pub mod resolution;
mod resolve;
mod saving;
pub mod sql;
pub mod verify;

pub use beneficiary::{Beneficiary, BeneficiarySource, RecipientCorrection, Verification};
pub use directory::{Checked, RecipientDirectory};
pub use identity::{IdentityKey, account_hash};
pub use known::Known;
pub use resolve::{Question, Resolved, resolve};
pub use saving::Saving;
