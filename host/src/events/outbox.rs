//! Events on their way out: for each endpoint that listens, a delivery, written in the transaction
//! that makes the event. What is sent follows from the event, and is not written down.
//!
//! The endpoints are read in that transaction, so none is missed. Fresh deliveries are handed
//! to this process's deliverer as soon as they are committed; for anyone else they are due only
//! when it has had the time to make them. What it does not take, or loses by dying, falls due
//! in the queue like everything else.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::{Render, RowChange, Table, int, text};
use crate::db::cell::Kind::{Int, Text};
use crate::db::cell::Named;
use crate::db::lookup::Lookup;
use crate::env::Env;
use crate::id::{DeliveryId, EndpointId, EventId, Id as _, IdGenerator, MerchantId};
use crate::ledger::{HookRows, NewRow, OutboxHook};

use super::{DISABLED, canonical, sql};

/// For how long a fresh delivery belongs to the process that wrote it: longer than it may wait there,
/// and an exchange takes, and the writing down of it.
pub(crate) const HEAD_START: Duration = Duration::from_secs(20);
/// How long it may wait there.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);

/// Who listens. They are not locked, lest events of one merchant wait for each other: whoever
/// deletes an endpoint waits for those who have read it.
static LISTENERS: Lookup = Lookup {
    name: "webhook_endpoints",
    key: "owner",
    columns: &[
        ("id", Text),
        ("events", Text),
        ("is_active", Int),
        ("is_ordered", Int),
        ("updated_at", Int),
    ],
    lock: false,
};

/// New deliveries.
pub static DELIVERIES: Table<NewDelivery> = Table {
    name: "webhook_deliveries",
    fixed: &[
        text("id", |delivery| delivery.id.as_str().into()),
        text("owner", |delivery| (&delivery.owner).into()),
        text("endpoint_id", |delivery| delivery.endpoint_id.as_str().into()),
        text("event_id", |delivery| delivery.event_id.as_ref().map(EventId::as_str).into()),
        int("event_number", |delivery| delivery.event_id.as_ref().map(EventId::number).into()),
        text("event_type", |delivery| (&delivery.event).into()),
        text("body", |delivery| (&delivery.own_body).into()),
        int("is_test", |delivery| delivery.is_test.into()),
        text("replayed_from_id", |delivery| (&delivery.replayed_from).into()),
        int("created_at", |delivery| delivery.created_at.into()),
        int("owner_number", |delivery| delivery.owner_number.into()),
        int("endpoint_number", |delivery| delivery.endpoint_id.number().into()),
        int("id_number", |delivery| delivery.id.number().into()),
    ],
    changing: &[
        text("status", |_| "pending".into()),
        int("attempts", |_| 0.into()),
        int("next_attempt_at", |delivery| {
            // Who tries an endpoint out sends at once, and once.
            let is_queued = !delivery.is_test || delivery.replayed_from.is_some();
            is_queued.then_some(delivery.created_at).into()
        }),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// A delivery's place in the queue.
#[derive(Clone, Debug)]
pub struct Place {
    /// The delivery.
    pub delivery_id: DeliveryId,
    /// To whom it goes.
    pub endpoint_id: EndpointId,
    /// The object that the event is about, where its earlier events go first.
    pub object_id: Option<String>,
    /// The event's number in the object; 0 without one.
    pub sequence: i64,
    /// When it is due.
    pub due_at: Moment,
}

/// Deliveries to be made.
pub static QUEUE: Table<Place> = Table {
    name: "webhook_queue",
    fixed: &[
        text("delivery_id", |place| place.delivery_id.as_str().into()),
        text("endpoint_id", |place| place.endpoint_id.as_str().into()),
        text("object_id", |place| (&place.object_id).into()),
        int("sequence", |place| place.sequence.into()),
    ],
    changing: &[
        int("due_at", |place| place.due_at.into()),
        int("lease_until", |_| 0.into()),
        int("fence", |_| 0.into()),
    ],
    on_conflict: None,
    is_sealed: false,
};

/// A delivery that can be made now.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The delivery's id.
    pub id: DeliveryId,
    /// The endpoint that hears of it.
    pub endpoint_id: EndpointId,
    /// The event's name in the endpoint's spelling.
    pub event: String,
    /// What is sent.
    pub body: String,
    /// How often it was tried before.
    pub attempts: i64,
    /// Whether it only tries the endpoint out.
    pub is_test: bool,
    /// The claim under which its result is written.
    pub fence: i64,
    /// The version of the endpoint that it was made for, or a later one.
    pub version: i64,
    /// Until when it may be begun: later, somebody else could claim it before it has ended.
    pub until: Moment,
}

/// Something for the deliverer.
#[derive(Debug)]
pub enum Handed {
    /// Deliveries that were just committed.
    Fresh(Vec<Ready>),
    /// An endpoint for which there is something in the queue now.
    Queued(EndpointId),
    /// An endpoint that is somewhere else now, or was switched on again: how it fared says nothing.
    Renewed(EndpointId),
    /// An endpoint has another address, other secrets, or is gone.
    Changed(EndpointId),
}

/// The way to this process's deliverer. What does not fit is found in the queue later.
pub type Handover = mpsc::Sender<Handed>;

/// Makes the way, and where it ends.
#[must_use]
pub fn handover() -> (Handover, mpsc::Receiver<Handed>) {
    mpsc::channel(limits::HANDED_OVER_MAX)
}

/// Makes deliveries out of every new event, in the transaction that writes it.
#[must_use]
pub fn hook(handover: Handover) -> OutboxHook {
    OutboxHook {
        of: sql::EVENTS.name,
        lookup: &LISTENERS,
        keys: |events| Ok(told(events)?.iter().map(Told::owner).collect()),
        run: Box::new(move |events, listeners, ids| {
            let mut out = Out::default();
            let mut by_owner: HashMap<&str, Vec<Named<'_>>> = HashMap::new();
            for listener in listeners {
                by_owner.entry(listener.text("owner")?).or_default().push(*listener);
            }
            for event in told(events)? {
                for listener in by_owner.get(&*event.owner()).into_iter().flatten() {
                    out.tell(&event, *listener, ids)?;
                }
            }
            let handover = handover.clone();
            Ok(HookRows {
                rows: out.rows,
                committed: Box::new(move || hand_over(&handover, out.handed)),
            })
        }),
    }
}

fn hand_over(handover: &Handover, handed: Vec<Handed>) {
    for handed in handed {
        // Full: the deliverer has enough to do, and finds this one in the queue.
        let _ = handover.try_send(handed);
    }
}

/// What a receiver reads of an event. Every try of a delivery renders it anew, and from the same
/// event the same.
#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    event: &'a str,
    created_at: Moment,
    env: &'a str,
    sequence: i64,
    data: &'a RawValue,
}

