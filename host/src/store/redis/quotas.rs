//! Quotas that all replicas count together.
//!
//! The store counts. So that most requests need not wait for it, it sets units aside for a replica while much of a quota is
//! left: a lease. Near its end a quota has no leases, and each request asks the store. What a lease did not use is given
//! back after a second, less what came back to the quota in the meantime: a lease never makes a quota larger.
//!
//! All requests are also counted here. While the store is down, these counts decide: each replica alone then keeps the
//! quotas.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::counts::{DrawMode, SharedCounts, SharedDraw};
use super::quota_key::QuotaKey;
use crate::store::down::StoreDown;
use crate::store::memory::MemoryQuotas;
use crate::store::quota::{QuotaDecision, QuotaDraw, QuotaStore, WhenDown};

/// A lease is given back after this time.
const LEASE_TIME: Duration = Duration::from_secs(1);

/// How often leases and debts are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);

/// The most quotas of which something is remembered here. Beyond them, each request asks the store.
const MAX_LEASES: usize = 32_768;

/// The most units of one lease. More is not believed.
const MAX_LEASE: u64 = 1 << 40;

/// The longest wait that is believed.
const MAX_WAIT: Duration = Duration::from_secs(400 * 24 * 3600);

/// What this replica holds of one quota.
struct Lease {
    /// Units that are set aside for this replica.
    units: u64,
    /// The units of the last lease.
    size: u64,
    /// Units that were taken and that the store does not know yet.
    owed: u64,
    /// When the units are given back.
    until: Instant,
    /// When the last units came.
    since: Instant,
    /// True while more units are asked for.
    is_renewing: bool,
}

/// Requests with a rate, by who counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaCounts {
    /// Covered by units that were set aside for this replica.
    pub from_leases: u64,
    /// Counted by this replica alone, because the store was down.
    pub alone: u64,
}

/// See the module.
pub struct SharedQuotas(Arc<Inner>);

struct Inner {
    counts: Arc<dyn SharedCounts>,
    when_down: WhenDown,
    local: MemoryQuotas,
    leases: Mutex<HashMap<QuotaKey, Lease>>,
    from_leases: AtomicU64,
    alone: AtomicU64,
}

impl SharedQuotas {
    /// Quotas that `counts` counts for all replicas.
    pub fn new(counts: Arc<dyn SharedCounts>, when_down: WhenDown) -> Self {
        let (local, leases) = (MemoryQuotas::default(), Mutex::default());
        let (from_leases, alone) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Inner { counts, when_down, local, leases, from_leases, alone }))
    }

    /// Requests with a rate so far.
    pub fn counts(&self) -> QuotaCounts {
        let [from_leases, alone] = [&self.0.from_leases, &self.0.alone].map(|count| count.load(Ordering::Relaxed));
        QuotaCounts { from_leases, alone }
    }

    /// Gives back leases and pays debts, for ever.
    pub async fn sweep(&self) {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            self.0.sweep(Instant::now()).await;
        }
    }
}

/// The units that came back to a quota in `time`, rounded up.
fn returned(key: &QuotaKey, time: Duration) -> u64 {
    let period = key.rate.period.as_nanos().max(1);
    let units = time.as_nanos().saturating_mul(key.rate.amount.into()).div_ceil(period);
    u64::try_from(units).unwrap_or(u64::MAX)
}

impl Inner {
    fn leases(&self) -> MutexGuard<'_, HashMap<QuotaKey, Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes from the leases alone. Gives the keys whose leases are half used. `None` if they do not suffice.
    fn take_from_leases(&self, draws: &[SharedDraw]) -> Option<Vec<QuotaKey>> {
        let mut leases = self.leases();
        let now = Instant::now();
        let suffices = |draw: &SharedDraw| {
            let lease = leases.get(&draw.key);
            lease.is_some_and(|lease| lease.until > now && lease.owed == 0 && lease.units >= draw.cost.max(1))
        };
        if !draws.iter().all(suffices) {
            return None;
        }
        let mut half_used = Vec::new();
        for draw in draws {
            let Some(lease) = leases.get_mut(&draw.key) else { continue };
            lease.units -= draw.cost;
            if lease.units <= lease.size / 2 && !std::mem::replace(&mut lease.is_renewing, true) {
                half_used.push(draw.key);
            }
        }
        Some(half_used)
    }

    /// What this replica owes for each draw. The store is told once.
    fn with_debts(&self, draws: &[SharedDraw]) -> Vec<SharedDraw> {
        let mut leases = self.leases();
        let mut debt = |key: &QuotaKey| leases.get_mut(key).map_or(0, |lease| std::mem::take(&mut lease.owed));
        draws
            .iter()
            .map(|draw| (debt(&draw.key), *draw))
            .map(|(owed, draw)| SharedDraw { owed: owed.into(), ..draw })
            .collect()
    }

    /// Remembers debts that the store was not told.
    fn keep_debts(&self, draws: &[SharedDraw]) {
        for draw in draws {
            if let Ok(owed @ 1..) = u64::try_from(draw.owed) {
                self.owe(draw.key, owed);
            }
        }
    }

