//! `wasi:io/streams` and `wasi:io/poll`: bytes are charged from when the guest writes them until whoever takes them has let
//! them go, and a list of what is waited for as long as it is waited for.

use bytes::Bytes;
use wasmtime::component::{Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::io::streams::{HostInputStream, HostOutputStream};
use wasmtime_wasi::p2::bindings::io::{poll, streams};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult};

use super::{HostMemory, Io, Refused, State};
use crate::admission::account::Charge;

/// Bytes that the library reads ahead for a stream at most.
const AHEAD: u64 = 64 << 10;

/// Bytes that the library reads ahead for a stream that somebody waits for.
const AWAITED: u64 = 4 << 10;

/// Bytes that one place in a list of what is waited for takes: the handle, its number, and its part in the answer.
const PLACE: u64 = 64;

/// Bytes that one write with a flush may have.
const FLUSHED: u64 = 4096;

/// A guest's streams and what they keep.
pub(in super::super) struct IoHost<'a> {
    pub(in super::super) table: &'a mut ResourceTable,
    pub(in super::super) memory: &'a mut HostMemory,
}

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    poll::add_to_linker::<_, Io>(linker, State::io_host)?;
    streams::add_to_linker::<_, Io>(linker, State::io_host)
}

impl From<Refused> for StreamError {
    fn from(refused: Refused) -> Self {
        Self::Trap(refused.into())
    }
}

/// Bytes with what they are charged.
struct Charged<T> {
    bytes: T,
    _charge: Charge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Charged<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl HostMemory {
    /// Charges bytes until the last copy of them is dropped.
    fn hold<T>(&self, bytes: T) -> Result<Bytes, Refused>
    where
        T: AsRef<[u8]> + Into<Bytes> + Send + 'static,
    {
        Ok(match self.charge(bytes.as_ref().len() as u64)? {
            Some(charge) => Bytes::from_owner(Charged { bytes, _charge: charge }),
            None => bytes.into(),
        })
    }

    /// Charges zeroes, and makes them.
    fn zeroes(&self, len: u64) -> Result<Bytes, StreamError> {
        let charge = self.charge(len)?;
        let bytes = vec![0; usize::try_from(len).map_err(|_| Refused)?];
        Ok(match charge {
            Some(charge) => Bytes::from_owner(Charged { bytes, _charge: charge }),
            None => bytes.into(),
        })
    }
}

fn size(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

impl poll::Host for IoHost<'_> {
    async fn poll(&mut self, all: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let _charge = self.memory.charge(PLACE.saturating_mul(all.len() as u64))?;
        poll::Host::poll(self.table, all).await
    }
}

impl poll::HostPollable for IoHost<'_> {
    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::HostPollable::block(self.table, pollable).await
    }

    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        poll::HostPollable::ready(self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        poll::HostPollable::drop(self.table, pollable)
    }
}

impl streams::Host for IoHost<'_> {
    fn convert_stream_error(&mut self, error: StreamError) -> wasmtime::Result<streams::StreamError> {
        match streams::Host::convert_stream_error(self.table, error)? {
            streams::StreamError::LastOperationFailed(error) => {
                Ok(streams::StreamError::LastOperationFailed(self.memory.made(error)?))
            }
            streams::StreamError::Closed => Ok(streams::StreamError::Closed),
        }
    }
}

impl HostOutputStream for IoHost<'_> {
    async fn drop(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        self.memory.dropped(stream.rep());
        HostOutputStream::drop(self.table, stream).await
    }

    fn check_write(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<u64> {
        HostOutputStream::check_write(self.table, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        if bytes.is_empty() {
            // Nothing is written, and nothing waits: pieces without bytes would pile up behind a stream that counts bytes.
            self.table.get_mut(&stream)?.check_write()?;
            return Ok(());
        }
        let bytes = self.memory.hold(bytes)?;
        self.table.get_mut(&stream)?.write(bytes)
    }

    fn subscribe(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<Resource<DynPollable>> {
        Ok(self.memory.made(HostOutputStream::subscribe(self.table, stream)?)?)
    }

    async fn blocking_write_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        if bytes.len() as u64 > FLUSHED {
            // Refused by the library, in its words.
            return HostOutputStream::blocking_write_and_flush(self.table, stream, bytes).await;
        }
        let bytes = self.memory.hold(bytes)?;
        self.table.get_mut(&stream)?.blocking_write_and_flush(bytes).await
    }

    async fn blocking_write_zeroes_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        len: u64,
    ) -> StreamResult<()> {
        if len > FLUSHED {
            return HostOutputStream::blocking_write_zeroes_and_flush(self.table, stream, len).await;
        }
        let bytes = self.memory.zeroes(len)?;
        self.table.get_mut(&stream)?.blocking_write_and_flush(bytes).await
    }

    fn write_zeroes(&mut self, stream: Resource<DynOutputStream>, len: u64) -> StreamResult<()> {
        let allowed = self.table.get_mut(&stream)?.check_write()?;
        if size(len) > allowed {
            return Err(StreamError::trap("cannot write more zeroes than `check_write` allows"));
        }
        if len == 0 {
            return Ok(());
        }
        let bytes = self.memory.zeroes(len)?;
        self.table.get_mut(&stream)?.write(bytes)
    }

    fn flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        HostOutputStream::flush(self.table, stream)
    }

    async fn blocking_flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        HostOutputStream::blocking_flush(self.table, stream).await
    }

    fn splice(&mut self, to: Resource<DynOutputStream>, from: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        let allowed = self.table.get_mut(&to)?.check_write()?.min(size(len));
        if allowed == 0 {
            return Ok(0);
        }
        let bytes = self.table.get_mut(&from)?.read(allowed)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let len = bytes.len() as u64;
        let bytes = self.memory.hold(bytes)?;
        self.table.get_mut(&to)?.write(bytes)?;
        Ok(len)
    }

    async fn blocking_splice(
        &mut self,
        to: Resource<DynOutputStream>,
        from: Resource<DynInputStream>,
        len: u64,
    ) -> StreamResult<u64> {
        let allowed = self.table.get_mut(&to)?.write_ready().await?.min(size(len));
        if allowed == 0 {
            return Ok(0);
        }
        let bytes = self.table.get_mut(&from)?.blocking_read(allowed).await?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let len = bytes.len() as u64;
        let bytes = self.memory.hold(bytes)?;
        self.table.get_mut(&to)?.blocking_write_and_flush(bytes).await?;
        Ok(len)
    }
}

impl HostInputStream for IoHost<'_> {
    async fn drop(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<()> {
        self.memory.dropped(stream.rep());
        HostInputStream::drop(self.table, stream).await
    }

    fn read(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<Vec<u8>> {
        let handle = stream.rep();
        let bytes = HostInputStream::read(self.table, stream, len)?;
        if bytes.is_empty() {
            // It is read ahead from now on.
            self.memory.set(handle, len.min(AHEAD))?;
        }
        Ok(bytes)
    }

    async fn blocking_read(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<Vec<u8>> {
        HostInputStream::blocking_read(self.table, stream, len).await
    }

    fn skip(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        let handle = stream.rep();
        let skipped = HostInputStream::skip(self.table, stream, len)?;
        if skipped == 0 {
            self.memory.set(handle, len.min(AHEAD))?;
        }
        Ok(skipped)
    }

    async fn blocking_skip(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        HostInputStream::blocking_skip(self.table, stream, len).await
    }

    fn subscribe(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<Resource<DynPollable>> {
        self.memory.add(stream.rep(), AWAITED, AHEAD)?;
        Ok(self.memory.made(HostInputStream::subscribe(self.table, stream)?)?)
    }
}
