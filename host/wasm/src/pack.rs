//! Calling a rule pack.
//!
//! A pack reads its rules once per instance and then answers many times, so a few warm
//! instances are kept. Each call is metered by fuel: the same facts cost the same and give the
//! same answer everywhere. An instance that traps is thrown away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Engine, Store};

use crate::config::limits;

use super::inert::{self, Inert};
use super::limiter::Limiter;
use super::module::{Contract, Module, Refused};
use super::rail::Broken;

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/rules.wit",
        inline: "
            package railhead:loader;
            world packs {
                export railhead:rules/pack@0.1.0;
                export railhead:rules/fees@0.1.0;
                export railhead:rules/fraud@0.1.0;
            }
        ",
        world: "railhead:loader/packs",
        additional_derives: [Clone, PartialEq, Eq],
        ownership: Borrowing { duplicate_if_necessary: false },
    });
}

use bindings::exports::railhead::rules as exports;

pub use bindings::exports::railhead::rules::fees::{Kind, Line};
pub use bindings::exports::railhead::rules::fraud::{Action, Hit, Verdict};
pub use bindings::exports::railhead::rules::pack::Problem as RuleProblem;
use bindings::railhead::rules::facts as wit;

/// What rule packs are built against. They import types and nothing else.
pub const CONTRACT: Contract = Contract { package: "railhead:rules@0.1.0", imports: &[] };

/// A fact about a payout. What fraud rules are told is kept, compared and told again: so texts are
/// shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: Value,
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A count, or an amount in minor units.
    Int(i64),
    /// A text.
    String(Arc<str>),
    /// The fact does not exist for this payout.
    Absent,
}

impl Fact {
    /// As a guest is told it.
    fn told(&self) -> wit::Fact<'_> {
        let value = match &self.value {
            Value::Bool(value) => wit::Value::Bool(*value),
            Value::Int(number) => wit::Value::Int(*number),
            Value::String(text) => wit::Value::String(text),
            Value::Absent => wit::Value::Absent,
        };
        wit::Fact { name: &self.name, value }
    }
}

/// A rule pack that is ready to decide.
pub struct PackCode {
    instance: InstancePre<Guest>,
    pack: exports::pack::GuestIndices,
    fees: Option<exports::fees::GuestIndices>,
    fraud: Option<exports::fraud::GuestIndices>,
    rules: Arc<str>,
    warm: Mutex<Vec<Warm>>,
    fuel_max: AtomicU64,
}

/// An instance that has read its rules.
struct Warm {
    store: Store<Guest>,
    /// What it offers, here and in the next, found once: looking for it checks the shape of
    /// everything there.
    fees: Option<exports::fees::Guest>,
    fraud: Option<exports::fraud::Guest>,
    calls: u32,
}

struct Guest {
    wasi: Inert,
    limiter: Limiter,
}

