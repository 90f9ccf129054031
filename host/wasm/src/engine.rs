//! The two engines.

use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
};

use crate::config::limits;

use super::places::Places;

const TICK: Duration = Duration::from_millis(10);

/// An engine for rails and one for rule packs.
#[derive(Clone)]
pub struct Engines {
    /// Asynchronous, interrupted by epochs.
    pub rails: Engine,
    /// Metered by fuel; epochs end what fuel does not count, such as calls into the host.
    pub rules: Engine,
    /// For calls of rails.
    pub(super) rail_places: Places,
    /// For calls of simulated networks.
    pub(super) simulator_places: Places,
}

impl Engines {
    /// Starts both engines, and the thread that counts the rails' time.
    ///
    /// # Errors
    /// The machine cannot run them.
    pub fn start() -> wasmtime::Result<Self> {
        Self::start_for(limits::RAIL_GUESTS_MAX)
    }

    /// The same for no more calls of rails at once than these.
    ///
    /// # Errors
    /// The machine cannot run them.
    pub fn start_for(rail_guests: u32) -> wasmtime::Result<Self> {
        let rail_guests = rail_guests.min(limits::RAIL_GUESTS_MAX);
        let rails = pooled(rails_config(), rail_guests).or_else(|cause| {
            // Pools reserve much address space; a machine that has none still works, slower.
            tracing::warn!(%cause, "instances are allocated on demand");
            Engine::new(&rails_config())
        })?;
        let rules = rules()?;
        let ticking = [rails.weak(), rules.weak()];
        std::thread::Builder::new().name("epochs".into()).spawn(move || {
            while ticking
                .iter()
                .filter_map(EngineWeak::upgrade)
                .map(|e| e.increment_epoch())
                .count()
                > 0
            {
                std::thread::sleep(TICK);
            }
        })?;
        let rail_places = Places::new(rail_guests);
        let simulator_places = Places::new(limits::SIMULATED_GUESTS_MAX);
        Ok(Self { rails, rules, rail_places, simulator_places })
    }
}

/// The engine of rule packs.
pub(super) fn rules() -> wasmtime::Result<Engine> {
    Engine::new(&rules_config())
}

/// The same for a process that does nothing but compile, on one processor.
pub(super) fn rules_alone() -> wasmtime::Result<Engine> {
    let mut config = rules_config();
    config.parallel_compilation(false);
    Engine::new(&config)
}

fn pooled(mut config: Config, rail_guests: u32) -> wasmtime::Result<Engine> {
    let guests = rail_guests + limits::SIMULATED_GUESTS_MAX;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(guests)
        .total_core_instances(8 * guests)
        .total_memories(2 * guests)
        .total_tables(2 * guests)
        .total_stacks(guests)
        .max_core_instances_per_component(200)
        .max_memories_per_component(8)
        .max_tables_per_component(16)
        .max_component_instance_size(8 << 20)
        .max_core_instance_size(8 << 20)
        .max_memory_size(limits::GUEST_BYTES_MAX)
        .table_elements(limits::GUEST_TABLE_ELEMENTS_MAX)
        .linear_memory_keep_resident(1 << 20)
        // Only what a guest has touched is cleared, where the kernel can tell (Linux 6.7).
        .pagemap_scan(Enabled::Auto)
        .table_keep_resident(128 << 10)
        .max_unused_warm_slots(16);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

fn rails_config() -> Config {
    let mut config = common();
    config.epoch_interruption(true);
    config
}

fn rules_config() -> Config {
    let mut config = common();
    config.consume_fuel(true).epoch_interruption(true).cranelift_nan_canonicalization(true);
    config
}

/// Everything off that no guest toolchain needs. Multi-memory stays on: without it, composed
/// components make the compiler panic instead of refusing.
fn common() -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(1 << 20)
        .async_stack_size(2 << 20);
    config
}
