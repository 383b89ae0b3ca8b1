//! Quotas: how much a caller may take in a period.

use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::policy::CallerId;

/// The rate of tool calls and completions of one caller, from `[callers]`.
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

/// `amount` units in each `period` on average, and at most `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaRate {
    /// Units that come back in a period.
    pub amount: u64,
    /// The period.
    pub period: Duration,
    /// Units that may be taken at once, after a pause.
    pub burst: u64,
}

impl From<Rate> for QuotaRate {
    fn from(Rate { rate, burst }: Rate) -> Self {
        Self { amount: rate.into(), period: Duration::from_secs(1), burst: burst.into() }
    }
}

/// Distinguishes the quotas of one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaId {
    /// The rate of `[callers]`.
    Callers,
    /// The rate of a rule, by its id.
    Rule(u64),
}

/// One draw from one quota of one caller. Quotas of different rates are counted apart: a changed rate starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaDraw {
    /// The quota.
    pub quota: QuotaId,
    /// The caller.
    pub caller: CallerId,
    /// The rate of the quota.
    pub rate: QuotaRate,
    /// The units that are taken. 0 takes nothing, and is granted if one unit is left.
    pub cost: u64,
}

/// What happens to requests with a rate while the store cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"local\" or \"refuse\"")]
#[schemars(inline)]
pub enum WhenDown {
    /// Each replica counts alone.
    #[default]
    Local,
    /// They are refused.
    Refuse,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaDecision {
    /// The request is admitted and counted.
    Granted,
    /// The request is refused, and counted nowhere.
    Wait {
        /// The time after which the same request is admitted, if no other one comes before it.
        time: Duration,
        /// The index of the draw that has to wait for longest.
        draw: usize,
    },
    /// The request is refused, because nothing can count it now.
    Uncounted,
}

/// Counts what callers take. The store uses its own clock, so that replicas with different clocks count alike.
pub trait QuotaStore: Send + Sync {
    /// Takes all of `draws`, or none of them.
    fn take<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, QuotaDecision>;

    /// Takes all of `draws`, also beyond their quotas. Nothing more is granted from a quota until such a debt is paid.
    fn charge<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, ()>;
}
