//! Who asks, how often, and for what: principals by Zipf's law, and requests as a Poisson process.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use belljar::model::MountName;
use belljar::policy::{
    Access, Action, ActionSet, Evidence, KeyIdentity, Policy, Rule, RuleNumber, RuleOrigin, RuleResources, RuleSet,
    Target, Who, authenticate,
};

use crate::observer::Allowed;

/// Principals by Zipf's law: the one of rank k sends 1/k as many requests as the first one.
pub(crate) struct Crowd {
    /// For each rank, the share of requests from it and all before.
    shares: Vec<f64>,
}

/// The rules of all replicas: one that allows everything, with rates.
pub(crate) struct Rules {
    policy: Policy,
    mount: MountName,
    /// What the rate in requests allows.
    pub(crate) allowed: Allowed,
}

impl Crowd {
    /// This number of principals.
    pub(crate) fn new(principals: usize) -> Self {
        let mut total = 0.0;
        let mut shares: Vec<f64> = (1..=principals.max(1))
            .map(|rank| {
                total += 1.0 / rank as f64;
                total
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= total);
        Self { shares }
    }

    /// The principal that sends the next request.
    pub(crate) fn next(&self, random: &mut fastrand::Rng) -> usize {
        let at = random.f64();
        self.shares.partition_point(|share| *share < at).min(self.shares.len() - 1)
    }
}

/// The time until the next of `rate` events in a second, which do not depend on each other.
pub(crate) fn pause(rate: f64, random: &mut fastrand::Rng) -> Duration {
    Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate)
}

impl Rules {
    /// One rule that allows everything at these rates. The first one counts requests.
    ///
    /// # Errors
    /// If a rate is none.
    pub(crate) fn new(rates: &[&str]) -> anyhow::Result<Self> {
        let rates: Vec<belljar::policy::RateRule> = rates.iter().map(|rate| rate.parse()).collect::<Result<_, _>>()?;
        let first = rates.first().context("there is no rate")?;
        let allowed =
            Allowed { burst: first.amount as f64, per_second: first.amount as f64 / first.period.as_secs_f64() };
        let rule = Rule {
            origin: RuleOrigin::Allow(RuleNumber { number: 1, line: None }),
            who: Who::default(),
            resources: RuleResources::All,
            actions: ActionSet::ALL,
            schedule: None,
            rates,
        };
        let policy = Policy::new(RuleSet::new(vec![rule]));
        Ok(Self { policy, mount: MountName::new("notes")?, allowed })
    }

    /// The permission of a principal to read. `None` if it has none.
    pub(crate) fn access(&self, principal: usize) -> Option<Access> {
        let identity = KeyIdentity { name: format!("caller-{principal}"), ..KeyIdentity::default() };
        let principal = authenticate(Evidence::Key(identity));
        let target = Target { mount: &self.mount, base: "belljar://notes/", reference: Some("a") };
        self.policy.authorize(&principal, Action::Read, target, SystemTime::now()).ok()
    }
}
