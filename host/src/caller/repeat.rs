//! Calls of `/admin/v1` that may be repeated under an idempotency key.

use axum::response::Response;

use crate::db::Db;
use crate::error::{ErrorCode, Problem};
use crate::http::{Body, IdempotencyKey, Replied, replied};
use crate::ledger::{Done, Reply, Reservation, replay};

use super::Actor;

/// The idempotency key of a call that moves money, if it has one: it counts for this path, whichever
/// operator repeats it, or member of the same team.
#[must_use]
pub fn once<T>(
    actor: &Actor,
    key: Option<IdempotencyKey>,
    path: &str,
    body: &Body<T>,
) -> Option<Reservation> {
    let team = actor.merchant().map_or("operators", |merchant| merchant.as_str());
    key.map(|key| Reservation {
        key: format!("admin/{team}{path}/{}", key.as_str()),
        fingerprint: body.fingerprint(path),
        subject: String::new(),
        resource_id: String::new(),
        expires: false,
    })
}

/// The same for asking that it be carried out: another person's asking is another one.
#[must_use]
pub fn asked_once(actor: &Actor, once: &Reservation) -> Reservation {
    // A line break stands in no key.
    Reservation { key: format!("{}\n{}", once.key, actor.name), ..once.clone() }
}

/// What came of it before, if it was carried out, or this actor has asked for it.
///
/// # Errors
/// The key was used for something else; the database cannot be read.
pub async fn before<T>(
    db: &Db,
    actor: &Actor,
    once: Option<&Reservation>,
) -> Result<Option<Done<T>>, Problem> {
    let Some(once) = once else { return Ok(None) };
    let asked = asked_once(actor, once);
    match replay(db, once).await {
        Ok(None) => replay(db, &asked).await,
        // Another one has asked for the same in other words.
        Err(conflict) if conflict.code() == ErrorCode::IdempotencyKeyConflict => {
            replay(db, &asked).await?.ok_or(conflict).map(Some)
        }
        carried_out => carried_out,
    }
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
