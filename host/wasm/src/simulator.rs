//! Calling a simulator: the other side of a network, as a rail brings it.
//!
//! Every call has a fresh instance in a fresh store. What it reads comes from a [`Book`]; what it
//! changes and sends comes out as a [`Played`], for whoever called to make true all at once, or
//! to call again if somebody else has changed what was read.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use crate::config::limits;

use super::CodeCache;
use super::bounds;
use super::engine::Engines;
use super::inert::{self, Inert};
use super::keys::SimulatedKey;
use super::limiter::{self, Limiter};
use super::module::{Code, Contract, Refused};
use super::places::Places;
use super::rail::{Broken, explain, presentable};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: ["../../wit/host.wit", "../../wit/simulator.wit"],
        world: "railhead:simulator/simulator",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize],
    });
}

pub use super::limiter::Size;
pub use bindings::railhead::simulator::types::{
    Answer, Event, Message, Obstacle, Place, Request, Response, State, Transfer,
};

use bindings::exports::railhead::simulator::network::GuestIndices;
use bindings::railhead::host::{clock, log};
use bindings::railhead::simulator::{book, keys, outbox, play, types};

/// What simulators are built against.
const CONTRACT: Contract = Contract {
    package: "railhead:simulator@1.0.0",
    imports: &[
        "railhead:simulator/types@1.0.0",
        "railhead:simulator/book@1.0.0",
        "railhead:simulator/play@1.0.0",
        "railhead:simulator/keys@1.0.0",
        "railhead:simulator/outbox@1.0.0",
        "railhead:host/clock@1.0.0",
        "railhead:host/log@1.0.0",
    ],
};

/// The other side of a network, ready to be called.
pub struct SimulatorCode {
    instance: InstancePre<Guest>,
    network: GuestIndices,
    size: Size,
    places: Places,
}

/// A page of a book: how a transfer stood, and its version, if the network knew it.
pub type Page = Option<(i64, Transfer)>;

/// What a network remembers.
pub trait Book: Send + Sync {
    /// The transfer of this reference.
    ///
    /// # Errors
    /// It cannot be read.
    fn find<'a>(
        &'a self,
        reference: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Page, String>> + Send + 'a>>;
}

/// What one call works with.
#[derive(Clone)]
pub struct Scene {
    /// The rail's name, for logs.
    pub rail: String,
    /// The instant of the call.
    pub now_ms: u64,
    /// What the network remembers.
    pub book: Arc<dyn Book>,
    /// The scenario that the caller asks for.
    pub asked: Option<String>,
    /// Recipients that choose a scenario by themselves.
    pub magic: Arc<BTreeMap<String, String>>,
    /// The keys that the rail is configured with here, by name, with both halves.
    pub keys: Arc<BTreeMap<String, SimulatedKey>>,
}

/// What a call came to.
#[derive(Debug)]
pub struct Played<T> {
    /// The answer.
    pub answer: T,
    /// Versions of what was read.
    pub read: BTreeMap<String, Option<i64>>,
    /// What the network remembers from now on.
    pub kept: BTreeMap<String, Transfer>,
    /// What it sends by itself, in order.
    pub sent: Vec<Message>,
}

/// What wasmtime keeps for a running simulator.
struct Guest {
    wasi: Inert,
    limiter: Limiter,
    scene: Scene,
    read: BTreeMap<String, Option<i64>>,
    kept: BTreeMap<String, Transfer>,
    sent: Vec<Message>,
    /// Bytes that it may still keep and send.
    bytes_left: usize,
    log_lines_left: u32,
}

impl SimulatorCode {
    /// Loads a simulator of a network that is sent messages of this size.
    ///
    /// # Errors
    /// The component is refused, or exports something else.
    pub fn load(
        engines: &Engines,
        cache: &CodeCache,
        (bytes, size): (&[u8], Size),
    ) -> Result<Self, Refused> {
        let shape = |cause: wasmtime::Error| Refused::Shape(format!("{cause:#}"));
        bounds::check(bytes)?;
        let code = Code::compile(&engines.rails, cache, bytes, CONTRACT)?;
        if !code.exports.iter().any(|name| name == "railhead:simulator/network") {
            let why = "a simulator must export railhead:simulator/network";
            return Err(Refused::Shape(why.to_owned()));
        }
        let mut linker: Linker<Guest> = Linker::new(&engines.rails);
        inert::link(&mut linker, |guest| &mut guest.wasi).map_err(shape)?;
        link(&mut linker).map_err(shape)?;
        let instance = linker.instantiate_pre(&code.component).map_err(shape)?;
        let network = GuestIndices::new(&instance).map_err(shape)?;
        Ok(Self { instance, network, size, places: engines.simulator_places.clone() })
    }

    /// Of what size its network's messages are.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Answers a request.
    ///
    /// # Errors
    /// It failed, in words.
    pub async fn handle(&self, scene: Scene, request: &Request) -> Result<Played<Answer>, String> {
        self.call(scene, async |store, network| network.call_handle(store, request).await).await
    }

    /// Lets something happen to a transfer.
    ///
    /// # Errors
    /// It failed, in words.
    pub async fn tell(
        &self,
        scene: Scene,
        (reference, event): (&str, Event),
    ) -> Result<Played<Result<Transfer, Obstacle>>, String> {
        self.call(scene, async |store, network| network.call_tell(store, reference, event).await)
            .await
    }

