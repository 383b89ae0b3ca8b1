//! Quotas: how often a caller may send requests.

use std::time::Duration;

use futures_util::future::BoxFuture;

/// The rate at which one caller may send requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests per second on average.
    pub rate: u32,
    /// Requests that may come at once, after a pause.
    pub burst: u32,
}

impl Default for Rate {
    /// More than a model calls or a person types in a second.
    fn default() -> Self {
        Self { rate: 50, burst: 200 }
    }
}

/// The decision about one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaDecision {
    /// The request is admitted and counted.
    Granted,
    /// The request is refused. The next one is admitted after this time.
    Wait(Duration),
}

/// Counts the requests of callers.
pub trait QuotaStore: Send + Sync {
    /// Counts one request of `caller`, to whom `rate` applies. Called for tool calls and completions; reads have no
    /// rate. The store uses its own clock, so that replicas with different clocks count alike.
    fn take(&self, caller: u64, rate: Rate) -> BoxFuture<'_, QuotaDecision>;
}
