//! What deliveries send: their own body, or what follows from their events.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::clock::Moment;
use crate::db::Db;
use crate::events::outbox::Body;
use crate::events::sql::StoredEvent;
use crate::payouts::event_body;

/// What a row says of what its delivery sends.
pub(super) enum Source {
    /// This.
    Own(String),
    /// What this event tells, under the name that the endpoint knows.
    Event(StoredEvent, String),
    /// Nothing: its event is not there.
    Missing,
}

/// Columns that [`Source::of`] reads: of a delivery `d`, and of its event [`EVENT`].
pub(super) const COLUMNS: &str = "d.body, d.event_type, v.id AS told_id, v.object_id AS told_of, \
    v.type AS told_type, v.sequence AS told_sequence, v.env AS told_env, v.body AS told_body, \
    v.created_at AS told_at";

/// A delivery's event `v`, found among those of whoever owns the endpoint `e`.
pub(super) const EVENT: &str = "LEFT JOIN events v ON d.body IS NULL \
    AND v.owner_number = e.owner_number AND v.id_number = d.event_number AND v.id = d.event_id \
    AND v.merchant_id = e.merchant_id AND v.env = e.env AND v.body IS NOT NULL";

impl Source {
    /// Read from a row of [`COLUMNS`].
    pub(super) fn of(row: &AnyRow) -> Result<Self, sqlx::Error> {
        if let Some(body) = row.try_get("body")? {
            return Ok(Self::Own(body));
        }
        let Some(id) = row.try_get("told_id")? else { return Ok(Self::Missing) };
        let event = StoredEvent {
            id,
            object_id: row.try_get("told_of")?,
            name: row.try_get("told_type")?,
            sequence: row.try_get("told_sequence")?,
            env: row.try_get("told_env")?,
            body: row.try_get("told_body")?,
            created_at: Moment::from_micros(row.try_get("told_at")?),
        };
        Ok(Self::Event(event, row.try_get("event_type")?))
    }
}

/// The bytes that each of these deliveries sends, whenever and by whichever host. None where its
/// event is not there or cannot be shown.
pub(super) async fn bodies(db: &Db, of: Vec<Source>) -> Result<Vec<Option<String>>, sqlx::Error> {
    let events: Vec<StoredEvent> = of
        .iter()
        .filter_map(|source| match source {
            Source::Event(event, _) => Some(event.clone()),
            Source::Own(_) | Source::Missing => None,
        })
        .collect();
    let mut objects = event_body::objects(db, &events).await?.into_iter();
    let body = |source| match source {
        Source::Own(body) => Some(body),
        Source::Event(event, name) => {
            objects.next().flatten().and_then(|it| told(&event, &name, &it))
        }
        Source::Missing => None,
    };
    Ok(of.into_iter().map(body).collect())
}

fn told(event: &StoredEvent, name: &str, object: &str) -> Option<String> {
    let body = Body {
        id: &event.id,
        event: name,
        created_at: event.created_at,
        env: &event.env,
        sequence: event.sequence,
        data: serde_json::from_str(object).ok()?,
    };
    Some(body.text())
}
