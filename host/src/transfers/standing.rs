//! How payments stand that are under way, and what each of them waits for, as operators ask.
//! Nothing here changes anything.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::ReadyRoute;

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::backlog::Pending;
use super::files::closing;
use super::files::entry::goes_with_another;
use super::files::table::{self, FileState, PaymentFile};
use super::lanes::Health;
use super::order::Order;

/// What a payment under way waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A host that is at it, or was when it died.
    Host,
    /// Its turn.
    Turn,
    /// What its network says of it: it may have left.
    Answer,
    /// The window of its route.
    Window,
    /// The file that it is in, and what the bank says of that.
    File,
    /// The release of its file, which is held back.
    HeldFile,
    /// The hours of its network.
    Hours,
    /// A network that is left alone after failures, or because it asked for it.
    Network,
    /// Its route, which is paused.
    Route,
    /// A route that takes it: none does.
    AnyRoute,
    /// The end of the quarantine.
    Quarantine,
    /// A wallet that is frozen.
    Wallet,
    /// A merchant who is suspended or closed.
    Merchant,
    /// A recipient who is blocked.
    Recipient,
    /// Whoever decides a case about it, or about its file.
    Person,
}

impl WaitsFor {
    /// The same in a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Host => "A host is at it, or died over it a moment ago.",
            Self::Turn => "Its route takes it when it is its turn.",
            Self::Answer => "It may have left: its network is asked about it again.",
            Self::Window => "It goes with the file that is made when the window closes.",
            Self::File => "It goes the way of the file that it is in.",
            Self::HeldFile => "The file that it goes with is held back.",
            Self::Hours => "Its network is closed.",
            Self::Network => "Its network failed, or asked for patience, and is left alone.",
            Self::Route => "Its route is paused.",
            Self::AnyRoute => "No route takes it.",
            Self::Quarantine => "Nothing live leaves until the quarantine ends.",
            Self::Wallet => "Its wallet is frozen.",
            Self::Merchant => "Its merchant is suspended or closed.",
            Self::Recipient => "Its recipient is blocked.",
            Self::Person => "There is a case that somebody has to decide.",
        }
    }
}

/// How a payment stands that is under way.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The name of the route that it went over, or in whose lane it is.
    pub route: Option<String>,
    /// What it waits for, and until when, where that ends by itself.
    pub waits_for: (WaitsFor, Option<Moment>),
    /// Whether nothing of it has left, so that it can still be kept back.
    pub is_unsent: bool,
    /// Its open attempt.
    pub attempt: Option<Attempt>,
    /// The file that this is in.
    pub file: Option<PaymentFile>,
}

