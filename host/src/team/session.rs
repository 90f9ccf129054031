//! Sessions of members: how long they last, and when somebody proved who they are.

use std::net::IpAddr;

use crate::clock::Moment;
use crate::config::limits;
use crate::id::{IdGenerator, SessionId};

use super::member::{Member, MemberStatus};

/// What a session's token begins with.
pub const TOKEN_PREFIX: &str = "rhs_";

/// A new token, which is shown once.
#[must_use]
pub fn new_token(ids: &IdGenerator) -> String {
    format!("{TOKEN_PREFIX}{}", ids.secret())
}

/// A session, without its token.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The session's id, which is no secret.
    pub id: SessionId,
    /// Whose it is.
    pub member_id: crate::id::MemberId,
    /// The generation of its member that it was begun in; it ends with it.
    pub generation: i64,
    /// Where it was begun.
    pub address: IpAddr,
    /// Whether a one-time code was given.
    pub has_otp: bool,
    /// When it was begun.
    pub created_at: Moment,
    /// When it was last used, to the minute.
    pub seen_at: Moment,
    /// When its member last gave a password or a code.
    pub confirmed_at: Moment,
    /// When its member ended it.
    pub ended_at: Option<Moment>,
}

impl Session {
    /// When it ends, if nobody uses it from now on.
    #[must_use]
    pub fn expires_at(&self) -> Moment {
        let idle = self.seen_at.after(limits::SESSION_IDLE_MAX);
        idle.min(self.created_at.after(limits::SESSION_MAX))
    }

    /// Whether it is still good for its member, as they are now.
    #[must_use]
    pub fn is_good(&self, member: &Member, now: Moment) -> bool {
        self.ended_at.is_none()
            && self.generation == member.generation
            && member.status == MemberStatus::Active
            && now < self.expires_at()
    }
}

/// A session and its member, as they were looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedIn {
    /// The session.
    pub session: Session,
    /// Whose it is.
    pub member: Member,
}

impl SignedIn {
    /// Whether its member proved who they are a short while ago.
    #[must_use]
    pub fn is_recent(&self, now: Moment) -> bool {
        now < self.session.confirmed_at.after(limits::RECENT_LOG_IN)
    }
}
