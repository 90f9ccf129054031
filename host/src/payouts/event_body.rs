//! What events keep of a payout: what changes about it, as it was then.
//!
//! The rest stands in the payout's terms. So the object is told and shown as it was, and nothing is
//! kept twice. Whoever changes what a payout looks like keeps the old way for events of before,
//! under its own number; deliveries keep the very bytes.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::db::Db;
use crate::error::Problem;
use crate::events::sql::StoredEvent;
use crate::events::{Data, EventView, KEPT_MARK};

use super::model::{Funded, Payout, QUEUED, Status};
use super::sql;
use super::view::PayoutView;

/// The present way, before what is kept.
const KEPT: &str = "@1 ";
const _: () = assert!(KEPT.as_bytes()[0] == KEPT_MARK as u8, "what is kept begins with the mark");

/// What changes about a payout, as far as merchants see it. Instants are microseconds.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    status: Cow<'a, str>,
    /// Of its terms.
    digest: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rail_reference: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_code: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_message: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    funded: Option<Funded>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correction: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queued_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processing_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<i64>,
}

/// Whether a payout went at once. Nobody is told of that, and it follows from the payout: so the
/// first event of such a payout is not written, and its history begins with the second. Whatever
/// waited for a person first has its second event say that it was queued. `first` is the sequence
/// and the name of the first event that there is.
pub(super) fn went_at_once(payout: &Payout, first: Option<(i64, &str)>) -> bool {
    let is_second = |(sequence, name): (i64, &str)| sequence == 2 && name != QUEUED;
    payout.queued_at == Some(payout.created_at) && first.map_or(payout.version == 1, is_second)
}

/// A payout as an event tells of it.
pub(super) fn data(payout: &Payout) -> Data {
    let told = payout.clone();
    Data::Part { kept: of(payout), render: Arc::new(move || PayoutView::json(&told)) }
}

/// What an event keeps of a payout as it is.
pub(super) fn of(payout: &Payout) -> String {
    let text = |text: &'_ Option<String>| text.clone().map(Cow::Owned);
    let kept = Kept {
        status: payout.status.as_str().into(),
        digest: payout.terms.digest().into(),
        rail_reference: text(&payout.rail_reference),
        failure_code: text(&payout.failure_code),
        failure_message: text(&payout.failure_message),
        funded: payout.funded.clone(),
        correction: text(&payout.correction),
        told: text(&payout.told),
        queued_at: payout.queued_at.map(Moment::micros),
        processing_at: payout.processing_at.map(Moment::micros),
        completed_at: payout.completed_at.map(Moment::micros),
    };
    format!("{KEPT}{}", serde_json::to_string(&kept).unwrap_or_default())
}

fn read(kept: &str) -> Option<Kept<'_>> {
    serde_json::from_str(kept.strip_prefix(KEPT)?).ok()
}

/// The status that an event tells.
pub(super) fn status(kept: &str) -> Option<Status> {
    Status::parse(&read(kept)?.status)
}

/// A payout as an event tells of it, whatever became of it since. What merchants do not see is as it
/// is now.
fn as_told(payout: &Payout, kept: &str) -> Option<Payout> {
    let kept = read(kept)?;
    let moment = |at: Option<i64>| at.map(Moment::from_micros);
    let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    Some(Payout {
        terms: Arc::clone(&payout.terms),
        status: Status::parse(&kept.status)?,
        version: payout.version,
        round: payout.round,
        route: payout.route.clone(),
        rail_reference: text(kept.rail_reference),
        failure_code: text(kept.failure_code),
        failure_message: text(kept.failure_message),
        funded: kept.funded,
        correction: text(kept.correction),
        told: text(kept.told),
        queued_at: moment(kept.queued_at),
        processing_at: moment(kept.processing_at),
        completed_at: moment(kept.completed_at),
    })
}

/// A payout as an event tells of it, as JSON.
pub(super) fn json(payout: &Payout, kept: &str) -> Option<String> {
    as_told(payout, kept).map(|told| PayoutView::json(&told))
}

/// Events as they are shown.
///
/// # Errors
/// The database cannot be read, or an object is no JSON.
pub async fn views(db: &Db, events: Vec<StoredEvent>) -> Result<Vec<EventView>, Problem> {
    let is_part = |event: &&StoredEvent| event.body.starts_with(KEPT_MARK);
    let ids: BTreeSet<&str> =
        events.iter().filter(is_part).map(|event| event.object_id.as_str()).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let payouts: HashMap<String, Payout> = match ids.is_empty() {
        true => HashMap::new(),
        false => {
            let payouts = sql::list_payouts_by_id(db, &ids).await?;
            payouts.into_iter().map(|payout| (payout.id.to_string(), payout)).collect()
        }
    };
    let view = |mut event: StoredEvent| {
        let mut data = std::mem::take(&mut event.body);
        if data.starts_with(KEPT_MARK) {
            let payout = payouts.get(&event.object_id);
            // What it keeps may say how the money is claimed: nobody reads it in a log. Whoever reads
            // the feed gets past it.
            let unshown = || {
                let why = "its payout is not there or cannot be read, or another build wrote it";
                tracing::error!(event.id = event.id, why, "an event is shown without its object");
                "null".to_owned()
            };
            data = payout.and_then(|payout| json(payout, &data)).unwrap_or_else(unshown);
        }
        EventView::of(event, data).map_err(Problem::internal)
    };
    events.into_iter().map(view).collect()
}
