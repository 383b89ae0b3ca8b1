//! Shared state in the memory of one process.

mod leaky_bucket;
mod quotas;
mod read_cache;

pub use quotas::MemoryQuotas;
pub use read_cache::MemoryReadCache;
