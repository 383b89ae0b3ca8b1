//! Memory through which a worker gives large bodies to the front. A socket would copy them into the kernel in small pieces,
//! and wake both sides for each piece.
//!
//! The front makes the memory when it starts the worker, and seals its size. The worker writes bodies into free ranges, and
//! names the range in its answer. The front copies the bytes out before it looks at them, by a call of the system: the
//! worker can change them at any time.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate};
use rustix::io::{Errno, pread};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::interfaces::Reply;
use crate::model::Body;
use crate::sandbox::memory_file::memory_file;

/// Bytes of the memory. It is address space; only what was written takes memory.
const SIZE: usize = 64 << 20;

/// Bytes from the start that stay in memory while no answer uses them.
const KEPT: usize = 4 << 20;

/// The time after which memory beyond [`KEPT`] is given back. New memory costs more than a copy, and large answers often
/// follow each other.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The smallest body that goes through the memory. A socket takes a smaller one at once.
const MIN_BODY: usize = 64 << 10;

/// Ranges begin at multiples of this, so that each can be given back to the kernel.
const PAGE: usize = 4096;

/// The large bodies of an answer, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct BodyRange {
    /// Where they begin, in bytes.
    pub(in crate::sandbox) start: u64,
    /// For each, its place among the bodies of the answer, and its length in bytes.
    pub(in crate::sandbox) bodies: Vec<(u32, u64)>,
}

impl BodyRange {
    /// The length of all bodies, in bytes.
    pub(in crate::sandbox) fn len(&self) -> u64 {
        self.bodies.iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }
}

/// A worker named a range that no honest worker names.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum BodyError {
    /// The range is not in the memory.
    #[error("it named memory beyond the end")]
    Beyond,
    /// The answer has no such body, or it is not empty.
    #[error("it named a body that its answer does not have")]
    NoBody,
    /// A text is not UTF-8.
    #[error("it sent a text that is not UTF-8")]
    NotText,
    /// The kernel refuses the copy.
    #[error("the memory of its answer cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// The front's side.
pub(in crate::sandbox) struct AnswerMemory {
    file: OwnedFd,
    free: Mutex<FreeRanges>,
}

/// The ranges that the worker may use again, and does not know yet.
#[derive(Default)]
struct FreeRanges {
    /// The start and the end of each.
    ranges: Vec<(u64, u64)>,
    /// True if a task will give memory back.
    is_trimmed_soon: bool,
}

impl AnswerMemory {
    /// Makes the memory.
    ///
    /// # Errors
    /// If the kernel refuses it, or this process has no descriptor left.
    pub(in crate::sandbox) fn new() -> io::Result<Self> {
        let file = memory_file(c"answers")?;
        ftruncate(&file, SIZE as u64)?;
        // The worker cannot take memory away while the front copies it.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self { file, free: Mutex::default() })
    }

    /// A copy of the descriptor, for the worker.
    ///
    /// # Errors
    /// If this process has no descriptor left.
    pub(in crate::sandbox) fn file(&self) -> io::Result<OwnedFd> {
        self.file.try_clone()
    }

