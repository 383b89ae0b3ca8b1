//! Runs a scenario: a simulated store, its replicas, and the incident. Gives what was seen.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar::limits::memory_budget::MemoryBudget;
use belljar::limits::{Admission, CallerLimits};
use belljar::store::{SharedStore, SharedStoreOptions, StoreLogin, WhenDown};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::constants::{COSTS, NETWORK};
use crate::load::{Crowd, Rules};
use crate::observer::Observer;
use crate::redis::{Condition, SimulatedRedis};
use crate::replica::{Replica, Watch};
use crate::scenario::{Incident, Scenario};
use crate::usage::Usage;

/// What one run gave.
pub(crate) struct Outcome {
    pub(crate) scenario: Arc<Scenario>,
    /// The share of time in which the store was busy, by kind.
    pub(crate) busy: [f64; 6],
    /// Half of the requests to the store, and all but one of a hundred, were done in this time, with the network.
    pub(crate) waits: [Duration; 2],
    /// The share of the clients' requests that asked the store.
    pub(crate) asked: f64,
    /// Questions to the store without an answer.
    pub(crate) failed: u64,
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// The most that was left of a quota when a request was refused.
    pub(crate) shortfall: f64,
    /// The most that a principal took beyond its rate while the store was up.
    pub(crate) excess: f64,
    /// The same during the incident.
    pub(crate) excess_down: f64,
    /// Looks of leaders for each round that was due, and looks that two replicas made for one round.
    pub(crate) looks: f64,
    pub(crate) double_looks: u64,
    pub(crate) double_calls: u64,
    /// The time until news reached all others: for half of them, and for all but one of a hundred.
    pub(crate) news: [Option<Duration>; 2],
    pub(crate) lost_news: usize,
    /// The time until all replicas used the store again after the incident.
    pub(crate) back: Option<Duration>,
}

/// A store of replicas that reaches Redis by `dialer`. Each has another `number`.
pub(crate) fn shared_store(dialer: Arc<dyn belljar::store::StoreDialer>, number: usize) -> Arc<SharedStore> {
    let mut replica = [0; 16];
    replica.iter_mut().zip(number.to_be_bytes()).for_each(|(to, from)| *to = from);
    let (login, key) = (StoreLogin::default(), Zeroizing::new([9; 32]));
    SharedStore::unconnected(SharedStoreOptions { dialer, login, key, when_down: WhenDown::Local, replica })
}

/// Runs a scenario in virtual time.
///
/// # Errors
/// If it cannot be set up.
pub(crate) fn run(scenario: Scenario) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(simulate(Arc::new(scenario)))
}

async fn simulate(scenario: Arc<Scenario>) -> anyhow::Result<Outcome> {
    let usage = Arc::new(Mutex::new(Usage::new(scenario.span.clone())));
    let (redis, thread) = SimulatedRedis::new(COSTS, NETWORK, Arc::clone(&usage))?;
    let (rules, crowd) = (Arc::new(Rules::new(scenario.rates)?), Arc::new(Crowd::new(scenario.principals)));
    let observer = Arc::new(Observer::default());
    let budget = MemoryBudget::new(1 << 40);
    let mut stores = Vec::new();
    let mut tasks = JoinSet::new();
    for number in 0..scenario.replicas {
        let store = shared_store(redis.clone(), number);
        let limits = CallerLimits::default();
        let replica = Replica {
            number,
            admission: Admission::new(1, Arc::clone(&budget)).with_callers(limits, store.quotas()),
            store: Arc::clone(&store),
            rules: Arc::clone(&rules),
            crowd: Arc::clone(&crowd),
            scenario: Arc::clone(&scenario),
            observer: Arc::clone(&observer),
            changed: Notify::new(),
            watches: (0..scenario.mounts).map(|_| Watch::default()).collect(),
            was_connected: false.into(),
        };
        stores.push(store);
        tasks.spawn(Arc::new(replica).run());
    }
    let directed = direct(&scenario, &redis, &observer, &stores);
    let directed = tokio::select! {
        directed = directed => directed,
        () = thread.run() => anyhow::bail!("the store ended"),
    };
    tasks.abort_all();
    let seen = &mut *observer.seen();
    let usage = &mut *usage.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = (scenario.span.end - scenario.span.start).as_secs_f64() / 2.0 * scenario.mounts as f64;
    let requests = (seen.granted + seen.refused).max(1) as f64;
    Ok(Outcome {
        busy: usage.busy(),
        waits: [0.5, 0.99].map(|share| usage.wait(share) + NETWORK * 2),
        asked: 1.0 - directed.from_leases as f64 / requests,
        failed: directed.failed,
        granted: seen.granted,
        refused: seen.refused,
        shortfall: seen.shortfall,
        excess: seen.excess.max(directed.excess_before),
        excess_down: directed.excess_down,
        looks: seen.looks as f64 / rounds,
        double_looks: seen.double_looks,
        double_calls: seen.double_calls,
        news: [0.5, 0.99].map(|share| seen.arrival(share)),
        lost_news: seen.lost(),
        back: directed.back,
        scenario,
    })
}

/// What the incident gave.
#[derive(Default)]
struct Directed {
    from_leases: u64,
    failed: u64,
    excess_before: f64,
    excess_down: f64,
    back: Option<Duration>,
}

/// Waits for the span that is counted, makes the incident, and waits for the end.
async fn direct(
    scenario: &Scenario,
    redis: &SimulatedRedis,
    observer: &Observer,
    stores: &[Arc<SharedStore>],
) -> Directed {
    let end = Instant::now() + scenario.span.end;
    tokio::time::sleep(scenario.span.start).await;
    observer.seen().restart_counts();
    let sum = |count: fn(&SharedStore) -> u64| stores.iter().map(|store| count(store)).sum::<u64>();
    let from_leases = || sum(|store| store.status().quotas.from_leases);
    let failed = || sum(|store| store.status().link.failed);
    let (leases_before, failed_before) = (from_leases(), failed());
    let mut directed = Directed::default();
    let incident = match scenario.incident {
        Incident::Down(time) => Some((time, Condition::Down)),
        Incident::Slow(time) => Some((time, Condition::Slow(Duration::from_millis(150)))),
        Incident::None | Incident::Rollout(_) => None,
    };
    if let Some((time, condition)) = incident {
        directed.excess_before = observer.seen().excess;
        redis.set(condition);
        tokio::time::sleep(time).await;
        directed.excess_down = observer.seen().excess;
        redis.set(Condition::Up);
        let up_at = Instant::now();
        while !stores.iter().all(|store| store.status().link.is_up) && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        directed.back = (Instant::now() < end).then(|| up_at.elapsed());
        observer.seen().forget_quotas();
    }
    tokio::time::sleep_until(end).await;
    (directed.from_leases, directed.failed) = (from_leases() - leases_before, failed() - failed_before);
    directed
}
