//! How payments stand that are under way, and what each of them waits for, as operators ask.
//! Nothing here changes anything.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::clock::Moment;
use crate::env::Env;
use crate::error::Problem;
use crate::id::RouteId;
use crate::rails::ReadyRoute;

use super::Transfers;
use super::attempt::{self, Attempt, AttemptState};
use super::backlog::Pending;
use super::files::closing::{self, Ahead};
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
    /// A route that takes it: none does, or the rail of the one that it went over is not loaded.
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
            Self::AnyRoute => {
                "No route takes it: each is paused, lacks something, is for other merchants or \
                 amounts, or was tried already; or the file of its rail is not there."
            }
            Self::Quarantine => "Nothing live leaves until the quarantine ends.",
            Self::Wallet => "Its wallet is frozen.",
            Self::Merchant => "Its merchant is suspended or closed.",
            Self::Recipient => "Its recipient is blocked.",
            Self::Person => "There is a case that somebody has to decide.",
        }
    }
}

/// What a payment waits for, and until when, where that ends by itself.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// What for.
    pub what: WaitsFor,
    /// Until when.
    pub until: Option<Moment>,
}

impl From<WaitsFor> for Wait {
    fn from(what: WaitsFor) -> Self {
        Self { what, until: None }
    }
}

/// How a payment stands that is under way.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The name of the route that it went over, or in whose lane it is.
    pub route: Option<String>,
    /// What it waits for.
    pub wait: Wait,
    /// Whether nothing of it has left, so that it can still be kept back.
    pub is_unsent: bool,
    /// Its open attempt.
    pub attempt: Option<Attempt>,
    /// What was learnt of that last, masked.
    pub last_answer: Option<String>,
    /// The file that this is in.
    pub file: Option<PaymentFile>,
}