    async fn call<T>(
        &self,
        scene: Scene,
        run: impl AsyncFnOnce(
            &mut Store<Guest>,
            bindings::exports::railhead::simulator::network::Guest,
        ) -> wasmtime::Result<T>,
    ) -> Result<Played<T>, String> {
        let place = self.places.take().await;
        let Some(_place) = place else { return Err(Broken::Crowded.to_string()) };
        let guest = Guest {
            wasi: Inert::at(scene.now_ms),
            limiter: Limiter::default(),
            scene,
            read: BTreeMap::new(),
            kept: BTreeMap::new(),
            sent: Vec::new(),
            bytes_left: self.size.exchange_bytes_max(),
            log_lines_left: limits::GUEST_LOG_LINES_MAX,
        };
        let mut store = Store::new(self.instance.engine(), guest);
        store.limiter(|guest| &mut guest.limiter);
        limiter::bound(&mut store, self.size);
        let running = async {
            let instance = self.instance.instantiate_async(&mut store).await?;
            let network = self.network.load(&mut store, &instance)?;
            run(&mut store, network).await
        };
        let answer = match tokio::time::timeout(limits::RAIL_WALL_MAX, running).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(cause)) => return Err(explain(&cause, &store.data().wasi.said())),
            Err(_) => return Err(format!("it took longer than {:?}", limits::RAIL_WALL_MAX)),
        };
        let Guest { read, kept, sent, .. } = store.into_data();
        Ok(Played { answer, read, kept, sent })
    }
}

fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    type Own = HasSelf<Guest>;
    types::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    book::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    play::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    keys::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    outbox::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    clock::add_to_linker::<Guest, Own>(linker, |guest| guest)?;
    log::add_to_linker::<Guest, Own>(linker, |guest| guest)
}

impl types::Host for Guest {}

impl book::Host for Guest {
    async fn find(&mut self, reference: String) -> wasmtime::Result<Option<Transfer>> {
        if let Some(kept) = self.kept.get(&reference) {
            return Ok(Some(kept.clone()));
        }
        let page = self.scene.book.find(&reference).await.map_err(wasmtime::Error::msg)?;
        self.read.insert(reference, page.as_ref().map(|(version, _)| *version));
        Ok(page.map(|(_, transfer)| transfer))
    }

    async fn keep(&mut self, transfer: Transfer) -> wasmtime::Result<()> {
        let notes = transfer.notes.iter().map(|(name, value)| name.len() + value.len());
        let texts = [&transfer.reference, &transfer.account, &transfer.scenario];
        self.take(notes.sum::<usize>() + texts.map(String::len).iter().sum::<usize>())?;
        self.kept.insert(transfer.reference.clone(), transfer);
        Ok(())
    }
}

impl play::Host for Guest {
    async fn scenario(&mut self, account: String) -> wasmtime::Result<String> {
        let asked = self.scene.asked.as_ref().or_else(|| self.scene.magic.get(&account));
        Ok(asked.map_or("paid", String::as_str).to_owned())
    }
}

/// What anything costs that is kept or sent, beside its bytes.
const COST: usize = 1_024;

impl Guest {
    /// Counts what it keeps and sends.
    fn take(&mut self, bytes: usize) -> wasmtime::Result<()> {
        let left = self.bytes_left.checked_sub(bytes.saturating_add(COST));
        self.bytes_left =
            left.ok_or_else(|| wasmtime::Error::msg("it keeps and sends too much"))?;
        Ok(())
    }

    fn key(&self, name: &str) -> wasmtime::Result<&SimulatedKey> {
        let key = self.scene.keys.get(name);
        key.ok_or_else(|| wasmtime::Error::msg(format!("the rail declares no key {name}")))
    }
}

impl keys::Host for Guest {
    async fn sign(&mut self, key: String, message: Vec<u8>) -> wasmtime::Result<Vec<u8>> {
        self.key(&key)?.sign(&message).map_err(wasmtime::Error::msg)
    }

    async fn verify(
        &mut self,
        key: String,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> wasmtime::Result<bool> {
        self.key(&key)?.verify(&message, &signature).map_err(wasmtime::Error::msg)
    }

    async fn open(&mut self, key: String, sealed: String) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.key(&key)?.open(&sealed))
    }
}

impl outbox::Host for Guest {
    async fn send(&mut self, message: Message) -> wasmtime::Result<()> {
        let headers = message.headers.iter().map(|(name, value)| name.len() + value.len());
        self.take(headers.sum::<usize>() + message.about.len() + message.body.len())?;
        self.sent.push(message);
        Ok(())
    }
}

impl clock::Host for Guest {
    async fn now_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(self.scene.now_ms)
    }
}

impl log::Host for Guest {
    async fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if self.log_lines_left == 0 {
            return Ok(());
        }
        self.log_lines_left -= 1;
        let (rail, line) = (self.scene.rail.as_str(), presentable(&message));
        match level {
            log::Level::Debug => tracing::debug!(simulated = rail, "{line}"),
            log::Level::Info => tracing::info!(simulated = rail, "{line}"),
            log::Level::Warn => tracing::warn!(simulated = rail, "{line}"),
            log::Level::Error => tracing::error!(simulated = rail, "{line}"),
        }
        Ok(())
    }
}
