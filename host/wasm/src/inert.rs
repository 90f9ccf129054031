//! The part of WASI that language runtimes ask for, without anything behind it.
//!
//! No files, no sockets, no environment, no arguments, no input. Output goes nowhere but for
//! what a panicking guest writes to stderr, which is kept for the error message. Clocks stand
//! still and randomness is constant, so a guest cannot tell one call from another by them, and
//! nothing can be waited for. Handles carry no state: none of this costs the host memory.

use wasmtime::component::{HasData, Linker, Resource};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit/wasi.wit",
        world: "railhead:inert/inert",
        imports: { default: trappable },
    });
}

use bindings::wasi::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
    terminal_stdin, terminal_stdout,
};
use bindings::wasi::clocks::{monotonic_clock, wall_clock};
use bindings::wasi::io::{error, poll, streams};
use bindings::wasi::random::{insecure, insecure_seed, random};
use poll::Pollable;
use streams::{InputStream, OutputStream, StreamError};

const STDERR_BYTES_MAX: usize = 4096;
/// What a stream takes at a time.
const WRITE_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of constant randomness in one call: hash maps ask for sixteen.
const RANDOM_BYTES_MAX: u64 = 4096;

/// What the handle of an output stream stands for.
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

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

/// All there is behind the interfaces.
pub(super) struct Inert {
    now_ms: u64,
    stderr: Vec<u8>,
}

impl Inert {
    /// At this instant, in milliseconds since 1970.
    pub(super) fn at(now_ms: u64) -> Self {
        Self { now_ms, stderr: Vec::new() }
    }

    /// What the guest wrote to stderr, as far as it was kept.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }

    fn keep(&mut self, stream: &Resource<OutputStream>, bytes: &[u8]) {
        if stream.rep() == STDERR {
            let room = STDERR_BYTES_MAX.saturating_sub(self.stderr.len());
            self.stderr.extend(&bytes[..bytes.len().min(room)]);
        }
    }
}

/// Who has the parts in its state.
struct Part;

impl HasData for Part {
    type Data<'a> = &'a mut Inert;
}

/// Links every interface; `get` finds the parts in a guest's state.
pub(super) fn link<T: 'static>(
    linker: &mut Linker<T>,
    get: fn(&mut T) -> &mut Inert,
) -> wasmtime::Result<()> {
    error::add_to_linker::<T, Part>(linker, get)?;
    poll::add_to_linker::<T, Part>(linker, get)?;
    streams::add_to_linker::<T, Part>(linker, get)?;
    wall_clock::add_to_linker::<T, Part>(linker, get)?;
    monotonic_clock::add_to_linker::<T, Part>(linker, get)?;
    random::add_to_linker::<T, Part>(linker, get)?;
    insecure::add_to_linker::<T, Part>(linker, get)?;
    insecure_seed::add_to_linker::<T, Part>(linker, get)?;
    environment::add_to_linker::<T, Part>(linker, get)?;
    exit::add_to_linker::<T, Part>(linker, get)?;
    stdin::add_to_linker::<T, Part>(linker, get)?;
    stdout::add_to_linker::<T, Part>(linker, get)?;
    stderr::add_to_linker::<T, Part>(linker, get)?;
    terminal_input::add_to_linker::<T, Part>(linker, get)?;
    terminal_output::add_to_linker::<T, Part>(linker, get)?;
    terminal_stdin::add_to_linker::<T, Part>(linker, get)?;
    terminal_stdout::add_to_linker::<T, Part>(linker, get)?;
    terminal_stderr::add_to_linker::<T, Part>(linker, get)
}

fn refused<T>(why: &'static str) -> wasmtime::Result<T> {
    Err(wasmtime::Error::msg(why))
}

fn wait<T>() -> wasmtime::Result<T> {
    refused("a component must not wait")
}

fn pollable() -> wasmtime::Result<Resource<Pollable>> {
    Ok(Resource::new_own(0))
}

type Written = wasmtime::Result<Result<(), StreamError>>;

impl error::Host for Inert {}

impl error::HostError for Inert {
    fn to_debug_string(&mut self, _: Resource<error::Error>) -> wasmtime::Result<String> {
        Ok(String::new())
    }

