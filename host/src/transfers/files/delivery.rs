//! Delivering a file: its very bytes, and never others.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;

use crate::cases::CaseKind;
use crate::config::limits;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::ReadyRoute;
use crate::rails::granted::scenario_header;
use crate::wasm::rail::{Broken, Called, Delivery, File, Money, Presence, Refusal};

use super::super::Transfers;
use super::super::attempt::{self, Attempt};
use super::super::finding::{Earlier, reached};
use super::super::intents::Intent;
use super::super::order::{Feature, Order};
use super::super::strangers::presentable;
use super::feeds::due_soon;
use super::table::{FileState, Lease, PaymentFile};
use super::{CHUNK, Next, claims, orders, table, timetable, transport};

/// The code of a file whose delivery was answered with something else than that it was taken.
const ANSWERED: &str = "answered";

impl Transfers {
    /// Delivers a file, once it is durable that a byte may leave.
    pub(super) async fn deliver<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        file: &mut PaymentFile,
    ) -> Result<Next, Problem> {
        let now = self.now();
        if route.route.is_paused {
            return self.kept_back(route, file, "its route is paused").await;
        }
        if let Some((why, pause)) = self.obstacle(route, file).await? {
            self.kept_back(route, file, &why).await?;
            return Ok(Next::At(now.after(pause)));
        }
        let payments = self.living(feature, file).await?;
        let living = payments.iter().filter(|(attempt, _)| attempt.network_id.is_some()).count();
        if i64::try_from(living).unwrap_or(i64::MAX) < file.entries {
            return self.without_ended(route, file).await;
        }
        if file.env == Env::Live {
            self.intend_file(&payments).await?;
        }
        let scenario = payments.iter().find_map(|(_, order)| order.scenario.as_deref());
        let content = table::content(self.db.pool(), &self.keyring, file).await?;
        let as_it_was = (file.state, file.sent_at, file.first_sent_at, file.deliveries);
        (file.state, file.sent_at) = (FileState::Sending, Some(now));
        file.first_sent_at = file.first_sent_at.or(Some(now));
        file.deliveries += 1;
        table::save(&self.db, file, Lease::Kept).await?;
        let put_off = |file: &mut PaymentFile| {
            (file.state, file.sent_at, file.first_sent_at, file.deliveries) = as_it_was;
            Ok(Next::At(now.after(limits::SEND_LATER)))
        };
        // The database may have moved while this was written down.
        if file.env == Env::Live && self.quarantine.is_closed() {
            return put_off(file);
        }
        let grant = route.grant(now, scenario_header(scenario), Money::MayMove);
        let called = transport::deliver(route, &grant, &bytes(file, content)).await;
        if file.env == Env::Live {
            self.lanes.note(&route.route.id, reached(&called));
        }
        if let Err(Broken::Crowded) = called.result {
            return put_off(file);
        }
        let had_left = file.may_have_left;
        file.may_have_left |= called.may_have_moved_money;
        file.copies += i64::from(called.may_have_moved_money);
        let before = if had_left { Earlier::Left } else { Earlier::Nothing };
        let came = judge(&called, before, repeats(route));
        tracing::info!(file.id = %file.id, deliveries = file.deliveries, came = came.word(), "delivered a file");
        Ok(match came {
            Came::Taken => {
                (file.state, file.message) = (FileState::Delivered, None);
                due_soon(&self.db, &file.route_id, now).await?;
                Next::At(self.acknowledged_by(route, file)?)
            }
            Came::Refused(Refusal { code, message }) => {
                self.refused(file, (&code, &message)).await?;
                return Err(Problem::new(crate::error::ErrorCode::StateConflict));
            }
            Came::NotTaken(why) => {
                (file.state, file.message) = (FileState::Assembled, Some(presentable(&why)));
                if self.acknowledged_by(route, file)? <= now {
                    self.undelivered(file).await?;
                }
                Next::At(now.after(backoff(file.deliveries)))
            }
            Came::Unclear(why) => {
                (file.state, file.message) = (FileState::Unclear, Some(presentable(&why)));
                // Something lies there under its name already, for all that is known.
                let is_answered = called.exchanges.last().is_some_and(|it| it.result.is_ok());
                file.code = is_answered.then(|| ANSWERED.to_owned());
                Next::At(now.after(limits::FILE_LOOK_AFTER))
            }
        })
    }

    /// Some payments have ended since the file was made, and would be made all the same.
    async fn without_ended(
        &self,
        route: &Arc<ReadyRoute>,
        file: &mut PaymentFile,
    ) -> Result<Next, Problem> {
        if file.may_have_left {
            return self.kept_back(route, file, "payments in it have ended meanwhile").await;
        }
        file.state = FileState::Closed;
        Ok(Next::Go)
    }

    /// The payments in a file that have not ended.
    async fn living<F: Feature>(
        &self,
        feature: &F,
        file: &PaymentFile,
    ) -> Result<Vec<(Attempt, Order)>, Problem> {
        let joined = attempt::list_in_file(self.db.pool(), &file.id).await?;
        let payments = orders(feature, joined).await?.into_iter();
        payments.map(|(attempt, order)| order.map(|order| (attempt, order))).collect()
    }

    /// What keeps a live file back by itself, and for how long.
    async fn obstacle(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
    ) -> Result<Option<(String, Duration)>, Problem> {
        if file.env == Env::Test {
            return Ok(None);
        }
        if let Some(why) = route.missing() {
            return Ok(Some((why.to_owned(), limits::FILE_HELD_POLL)));
        }
        if claims::is_contradicted(self.db.pool(), &route.route.id).await? {
            let why = "its network contradicts itself about another file: resolve that case";
            return Ok(Some((why.to_owned(), limits::FILE_HELD_POLL)));
        }
        let admitted = self.lanes.admit(&route.route.id);
        Ok(admitted.err().map(|pause| ("its network does not answer".to_owned(), pause)))
    }

    /// Writes every payment of a live file to the journal outside the database: what is not written
    /// down does not leave.
    async fn intend_file(&self, payments: &[(Attempt, Order)]) -> Result<(), Problem> {
        for chunk in payments.chunks(CHUNK) {
            let now = self.now();
            let intents: Vec<_> =
                chunk.iter().map(|(attempt, order)| Intent::of(order, attempt, now)).collect();
            let written = intents.iter().map(|intent| self.intents.record(intent));
            try_join_all(written).await.map_err(Problem::internal)?;
        }
        Ok(())
    }

    /// Looks for a file of which nobody knows whether it was delivered. That it is not there proves
    /// nothing: it may have been fetched already.
    pub(super) async fn look(
        &self,
        route: &Arc<ReadyRoute>,
        file: &mut PaymentFile,
    ) -> Result<Next, Problem> {
        let now = self.now();
        if file.state == FileState::Sending {
            // Whoever delivered it did not come back.
            (file.state, file.may_have_left) = (FileState::Unclear, true);
            file.copies += 1;
            table::save(&self.db, file, Lease::Kept).await?;
        }
        let content = table::content(self.db.pool(), &self.keyring, file).await?;
        let grant = route.grant(now, Vec::new(), Money::Stays);
        let called = transport::look(route, &grant, &bytes(file, content)).await;
        let found = called.result.unwrap_or_else(|broken| Presence::Unknown(broken.to_string()));
        due_soon(&self.db, &file.route_id, now).await?;
        match found {
            Presence::Present if file.code.as_deref() == Some(ANSWERED) => {
                file.message = Some("something lies there under its name".to_owned());
                self.unacknowledged(file).await?;
            }
            Presence::Present => {
                (file.state, file.message) = (FileState::Delivered, None);
                return Ok(Next::At(self.acknowledged_by(route, file)?));
            }
            Presence::Absent => file.message = Some("it does not lie there".to_owned()),
            Presence::Unknown(why) => file.message = Some(presentable(&why)),
        }
        let deadline = self.acknowledged_by(route, file)?;
        if deadline <= now {
            self.unacknowledged(file).await?;
        }
        let elapsed = file.sent_at.map_or(Duration::ZERO, |sent| now.since(sent));
        let pause = elapsed.clamp(limits::FILE_LOOK_AFTER, limits::FILE_RETRY);
        Ok(Next::At(now.after(pause)))
    }

    /// The network has a file and does not say what it makes of it: a person is told.
    pub(super) async fn overdue(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
    ) -> Result<Next, Problem> {
        let (now, deadline) = (self.now(), self.acknowledged_by(route, file)?);
        if deadline > now {
            return Ok(Next::At(deadline));
        }
        self.unacknowledged(file).await?;
        Ok(Next::At(now.after(limits::UNANSWERED_MAX)))
    }

    /// A file cannot be delivered: a person is told, and whether anything of it has left.
    async fn undelivered(&self, file: &PaymentFile) -> Result<(), Problem> {
        match (file.may_have_left, &file.message) {
            (false, Some(why)) => self.stuck(file, why).await,
            _ => self.unacknowledged(file).await,
        }
    }

    /// Tells a person of a file of which its network may have a copy, and says nothing.
    pub(super) async fn unacknowledged(&self, file: &PaymentFile) -> Result<(), Problem> {
        let name = file.name.as_deref().unwrap_or_default();
        let how = match file.state {
            FileState::Delivered => "was delivered over",
            _ => "may have been delivered over",
        };
        let summary = format!("{name} {how} {}, and nobody acknowledges it.", file.route);
        let evidence = serde_json::json!({
            "name": name,
            "identity": file.identity,
            "entries": file.entries,
            "message": file.message,
        });
        let said = format!("{} deliveries", file.deliveries);
        self.file_case(file, (CaseKind::FileUnacknowledged, &said, summary), evidence).await
    }

    /// Until when a file's network should have acknowledged it.
    pub(super) fn acknowledged_by(
        &self,
        route: &ReadyRoute,
        file: &PaymentFile,
    ) -> Result<crate::clock::Moment, Problem> {
        let within = Duration::from_secs(timetable(route)?.terms.acknowledged_within_s);
        Ok(file.first_sent_at.unwrap_or(file.closes_at).after(within))
    }
}