/// How far a payment has come.
enum Place<'a> {
    /// In a file of which its network has said what does not fit: it goes nowhere.
    InQuestion,
    /// In a file.
    InFile(&'a PaymentFile),
    /// In one that came to nothing: it joins another.
    ToAnother(&'a PaymentFile),
    /// It may have left by itself.
    MayHaveLeft,
    /// Nothing of it has left.
    Unsent,
}

impl Transfers {
    /// How a payment stands that has not ended, as this host sees it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn standing(&self, order: &Order, work: &Pending) -> Result<Standing, Problem> {
        let attempts = attempt::list_attempts(self.db.pool(), &work.id).await?;
        let attempt = attempts.iter().find(|known| known.state == AttemptState::Open);
        let file = match attempt.and_then(|attempt| attempt.file_id.as_ref()) {
            Some(id) => table::get(self.db.pool(), id).await?,
            None => None,
        };
        let place = match (attempt, &file) {
            (_, Some(file)) if self.is_in_question(file).await? => Place::InQuestion,
            (Some(open), Some(file)) if goes_with_another(open, file) => Place::ToAnother(file),
            (_, Some(file)) => Place::InFile(file),
            (Some(open), None) if open.bytes_left => Place::MayHaveLeft,
            (_, None) => Place::Unsent,
        };
        let route = attempt.map_or(&work.route_id, |attempt| &attempt.configuration.route_id);
        let route = self.route(route).await?;
        let is_unsent = matches!(place, Place::ToAnother(_) | Place::Unsent);
        let is_quarantined = order.env == Env::Live && self.quarantine.is_closed();
        let wait = match place {
            _ if work.is_held => WaitsFor::Host.into(),
            Place::InQuestion => WaitsFor::Person.into(),
            Place::InFile(file) => self.in_file(file).await?,
            // Nobody can ask.
            Place::MayHaveLeft if route.is_none() => WaitsFor::AnyRoute.into(),
            Place::MayHaveLeft => Wait { what: WaitsFor::Answer, until: self.ahead(work.due_at) },
            Place::ToAnother(_) | Place::Unsent if is_quarantined => WaitsFor::Quarantine.into(),
            Place::ToAnother(file) => self.once_more((order, work), file).await?,
            Place::Unsent => self.unsent((order, work), &attempts).await?,
        };
        let masked = |said: &String| {
            let rail = route.as_ref().map(|ready| &ready.rail);
            rail.map(|rail| rail.redactor.text(said, &order.recipient))
        };
        let last_answer = attempt.and_then(|attempt| attempt.message.as_ref()).and_then(masked);
        let named = attempt.map(|attempt| attempt.route.clone());
        let route = named.or_else(|| route.map(|ready| ready.route.name.clone()));
        Ok(Standing { route, wait, is_unsent, attempt: attempt.cloned(), last_answer, file })
    }

    /// An instant, if it lies ahead.
    fn ahead(&self, at: Moment) -> Option<Moment> {
        Some(at).filter(|at| *at > self.now())
    }

    /// The route of this id, unless it is gone, or its rail.
    async fn route(&self, id: &RouteId) -> Result<Option<Arc<ReadyRoute>>, Problem> {
        let all = self.routes.all().await?;
        Ok(all.iter().find(|ready| ready.route.id == *id).cloned())
    }

    /// What waits that is in a file.
    async fn in_file(&self, file: &PaymentFile) -> Result<Wait, Problem> {
        let route = self.route(&file.route_id).await?;
        Ok(match file.state {
            FileState::Acknowledged => {
                Wait { what: WaitsFor::File, until: self.ahead(file.settles_at) }
            }
            _ if !file.is_unsent() => WaitsFor::File.into(),
            _ if file.env == Env::Live && self.quarantine.is_closed() => {
                WaitsFor::Quarantine.into()
            }
            _ if file.is_held => WaitsFor::HeldFile.into(),
            _ if route.is_some_and(|ready| ready.route.is_paused) => WaitsFor::Route.into(),
            _ => Wait { what: WaitsFor::File, until: self.ahead(file.closes_at) },
        })
    }

    /// What is to join another file over the route of the one that came to nothing.
    async fn once_more(&self, of: (&Order, &Pending), file: &PaymentFile) -> Result<Wait, Problem> {
        match self.route(&file.route_id).await? {
            Some(route) if !route.route.is_paused => self.taken_by(&route, of).await,
            Some(_) => Ok(WaitsFor::Route.into()),
            None => Ok(WaitsFor::AnyRoute.into()),
        }
    }

    /// What waits of which nothing has left: for the route that takes it first.
    async fn unsent(
        &self,
        (order, work): (&Order, &Pending),
        attempts: &[Attempt],
    ) -> Result<Wait, Problem> {
        // Over its own route an attempt of which nothing left goes once more.
        let over = attempts.iter().filter(|known| known.state != AttemptState::Open).cloned();
        let tried: Vec<Attempt> = over.collect();
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
                (None, (Health::Closed, _)) => return self.taken_by(&route, (order, work)).await,
            };
            if soonest.is_none_or(|(known, _)| at < known) {
                soonest = Some((at, by));
            }
        }
        if let Some((at, what)) = soonest {
            return Ok(Wait { what, until: Some(at.max(work.due_at)) });
        }
        let lane = self.route(&work.route_id).await?;
        Ok(match lane.is_some_and(|ready| ready.route.is_paused) {
            true => WaitsFor::Route.into(),
            false => WaitsFor::AnyRoute.into(),
        })
    }

    /// What waits for a route that takes it: its turn, or the file of its next window.
    async fn taken_by(
        &self,
        route: &ReadyRoute,
        (order, work): (&Order, &Pending),
    ) -> Result<Wait, Problem> {
        let turn = Wait { what: WaitsFor::Turn, until: self.ahead(work.due_at) };
        let planned = route.timetable().map(|windows| windows.next(self.now(), order.amount));
        let Some(planned) = planned.and_then(Result::ok) else { return Ok(turn) };
        let own = (order.queued_at, order.amount);
        Ok(match closing::ahead(self.db.pool(), (route, planned), own).await? {
            Ahead::Joins(file) | Ahead::Waits(_, Some(file)) if file.is_held => {
                WaitsFor::HeldFile.into()
            }
            Ahead::Waits(planned, _) => {
                Wait { what: WaitsFor::Window, until: Some(planned.closing.closes_at) }
            }
            Ahead::Joins(_) | Ahead::Never(_) => turn,
        })
    }
}