/// What of an event stands beside its object.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The event's id.
    pub id: &'a str,
    /// When the object changed.
    pub created_at: Moment,
    /// `test` or `live`.
    pub env: &'a str,
    /// The number of this change of the object, from 1.
    pub sequence: i64,
}

impl Head<'_> {
    /// The bytes that are sent, with the event's name in the receiver's spelling and the object as
    /// JSON; none where that cannot be read.
    #[must_use]
    pub fn body(self, name: &str, object: &str) -> Option<String> {
        let Self { id, created_at, env, sequence } = self;
        let data = serde_json::from_str(object).ok()?;
        serde_json::to_string(&Body { id, event: name, created_at, env, sequence, data }).ok()
    }
}

/// An event of which merchants are told, as it is written.
struct Told<'a> {
    object_id: &'a str,
    sequence: i64,
    id: &'a str,
    merchant: &'a str,
    env: &'a str,
    name: &'a str,
    body: &'a str,
    render: Option<&'a Render>,
    rendered: OnceCell<String>,
    created_at: Moment,
    owner_number: i64,
}

/// Those of the events that merchants are told of.
fn told<'a>(events: &[NewRow<'a>]) -> Result<Vec<Told<'a>>, sqlx::Error> {
    let mut told = Vec::new();
    for NewRow { row, render } in events {
        if let Some(body) = row.maybe_text("body")? {
            told.push(Told {
                object_id: row.text("object_id")?,
                sequence: row.int("sequence")?,
                id: row.text("id")?,
                merchant: row.text("merchant_id")?,
                env: row.text("env")?,
                name: row.text("type")?,
                body,
                render: *render,
                rendered: OnceCell::new(),
                created_at: Moment::from_micros(row.int("created_at")?),
                owner_number: row.int("owner_number")?,
            });
        }
    }
    Ok(told)
}

impl Told<'_> {
    fn owner(&self) -> String {
        format!("{}/{}", self.merchant, self.env)
    }

    /// The bytes that are sent.
    fn body(&self, name: &str) -> Option<String> {
        // Once, however many endpoints listen.
        let object = match self.render {
            Some(render) => self.rendered.get_or_init(|| render()),
            None => self.body,
        };
        let Self { id, created_at, env, sequence, .. } = *self;
        Head { id, created_at, env, sequence }.body(name, object)
    }
}

#[derive(Default)]
struct Out {
    rows: Vec<RowChange>,
    handed: Vec<Handed>,
}

