//! Calling a rate source.
//!
//! Sources are pure and asked seldom: every call has a fresh instance, metered by fuel, on the
//! engine of the rule packs.

use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Engine, Store};

use crate::config::limits;

use super::inert::{self, Inert};
use super::limiter::Limiter;
use super::module::{Contract, Module, Refused};
use super::rail::{Broken, explain};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/rates.wit",
        world: "railhead:rates/rate-source",
        additional_derives: [Clone, PartialEq, Eq],
    });
}

use bindings::exports::railhead::rates::source::GuestIndices;
pub use bindings::exports::railhead::rates::source::{Pair, Rate};

/// What rate sources are built against. They import nothing.
pub const CONTRACT: Contract = Contract { package: "railhead:rates@0.1.0", imports: &[] };

/// A rate source that is ready to be asked.
pub struct SourceCode {
    instance: InstancePre<Guest>,
    indices: GuestIndices,
}

struct Guest {
    wasi: Inert,
    limiter: Limiter,
}

impl SourceCode {
    /// Loads a source.
    ///
    /// # Errors
    /// What it exports has another shape than the contract's.
    pub fn link(engine: &Engine, module: &Module) -> Result<Self, Refused> {
        let shape = |cause: wasmtime::Error| Refused::Shape(format!("{cause:#}"));
        let mut linker: Linker<Guest> = Linker::new(engine);
        inert::link(&mut linker, |guest| &mut guest.wasi).map_err(shape)?;
        let instance = linker.instantiate_pre(&module.component).map_err(shape)?;
        Ok(Self { indices: GuestIndices::new(&instance).map_err(shape)?, instance })
    }

    /// `source.requests`
    ///
    /// # Errors
    /// The source trapped, or used more than it may.
    pub fn requests(&self, pairs: &[Pair]) -> Result<Vec<String>, Broken> {
        self.call(|store, instance| {
            self.indices.load(&mut *store, instance)?.call_requests(store, pairs)
        })
    }

    /// `source.read`
    ///
    /// # Errors
    /// The source trapped, or used more than it may.
    pub fn read(&self, answers: &[Vec<u8>]) -> Result<Result<Vec<Rate>, String>, Broken> {
        self.call(|store, instance| {
            self.indices.load(&mut *store, instance)?.call_read(store, answers)
        })
    }

    fn call<T>(
        &self,
        call: impl FnOnce(&mut Store<Guest>, &wasmtime::component::Instance) -> wasmtime::Result<T>,
    ) -> Result<T, Broken> {
        let guest = Guest { wasi: Inert::at(0), limiter: Limiter::default() };
        let mut store = Store::new(self.instance.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(limits::GUEST_EXCHANGE_BYTES_MAX);
        store.set_epoch_deadline(limits::SOURCE_TICKS_MAX);
        let called = store.set_fuel(limits::SOURCE_FUEL_MAX).and_then(|()| {
            let instance = self.instance.instantiate(&mut store)?;
            call(&mut store, &instance)
        });
        called.map_err(|cause| Broken::Trapped(explain(&cause, &store.data().wasi.said())))
    }
}
