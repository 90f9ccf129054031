//! What events keep of a payout: what changes about it, as it was then.
//!
//! The rest stands in the payout's terms. So the object is told and shown as it was, and nothing is
//! kept twice. Whoever changes what a payout looks like keeps the old way for events of before,
//! under its own number, because deliveries are rendered anew at each try and stay the same bytes.

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

/// What changes about a payout, as far as merchants see it. Names are short, and instants are
/// microseconds since it was made: there is one of these for every change of every payout.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(rename = "s")]
    status: String,
    /// Of its terms.
    #[serde(rename = "d")]
    digest: String,
    #[serde(rename = "r", skip_serializing_if = "Option::is_none")]
    rail_reference: Option<String>,
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    failure_code: Option<String>,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    failure_message: Option<String>,
    #[serde(rename = "f", skip_serializing_if = "Option::is_none")]
    funded: Option<Funded>,
    #[serde(rename = "n", skip_serializing_if = "Option::is_none")]
    correction: Option<String>,
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    #[serde(rename = "q", skip_serializing_if = "Option::is_none")]
    queued_after: Option<i64>,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    processing_after: Option<i64>,
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    completed_after: Option<i64>,
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
    let after = |at: Option<Moment>| at.map(|at| at.micros() - payout.created_at.micros());
    let kept = Kept {
        status: payout.status.to_string(),
        digest: payout.terms.digest(),
        rail_reference: payout.rail_reference.clone(),
        failure_code: payout.failure_code.clone(),
        failure_message: payout.failure_message.clone(),
        funded: payout.funded.clone(),
        correction: payout.correction.clone(),
        told: payout.told.clone(),
        queued_after: after(payout.queued_at),
        processing_after: after(payout.processing_at),
        completed_after: after(payout.completed_at),
    };
    format!("{KEPT}{}", serde_json::to_string(&kept).unwrap_or_default())
}

