//! Calling a rail.
//!
//! Every call has a fresh instance in a fresh store, but for a sending: it may have the one that
//! prepared its payment, and with that what the guest has worked out already. What the call is allowed (endpoints,
//! settings, secrets, time) comes in as a [`Grant`]; what it did comes out as a [`Called`],
//! also when it was cut short: the host itself knows whether a byte left.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use wasmtime::component::{Instance, InstancePre, Linker};
use wasmtime::{PoolConcurrencyLimitError, Store};

use crate::config::limits;
use crate::error::{ErrorCode, Problem};

use super::egress::{Egress, Exchange};
use super::engine::Engines;
use super::inert::{self, Inert};
use super::limiter::{self, Limiter, Size};
use super::module::{Contract, Module, Refused};
use super::places::{Place, Places};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        world: "railhead:rail/all",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [Clone, PartialEq, Eq, serde::Serialize],
    });
}

mod files;
mod imports;

pub use bindings::railhead::rail::types::{
    Arrival, Assembled, Correction, Delivery, Enquiry, Field, File, Finding, Message, News, Notice,
    Opening, Outcome, Payment, Placement, Presence, RecallReason, RecallRequest, Receipt, Refusal,
    Reply, Resolution, ReturnOfFunds, Subject, TurnedDown, Verdict, Violation, Window,
};
pub(crate) use imports::presentable;
pub use imports::{Access, Door, Grant, Money};

use bindings::exports::railhead::rail as exports;

/// What rails are built against.
pub const CONTRACT: Contract = Contract {
    package: "railhead:rail@1.0.0",
    imports: &[
        "railhead:host/http@1.0.0",
        "railhead:host/settings@1.0.0",
        "railhead:host/keys@1.0.0",
        "railhead:host/tables@1.0.0",
        "railhead:host/clock@1.0.0",
        "railhead:host/log@1.0.0",
        "railhead:rail/types@1.0.0",
    ],
};

/// A rail that is ready to be called, with whatever interfaces it offers.
pub struct RailCode {
    instance: InstancePre<Guest>,
    recipients: Option<exports::recipients::GuestIndices>,
    payouts: Option<exports::payouts::GuestIndices>,
    files: Option<exports::files::GuestIndices>,
    recalls: Option<exports::recalls::GuestIndices>,
    names: Option<exports::names::GuestIndices>,
    notices: Option<exports::notices::GuestIndices>,
    places: Places,
}

/// What a call came to, and everything that it did on the way.
#[derive(Debug)]
pub struct Called<T> {
    /// The guest's answer, or how it failed to give one.
    pub result: Result<T, Broken>,
    /// Every request it made, in order.
    pub exchanges: Vec<Exchange>,
    /// Whether a byte of any request of its own left the host; getting a token is none.
    pub bytes_left: bool,
    /// Whether a byte of a request left that may move money.
    pub may_have_moved_money: bool,
    /// How long it took.
    pub took: Duration,
}

impl<T> Called<T> {
    /// What it answered, and the call itself, with what was heard, as evidence.
    pub fn apart(self, heard: Exchange) -> (Result<T, Broken>, Called<()>) {
        let Self { result, mut exchanges, bytes_left, may_have_moved_money, took } = self;
        exchanges.push(heard);
        (result, Called { result: Ok(()), exchanges, bytes_left, may_have_moved_money, took })
    }

    /// The same call with another answer made of its own.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Called<U> {
        let Self { result, exchanges, bytes_left, may_have_moved_money, took } = self;
        let result = result.map(change);
        Called { result, exchanges, bytes_left, may_have_moved_money, took }
    }
}

/// An instance that prepared a payment, and may send it.
pub struct Kept {
    store: Store<Guest>,
    instance: Instance,
    journal: Journal,
    place: Place,
}

type Journal = Arc<Mutex<Vec<Exchange>>>;

/// How a guest failed to answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Broken {
    /// It offers no such interface.
    #[error("the rail does not offer {0}")]
    NotOffered(&'static str),
    /// It trapped: a panic, a broken limit, or bad code.
    #[error("the component failed: {0}")]
    Trapped(String),
    /// It took too long.
    #[error("the rail took longer than {0:?}")]
    TimedOut(Duration),
    /// It was not called: no instance was free, or became free in time.
    #[error("too many calls of rails are under way")]
    Crowded,
}

/// A call that was not made may be made again in a moment; any other failure is no fault of whoever
/// asked.
impl From<Broken> for Problem {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Crowded => {
                let why = "Too many requests are under way.";
                Self::because(ErrorCode::ServiceOverloaded, why).retry_after(1).caused_by(broken)
            }
            Broken::NotOffered(_) | Broken::Trapped(_) | Broken::TimedOut(_) => {
                Self::internal(broken)
            }
        }
    }
}

/// What wasmtime keeps for a running guest.
struct Guest {
    wasi: Inert,
    limiter: Limiter,
    grant: Arc<Grant>,
    egress: Egress,
    requests_left: u32,
    log_lines_left: u32,
    /// How its payouts are called, once they were: who sends what it prepared does not look again.
    payouts: Option<exports::payouts::Guest>,
}