    fn lease_of<'l>(&self, leases: &'l mut HashMap<QuotaKey, Lease>, key: QuotaKey) -> Option<&'l mut Lease> {
        if leases.len() >= MAX_LEASES && !leases.contains_key(&key) {
            return None;
        }
        let now = Instant::now();
        let new = || Lease { units: 0, size: 0, owed: 0, until: now, since: now, is_renewing: false };
        Some(leases.entry(key).or_insert_with(new))
    }

    fn owe(&self, key: QuotaKey, units: u64) {
        if let Some(lease) = self.lease_of(&mut self.leases(), key) {
            lease.owed = lease.owed.saturating_add(units);
        }
    }

    fn add_lease(&self, key: QuotaKey, units: u64) {
        let mut leases = self.leases();
        let Some(lease) = self.lease_of(&mut leases, key) else { return };
        let now = Instant::now();
        lease.is_renewing = false;
        if units > 0 {
            // Units of an earlier lease keep its start, which makes what is given back smaller, never larger.
            lease.since = if lease.units == 0 { now } else { lease.since };
            lease.units = lease.units.saturating_add(units.min(MAX_LEASE));
            lease.size = lease.units;
            lease.until = now + LEASE_TIME;
        }
    }

    /// Asks the store.
    async fn ask(&self, mode: DrawMode, draws: &[SharedDraw]) -> Result<QuotaDecision, StoreDown> {
        let mut numbers = self.counts.draw(mode, draws).await?.into_iter();
        let wait = numbers.next().unwrap_or(0);
        if wait > 0 {
            let draw = numbers.next().and_then(|index| usize::try_from(index).ok()).unwrap_or(1).saturating_sub(1);
            let time = Duration::from_micros(wait).min(MAX_WAIT);
            return Ok(QuotaDecision::Wait { time, draw: draw.min(draws.len().saturating_sub(1)) });
        }
        draws.iter().zip(numbers).for_each(|(draw, units)| self.add_lease(draw.key, units));
        Ok(QuotaDecision::Granted)
    }

    /// The same, with what this replica owes.
    async fn ask_with_debts(&self, mode: DrawMode, draws: &[SharedDraw]) -> Result<QuotaDecision, StoreDown> {
        let with_debts = self.with_debts(draws);
        let asked = self.ask(mode, &with_debts).await;
        if asked.is_err() {
            self.keep_debts(&with_debts);
        }
        asked
    }

    /// Asks for more units before the lease is used up.
    async fn renew(&self, key: QuotaKey) {
        let _ = self.ask_with_debts(DrawMode::Take, &[SharedDraw { key, cost: 0, owed: 0 }]).await;
        if let Some(lease) = self.leases().get_mut(&key) {
            lease.is_renewing = false;
        }
    }

    async fn take(self: &Arc<Self>, draws: &[QuotaDraw], shared: &[SharedDraw]) -> QuotaDecision {
        if let Some(half_used) = self.take_from_leases(shared) {
            self.from_leases.fetch_add(1, Ordering::Relaxed);
            self.local.charge(draws).await;
            for key in half_used {
                let own = Arc::clone(self);
                tokio::spawn(async move { own.renew(key).await });
            }
            return QuotaDecision::Granted;
        }
        match self.ask_with_debts(DrawMode::Take, shared).await {
            Ok(QuotaDecision::Granted) => {
                self.local.charge(draws).await;
                QuotaDecision::Granted
            }
            Ok(refused) => refused,
            Err(StoreDown) => match self.when_down {
                WhenDown::Local => {
                    self.alone.fetch_add(1, Ordering::Relaxed);
                    self.local.take(draws).await
                }
                WhenDown::Refuse => QuotaDecision::Uncounted,
            },
        }
    }

    async fn charge(self: &Arc<Self>, draws: &[QuotaDraw], shared: &[SharedDraw]) {
        self.local.charge(draws).await;
        let mut owing = Vec::new();
        for SharedDraw { key, cost, .. } in shared.iter().copied().filter(|draw| draw.cost > 0) {
            let rest = match self.leases().get_mut(&key) {
                Some(lease) => {
                    let covered = lease.units.min(cost);
                    lease.units -= covered;
                    cost - covered
                }
                None => cost,
            };
            if rest > 0 {
                self.owe(key, rest);
                owing.push(SharedDraw { key, cost: 0, owed: 0 });
            }
        }
        if !owing.is_empty() {
            // The answer does not wait for this. The next request of the caller pays the debt if this does not.
            let own = Arc::clone(self);
            tokio::spawn(async move { own.ask_with_debts(DrawMode::Charge, &owing).await });
        }
    }

    /// Gives back what is left of old leases, and pays debts.
    async fn sweep(&self, now: Instant) {
        let mut due = Vec::new();
        self.leases().retain(|key, lease| {
            if lease.until > now || lease.is_renewing {
                return true;
            }
            let unused = lease.units.saturating_sub(returned(key, now.saturating_duration_since(lease.since)));
            let owed = i128::from(lease.owed) - i128::from(unused);
            if owed != 0 {
                due.push(SharedDraw { key: *key, cost: 0, owed });
            }
            false
        });
        for draw in due {
            if self.ask(DrawMode::Charge, &[draw]).await.is_err() {
                // What is given back may be lost: then the quota is smaller for a while.
                self.keep_debts(&[draw]);
            }
        }
    }
}

/// The draws that replicas share. `None` if the caller is a connection, which belongs to one replica.
fn shared(draws: &[QuotaDraw]) -> Option<Vec<SharedDraw>> {
    let of = |draw: &QuotaDraw| Some(SharedDraw { key: QuotaKey::of(draw)?, cost: draw.cost, owed: 0 });
    draws.iter().map(of).collect()
}

impl QuotaStore for SharedQuotas {
    fn take<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, QuotaDecision> {
        match shared(draws) {
            Some(shared) => async move { self.0.take(draws, &shared).await }.boxed(),
            None => self.0.local.take(draws),
        }
    }

    fn charge<'a>(&'a self, draws: &'a [QuotaDraw]) -> BoxFuture<'a, ()> {
        match shared(draws) {
            Some(shared) => async move { self.0.charge(draws, &shared).await }.boxed(),
            None => self.0.local.charge(draws),
        }
    }
}