impl Out {
    fn tell(
        &mut self,
        event: &Told<'_>,
        listener: Named<'_>,
        ids: &IdGenerator,
    ) -> Result<(), sqlx::Error> {
        let id = listener.text("id")?;
        // An endpoint does not hear that it was switched off itself.
        if listener.int("is_active")? == 0 || event.object_id == id {
            return Ok(());
        }
        let Some(name) = spelling(listener.text("events")?, event.name) else { return Ok(()) };
        let delivery = NewDelivery {
            id: ids.id(),
            owner: event.owner(),
            owner_number: event.owner_number,
            endpoint_id: EndpointId::from_text(id.to_owned()),
            event_id: Some(EventId::from_text(event.id.to_owned())),
            own_body: None,
            event: name,
            is_test: false,
            replayed_from: None,
            created_at: event.created_at,
        };
        self.rows.push(delivery.row());
        if listener.int("is_ordered")? == 0 {
            self.rows.push(delivery.queue_row(None, event.created_at.after(HEAD_START)));
            let Some(body) = event.body(&delivery.event) else { return Ok(()) };
            let ready = delivery.ready(body, listener.int("updated_at")?);
            match self.handed.last_mut() {
                Some(Handed::Fresh(fresh)) => fresh.push(ready),
                _ => self.handed.push(Handed::Fresh(vec![ready])),
            }
        } else {
            // Only the queue knows what has to go before it.
            let after = Some((event.object_id, event.sequence));
            self.rows.push(delivery.queue_row(after, event.created_at));
            self.handed.push(Handed::Queued(delivery.endpoint_id));
        }
        Ok(())
    }
}

/// The name under which an endpoint hears of an event, if it does. `events` is its list as JSON.
#[must_use]
pub fn spelling(events: &str, name: &str) -> Option<String> {
    if name == DISABLED {
        return Some(name.to_owned());
    }
    let wanted: Vec<String> = serde_json::from_str(events).unwrap_or_default();
    let found = wanted.iter().find(|wanted| canonical(wanted) == Some(name));
    match found {
        Some(found) => Some(found.clone()),
        None => wanted.iter().any(|wanted| wanted == "*").then(|| name.to_owned()),
    }
}

/// A delivery to be written.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// The delivery's id.
    pub id: DeliveryId,
    /// Merchant and environment in one.
    pub owner: String,
    /// The same as a number.
    pub owner_number: i64,
    /// The endpoint that hears of it.
    pub endpoint_id: EndpointId,
    /// The id of the event that it tells; none for a test.
    pub event_id: Option<EventId>,
    /// The event's name in the endpoint's spelling.
    pub event: String,
    /// What is sent, where that does not follow from the event: a test has none, and a replay may
    /// outlive its.
    pub own_body: Option<String>,
    /// Whether it only tries the endpoint out.
    pub is_test: bool,
    /// The delivery that it repeats.
    pub replayed_from: Option<String>,
    /// When it was written.
    pub created_at: Moment,
}

/// Merchant and environment in one, as endpoints and deliveries are found by.
#[must_use]
pub fn owner(merchant: &MerchantId, env: Env) -> String {
    format!("{merchant}/{env}")
}

impl NewDelivery {
    /// The delivery as a row for the writer.
    #[must_use]
    pub fn row(&self) -> RowChange {
        DELIVERIES.insert(self)
    }

    /// Its place in the queue; if it is a change of an object, of this number, after earlier ones.
    #[must_use]
    pub fn queue_row(&self, change: Option<(&str, i64)>, due_at: Moment) -> RowChange {
        QUEUE.insert(&Place {
            delivery_id: self.id.clone(),
            endpoint_id: self.endpoint_id.clone(),
            object_id: change.map(|(object, _)| object.to_owned()),
            sequence: change.map_or(0, |(_, sequence)| sequence),
            due_at,
        })
    }

    /// What the deliverer needs of it: what is sent, and the endpoint's version.
    #[must_use]
    pub fn ready(&self, body: String, version: i64) -> Ready {
        Ready {
            id: self.id.clone(),
            endpoint_id: self.endpoint_id.clone(),
            event: self.event.clone(),
            body,
            attempts: 0,
            is_test: self.is_test,
            fence: 0,
            version,
            until: self.created_at.after(BEGUN_WITHIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_hears_what_it_asked_for_in_its_own_spelling() {
        let heard = |events: &str, name| spelling(events, name);
        assert_eq!(heard(r#"["payout_paid"]"#, "payout.paid"), Some("payout_paid".into()));
        assert_eq!(heard(r#"["payout.paid"]"#, "payout.paid"), Some("payout.paid".into()));
        assert_eq!(heard(r#"["*"]"#, "payout.paid"), Some("payout.paid".into()));
        assert_eq!(heard(r#"["*", "payout_paid"]"#, "payout.paid"), Some("payout_paid".into()));
        assert_eq!(heard(r#"["payout.failed"]"#, "payout.paid"), None);
        assert_eq!(heard("[]", DISABLED), Some(DISABLED.into()));
    }
}