/// Why a pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackRefused {
    /// The component is refused.
    #[error(transparent)]
    Component(#[from] Refused),
    /// It failed while reading its rules.
    #[error("reading the rules: {0}")]
    Broken(#[from] Broken),
    /// The rules have mistakes.
    #[error("{}", listed(.0))]
    Rules(Vec<RuleProblem>),
}

impl PackCode {
    /// Loads a pack and has it read its rules.
    ///
    /// # Errors
    /// See [`PackRefused`].
    pub fn open(engine: &Engine, module: &Module) -> Result<Self, PackRefused> {
        let shape = |cause: wasmtime::Error| Refused::Shape(format!("{cause:#}"));
        let mut linker: Linker<Guest> = Linker::new(engine);
        inert::link(&mut linker, |guest| &mut guest.wasi).map_err(shape)?;
        let instance = linker.instantiate_pre(&module.component).map_err(shape)?;
        let offers = |interface: &str| module.exports.iter().any(|name| name == interface);
        let fees = offers("railhead:rules/fees");
        let fraud = offers("railhead:rules/fraud");
        let code = Self {
            pack: exports::pack::GuestIndices::new(&instance).map_err(shape)?,
            fees: fees
                .then(|| exports::fees::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            fraud: fraud
                .then(|| exports::fraud::GuestIndices::new(&instance))
                .transpose()
                .map_err(shape)?,
            rules: module.declaration.as_str().into(),
            warm: Mutex::new(Vec::new()),
            fuel_max: AtomicU64::new(0),
            instance,
        };
        // What decides about fraud is asked while wallets are locked, by each lane: its rules are
        // read by then.
        let asking = if code.fraud.is_some() { limits::REQUEST_LANES } else { 1 };
        for _ in 0..asking {
            let warm = code.start()?;
            code.keep(warm);
        }
        Ok(code)
    }

    /// Whether it prices payouts.
    #[must_use]
    pub fn prices(&self) -> bool {
        self.fees.is_some()
    }

    /// Whether it assesses payouts.
    #[must_use]
    pub fn assesses(&self) -> bool {
        self.fraud.is_some()
    }

    /// The most fuel that a decision took so far, of [`limits::PACK_FUEL_PER_DECISION`].
    #[must_use]
    pub fn fuel_max(&self) -> u64 {
        self.fuel_max.load(Ordering::Relaxed)
    }

    /// Drops the warm instances: the next call gets one that has decided nothing yet.
    pub fn cool(&self) {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// `fees.price`: the lines of a price for each set of facts, or why there is none.
    ///
    /// # Errors
    /// The pack trapped, ran out of fuel, or offers no prices.
    pub fn price(&self, payouts: &[Vec<Fact>]) -> Result<Vec<Result<Vec<Line>, String>>, Broken> {
        self.call(payouts, |warm, facts| {
            let fees = warm.fees.as_ref().ok_or(Broken::NotOffered("fees"))?;
            fees.call_price(&mut warm.store, facts).map_err(|cause| trapped(&cause))
        })
    }

    /// `fraud.assess`: a verdict for each set of facts.
    ///
    /// # Errors
    /// The pack trapped, ran out of fuel, or assesses nothing.
    pub fn assess(&self, payouts: &[Vec<Fact>]) -> Result<Vec<Verdict>, Broken> {
        self.call(payouts, |warm, facts| {
            let fraud = warm.fraud.as_ref().ok_or(Broken::NotOffered("fraud"))?;
            fraud.call_assess(&mut warm.store, facts).map_err(|cause| trapped(&cause))
        })
    }

    /// One call for decisions about these payouts, which share their fuel. An instance that
    /// trapped, or has answered often enough to have grown, is not used again.
    fn call<T>(
        &self,
        payouts: &[Vec<Fact>],
        call: impl FnOnce(&mut Warm, &[&[wit::Fact<'_>]]) -> Result<Vec<T>, Broken>,
    ) -> Result<Vec<T>, Broken> {
        let wanted = payouts.len();
        let facts: Vec<Vec<_>> =
            payouts.iter().map(|facts| facts.iter().map(Fact::told).collect()).collect();
        let facts: Vec<&[_]> = facts.iter().map(Vec::as_slice).collect();
        let mut warm = match self.take() {
            Some(warm) => warm,
            None => self.start().map_err(|refused| Broken::Trapped(refused.to_string()))?,
        };
        let fuel = limits::PACK_FUEL_PER_DECISION.saturating_mul(wanted as u64);
        let ticks = limits::PACK_TICKS_PER_DECISION.saturating_mul(wanted as u64);
        warm.store.set_epoch_deadline(ticks);
        warm.store.set_fuel(fuel).map_err(|cause| trapped(&cause))?;
        let answers = call(&mut warm, &facts)?;
        if answers.len() != wanted {
            let why = format!("{wanted} answers were expected, {} came", answers.len());
            return Err(Broken::Trapped(why));
        }
        let used = fuel.saturating_sub(warm.store.get_fuel().unwrap_or(0));
        self.fuel_max.fetch_max(used / (wanted as u64).max(1), Ordering::Relaxed);
        warm.calls += 1;
        if warm.calls < limits::PACK_CALLS_MAX {
            self.keep(warm);
        }
        Ok(answers)
    }

    fn start(&self) -> Result<Warm, PackRefused> {
        let guest = Guest { wasi: Inert::at(0), limiter: Limiter::default() };
        let mut store = Store::new(self.instance.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(limits::GUEST_EXCHANGE_BYTES_MAX);
        store.set_epoch_deadline(limits::PACK_TICKS_OPEN);
        let opened = store.set_fuel(limits::PACK_FUEL_OPEN).and_then(|()| {
            let instance = self.instance.instantiate(&mut store)?;
            let guest = self.pack.load(&mut store, &instance)?;
            let read = guest.call_open(&mut store, &self.rules)?;
            let fees = self.fees.as_ref().map(|fees| fees.load(&mut store, &instance));
            let fraud = self.fraud.as_ref().map(|fraud| fraud.load(&mut store, &instance));
            Ok((read, fees.transpose()?, fraud.transpose()?))
        });
        let (read, fees, fraud) = opened.map_err(|cause| trapped(&cause))?;
        read.map_err(PackRefused::Rules)?;
        Ok(Warm { store, fees, fraud, calls: 0 })
    }

    fn take(&self) -> Option<Warm> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, instance: Warm) {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        if warm.len() < limits::PACK_WARM_MAX {
            warm.push(instance);
        }
    }
}

fn trapped(cause: &wasmtime::Error) -> Broken {
    Broken::Trapped(cause.root_cause().to_string())
}

fn listed(problems: &[RuleProblem]) -> String {
    let lines: Vec<_> =
        problems.iter().map(|problem| format!("{}: {}", problem.at, problem.message)).collect();
    lines.join("\n")
}