    /// The starts of the ranges that the worker may use again. Each is returned once.
    pub(in crate::sandbox) fn take_freed(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.free).ranges).into_iter().map(|(start, _)| start).collect()
    }

    /// Frees a range. Gives memory back after a time, if no call uses it then.
    fn free(self: &Arc<Self>, start: u64, end: u64) {
        let mut free = lock(&self.free);
        free.ranges.push((start, end));
        if end > KEPT as u64 {
            trim_soon(&mut free.is_trimmed_soon, self, Self::trim);
        }
    }

    /// Gives the memory of free ranges back, beyond [`KEPT`]. The worker does not know yet that they are free.
    fn trim(&self) {
        let mut free = lock(&self.free);
        free.is_trimmed_soon = false;
        for (start, end) in &free.ranges {
            let start = (*start).max(KEPT as u64);
            if start < *end {
                // If the kernel refuses it, the memory stays until the worker ends.
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = fallocate(&self.file, flags, start, end - start);
            }
        }
    }

    /// Keeps a range until its bodies were copied.
    ///
    /// # Errors
    /// [`BodyError::Beyond`].
    pub(in crate::sandbox) fn hold(self: &Arc<Self>, range: BodyRange) -> Result<HeldBodies, BodyError> {
        match range.start.checked_add(range.len()) {
            Some(end) if end <= SIZE as u64 => Ok(HeldBodies { memory: Arc::clone(self), range }),
            _ => Err(BodyError::Beyond),
        }
    }

    /// Copies bytes out.
    fn copy(&self, start: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = start + bytes.len() as u64;
            match pread(&self.file, spare_capacity(&mut bytes), at) {
                // The size is sealed, so the memory does not end here.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes.truncate(len);
        Ok(bytes)
    }
}

/// A range of the memory. When this is dropped, the worker may use the range again.
pub(in crate::sandbox) struct HeldBodies {
    memory: Arc<AnswerMemory>,
    range: BodyRange,
}

impl HeldBodies {
    /// Copies the bodies into their answer.
    ///
    /// # Errors
    /// A [`BodyError`] if the worker lied about them.
    pub(in crate::sandbox) fn copy_into(self, reply: &mut Reply) -> Result<(), BodyError> {
        let mut bodies = reply.bodies_mut();
        let mut start = self.range.start;
        for (place, len) in &self.range.bodies {
            let body = usize::try_from(*place).ok().and_then(|place| bodies.get_mut(place));
            let body = body.filter(|body| body.is_empty()).ok_or(BodyError::NoBody)?;
            let bytes = self.memory.copy(start, usize::try_from(*len).map_err(|_| BodyError::Beyond)?)?;
            **body = match body {
                Body::Text(_) => Body::Text(String::from_utf8(bytes).map_err(|_| BodyError::NotText)?),
                Body::Blob(_) => Body::Blob(bytes),
            };
            start += len;
        }
        Ok(())
    }
}

impl Drop for HeldBodies {
    fn drop(&mut self) {
        self.memory.free(self.range.start, self.range.start + self.range.len());
    }
}

/// The worker's side.
pub(in crate::sandbox) struct AnswerRoom {
    memory: NonNull<u8>,
    used: Mutex<UsedRanges>,
}

/// The ranges that the front has not taken yet, as far as the worker knows.
#[derive(Default)]
struct UsedRanges {
    /// The start and the end of each, in bytes.
    ranges: BTreeMap<usize, usize>,
    /// The end of the last byte that may take memory.
    end: usize,
    /// True if a task will give memory back.
    is_trimmed_soon: bool,
}

#[expect(unsafe_code, reason = "the memory is shared with the front, and the compiler knows no owner of it")]
// SAFETY: only `AnswerRoom::write` and `AnswerRoom::give_back` access the memory, and each of its ranges has one writer.
unsafe impl Send for AnswerRoom {}

#[expect(unsafe_code, reason = "see `Send`")]
// SAFETY: see `Send`.
unsafe impl Sync for AnswerRoom {}

