//! Calls of `/admin/v1` that may be repeated under an idempotency key.

use axum::response::Response;

use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey, Replied, replied};
use crate::ledger::{Done, Reply, Reservation};

use super::Actor;

/// The idempotency key of a call that moves money, if it has one: it counts for this actor and this
/// path only.
#[must_use]
pub fn once<T>(
    actor: &Actor,
    key: Option<IdempotencyKey>,
    path: &str,
    body: &Body<T>,
) -> Option<Reservation> {
    key.map(|key| Reservation {
        key: format!("admin/{}{path}/{}", actor.name, key.as_str()),
        fingerprint: body.fingerprint(path),
        subject: String::new(),
        resource_id: String::new(),
        expires: false,
    })
}

/// What a call that may be repeated is answered.
///
/// # Errors
/// The first request with this key is still under way, and has no reply yet.
pub fn answer<T>(done: Done<T>, reply: impl Fn(&T) -> Reply) -> Result<Response, Problem> {
    let (reply, is_replay) = match done {
        Done::Now(result) => (reply(&result), false),
        Done::Before { reply: Some(reply), .. } => (reply, true),
        Done::Before { reply: None, .. } => return Err(Problem::new(ErrorCode::StateConflict)),
    };
    Ok(replied(Replied { status: reply.status, body: reply.body, is_replay }))
}
