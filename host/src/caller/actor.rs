//! Whoever calls `/admin/v1`: an operator of the platform, or a member of a merchant's team.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde_json::Value;

use crate::audit;
use crate::auth::Permission;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;
use crate::team::{Member, Role, SignedIn};

/// The name of the operator whose token stands in the configuration without one.
pub const OPERATOR: &str = "operator";

/// Somebody who acts, and is named by the audit log. A call that takes one of these is open to
/// members of teams, and says itself what they need.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Who it is: `operator`, a name from the configuration, or a member's id.
    pub name: String,
    /// Where the request comes from.
    pub address: IpAddr,
    /// The session of a member; none of an operator.
    pub session: Option<Arc<SignedIn>>,
}

/// An operator of the platform: an [`Actor`] that is no member of a team. A call that takes one is
/// closed to members.
#[derive(Clone, Debug)]
pub struct Operator(Actor);

impl Actor {
    /// The member, where it is one.
    #[must_use]
    pub fn member(&self) -> Option<&Member> {
        self.session.as_ref().map(|session| &session.member)
    }

    /// The merchant to whose things a member is confined; none for an operator.
    #[must_use]
    pub fn merchant(&self) -> Option<&MerchantId> {
        self.member().map(|member| &member.merchant_id)
    }

    /// Whether what is this merchant's is theirs to see.
    #[must_use]
    pub fn sees(&self, merchant: &MerchantId) -> bool {
        self.merchant().is_none_or(|own| own == merchant)
    }

    /// Refuses a member without this permission; an operator has every one.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn require(&self, permission: Permission) -> Result<(), Problem> {
        match self.member().is_none_or(|member| member.may(permission)) {
            true => Ok(()),
            false => Err(permission.missing_of_member()),
        }
    }

    /// Refuses members who do not own the account.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn require_owner(&self) -> Result<(), Problem> {
        match self.member().is_none_or(|member| member.role == Role::Owner) {
            true => Ok(()),
            false => {
                let message = "Only an owner, or the operator, may do this.";
                Err(Problem::because(ErrorCode::PermissionDenied, message))
            }
        }
    }

    /// Refuses a member who has not proved who they are for a while: for what is dangerous.
    ///
    /// # Errors
    /// `recent_login_required`.
    pub fn require_recent(&self, now: Moment) -> Result<(), Problem> {
        match self.session.as_ref().is_none_or(|session| session.is_recent(now)) {
            true => Ok(()),
            false => Err(Problem::new(ErrorCode::RecentLoginRequired)),
        }
    }

    /// What it did, for the audit log.
    #[must_use]
    pub fn did(&self, done: Done<'_>) -> audit::Change {
        let (subject_type, subject_id) = done.subject;
        audit::Change {
            actor: self.name.clone(),
            address: self.address.to_string(),
            action: done.action,
            subject_type,
            subject_id: subject_id.to_owned(),
            before: done.before,
            after: done.after,
        }
    }
}

/// What was done, for the audit log.
pub struct Done<'a> {
    /// What the audit log calls it.
    pub action: &'static str,
    /// The kind and the id of what it was done to.
    pub subject: (&'static str, &'a str),
    /// How that was before; nothing where it is new.
    pub before: Option<Value>,
    /// How it is now.
    pub after: Option<Value>,
}

impl Operator {
    /// The host itself, where it acts without being asked.
    #[must_use]
    pub fn host() -> Self {
        let address = IpAddr::V6(Ipv6Addr::LOCALHOST);
        Self(Actor { name: "host".to_owned(), address, session: None })
    }
}

impl Deref for Operator {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.0
    }
}

impl From<Operator> for Actor {
    fn from(operator: Operator) -> Self {
        operator.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Actor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let actor = parts.extensions.get::<Self>().cloned();
        actor.ok_or_else(|| Problem::new(ErrorCode::Unauthorized))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let actor = Actor::from_request_parts(parts, state).await?;
        match actor.session {
            None => Ok(Self(actor)),
            Some(_) => {
                let message = "This is for operators of the platform, not for a merchant's team.";
                Err(Problem::because(ErrorCode::PermissionDenied, message))
            }
        }
    }
}

/// A member of a team: for what they do about themselves.
#[derive(Clone, Debug)]
pub struct Myself {
    /// The same as an actor.
    pub actor: Actor,
    /// Their session.
    pub signed_in: Arc<SignedIn>,
}

impl<S: Send + Sync> FromRequestParts<S> for Myself {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let actor = Actor::from_request_parts(parts, state).await?;
        match actor.session.clone() {
            Some(signed_in) => Ok(Self { actor, signed_in }),
            None => {
                let message = "This is for members of a team, who sign in; operators have tokens.";
                Err(Problem::because(ErrorCode::PermissionDenied, message))
            }
        }
    }
}