impl Transfers {
    /// How a payment stands that has not ended, as this host sees it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn standing(&self, order: &Order, work: &Pending) -> Result<Standing, Problem> {
        let attempts = attempt::list_attempts(self.db.pool(), &work.id).await?;
        let attempt = attempts.iter().find(|known| known.state == AttemptState::Open).cloned();
        let file = match attempt.as_ref().and_then(|attempt| attempt.file_id.as_ref()) {
            Some(id) => table::get(self.db.pool(), id).await?,
            None => None,
        };
        let all = self.routes.all().await?;
        let lane = all.iter().find(|ready| ready.route.id == work.route_id);
        let its = file.as_ref().zip(attempt.as_ref());
        let is_in_question = match &file {
            Some(file) => file.is_contradicted || self.is_in_question(file).await?,
            None => false,
        };
        // Nothing goes anywhere before a person has looked.
        let in_file =
            its.filter(|(file, attempt)| is_in_question || !goes_with_another(attempt, file));
        let may_have_left = attempt.as_ref().is_some_and(|attempt| attempt.bytes_left);
        let is_unsent = in_file.is_none() && (file.is_some() || !may_have_left);
        let again = its.filter(|_| in_file.is_none());
        let waits_for = match in_file {
            _ if work.is_held => (WaitsFor::Host, None),
            Some(_) if is_in_question => (WaitsFor::Person, None),
            Some((file, _)) => self.in_file(file, &all),
            None if let Some((file, _)) = again => {
                self.once_more((order, work), file, &all).await?
            }
            None if is_unsent => self.unsent((order, work), &attempts, lane).await?,
            None => (WaitsFor::Answer, self.later(work)),
        };
        let route = attempt.as_ref().map(|attempt| attempt.route.clone());
        let route = route.or_else(|| lane.map(|ready| ready.route.name.clone()));
        Ok(Standing { route, waits_for, is_unsent, attempt, file })
    }

    fn later(&self, work: &Pending) -> Option<Moment> {
        Some(work.due_at).filter(|at| *at > self.now())
    }

    /// What waits that is in a file.
    fn in_file(
        &self,
        file: &PaymentFile,
        routes: &[Arc<ReadyRoute>],
    ) -> (WaitsFor, Option<Moment>) {
        let is_paused =
            |ready: &Arc<ReadyRoute>| ready.route.id == file.route_id && ready.route.is_paused;
        let ahead = |at: Moment| Some(at).filter(|at| *at > self.now());
        match file.state {
            _ if !file.is_unsent() => {
                let settles = ahead(file.settles_at);
                (WaitsFor::File, settles.filter(|_| file.state == FileState::Acknowledged))
            }
            _ if file.env == Env::Live && self.quarantine.is_closed() => {
                (WaitsFor::Quarantine, None)
            }
            _ if file.is_held => (WaitsFor::HeldFile, None),
            _ if routes.iter().any(is_paused) => (WaitsFor::Route, None),
            _ => (WaitsFor::File, ahead(file.closes_at)),
        }
    }

    /// What is to join another file over the route of the one that came to nothing.
    async fn once_more(
        &self,
        (order, work): (&Order, &Pending),
        file: &PaymentFile,
        routes: &[Arc<ReadyRoute>],
    ) -> Result<(WaitsFor, Option<Moment>), Problem> {
        if order.env == Env::Live && self.quarantine.is_closed() {
            return Ok((WaitsFor::Quarantine, None));
        }
        match routes.iter().find(|ready| ready.route.id == file.route_id) {
            Some(route) if !route.route.is_paused => self.window(order, work, route).await,
            Some(_) => Ok((WaitsFor::Route, None)),
            None => Ok((WaitsFor::AnyRoute, None)),
        }
    }

    /// What waits of which nothing has left: for the route that takes it first.
    async fn unsent(
        &self,
        (order, work): (&Order, &Pending),
        attempts: &[Attempt],
        lane: Option<&Arc<ReadyRoute>>,
    ) -> Result<(WaitsFor, Option<Moment>), Problem> {
        // Over its own route an attempt of which nothing left goes once more.
        let over = attempts.iter().filter(|known| known.state != AttemptState::Open).cloned();
        let tried: Vec<Attempt> = over.collect();
        if order.env == Env::Live && self.quarantine.is_closed() {
            return Ok((WaitsFor::Quarantine, None));
        }
        let (now, wanted) = (self.now(), (order.currency, order.method.as_str(), order.env));
        let carriers = self.routes.carriers(wanted, &order.merchant_id, order.amount).await;
        let mut soonest: Option<(Moment, WaitsFor)> = None;
        // Where there is none, that is the answer.
        for route in carriers.unwrap_or_default() {
            if !self.may_try(&route, &tried) || matches!(self.suits(order, &route).await, Ok(false))
            {
                continue;
            }
            let (at, by) = match (route.opens_at(now), self.lanes.health(&route.route.id)) {
                (Some(at), _) => (at, WaitsFor::Hours),
                (None, (Health::Open(pause), _)) => (now.after(pause), WaitsFor::Network),
                // Somebody tries it.
                (None, (Health::HalfOpen, _)) => (now, WaitsFor::Network),
                (None, (Health::Closed, _)) => return self.window(order, work, &route).await,
            };
            if soonest.is_none_or(|(known, _)| at < known) {
                soonest = Some((at, by));
            }
        }
        Ok(match soonest {
            Some((at, by)) => (by, Some(at.max(work.due_at))),
            None if lane.is_some_and(|ready| ready.route.is_paused) => (WaitsFor::Route, None),
            None => (WaitsFor::AnyRoute, None),
        })
    }

    /// What waits for a route that takes it: its turn, or the file of its next window.
    async fn window(
        &self,
        order: &Order,
        work: &Pending,
        route: &ReadyRoute,
    ) -> Result<(WaitsFor, Option<Moment>), Problem> {
        let planned = route.timetable().map(|windows| windows.next(self.now(), order.amount));
        let Some(planned) = planned.and_then(Result::ok) else {
            return Ok((WaitsFor::Turn, self.later(work)));
        };
        let file = closing::find_of_closing(self.db.pool(), (route, &planned)).await?;
        // What came after it was closed before its time goes with the next.
        let closes_at = planned.closing.closes_at;
        let joins = |file: &PaymentFile| {
            file.state == FileState::Collecting
                && (file.closes_at >= closes_at || order.queued_at <= file.closes_at)
        };
        Ok(match file.is_some_and(|file| file.is_held && joins(&file)) {
            true => (WaitsFor::HeldFile, None),
            // One that was closed before its time is followed by another.
            false => (WaitsFor::Window, Some(closes_at.max(work.due_at))),
        })
    }
}
