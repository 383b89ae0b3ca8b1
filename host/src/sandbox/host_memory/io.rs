//! `wasi:io/streams` and `wasi:io/poll`. Bytes are charged from the guest's write until the consumer drops them. A poll
//! list is charged for the duration of the poll.

use bytes::Bytes;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::io::streams::{HostInputStream, HostOutputStream};
use wasmtime_wasi::p2::bindings::io::{poll, streams};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult};

use super::charges::{HostMemory, HostMemoryExceeded};
use crate::limits::memory_account::MemoryCharge;

/// The most bytes that wasmtime reads ahead for a stream.
const MAX_READ_AHEAD: u64 = 64 << 10;

/// Bytes that wasmtime reads ahead for a stream with a subscription.
const SUBSCRIBED_READ_AHEAD: u64 = 4 << 10;

/// Bytes of one entry of a poll list: the handle, its index, and its part of the result.
const POLL_ENTRY: u64 = 64;

/// The most bytes of one call of `blocking-write-and-flush`, as WASI defines it.
const MAX_FLUSHED_WRITE: u64 = 4096;

/// The guest's handle table with its streams, and the account of the host memory that they use.
pub(in crate::sandbox) struct IoHost<'a> {
    pub(in crate::sandbox) table: &'a mut ResourceTable,
    pub(in crate::sandbox) memory: &'a mut HostMemory,
}

/// The key by which wasmtime gets an [`IoHost`] from the store.
struct IoKey;

impl HasData for IoKey {
    type Data<'a> = IoHost<'a>;
}

/// Links these functions in place of wasmtime's own. `host` borrows the [`IoHost`] from the data of the store.
pub(in crate::sandbox) fn link<T: Send + 'static>(
    linker: &mut Linker<T>,
    host: fn(&mut T) -> IoHost<'_>,
) -> wasmtime::Result<()> {
    poll::add_to_linker::<_, IoKey>(linker, host)?;
    streams::add_to_linker::<_, IoKey>(linker, host)
}

impl From<HostMemoryExceeded> for StreamError {
    fn from(exceeded: HostMemoryExceeded) -> Self {
        Self::Trap(exceeded.into())
    }
}

/// Bytes, and their charge, which ends with them.
struct ChargedBytes<T> {
    bytes: T,
    _charge: MemoryCharge,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for ChargedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl HostMemory {
    /// Charges bytes until their last reference is dropped.
    fn charge_bytes<T>(&self, bytes: T) -> Result<Bytes, HostMemoryExceeded>
    where
        T: AsRef<[u8]> + Into<Bytes> + Send + 'static,
    {
        Ok(match self.charge(bytes.as_ref().len() as u64)? {
            Some(charge) => Bytes::from_owner(ChargedBytes { bytes, _charge: charge }),
            None => bytes.into(),
        })
    }

    /// Charges and creates `len` zero bytes.
    fn zeroes(&self, len: u64) -> Result<Bytes, StreamError> {
        let charge = self.charge(len)?;
        let bytes = vec![0; usize::try_from(len).map_err(|_| HostMemoryExceeded)?];
        Ok(match charge {
            Some(charge) => Bytes::from_owner(ChargedBytes { bytes, _charge: charge }),
            None => bytes.into(),
        })
    }
}

fn size(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

impl poll::Host for IoHost<'_> {
    async fn poll(&mut self, all: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        let _charge = self.memory.charge(POLL_ENTRY.saturating_mul(all.len() as u64))?;
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
                Ok(streams::StreamError::LastOperationFailed(self.memory.charge_handle(error)?))
            }
            streams::StreamError::Closed => Ok(streams::StreamError::Closed),
        }
    }
}

impl HostOutputStream for IoHost<'_> {
    async fn drop(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<()> {
        self.memory.release_handle(stream.rep());
        HostOutputStream::drop(self.table, stream).await
    }

    fn check_write(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<u64> {
        HostOutputStream::check_write(self.table, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        if bytes.is_empty() {
            // Drops empty writes. A stream limits its queue by bytes only, so empty pieces could pile up without end.
            self.table.get_mut(&stream)?.check_write()?;
            return Ok(());
        }
        let bytes = self.memory.charge_bytes(bytes)?;
        self.table.get_mut(&stream)?.write(bytes)
    }

    fn subscribe(&mut self, stream: Resource<DynOutputStream>) -> wasmtime::Result<Resource<DynPollable>> {
        Ok(self.memory.charge_handle(HostOutputStream::subscribe(self.table, stream)?)?)
    }

    async fn blocking_write_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        if bytes.len() as u64 > MAX_FLUSHED_WRITE {
            // wasmtime refuses it with its own error.
            return HostOutputStream::blocking_write_and_flush(self.table, stream, bytes).await;
        }
        let bytes = self.memory.charge_bytes(bytes)?;
        self.table.get_mut(&stream)?.blocking_write_and_flush(bytes).await
    }

    async fn blocking_write_zeroes_and_flush(
        &mut self,
        stream: Resource<DynOutputStream>,
        len: u64,
    ) -> StreamResult<()> {
        if len > MAX_FLUSHED_WRITE {
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
        let bytes = self.memory.charge_bytes(bytes)?;
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
        let bytes = self.memory.charge_bytes(bytes)?;
        self.table.get_mut(&to)?.blocking_write_and_flush(bytes).await?;
        Ok(len)
    }
}

impl HostInputStream for IoHost<'_> {
    async fn drop(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<()> {
        self.memory.release_handle(stream.rep());
        HostInputStream::drop(self.table, stream).await
    }

    fn read(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<Vec<u8>> {
        let handle = stream.rep();
        let bytes = HostInputStream::read(self.table, stream, len)?;
        if bytes.is_empty() {
            // From now on wasmtime reads ahead for this stream.
            self.memory.set(handle, len.min(MAX_READ_AHEAD))?;
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
            self.memory.set(handle, len.min(MAX_READ_AHEAD))?;
        }
        Ok(skipped)
    }

    async fn blocking_skip(&mut self, stream: Resource<DynInputStream>, len: u64) -> StreamResult<u64> {
        HostInputStream::blocking_skip(self.table, stream, len).await
    }

    fn subscribe(&mut self, stream: Resource<DynInputStream>) -> wasmtime::Result<Resource<DynPollable>> {
        self.memory.add(stream.rep(), SUBSCRIBED_READ_AHEAD, MAX_READ_AHEAD)?;
        Ok(self.memory.charge_handle(HostInputStream::subscribe(self.table, stream)?)?)
    }
}
