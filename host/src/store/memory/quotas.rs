//! Quotas in memory: a leaky bucket for each quota of each caller.
//!
//! The tables are bounded. A caller that opens a new connection for each request gains nothing: new connections draw
//! their first units from one common bucket. Principals cannot be made at will, so each has its own quota from the
//! start.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::time::Instant;

use super::leaky_bucket::{LeakyBucket, capacity};
use crate::policy::CallerId;
use crate::store::quota::{QuotaDecision, QuotaDraw, QuotaId, QuotaRate, QuotaStore};

/// The most quotas of connections that are remembered. Connections that were idle for long are forgotten first, because
/// their buckets are empty anyway.
const MAX_CONNECTIONS: usize = 1024;

/// The most quotas of principals that are remembered. Each takes about 120 bytes. Only quotas of which something is used
/// need to be remembered, so this is the number of principals that are active within one period.
const MAX_PRINCIPALS: usize = 32_768;

/// When the table is full of quotas in use, one part in this many is forgotten at once: those that are least used.
/// Forgetting them one by one would search the whole table for each.
const FORGOTTEN_PART: usize = 8;

/// The number of new connections that may arrive together and still get a full burst.
const NEW_CONNECTIONS: u32 = 16;

/// Quotas in memory. See the module.
pub struct MemoryQuotas {
    /// Times count from here.
    start: Instant,
    tables: Mutex<QuotaTables>,
}

/// The key of a bucket. The rate is a part of it, because the bucket's number means something else at another rate.
type QuotaKey = (QuotaId, CallerId, QuotaRate);

#[derive(Default)]
struct QuotaTables {
    principals: HashMap<QuotaKey, LeakyBucket>,
    connections: HashMap<QuotaKey, LeakyBucket>,
    /// The common bucket of new connections, for each quota.
    new_connections: HashMap<(QuotaId, QuotaRate), LeakyBucket>,
}

impl Default for MemoryQuotas {
    fn default() -> Self {
        Self { start: Instant::now(), tables: Mutex::default() }
    }
}

fn key(draw: &QuotaDraw) -> QuotaKey {
    (draw.quota, draw.caller, draw.rate)
}

impl QuotaTables {
    /// The bucket of a quota.
    fn bucket(&mut self, draw: &QuotaDraw, now: u128) -> LeakyBucket {
        let key = key(draw);
        let rate = draw.rate;
        match draw.caller {
            CallerId::Principal(_) => self.principals.get(&key).copied().unwrap_or_default(),
            CallerId::Connection(_) => match self.connections.get(&key) {
                Some(known) => *known,
                None => {
                    self.make_room_for_connection(now);
                    let times = |number: u64| number.saturating_mul(NEW_CONNECTIONS.into());
                    let common = QuotaRate { amount: times(rate.amount), burst: times(rate.burst), ..rate };
                    let all = self.new_connections.entry((draw.quota, rate)).or_default();
                    let free = capacity(common).saturating_sub(all.used(common, now)).min(capacity(rate));
                    all.take_parts(common, free, now);
                    let bucket = LeakyBucket::with_used(rate, capacity(rate) - free, now);
                    self.connections.insert(key, bucket);
                    bucket
                }
            },
        }
    }

    fn take(&mut self, draw: &QuotaDraw, now: u128) {
        let mut bucket = self.bucket(draw, now);
        bucket.take(draw.rate, draw.cost, now);
        if let CallerId::Connection(_) = draw.caller {
            self.connections.insert(key(draw), bucket);
        } else if draw.cost > 0 {
            if !self.principals.contains_key(&key(draw)) {
                self.make_room_for_principal(now);
            }
            self.principals.insert(key(draw), bucket);
        }
    }

    fn make_room_for_connection(&mut self, now: u128) {
        let connections = &mut self.connections;
        if connections.len() < MAX_CONNECTIONS {
            return;
        }
        connections.retain(|(_, _, rate), bucket| bucket.used(*rate, now) > 0);
        if connections.len() >= MAX_CONNECTIONS
            && let Some(least) = least_used(connections, 1, now).first()
        {
            connections.remove(least);
        }
    }

    fn make_room_for_principal(&mut self, now: u128) {
        let principals = &mut self.principals;
        if principals.len() < MAX_PRINCIPALS {
            return;
        }
        principals.retain(|(_, _, rate), bucket| bucket.used(*rate, now) > 0);
        if principals.len() > MAX_PRINCIPALS - MAX_PRINCIPALS / FORGOTTEN_PART {
            for least in least_used(principals, MAX_PRINCIPALS / FORGOTTEN_PART, now) {
                principals.remove(&least);
            }
        }
    }
}

/// The keys of the `count` quotas that are available again soonest. Their callers gain least when they are forgotten.
fn least_used(buckets: &HashMap<QuotaKey, LeakyBucket>, count: usize, now: u128) -> Vec<QuotaKey> {
    let mut all: Vec<_> = buckets.iter().map(|(key, bucket)| (bucket.time_until_empty(key.2, now), *key)).collect();
    if count < all.len() {
        all.select_nth_unstable_by_key(count, |(time, _)| *time);
        all.truncate(count);
    }
    all.into_iter().map(|(_, key)| key).collect()
}

impl MemoryQuotas {
    fn now(&self) -> u128 {
        Instant::now().saturating_duration_since(self.start).as_nanos()
    }

    fn take_at(&self, draws: &[QuotaDraw], now: u128) -> QuotaDecision {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let wait =
            |(at, draw): (usize, &QuotaDraw)| Some((tables.bucket(draw, now).wait(draw.rate, draw.cost, now)?, at));
        if let Some((time, draw)) = draws.iter().enumerate().filter_map(wait).max() {
            return QuotaDecision::Wait { time, draw };
        }
        draws.iter().for_each(|draw| tables.take(draw, now));
        QuotaDecision::Granted
    }

    fn charge_at(&self, draws: &[QuotaDraw], now: u128) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        draws.iter().for_each(|draw| tables.take(draw, now));
    }
}

impl QuotaStore for MemoryQuotas {
    fn take<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, QuotaDecision> {
        ready(self.take_at(draws, self.now())).boxed()
    }

    fn charge<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, ()> {
        self.charge_at(draws, self.now());
        ready(()).boxed()
    }
}

#[cfg(test)]
mod tests;