fn read(kept: &str) -> Option<Kept> {
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
    let made_at = payout.created_at.micros();
    let moment =
        |after: Option<i64>| after.map(|it| Moment::from_micros(made_at.saturating_add(it)));
    Some(Payout {
        terms: Arc::clone(&payout.terms),
        status: Status::parse(&kept.status)?,
        version: payout.version,
        round: payout.round,
        route: payout.route.clone(),
        rail_reference: kept.rail_reference,
        failure_code: kept.failure_code,
        failure_message: kept.failure_message,
        funded: kept.funded,
        correction: kept.correction,
        told: kept.told,
        queued_at: moment(kept.queued_after),
        processing_at: moment(kept.processing_after),
        completed_at: moment(kept.completed_after),
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
    let objects = objects(db, &events).await?;
    // Whoever reads the feed gets past what cannot be shown.
    let view = |(event, object): (StoredEvent, Option<String>)| {
        EventView::of(event, object.unwrap_or_else(|| "null".to_owned())).map_err(Problem::internal)
    };
    events.into_iter().zip(objects).map(view).collect()
}

/// The object that each of these events tells of, as JSON. None, and a line in the log, where its
/// payout is not there or cannot be read, or a later build wrote the event.
///
/// # Errors
/// The database cannot be read.
pub async fn objects(db: &Db, events: &[StoredEvent]) -> Result<Vec<Option<String>>, sqlx::Error> {
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
    let object = |event: &StoredEvent| {
        if !event.body.starts_with(KEPT_MARK) {
            return Some(event.body.clone());
        }
        let object = payouts.get(&event.object_id).and_then(|payout| json(payout, &event.body));
        if object.is_none() {
            // What it keeps may say how the money is claimed: nobody reads it in a log.
            let why = "its payout is not there or cannot be read, or another build wrote it";
            tracing::error!(event.id = event.id, why, "what an event tells of cannot be shown");
        }
        object
    };
    Ok(events.iter().map(object).collect())
}

#[cfg(test)]
mod tests {
    use crate::env::Env;
    use crate::fx::Rate;
    use crate::id::Id;
    use crate::money::{Currency, Minor};
    use crate::rails::RecipientFields;

    use super::super::model::{Costs, Funding, Terms};
    use super::*;

    fn at(text: &str) -> Moment {
        Moment::parse(text).expect("an instant")
    }

    fn terms() -> Terms {
        Terms {
            id: Id::from_text("c1".into()),
            merchant_id: Id::from_text("c2".into()),
            env: Env::Test,
            wallet_id: Id::from_text("c3".into()),
            batch_id: None,
            currency: Currency::parse("CAD").expect("a currency"),
            method: "interac".into(),
            costs: Costs {
                amount: Minor::new(1_000),
                fee: Minor::new(1),
                tax: Minor::ZERO,
                levy: Minor::ZERO,
            },
            beneficiary_id: Id::from_text("c4".into()),
            recipient_identity: "ada".into(),
            recipient_name: "ADA OBI".into(),
            recipient: RecipientFields::from_json(r#"{"email":"ada@example.com"}"#),
            sender: None,
            narration: Some("Invoice 7".into()),
            merchant_reference: Some("inv-7".into()),
            customer_reference: None,
            tariff: String::new(),
            charges: Vec::new(),
            hold: Some("This payout is being reviewed.".into()),
            scenario: None,
            maker: "c5".into(),
            resolution: None,
            receipt_to: None,
            funding: Some(Funding {
                wallet_id: Id::from_text("c6".into()),
                currency: Currency::parse("USD").expect("a currency"),
                shift: 0,
                most: None,
                quoted: Minor::new(740),
            }),
            created_at: at("2026-11-21T09:00:00Z"),
        }
    }

    /// Everything that changes about a payout is there, and each is different later.
    fn earlier_and_later() -> (Payout, Payout) {
        let funded = |sold| Funded {
            conversion_id: Id::from_text("c7".into()),
            rate: Rate::parse("1.35").expect("a rate"),
            sold: Minor::new(sold),
            bought: Minor::new(1_001),
            charges: Minor::new(1),
        };
        let of = |which: &str, status| Payout {
            status,
            rail_reference: Some(format!("reference {which}")),
            failure_code: Some(format!("code {which}")),
            failure_message: Some(format!("message {which}")),
            funded: Some(funded(if which == "one" { 741 } else { 742 })),
            correction: Some(format!(r#"{{"name":"{which}"}}"#)),
            told: Some(format!(r#"{{"open":{{"{which}":1}},"claim":{{"answer":"{which}"}}}}"#)),
            queued_at: Some(at("2026-11-21T09:00:00Z")),
            processing_at: Some(at(&format!("2026-11-21T09:0{}:00Z", which.len()))),
            completed_at: Some(at(&format!("2026-11-21T10:0{}:00Z", which.len()))),
            ..Payout::new(Arc::new(terms()))
        };
        (of("one", Status::Processing), of("later", Status::Paid))
    }

    #[test]
    fn an_event_shows_the_payout_as_it_was_told() {
        let (earlier, later) = earlier_and_later();
        let Data::Part { kept, render } = data(&earlier) else { panic!("a part") };
        assert_ne!(render(), PayoutView::json(&later));
        assert_eq!(render(), PayoutView::json(&earlier));
        assert_eq!(json(&later, &kept), Some(render()));
        assert_eq!(status(&kept), Some(Status::Processing));
        let bare = Payout::new(Arc::clone(&later.terms));
        assert_eq!(json(&later, &of(&bare)), Some(PayoutView::json(&bare)), "what is not there");
        // Neither of another build, nor broken.
        let broken = ["@2 {}", "@1 {}", "{}", ""];
        assert!(broken.iter().all(|kept| json(&later, kept).is_none() && status(kept).is_none()));
    }

    /// Whatever merchants see of the terms: changed behind the host's back, it contradicts the event.
    /// Whoever changes these texts keeps what makes them for events of before: see above.
    #[test]
    fn what_is_kept_and_what_is_shown_of_it_stays_what_it_was() {
        let (earlier, later) = earlier_and_later();
        let kept = of(&earlier);
        let shown = json(&later, &kept).expect("its JSON");
        insta::assert_snapshot!("the_first_form", format!("{kept}\n{shown}"));
    }

    #[test]
    fn the_digest_follows_what_merchants_see() {
        let changes: [fn(&mut Terms); 9] = [
            |it| it.wallet_id = Id::from_text("c9".into()),
            |it| it.method = "eft".into(),
            |it| it.costs.levy = Minor::new(1),
            |it| it.beneficiary_id = Id::from_text("c9".into()),
            |it| it.recipient_name = "ADA".into(),
            |it| it.recipient = RecipientFields::from_json(r#"{"email":"eve@example.com"}"#),
            |it| it.narration = None,
            |it| it.merchant_reference = Some("inv-8".into()),
            |it| it.funding = None,
        ];
        let known = terms().digest();
        for (number, change) in changes.iter().enumerate() {
            let mut changed = terms();
            change(&mut changed);
            assert_ne!(changed.digest(), known, "{number}");
        }
        assert_eq!(terms().digest(), known);
    }

    #[test]
    fn only_what_was_never_held_back_went_at_once() {
        let (paid, _) = earlier_and_later();
        let paid = Payout { version: 3, ..paid };
        assert!(went_at_once(&paid, Some((2, "payout.processing"))));
        assert!(!went_at_once(&paid, Some((1, QUEUED))), "it is written");
        assert!(!went_at_once(&paid, Some((2, QUEUED))), "somebody let it go");
        assert!(!went_at_once(&paid, Some((3, "payout.paid"))), "who knows");
        assert!(!went_at_once(&paid, None), "its events are gone");
        assert!(went_at_once(&Payout { version: 1, ..paid.clone() }, None));
        // Held in one month and rejected in the next: the first month is gone.
        let rejected = Payout { queued_at: None, version: 2, ..paid };
        assert!(!went_at_once(&rejected, Some((2, "payout.failed"))));
    }
}