    fn drop(&mut self, _: Resource<error::Error>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl poll::Host for Inert {
    fn poll(&mut self, _: Vec<Resource<Pollable>>) -> wasmtime::Result<Vec<u32>> {
        wait()
    }
}

impl poll::HostPollable for Inert {
    fn ready(&mut self, _: Resource<Pollable>) -> wasmtime::Result<bool> {
        wait()
    }

    fn block(&mut self, _: Resource<Pollable>) -> wasmtime::Result<()> {
        wait()
    }

    fn drop(&mut self, _: Resource<Pollable>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl streams::Host for Inert {}

impl streams::HostInputStream for Inert {
    fn read(
        &mut self,
        _: Resource<InputStream>,
        _: u64,
    ) -> wasmtime::Result<Result<Vec<u8>, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_read(
        &mut self,
        stream: Resource<InputStream>,
        len: u64,
    ) -> wasmtime::Result<Result<Vec<u8>, StreamError>> {
        self.read(stream, len)
    }

    fn skip(
        &mut self,
        _: Resource<InputStream>,
        _: u64,
    ) -> wasmtime::Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_skip(
        &mut self,
        stream: Resource<InputStream>,
        len: u64,
    ) -> wasmtime::Result<Result<u64, StreamError>> {
        self.skip(stream, len)
    }

    fn subscribe(&mut self, _: Resource<InputStream>) -> wasmtime::Result<Resource<Pollable>> {
        pollable()
    }

    fn drop(&mut self, _: Resource<InputStream>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl streams::HostOutputStream for Inert {
    fn check_write(
        &mut self,
        _: Resource<OutputStream>,
    ) -> wasmtime::Result<Result<u64, StreamError>> {
        Ok(Ok(WRITE_BYTES_MAX))
    }

    fn write(&mut self, stream: Resource<OutputStream>, contents: Vec<u8>) -> Written {
        self.keep(&stream, &contents);
        Ok(Ok(()))
    }

    fn blocking_write_and_flush(
        &mut self,
        stream: Resource<OutputStream>,
        contents: Vec<u8>,
    ) -> Written {
        self.keep(&stream, &contents);
        Ok(Ok(()))
    }

    fn flush(&mut self, _: Resource<OutputStream>) -> Written {
        Ok(Ok(()))
    }

    fn blocking_flush(&mut self, _: Resource<OutputStream>) -> Written {
        Ok(Ok(()))
    }

    fn subscribe(&mut self, _: Resource<OutputStream>) -> wasmtime::Result<Resource<Pollable>> {
        pollable()
    }

    fn write_zeroes(&mut self, _: Resource<OutputStream>, _: u64) -> Written {
        Ok(Ok(()))
    }

    fn blocking_write_zeroes_and_flush(&mut self, _: Resource<OutputStream>, _: u64) -> Written {
        Ok(Ok(()))
    }

    fn splice(
        &mut self,
        _: Resource<OutputStream>,
        _: Resource<InputStream>,
        _: u64,
    ) -> wasmtime::Result<Result<u64, StreamError>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_splice(
        &mut self,
        to: Resource<OutputStream>,
        from: Resource<InputStream>,
        len: u64,
    ) -> wasmtime::Result<Result<u64, StreamError>> {
        self.splice(to, from, len)
    }

    fn drop(&mut self, _: Resource<OutputStream>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl wall_clock::Host for Inert {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let nanoseconds = u32::try_from(self.now_ms % 1000 * 1_000_000).unwrap_or(0);
        Ok(wall_clock::Datetime { seconds: self.now_ms / 1000, nanoseconds })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime { seconds: 0, nanoseconds: 1_000_000 })
    }
}

impl monotonic_clock::Host for Inert {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, _: u64) -> wasmtime::Result<Resource<Pollable>> {
        pollable()
    }

    fn subscribe_duration(&mut self, _: u64) -> wasmtime::Result<Resource<Pollable>> {
        pollable()
    }
}

fn constant(len: u64) -> wasmtime::Result<Vec<u8>> {
    match usize::try_from(len) {
        Ok(bytes) if len <= RANDOM_BYTES_MAX => Ok(vec![0; bytes]),
        _ => refused("more random bytes than a component may ask for"),
    }
}

impl random::Host for Inert {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        constant(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }
}

impl insecure::Host for Inert {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        constant(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(0)
    }
}

impl insecure_seed::Host for Inert {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((0, 0))
    }
}

impl environment::Host for Inert {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for Inert {
    fn exit(&mut self, _: Result<(), ()>) -> wasmtime::Result<()> {
        refused("the component exited")
    }
}

impl stdin::Host for Inert {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<InputStream>> {
        Ok(Resource::new_own(0))
    }
}

impl stdout::Host for Inert {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<OutputStream>> {
        Ok(Resource::new_own(STDOUT))
    }
}

impl stderr::Host for Inert {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<OutputStream>> {
        Ok(Resource::new_own(STDERR))
    }
}

impl terminal_input::Host for Inert {}

impl terminal_input::HostTerminalInput for Inert {
    fn drop(&mut self, _: Resource<terminal_input::TerminalInput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_output::Host for Inert {}

impl terminal_output::HostTerminalOutput for Inert {
    fn drop(&mut self, _: Resource<terminal_output::TerminalOutput>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl terminal_stdin::Host for Inert {
    fn get_terminal_stdin(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_input::TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for Inert {
    fn get_terminal_stdout(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for Inert {
    fn get_terminal_stderr(
        &mut self,
    ) -> wasmtime::Result<Option<Resource<terminal_output::TerminalOutput>>> {
        Ok(None)
    }
}
