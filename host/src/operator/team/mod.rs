//! Merchants' teams: who belongs to them, how they sign in, and what proves that it is them.

pub mod invitations;
pub mod members;
pub mod one_time_codes;
pub mod sessions;

use crate::error::ErrorCode;

/// What each call may refuse, besides what every call may.
#[must_use]
pub fn errors() -> Vec<(&'static str, &'static [ErrorCode])> {
    [members::ERRORS, invitations::ERRORS, sessions::ERRORS, one_time_codes::ERRORS].concat()
}
