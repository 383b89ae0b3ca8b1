//! Rate limit of each caller (a connection or session) for tool calls and completions. The store counts the requests,
//! so that replicas with a shared store count together.

use std::sync::Arc;
use std::time::Duration;

use crate::model::bounds;
pub use crate::store::Rate;
use crate::store::{QuotaDecision, QuotaStore};

/// The highest rate and the largest burst that can be configured.
pub const MAX_RATE: u64 = 1_000_000;

/// The rate limit of all callers.
pub struct CallerQuotas {
    rate: Rate,
    store: Arc<dyn QuotaStore>,
}

impl CallerQuotas {
    /// Limits each caller to `rate`, counted in `store`.
    pub fn new(rate: Rate, store: Arc<dyn QuotaStore>) -> Self {
        let rate = Rate { rate: bounds::of_caller(rate.rate), burst: bounds::of_caller(rate.burst) };
        Self { rate, store }
    }

    /// The rate of each caller.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Counts one request of `caller`.
    ///
    /// # Errors
    /// The time until the next request is allowed.
    pub async fn count(&self, caller: u64) -> Result<(), Duration> {
        match self.store.take(caller, self.rate).await {
            QuotaDecision::Granted => Ok(()),
            QuotaDecision::Wait(pause) => Err(pause),
        }
    }
}
