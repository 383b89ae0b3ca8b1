//! Short simulations: the checks pass, and notice a broken lease.

use std::time::Duration;

use crate::scenario::{Leases, Scenario};
use crate::{report, world};

fn short() -> Scenario {
    let usual = Scenario::usual(3, 1000, 6);
    // One principal sends more than its rate allows: the exact end of a quota is reached.
    Scenario { requests: 100.0, mounts: 2, ..usual }
}

#[test]
fn three_replicas_hold_the_checks() {
    let outcome = world::run(short()).unwrap();
    assert_eq!(report::broken(&outcome), [""; 0]);
    assert!(report::holds(&outcome));
    assert!(outcome.granted > 1000 && outcome.asked < 1.0, "{} {}", outcome.granted, outcome.asked);
    assert!((0.8..1.25).contains(&outcome.looks), "{}", outcome.looks);
    assert!(outcome.news[1].is_some_and(|time| time < Duration::from_millis(10)), "{:?}", outcome.news);
}

#[test]
fn a_broken_lease_is_noticed() {
    let outcome = world::run(Scenario { leases: Leases::Everyone, ..short() }).unwrap();
    let broken = report::broken(&outcome);
    assert!(broken.iter().any(|check| check.contains("looks of two replicas")), "{broken:?}");
    assert!(outcome.looks > 2.0, "{}", outcome.looks);
}
