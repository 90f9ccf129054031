//! WASI's streams and polls for guests that are called at once, while a lock is held.
//!
//! Such a guest must not wait, nor learn how long anything takes: whatever is not ready at once
//! traps, and so does asking whether something is. wasmtime's own synchronous streams block the
//! thread, and panic where that thread drives asynchronous tasks.

use futures::FutureExt as _;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::p2::bindings::sync::io::{poll, streams};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult};
use wasmtime_wasi_io::bindings::wasi::io::streams::{
    HostInputStream as Input, HostOutputStream as Output,
};

/// Links both interfaces.
pub(super) fn link<T: WasiView>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    poll::add_to_linker::<T, Io>(linker, |guest| Impatient(guest.ctx().table))?;
    streams::add_to_linker::<T, Io>(linker, |guest| Impatient(guest.ctx().table))
}

struct Io;

impl HasData for Io {
    type Data<'a> = Impatient<'a>;
}

/// The table in which wasmtime keeps a guest's handles.
struct Impatient<'a>(&'a mut ResourceTable);

fn wait() -> wasmtime::Error {
    wasmtime::Error::msg("a rule pack must not wait")
}

fn now<T>(future: impl Future<Output = StreamResult<T>>) -> StreamResult<T> {
    future.now_or_never().unwrap_or_else(|| Err(StreamError::Trap(wait())))
}

fn dropped(future: impl Future<Output = wasmtime::Result<()>>) -> wasmtime::Result<()> {
    future.now_or_never().unwrap_or_else(|| Err(wait()))
}

impl poll::Host for Impatient<'_> {
    fn poll(&mut self, _: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        Err(wait())
    }
}

impl poll::HostPollable for Impatient<'_> {
    fn ready(&mut self, _: Resource<DynPollable>) -> wasmtime::Result<bool> {
        Err(wait())
    }

    fn block(&mut self, _: Resource<DynPollable>) -> wasmtime::Result<()> {
        Err(wait())
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::HostPollable::drop(self.0, pollable)
    }
}

impl streams::Host for Impatient<'_> {
    fn convert_stream_error(&mut self, why: StreamError) -> wasmtime::Result<streams::StreamError> {
        streams::Host::convert_stream_error(self.0, why)
    }
}

impl streams::HostOutputStream for Impatient<'_> {
    fn drop(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        dropped(Output::drop(self.0, stream))
    }

    fn check_write(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<u64> {
        Output::check_write(self.0, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        Output::write(self.0, stream, bytes)
    }

    fn blocking_write_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        now(Output::blocking_write_and_flush(self.0, stream, bytes))
    }

    fn blocking_write_zeroes_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        len: u64,
    ) -> StreamResult<()> {
        now(Output::blocking_write_zeroes_and_flush(self.0, stream, len))
    }

    fn subscribe(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        Output::subscribe(self.0, stream)
    }

    fn write_zeroes(&mut self, stream: Resource<DynOutputStream>, len: u64) -> StreamResult<()> {
        Output::write_zeroes(self.0, stream, len)
    }

    fn flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        Output::flush(self.0, stream)
    }

    fn blocking_flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        now(Output::blocking_flush(self.0, stream))
    }

    fn splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        len: u64,
    ) -> StreamResult<u64> {
        Output::splice(self.0, to, from, len)
    }

    fn blocking_splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        len: u64,
    ) -> StreamResult<u64> {
        now(Output::blocking_splice(self.0, to, from, len))
    }
}

impl streams::HostInputStream for Impatient<'_> {
    fn drop(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<()> {
        dropped(Input::drop(self.0, stream))
    }

    fn read(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<Vec<u8>> {
        Input::read(self.0, stream, len)
    }

    fn blocking_read(
        &mut self,
        stream: Resource<DynInputStream>,
        len: u64,
    ) -> StreamResult<Vec<u8>> {
        now(Input::blocking_read(self.0, stream, len))
    }

    fn skip(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        Input::skip(self.0, stream, len)
    }

    fn blocking_skip(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        now(Input::blocking_skip(self.0, stream, len))
    }

    fn subscribe(
        &mut self,
        stream: Resource<DynInputStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        Input::subscribe(self.0, stream)
    }
}
