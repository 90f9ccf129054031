//! How payments stand that are under way, and what each of them waits for, as operators ask.
//! Nothing here changes anything.

use std::collections::HashMap;
use std::sync::Arc;

use crate::clock::Moment;
use crate::db;
use crate::env::Env;
use crate::error::Problem;
use crate::id::PaymentFileId;
use crate::rails::ReadyRoute;

use super::Transfers;
use super::attempt::{self, Attempt};
use super::backlog::{self, Pending, Wanted};
use super::files::table::{self, FileState, PaymentFile};
use super::lanes::Health;

/// What a payment under way waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum WaitsFor {
    /// Somebody is at it.
    Call,
    /// Its turn.
    Turn,
    /// What its network has of it.
    Answer,
    /// The window of its route.
    Window,
    /// The file that it is in.
    File,
    /// The hours of its network.
    Hours,
    /// A network that is left alone.
    Network,
    /// A route that is paused.
    Route,
    /// Any route that takes it.
    AnyRoute,
    /// The end of the quarantine.
    Quarantine,
    /// A wallet that is frozen.
    Wallet,
    /// A merchant who is suspended or closed.
    Merchant,
    /// Whoever decides a case about it.
    Person,
}

impl WaitsFor {
    /// The word that operators read.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Turn => "turn",
            Self::Answer => "answer",
            Self::Window => "window",
            Self::File => "file",
            Self::Hours => "hours",
            Self::Network => "network",
            Self::Route => "route",
            Self::AnyRoute => "any_route",
            Self::Quarantine => "quarantine",
            Self::Wallet => "wallet",
            Self::Merchant => "merchant",
            Self::Person => "person",
        }
    }

    /// The same in a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Call => "A host is at it: its network is being called.",
            Self::Turn => "It is due, and is taken up when it is its turn.",
            Self::Answer => "It may have left: its network is asked about it again.",
            Self::Window => "It goes with the file that is made when the window closes.",
            Self::File => "It goes the way of the file that it is in.",
            Self::Hours => "Its network is closed until then.",
            Self::Network => "Its network failed, or asked for patience, and is left alone.",
            Self::Route => "Its route is paused, and no other one takes it.",
            Self::AnyRoute => "No route takes it.",
            Self::Quarantine => "Nothing live leaves until the quarantine ends.",
            Self::Wallet => "Its wallet is frozen.",
            Self::Merchant => "Its merchant is suspended or closed.",
            Self::Person => "There is a case about it that somebody has to decide.",
        }
    }
}

/// How a payment stands that is under way.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its work.
    pub work: Pending,
    /// The name of the route in whose lane it is, unless that is gone.
    pub route: Option<String>,
    /// What it waits for.
    pub waits_for: WaitsFor,
    /// Until when that lasts, where it ends by itself.
    pub until: Option<Moment>,
    /// Its open attempt.
    pub attempt: Option<Attempt>,
    /// The file that this is in.
    pub file: Option<PaymentFile>,
}

impl Standing {
    /// Whether nothing of it has left, so that it can still be kept back.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        match (&self.attempt, &self.file) {
            (_, Some(_)) => false,
            (attempt, None) => attempt.as_ref().is_none_or(|attempt| !attempt.bytes_left),
        }
    }
}

impl Transfers {
    /// How the payments stand that are wanted, those that were made first at the beginning; one
    /// more than a page has.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn standings(&self, wanted: &Wanted) -> Result<Vec<Standing>, Problem> {
        let found = db::in_time(backlog::list_pending(&self.db, wanted)).await?;
        let ids: Vec<&str> = found.iter().map(|work| work.id.as_str()).collect();
        let open = db::in_time(attempt::list_open_of(&self.db, &ids)).await?;
        let mut open: HashMap<String, Attempt> =
            open.into_iter().map(|attempt| (attempt.transfer_id.clone(), attempt)).collect();
        let mut files: HashMap<PaymentFileId, PaymentFile> = HashMap::new();
        for id in open.values().filter_map(|attempt| attempt.file_id.as_ref()) {
            if !files.contains_key(id)
                && let Some(file) = db::in_time(table::get(self.db.pool(), id)).await?
            {
                files.insert(id.clone(), file);
            }
        }
        let routes = self.routes.all().await?;
        let standing = |work: Pending| {
            let attempt = open.remove(&work.id);
            let file_id = attempt.as_ref().and_then(|attempt| attempt.file_id.as_ref());
            let file = file_id.and_then(|id| files.get(id)).cloned();
            let route = routes.iter().find(|ready| ready.route.id == work.route_id);
            let (waits_for, until) =
                self.waits_for(&work, (attempt.as_ref(), file.as_ref()), route);
            let route = route.map(|ready| ready.route.name.clone());
            Standing { work, route, waits_for, until, attempt, file }
        };
        Ok(found.into_iter().map(standing).collect())
    }

    /// What a payment waits for, as this host sees it, and until when.
    fn waits_for(
        &self,
        work: &Pending,
        (attempt, file): (Option<&Attempt>, Option<&PaymentFile>),
        route: Option<&Arc<ReadyRoute>>,
    ) -> (WaitsFor, Option<Moment>) {
        let now = self.now();
        let later = Some(work.due_at).filter(|at| *at > now);
        if work.is_held {
            return (WaitsFor::Call, None);
        }
        if let Some(file) = file {
            let until = match file.state {
                FileState::Collecting => Some(file.closes_at),
                FileState::Acknowledged => Some(file.settles_at),
                _ => None,
            };
            return (WaitsFor::File, until.filter(|at| *at > now));
        }
        if attempt.is_some_and(|attempt| attempt.bytes_left) {
            return (WaitsFor::Answer, later);
        }
        if work.env == Env::Live && self.quarantine.is_closed() {
            return (WaitsFor::Quarantine, None);
        }
        let Some(route) = route else { return (WaitsFor::AnyRoute, None) };
        if route.route.is_paused {
            return (WaitsFor::Route, None);
        }
        if let Some(opens_at) = route.opens_at(now) {
            return (WaitsFor::Hours, Some(opens_at));
        }
        if let (Health::Open(pause), _) = self.lanes.health(&work.route_id) {
            return (WaitsFor::Network, Some(now.after(pause)));
        }
        match later {
            _ if work.unrouted_since.is_some() => (WaitsFor::AnyRoute, None),
            Some(at) if route.goes_by_file() => (WaitsFor::Window, Some(at)),
            later => (WaitsFor::Turn, later),
        }
    }
}