/// What two copies under one name are to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeats {
    /// One file, as the declaration says.
    AreOne,
    /// Two, for all that is known.
    AreMore,
}

/// What the rail declares holds for what it delivers itself.
pub(super) fn repeats(route: &ReadyRoute) -> Repeats {
    let are_one = route.timetable().is_some_and(|it| it.terms.idempotent_delivery);
    match are_one && route.transport.deliver_to().is_none() {
        true => Repeats::AreOne,
        false => Repeats::AreMore,
    }
}

/// What came of a delivery.
#[derive(Debug)]
enum Came {
    Taken,
    Refused(Refusal),
    NotTaken(String),
    Unclear(String),
}

impl Came {
    /// One word for the log.
    const fn word(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refused(_) => "refused",
            Self::NotTaken(_) => "not taken",
            Self::Unclear(_) => "unclear",
        }
    }
}

/// A rail is believed of a file only as far as its call that moves money left.
fn judge(called: &Called<Delivery>, before: Earlier, repeats: Repeats) -> Came {
    let (left, had_left) = (called.may_have_moved_money, before == Earlier::Left);
    match &called.result {
        Ok(Delivery::Taken) if left => Came::Taken,
        // Of an earlier copy that may be there a refusal says nothing.
        Ok(Delivery::Refused(refusal)) if left && !had_left => Came::Refused(refusal.clone()),
        // What has left may be there, whatever the rail makes of the answer.
        Ok(Delivery::NotTaken(why)) if repeats == Repeats::AreOne || !(left || had_left) => {
            Came::NotTaken(why.clone())
        }
        other => {
            let why = match other {
                Ok(Delivery::Taken) => "the rail says that it was taken, and sent nothing".into(),
                Ok(Delivery::Refused(refusal)) => {
                    format!("refused ({}): {}", refusal.code, refusal.message)
                }
                Ok(Delivery::NotTaken(why) | Delivery::Unknown(why)) => why.clone(),
                Err(broken) => broken.to_string(),
            };
            match left || had_left {
                true => Came::Unclear(why),
                false => Came::NotTaken(why),
            }
        }
    }
}

fn bytes(file: &PaymentFile, content: Vec<u8>) -> File {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    File { name: text(&file.name), identity: text(&file.identity), content }
}

fn backoff(deliveries: i64) -> Duration {
    let doubled = u32::try_from(deliveries.clamp(0, 6)).unwrap_or(6);
    limits::SEND_LATER * (1 << doubled)
}