impl AnswerRoom {
    /// Maps the memory that the front made.
    ///
    /// # Errors
    /// If the descriptor is no such memory.
    pub(in crate::sandbox) fn map(file: &OwnedFd) -> io::Result<Self> {
        if fstat(file)?.st_size != SIZE as i64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        #[expect(unsafe_code, reason = "only `mmap` gives memory that two processes share")]
        // SAFETY: the new mapping overlaps nothing. It has the size of the file, which is sealed.
        let memory = unsafe {
            mmap(std::ptr::null_mut(), SIZE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file.as_fd(), 0)
        }?;
        let memory = NonNull::new(memory.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, used: Mutex::default() })
    }

    /// Moves the large bodies of a reply into the memory. `None` if there is none, or no room: then they stay where they are.
    pub(in crate::sandbox) fn put(&self, reply: &mut Reply) -> Option<BodyRange> {
        let mut large: Vec<_> =
            reply.bodies_mut().into_iter().enumerate().filter(|(_, body)| body.len() >= MIN_BODY).collect();
        if large.is_empty() {
            return None;
        }
        let len = large.iter().map(|(_, body)| body.len()).sum();
        let start = self.reserve(len)?;
        let mut range = BodyRange { start: start as u64, bodies: Vec::with_capacity(large.len()) };
        let mut at = start;
        for (place, body) in &mut large {
            let bytes = match &**body {
                Body::Text(text) => text.as_bytes(),
                Body::Blob(bytes) => bytes,
            };
            self.write(at, bytes);
            at += bytes.len();
            range.bodies.push((u32::try_from(*place).ok()?, bytes.len() as u64));
            **body = match &**body {
                Body::Text(_) => Body::Text(String::new()),
                Body::Blob(_) => Body::Blob(Vec::new()),
            };
        }
        Some(range)
    }

    /// Takes ranges back, which the front has copied. Unknown ones are ignored. Gives memory back after a time, if no answer
    /// uses it then.
    pub(in crate::sandbox) fn free(self: &Arc<Self>, starts: &[u64]) {
        let mut used = lock(&self.used);
        for start in starts.iter().filter_map(|start| usize::try_from(*start).ok()) {
            used.ranges.remove(&start);
        }
        if used.end > KEPT {
            trim_soon(&mut used.is_trimmed_soon, self, Self::trim);
        }
    }

    /// Gives the memory that no range uses back, beyond [`KEPT`].
    fn trim(&self) {
        let mut used = lock(&self.used);
        used.is_trimmed_soon = false;
        let mut start = KEPT;
        for (next, end) in &used.ranges {
            self.give_back(start, *next);
            start = start.max(*end);
        }
        self.give_back(start, used.end);
        used.end = used.ranges.values().copied().max().unwrap_or_default();
    }

    /// Gives the memory from `start` to `end` back. No range is there.
    fn give_back(&self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: both are in the mapping. Its bytes become zero, and nobody has a reference to them.
        let _ = unsafe { madvise(self.memory.add(start).as_ptr().cast(), end - start, Advice::LinuxRemove) };
    }

    /// Reserves the first gap of `len` bytes. The first, because memory near the start is there already.
    fn reserve(&self, len: usize) -> Option<usize> {
        let mut used = lock(&self.used);
        let len = len.checked_next_multiple_of(PAGE)?;
        let mut start = 0;
        for (next, end) in &used.ranges {
            if next - start >= len {
                break;
            }
            start = *end;
        }
        let end = start.checked_add(len).filter(|end| *end <= SIZE)?;
        used.ranges.insert(start, end);
        used.end = used.end.max(end);
        Some(start)
    }

    /// Writes into a reserved range.
    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= SIZE), "a range within the memory");
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: by the check above, the bytes are in the mapping. The range is reserved, so no other thread accesses it,
        // and the front reads it by a call of the system.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(at).as_ptr(), bytes.len());
        }
    }
}

impl Drop for AnswerRoom {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: the mapping belongs to this value, and nobody has a reference into it.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), SIZE) };
    }
}

/// Starts a task that calls `trim` after [`KEPT_FOR`], unless there is one. `trim` clears `is_trimmed_soon`.
fn trim_soon<S: Send + Sync + 'static>(is_trimmed_soon: &mut bool, side: &Arc<S>, trim: fn(&S)) {
    let Ok(runtime) = Handle::try_current() else { return };
    if std::mem::replace(is_trimmed_soon, true) {
        return;
    }
    let side = Arc::downgrade(side);
    runtime.spawn(async move {
        tokio::time::sleep(KEPT_FOR).await;
        if let Some(side) = side.upgrade() {
            trim(&side);
        }
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
