//! The part of WASI that language runtimes ask for, without anything behind it.
//!
//! No files, no sockets, no environment, no arguments, no input. Output goes nowhere but for
//! what a panicking guest writes to stderr, which is kept for the error message. Clocks stand
//! still and randomness is constant, so a guest cannot tell one call from another by them.

use std::time::Duration;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiView};
use wasmtime_wasi_io::bindings::wasi::io;

use super::impatient;

const STDERR_BYTES_MAX: usize = 4096;
/// Bytes of constant randomness in one call: hash maps ask for sixteen.
const RANDOM_BYTES_MAX: u64 = 4096;

/// Interfaces that a component may import besides the host's own. Anything else is refused
/// when it is loaded, by name.
pub(super) const INTERFACES: &[&str] = &[
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// A context in which everything is absent, and the pipe that keeps a panic's message.
pub(super) fn context(now_ms: u64) -> (WasiCtx, MemoryOutputPipe) {
    let stderr = MemoryOutputPipe::new(STDERR_BYTES_MAX);
    let context = WasiCtx::builder()
        .stderr(stderr.clone())
        .wall_clock(Still(Duration::from_millis(now_ms)))
        .monotonic_clock(Still(Duration::ZERO))
        .insecure_random_seed(0)
        .secure_random(Deterministic::new(vec![0]))
        .insecure_random(Deterministic::new(vec![0]))
        .max_random_size(RANDOM_BYTES_MAX)
        .build();
    (context, stderr)
}

/// Links the interfaces for guests that are called asynchronously.
pub(super) fn link_async<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    link_common(linker)?;
    io::poll::add_to_linker::<T, Io>(linker, |guest| guest.ctx().table)?;
    io::streams::add_to_linker::<T, Io>(linker, |guest| guest.ctx().table)
}

/// Links the interfaces for guests that are called at once.
pub(super) fn link_sync<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    link_common(linker)?;
    impatient::link(linker)
}

fn link_common<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    use bindings::{cli, clocks, random};
    use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
    use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
    use wasmtime_wasi::random::WasiRandom;

    io::error::add_to_linker::<T, Io>(linker, |guest| guest.ctx().table)?;
    clocks::wall_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    clocks::monotonic_clock::add_to_linker::<T, WasiClocks>(linker, T::clocks)?;
    random::random::add_to_linker::<T, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    random::insecure::add_to_linker::<T, WasiRandom>(linker, |guest| guest.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(linker, |guest| {
        guest.ctx().ctx.random()
    })?;
    cli::exit::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::environment::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::stderr::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(linker, T::cli)?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(linker, T::cli)
}

/// Borrows the table in which wasmtime keeps a guest's handles.
struct Io;

impl HasData for Io {
    type Data<'a> = &'a mut ResourceTable;
}

/// A clock that does not move.
struct Still(Duration);

impl HostWallClock for Still {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

impl HostMonotonicClock for Still {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(0)
    }
}
