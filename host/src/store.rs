//! The state that replicas (belljar processes with the same configuration) share: counts of requests, marks of answered
//! questions, and fresh readings. Without a store, it is in memory, and each process shares it only with itself.
//!
//! There is one trait for each kind of state. No method returns an error: an implementation that cannot reach its store
//! continues alone, with its own counts and an empty cache. Losing the store therefore costs speed and never an answer.

mod dial;
mod down;
mod memory;
mod quota;
mod read_cache;
mod redis;
mod spent;

pub use self::redis::{
    AnswerId, AnswerLookup, BEAT_INTERVAL, CallLead, Generation, GenerationContents, Heard, LinkStatus, News,
    QuotaCounts, RENEW_INTERVAL, Replicas, RoundNews, RoundRole, SharedStore, SharedStoreOptions, StateNews,
    StoreLogin, StoreStatus,
};
pub use self::redis::{DrawMode, QuotaKey, SharedCounts, SharedDraw, SharedQuotas};
pub use dial::{DialFailure, StoreDialer, StoreStream};
pub use down::StoreDown;
pub use memory::{MemoryQuotas, MemoryReadCache};
pub use quota::{QuotaDecision, QuotaDraw, QuotaId, QuotaRate, QuotaStore, Rate, WhenDown};
pub use read_cache::{CachedValue, ReadCache};
pub use spent::{Spending, SpentMarks};
