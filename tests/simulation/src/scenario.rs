//! What is simulated: how many replicas, principals, requests and mounts, and what happens to the store.

use std::ops::Range;
use std::time::Duration;

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) replicas: usize,
    pub(crate) principals: usize,
    /// Requests in a second at each replica.
    pub(crate) requests: f64,
    /// The rates of the rule that allows all requests.
    pub(crate) rates: &'static [&'static str],
    /// Mounts of which each replica watches resources.
    pub(crate) mounts: usize,
    /// Resources of each mount that each replica watches.
    pub(crate) watched: usize,
    /// The share of requests whose answers replicas share.
    pub(crate) shared: f64,
    /// What is counted: this span of virtual time.
    pub(crate) span: Range<Duration>,
    pub(crate) incident: Incident,
    pub(crate) leases: Leases,
    pub(crate) seed: u64,
}

/// What happens in a run. It begins with the span that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incident {
    None,
    /// The store is down for this time.
    Down(Duration),
    /// The store answers late for this time.
    Slow(Duration),
    /// All replicas get a new configuration, one after the other within this time.
    Rollout(Duration),
}

/// Who looks for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leases {
    /// The replica to which the store gives the lease.
    Asked,
    /// Each replica: a mistake that the checks must notice.
    #[cfg(test)]
    Everyone,
}

/// The rates of most runs: one in requests, one in bytes.
const RATES: &[&str] = &["600/min per caller", "50MiB/min per caller"];

/// The rate of a run in which one principal sends all requests: 500 in a second.
const HOT_RATES: &[&str] = &["30000/min per caller"];

/// What is counted of runs with an incident: the incident of 10 s, and 20 s after it.
const SPAN_OF_INCIDENTS: Range<Duration> = Duration::from_secs(5)..Duration::from_secs(35);

impl Scenario {
    /// A usual load on this number of replicas.
    pub(crate) fn usual(replicas: usize, principals: usize, seconds: u64) -> Self {
        // By then each replica is connected, and each mount has a leader.
        let begin = Duration::from_secs(5);
        Self {
            name: "usual".to_owned(),
            replicas,
            principals,
            requests: 20.0,
            rates: RATES,
            mounts: 10,
            watched: 20,
            shared: 0.1,
            span: begin..begin + Duration::from_secs(seconds),
            incident: Incident::None,
            leases: Leases::Asked,
            seed: 1,
        }
    }

    /// One principal sends all requests: three times as many as its rate allows. Half of the run passes until it is used up.
    fn hot(replicas: usize, seconds: u64) -> Self {
        let requests = 1500.0 / replicas as f64;
        Self { name: "one principal".to_owned(), requests, rates: HOT_RATES, ..Self::usual(replicas, 1, seconds) }
    }

    fn with(self, name: &str, incident: Incident) -> Self {
        Self { name: name.to_owned(), incident, ..self }
    }

    /// A minute of simulation.
    pub(crate) fn quick() -> Vec<Self> {
        let ten = Duration::from_secs(10);
        let mut all: Vec<Self> = [3, 10, 30].map(|replicas| Self::usual(replicas, 10_000, 10)).into();
        all.push(Self::hot(10, 70));
        all.push(Self::usual(10, 10_000, 30).with("store down for 10 s", Incident::Down(ten)));
        all.push(Self::usual(10, 10_000, 30).with("store slow for 10 s", Incident::Slow(ten)));
        all.push(Self::usual(10, 10_000, 20).with("new configuration", Incident::Rollout(ten)));
        all
    }

    /// True if the store fails in the run.
    pub(crate) fn fails(&self) -> bool {
        matches!(self.incident, Incident::Down(_) | Incident::Slow(_))
    }

    /// A usual load of 1,000,000 principals. More replicas are simulated for a shorter time.
    pub(crate) fn large(replicas: usize) -> Self {
        let seconds = match replicas {
            0..=100 => 20,
            101..=300 => 10,
            _ => 5,
        };
        Self::usual(replicas, 1_000_000, seconds)
    }

    /// A usual load of 1,000,000 principals, and each incident.
    pub(crate) fn with_incidents(replicas: usize) -> Vec<Self> {
        let ten = Duration::from_secs(10);
        let usual = || Self { span: SPAN_OF_INCIDENTS, ..Self::usual(replicas, 1_000_000, 0) };
        vec![
            Self::large(replicas),
            usual().with("store down for 10 s", Incident::Down(ten)),
            usual().with("store slow for 10 s", Incident::Slow(ten)),
            usual().with("new configuration", Incident::Rollout(ten)),
        ]
    }

    /// Up to 1,000 replicas and 1,000,000 principals.
    pub(crate) fn full() -> Vec<Self> {
        let mut all: Vec<Self> = [3, 30].map(|replicas| Self::hot(replicas, 70)).into();
        all.extend([3, 10, 30].map(Self::large));
        all.extend(Self::with_incidents(100));
        all.extend([300, 500, 1000].map(Self::large));
        all
    }
}
