//! Limits of each caller: its rate of tool calls and completions, the rates of the rules that allow its requests, and
//! its share of the turns. The store counts, so that replicas with a shared store count together.

use std::sync::Arc;
use std::time::Duration;

use crate::model::busy::{BusyReason, show_pause};
use crate::model::{ReadError, bounds};
use crate::policy::{CallerId, Principal, PrincipalKind, QuotaRule, QuotaUnit};
pub use crate::store::Rate;
use crate::store::{QuotaDecision, QuotaDraw, QuotaId, QuotaRate, QuotaStore};

/// The highest rate and the largest burst that can be configured.
pub const MAX_RATE: u64 = 1_000_000;

/// When a caller may come again whose request could not be counted.
const UNCOUNTED_PAUSE: Duration = Duration::from_secs(1);

/// `[callers]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerLimits {
    /// The rate of tool calls and completions of one client.
    pub rate: Rate,
    /// Calls of one key or subject that run at once. `None`: half of all turns.
    pub concurrency: Option<usize>,
}

/// Counts the requests of all callers.
pub(super) struct CallerQuotas {
    rate: Rate,
    store: Arc<dyn QuotaStore>,
}

/// The quotas in bytes that the answer to a counted request draws from. Dropped without [`AnswerQuota::charge`] if there
/// is no answer.
#[derive(Default)]
#[must_use = "the bytes of the answer are charged"]
pub struct AnswerQuota(Option<ByteDraws>);

/// Draws in bytes, and the store that counts them.
struct ByteDraws {
    draws: Vec<QuotaDraw>,
    store: Arc<dyn QuotaStore>,
}

impl AnswerQuota {
    /// Charges `bytes` bytes of contents, wherever they came from: a call, another request's call, or a cache.
    pub async fn charge(self, bytes: usize) {
        if let Some(ByteDraws { mut draws, store }) = self.0 {
            draws.iter_mut().for_each(|draw| draw.cost = u64::try_from(bytes).unwrap_or(u64::MAX));
            store.charge(&draws).await;
        }
    }
}

impl CallerQuotas {
    /// Limits each caller to `rate`, counted in `store`.
    pub(super) fn new(rate: Rate, store: Arc<dyn QuotaStore>) -> Self {
        let rate = Rate { rate: bounds::of_caller(rate.rate), burst: bounds::of_caller(rate.burst) };
        Self { rate, store }
    }

    /// Counts one tool call or completion of `caller`.
    ///
    /// # Errors
    /// [`ReadError::Busy`] with the time until the next request is allowed.
    pub(super) async fn count(&self, caller: CallerId) -> Result<(), ReadError> {
        let draw = QuotaDraw { quota: QuotaId::Callers, caller, rate: self.rate.into(), cost: 1 };
        match self.store.take(&[draw]).await {
            QuotaDecision::Granted => Ok(()),
            QuotaDecision::Uncounted => Err(uncounted()),
            QuotaDecision::Wait { time, .. } => {
                let Rate { rate, burst } = self.rate;
                Err(refusal(
                    &format!(
                        "too many tool calls and completions from this client: {rate} a second and bursts of {burst} are allowed"
                    ),
                    time,
                ))
            }
        }
    }

    /// Counts one request of `principal`, which rules with these rates allow. A rate that occurs twice counts once.
    /// belljar's own requests are not counted.
    ///
    /// # Errors
    /// [`ReadError::Busy`] if a rate is used up, with the time until the next request is allowed. Then nothing is
    /// counted.
    pub(super) async fn count_rules<'a>(
        &self,
        principal: &Principal,
        rules: impl Iterator<Item = &'a Arc<QuotaRule>>,
    ) -> Result<AnswerQuota, ReadError> {
        let mut counted: Vec<&QuotaRule> = Vec::new();
        for rule in rules {
            if !counted.iter().any(|known| known.id == rule.id) {
                counted.push(rule);
            }
        }
        // Most requests have no rate. They cost nothing here.
        if counted.is_empty() || principal.kind() == PrincipalKind::Belljar {
            return Ok(AnswerQuota::default());
        }
        // All anonymous clients are one principal: a rate would limit nobody if a new connection had a new quota.
        let caller = CallerId::Principal(principal.id());
        let draw = |rule: &&QuotaRule| {
            let amount = bounds::of_rule(rule.amount);
            let rate = QuotaRate { amount, period: rule.period, burst: amount };
            // The size of the answer is not known yet.
            let cost = u64::from(rule.unit == QuotaUnit::Requests);
            QuotaDraw { quota: QuotaId::Rule(rule.id), caller, rate, cost }
        };
        let mut draws: Vec<_> = counted.iter().map(draw).collect();
        match self.store.take(&draws).await {
            QuotaDecision::Granted => {}
            QuotaDecision::Uncounted => return Err(uncounted()),
            QuotaDecision::Wait { time, draw } => {
                let rate = counted.get(draw).map(|rule| rule.to_string()).unwrap_or_default();
                return Err(refusal(&format!("the rules allow this caller {rate}, and it has used them up"), time));
            }
        }
        draws.retain(|draw| draw.cost == 0);
        let bytes = (!draws.is_empty()).then(|| ByteDraws { draws, store: Arc::clone(&self.store) });
        Ok(AnswerQuota(bytes))
    }
}

/// The error while nothing counts.
fn uncounted() -> ReadError {
    refusal("this request has a rate, and the store that counts requests cannot be reached", UNCOUNTED_PAUSE)
}

fn refusal(why: &str, pause: Duration) -> ReadError {
    let why = format!("{why}; retry in {}", show_pause(pause));
    ReadError::Busy(BusyReason::from(why).retry_after(pause))
}
