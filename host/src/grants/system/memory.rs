//! The part `memory`: the use of memory and swap, in bytes.

use std::io::Cursor;

use procfs_core::{FromBufRead as _, Meminfo};
use serde::Serialize;

use super::error::CollectError;
use super::root::SystemRoot;

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct MemoryFacts {
    total: u64,
    /// What new programs can use without swapping.
    available: Option<u64>,
    free: u64,
    buffers: u64,
    cached: u64,
    shared: Option<u64>,
    kernel: u64,
    waiting_to_be_written: u64,
    swap_total: u64,
    swap_free: u64,
}

pub(super) fn collect(root: &SystemRoot) -> Result<MemoryFacts, CollectError> {
    let file = "proc/meminfo";
    let found = Meminfo::from_buf_read(Cursor::new(root.read(file)?));
    let found = found.map_err(|_| CollectError::Malformed(file.to_owned()))?;
    Ok(MemoryFacts {
        total: found.mem_total,
        available: found.mem_available,
        free: found.mem_free,
        buffers: found.buffers,
        cached: found.cached,
        shared: found.shmem,
        kernel: found.slab,
        waiting_to_be_written: found.dirty,
        swap_total: found.swap_total,
        swap_free: found.swap_free,
    })
}
