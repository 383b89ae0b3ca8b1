//! Sees what all replicas do at once, as no replica can: counts it, and finds what must not happen.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::usage::quantile;

/// A look of one replica so soon after that of another one that both looked for the same round. The shortest pause between
/// two rounds is 1.6 s.
const SAME_ROUND: Duration = Duration::from_millis(800);

/// See the module.
#[derive(Default)]
pub(crate) struct Observer(Mutex<Seen>);

/// What was seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// The most that was left of a quota when a request was refused, as a share of what a principal may take at once.
    pub(crate) shortfall: f64,
    /// The most that a principal took beyond its rate, as a share of what it may take at once.
    pub(crate) excess: f64,
    buckets: HashMap<usize, Bucket>,
    /// Looks of replicas with a lease.
    pub(crate) looks: u64,
    /// Looks for a round in which another replica looked, too.
    pub(crate) double_looks: u64,
    last_looks: HashMap<usize, (usize, Instant)>,
    calls: HashSet<usize>,
    /// Calls for all that ran at two replicas at once.
    pub(crate) double_calls: u64,
    news: HashMap<u64, NewsPath>,
    told: u64,
    arrivals: Vec<u32>,
}

/// An exact count of what one principal was granted.
struct Bucket {
    used: f64,
    at: Instant,
}

/// News on their way.
struct NewsPath {
    at: Instant,
    missing: usize,
}

/// What a principal may take at once, and how much comes back in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    pub(crate) burst: f64,
    pub(crate) per_second: f64,
}

impl Observer {
    /// What was seen.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Counts from now on. Looks and calls that were seen stay known. News from before do not count: not all replicas were
    /// connected.
    pub(crate) fn restart_counts(&mut self) {
        let Self { granted, refused, shortfall, excess, looks, double_looks, double_calls, .. } = self;
        let counts = [granted, refused, looks, double_looks, double_calls];
        counts.into_iter().for_each(|count| *count = 0);
        (*excess, *shortfall) = (0.0, 0.0);
        self.arrivals.clear();
        self.news.clear();
    }

    /// Forgets what principals took. Each may take all of its quota.
    pub(crate) fn forget_quotas(&mut self) {
        self.buckets.clear();
        self.excess = 0.0;
    }

    /// A request of a principal was granted or refused.
    pub(crate) fn decided(&mut self, principal: usize, allowed: Allowed, is_granted: bool) {
        let now = Instant::now();
        let bucket = self.buckets.entry(principal).or_insert(Bucket { used: 0.0, at: now });
        bucket.used = (bucket.used - (now - bucket.at).as_secs_f64() * allowed.per_second).max(0.0);
        bucket.at = now;
        if is_granted {
            self.granted += 1;
            bucket.used += 1.0;
            self.excess = self.excess.max((bucket.used - allowed.burst) / allowed.burst);
        } else {
            self.refused += 1;
            self.shortfall = self.shortfall.max((allowed.burst - bucket.used - 1.0) / allowed.burst);
        }
    }

    /// A replica looks for all whether a mount changed.
    pub(crate) fn looked(&mut self, mount: usize, replica: usize) {
        self.looks += 1;
        let before = self.last_looks.insert(mount, (replica, Instant::now()));
        let is_double = before.is_some_and(|(other, at)| other != replica && at.elapsed() < SAME_ROUND);
        self.double_looks += u64::from(is_double);
    }

    /// A replica begins a call for all.
    pub(crate) fn call_began(&mut self, answer: usize) {
        self.double_calls += u64::from(!self.calls.insert(answer));
    }

    /// Such a call ended.
    pub(crate) fn call_ended(&mut self, answer: usize) {
        self.calls.remove(&answer);
    }

    /// A replica tells something to `others`. Gives the number of these news.
    pub(crate) fn told(&mut self, others: usize) -> u64 {
        self.told += 1;
        if others > 0 {
            self.news.insert(self.told, NewsPath { at: Instant::now(), missing: others });
        }
        self.told
    }

    /// A replica heard these news.
    pub(crate) fn heard(&mut self, number: u64) {
        let Some(path) = self.news.get_mut(&number) else { return };
        path.missing -= 1;
        if path.missing == 0 {
            self.arrivals.push(u32::try_from(path.at.elapsed().as_micros()).unwrap_or(u32::MAX));
            self.news.remove(&number);
        }
    }

    /// The time until news reached all, which this share of them did not exceed.
    pub(crate) fn arrival(&mut self, share: f64) -> Option<Duration> {
        quantile(&mut self.arrivals, share).map(|time| Duration::from_micros(time.into()))
    }

    /// News that some replica did not hear within a second.
    pub(crate) fn lost(&self) -> usize {
        self.news.values().filter(|path| path.at.elapsed() > Duration::from_secs(1)).count()
    }
}