impl RailCode {
    /// Loads a rail.
    ///
    /// # Errors
    /// The component is refused, or what it exports has another shape than the contract's.
    pub fn link(engines: &Engines, module: &Module) -> Result<Self, Refused> {
        let shape = |cause: wasmtime::Error| Refused::Shape(format!("{cause:#}"));
        let mut linker: Linker<Guest> = Linker::new(&engines.rails);
        inert::link(&mut linker, |guest| &mut guest.wasi).map_err(shape)?;
        imports::link(&mut linker).map_err(shape)?;
        let instance = linker.instantiate_pre(&module.component).map_err(shape)?;
        let offers = |interface: &str| {
            module.exports.iter().any(|name| name == &format!("railhead:rail/{interface}"))
        };
        let code = Self {
            recipients: offers("recipients")
                .then(|| exports::recipients::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            payouts: offers("payouts")
                .then(|| exports::payouts::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            files: offers("files")
                .then(|| exports::files::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            recalls: offers("recalls")
                .then(|| exports::recalls::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            names: offers("names")
                .then(|| exports::names::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            notices: offers("notices")
                .then(|| exports::notices::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            instance,
            places: engines.rail_places.clone(),
        };
        if code.recipients.is_none() {
            return Err(Refused::Shape("a rail must export railhead:rail/recipients".into()));
        }
        Ok(code)
    }

    /// Whether it can make payouts by request and answer.
    #[must_use]
    pub fn makes_payouts(&self) -> bool {
        self.payouts.is_some()
    }

    /// Whether it can make payouts by file.
    #[must_use]
    pub fn makes_files(&self) -> bool {
        self.files.is_some()
    }

    /// Whether it can call a payment off.
    #[must_use]
    pub fn calls_off(&self) -> bool {
        self.recalls.is_some()
    }

    /// Whether it can say who holds an account.
    #[must_use]
    pub fn resolves_names(&self) -> bool {
        self.names.is_some()
    }

    /// Whether the network sends it messages.
    #[must_use]
    pub fn takes_notices(&self) -> bool {
        self.notices.is_some()
    }

    /// `recipients.check`
    pub async fn check(
        &self,
        grant: &Arc<Grant>,
        (method, currency): (&str, &str),
        fields: &[Field],
    ) -> Called<Result<Vec<Field>, Vec<Violation>>> {
        let Some(indices) = &self.recipients else { return not_offered("recipients") };
        self.call(grant, async |store, instance| {
            let guest = indices.load(&mut *store, instance)?;
            guest.call_check(store, method, currency, fields).await
        })
        .await
    }

    /// `payouts.prepare`, and the instance that did it.
    pub async fn prepare(
        &self,
        grant: &Arc<Grant>,
        payment: &Payment,
    ) -> (Called<Result<Opening, Refusal>>, Option<Kept>) {
        let Some(indices) = &self.payouts else { return (not_offered("payouts"), None) };
        self.call_in((None, Size::One), grant, async |store, instance| {
            payouts(indices, store, instance)?.call_prepare(store, payment).await
        })
        .await
    }

    /// `payouts.submit`, by the instance that prepared this payment, or by a fresh one.
    pub async fn submit(
        &self,
        kept: Option<Kept>,
        grant: &Arc<Grant>,
        payment: &Payment,
    ) -> Called<Outcome> {
        let Some(indices) = &self.payouts else { return not_offered("payouts") };
        let sending = self.call_in((kept, Size::One), grant, async |store, instance| {
            payouts(indices, store, instance)?.call_submit(store, payment).await
        });
        sending.await.0
    }

    /// `payouts.query`
    pub async fn query(&self, grant: &Arc<Grant>, payment: &Payment) -> Called<Finding> {
        let Some(indices) = &self.payouts else { return not_offered("payouts") };
        self.call(grant, async |store, instance| {
            payouts(indices, store, instance)?.call_query(store, payment).await
        })
        .await
    }

    /// `recalls.recall`
    pub async fn recall(
        &self,
        grant: &Arc<Grant>,
        payment: &Payment,
        request: RecallRequest,
    ) -> Called<Finding> {
        let Some(indices) = &self.recalls else { return not_offered("recalls") };
        self.call(grant, async |store, instance| {
            let guest = indices.load(&mut *store, instance)?;
            guest.call_recall(store, payment, request).await
        })
        .await
    }

    /// `names.resolve`
    pub async fn resolve(&self, grant: &Arc<Grant>, enquiry: &Enquiry) -> Called<Verdict> {
        let Some(indices) = &self.names else { return not_offered("names") };
        self.call(grant, async |store, instance| {
            let guest = indices.load(&mut *store, instance)?;
            guest.call_resolve(store, enquiry).await
        })
        .await
    }

    /// `notices.receive`
    pub async fn receive(
        &self,
        grant: &Arc<Grant>,
        message: &Message,
    ) -> Called<Result<(Reply, Vec<Notice>), String>> {
        let Some(indices) = &self.notices else { return not_offered("notices") };
        self.call(grant, async |store, instance| {
            let guest = indices.load(&mut *store, instance)?;
            guest.call_receive(store, message).await
        })
        .await
    }

    async fn call<T>(
        &self,
        grant: &Arc<Grant>,
        run: impl AsyncFnOnce(&mut Store<Guest>, &Instance) -> wasmtime::Result<T>,
    ) -> Called<T> {
        self.call_in((None, Size::One), grant, run).await.0
    }

    /// Makes a call in a kept instance or in a fresh one, and keeps it if all went well.
    async fn call_in<T>(
        &self,
        (kept, size): (Option<Kept>, Size),
        grant: &Arc<Grant>,
        run: impl AsyncFnOnce(&mut Store<Guest>, &Instance) -> wasmtime::Result<T>,
    ) -> (Called<T>, Option<Kept>) {
        // Given back after its instance.
        let (place, mut store, known, journal) = match kept {
            Some(kept) => (kept.place, kept.store, Some(kept.instance), kept.journal),
            None => {
                let Some(place) = self.places.take().await else {
                    return (not_called(Broken::Crowded), None);
                };
                let journal = Journal::default();
                (place, self.store(&journal), None, journal)
            }
        };
        let begun = std::time::Instant::now();
        allow(&mut store, grant, size);
        let wall = limits::RAIL_WALL_MAX;
        let running = async {
            let instance = match known {
                Some(instance) => instance,
                None => self.instance.instantiate_async(&mut store).await?,
            };
            Ok::<_, wasmtime::Error>((run(&mut store, &instance).await?, instance))
        };
        let (result, known) = match tokio::time::timeout(wall, running).await {
            Ok(Ok((answer, instance))) => (Ok(answer), Some(instance)),
            // A component may take more of the pool than a place stands for. Whoever has asked for
            // anything was called, whatever is used up afterwards.
            Ok(Err(cause))
                if cause.is::<PoolConcurrencyLimitError>() && has_asked_nothing(&journal) =>
            {
                (Err(Broken::Crowded), None)
            }
            Ok(Err(cause)) => {
                (Err(Broken::Trapped(explain(&cause, &store.data().wasi.said()))), None)
            }
            Err(_) => (Err(Broken::TimedOut(wall)), None),
        };
        let exchanges =
            std::mem::take(&mut *journal.lock().unwrap_or_else(PoisonError::into_inner));
        // Getting a token is not yet asking.
        let is_own = |exchange: &&Exchange| !exchange.is_for_token && exchange.bytes_left();
        let left = || exchanges.iter().filter(is_own);
        let bytes_left = left().next().is_some();
        let may_have_moved_money = left().any(|exchange| exchange.moves_money);
        let kept = known.map(|instance| Kept { store, instance, journal, place });
        let took = begun.elapsed();
        (Called { result, exchanges, bytes_left, may_have_moved_money, took }, kept)
    }

    fn store(&self, journal: &Journal) -> Store<Guest> {
        let guest = Guest {
            wasi: Inert::at(0),
            limiter: Limiter::default(),
            grant: Arc::default(),
            egress: Egress::new(Arc::clone(journal)),
            requests_left: 0,
            log_lines_left: 0,
            payouts: None,
        };
        let mut store = Store::new(self.instance.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        store
    }
}

/// How an instance's payouts are called.
fn payouts(
    indices: &exports::payouts::GuestIndices,
    store: &mut Store<Guest>,
    instance: &Instance,
) -> wasmtime::Result<exports::payouts::Guest> {
    if let Some(known) = &store.data().payouts {
        return Ok(known.clone());
    }
    let guest = indices.load(&mut *store, instance)?;
    store.data_mut().payouts = Some(guest.clone());
    Ok(guest)
}

fn has_asked_nothing(journal: &Journal) -> bool {
    journal.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// What one call may do, in time and in requests.
fn allow(store: &mut Store<Guest>, grant: &Arc<Grant>, size: Size) {
    let guest = store.data_mut();
    guest.wasi = Inert::at(grant.now_ms);
    guest.grant = Arc::clone(grant);
    guest.egress.errand = grant.errand;
    guest.egress.hidden = grant.seeds.values().cloned().collect();
    guest.requests_left = limits::GUEST_REQUESTS_MAX;
    guest.log_lines_left = limits::GUEST_LOG_LINES_MAX;
    limiter::bound(store, size);
}

fn not_offered<T>(interface: &'static str) -> Called<T> {
    not_called(Broken::NotOffered(interface))
}

fn not_called<T>(why: Broken) -> Called<T> {
    Called {
        result: Err(why),
        exchanges: Vec::new(),
        bytes_left: false,
        may_have_moved_money: false,
        took: Duration::ZERO,
    }
}

/// Why a guest trapped, with what it said on stderr.
pub(super) fn explain(cause: &wasmtime::Error, said: &str) -> String {
    let root = cause.root_cause();
    match said {
        "" => root.to_string(),
        said => format!("{root}: {said}"),
    }
}
