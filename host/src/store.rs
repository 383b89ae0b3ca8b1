//! The state that replicas (belljar processes with the same configuration) share: counts of requests, and fresh
//! readings. At present it is in memory, so each process shares it only with itself.
//!
//! There is one trait for each kind of state. No method returns an error, and this holds for a networked store too. An
//! implementation that cannot reach its store continues alone, with its own counts and an empty cache. Losing the store
//! therefore costs speed and never an answer.

mod memory;
mod quota;
mod read_cache;

pub use memory::{MemoryQuotas, MemoryReadCache};
pub use quota::{QuotaDecision, QuotaDraw, QuotaId, QuotaRate, QuotaStore, Rate};
pub use read_cache::{CachedValue, ReadCache};
