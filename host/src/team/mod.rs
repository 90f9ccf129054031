//! A merchant's team: members with roles, how they prove who they are, and their sessions.
//!
//! A member is invited, sets a password with the invitation, and signs in. A session ends by itself:
//! when it is too old, when nobody uses it, and with any change of its member's role, permissions,
//! password or standing.

pub mod directory;
pub mod log_ins;
pub mod member;
pub mod one_time;
pub mod password;
pub mod session;
pub mod sql;
pub mod verify;

use std::sync::Arc;

use crate::db::Db;
use crate::error::Problem;
use crate::id::IdGenerator;
use crate::keyring::Keyring;

use directory::Sessions;
use log_ins::LogIns;
pub use member::{Member, MemberStatus, Role};
use password::Passwords;
pub use session::{Session, SignedIn};

/// How members get in.
pub struct Access {
    /// Sessions, as requests look them up.
    pub sessions: Sessions,
    /// What compares passwords.
    pub passwords: Passwords,
    /// What members, or whoever tries to be one, got wrong.
    pub log_ins: LogIns,
    /// The same under addresses that no member has.
    pub strangers: LogIns,
}

impl Access {
    /// To the teams in this database.
    ///
    /// # Errors
    /// The hash function of passwords refuses its parameters.
    pub fn new(db: Db, keyring: Arc<Keyring>, ids: &IdGenerator) -> Result<Self, Problem> {
        let (sessions, passwords) = (Sessions::new(db, keyring), Passwords::new(ids)?);
        let (log_ins, strangers) = (LogIns::default(), LogIns::default());
        Ok(Self { sessions, passwords, log_ins, strangers })
    }
}
