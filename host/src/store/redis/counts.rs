//! The counts of quotas, where all replicas reach them.

use std::sync::{Arc, LazyLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::Script;

use super::link::StoreLink;
use super::names::StoreNames;
use super::quota_key::QuotaKey;
use crate::store::down::StoreDown;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("quota.lua")));

/// A draw from a quota that replicas share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedDraw {
    /// The quota, and whose it is.
    pub key: QuotaKey,
    /// Units to take.
    pub cost: u64,
    /// Units that were taken before and are not counted yet. Negative: units to give back.
    pub owed: i128,
}

/// What a draw does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawMode {
    /// It takes if all quotas allow it.
    Take,
    /// It takes in any case.
    Charge,
}

/// Counts for all replicas, with one clock.
pub trait SharedCounts: Send + Sync {
    /// Draws from all quotas, or from none. Gives numbers: 0, and for each draw the units that are set aside for the next
    /// ones of the same caller; or a wait in microseconds, and the number of the draw that has to wait, from 1.
    fn draw<'a>(&'a self, mode: DrawMode, draws: &'a [SharedDraw]) -> BoxFuture<'a, Result<Vec<u64>, StoreDown>>;
}

/// Counts in a Redis.
pub(super) struct RedisCounts {
    link: Arc<StoreLink>,
    names: StoreNames,
}

impl RedisCounts {
    /// Counts in the store of `link`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32]) -> Self {
        Self { link, names: StoreNames::new(secret) }
    }
}

impl SharedCounts for RedisCounts {
    fn draw<'a>(&'a self, mode: DrawMode, draws: &'a [SharedDraw]) -> BoxFuture<'a, Result<Vec<u64>, StoreDown>> {
        async move {
            let mut script = SCRIPT.prepare_invoke();
            script.arg(match mode {
                DrawMode::Take => "take",
                DrawMode::Charge => "charge",
            });
            for SharedDraw { key, cost, owed } in draws {
                let period = key.rate.period.as_nanos().max(1) as f64 / 1000.0;
                let (amount, burst) = (key.rate.amount.max(1), key.rate.burst.max(1));
                script.key(self.names.quota(key)).arg(amount).arg(period).arg(burst).arg(owed.to_string()).arg(*cost);
            }
            let reply: Vec<i64> = self.link.run_script(&script).await?;
            Ok(reply.into_iter().map(|number| u64::try_from(number).unwrap_or(0)).collect())
        }
        .boxed()
    }
}
