//! Rates of rules hold over all replicas together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Group;
use crate::support::kind;

/// The component of the tests.
const FIXTURE: &[(&str, &str)] = &[("guest_fixture", "fixture.wasm")];

/// A resource of it.
const URI: &str = "belljar://fixture/static-text";

/// Reads for `time` with `clients` clients, spread over all replicas, and counts the answers that are no refusals for the
/// rate. Gives the count and the time from the first request to the last answer.
fn granted(group: &Group, clients: usize, time: Duration) -> (usize, Duration) {
    let (count, began) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for at in 0..clients {
            let count = &count;
            let replicas = group.replicas.len();
            scope.spawn(move || {
                let mut all: Vec<_> = (0..replicas).map(|replica| group.client(replica)).collect();
                let mut turn = at;
                while began.elapsed() < time {
                    turn += 1;
                    match all[turn % replicas].read(URI) {
                        Ok(_) => {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert_eq!(kind(&error), "busy", "{error}");
                            std::thread::sleep(Duration::from_millis(20));
                        }
                    }
                }
            });
        }
    });
    (count.into_inner(), began.elapsed())
}

#[test]
fn a_rate_of_one_caller_is_exact_over_three_replicas() {
    let rule = "[[allow]]\nwho = \"anyone\"\ndo = [\"read\"]\nrate = \"100/min per caller\"\n";
    let Some(group) = Group::start(3, FIXTURE, rule, |_| {}) else { return };
    let (count, took) = group.undisturbed(|| {
        assert_eq!(group.redis.ask(&["FLUSHALL"]), "+OK");
        granted(&group, 20, Duration::from_secs(6))
    });
    // What comes back to the quota in that time.
    let most = 100.0 + took.as_secs_f64() * 100.0 / 60.0;
    let least = 100.0 + 5.0 * 100.0 / 60.0;
    assert!(count as f64 <= most * 1.01 && count as f64 >= least * 0.99, "{count} reads, not {least} to {most}");
}

#[test]
fn units_that_are_set_aside_serve_most_requests_and_never_exceed_a_rate() {
    let rule = "[[allow]]\nwho = \"anyone\"\ndo = [\"read\"]\nrate = \"3000/day per caller\"\n";
    let Some(group) = Group::start(3, FIXTURE, rule, |_| {}) else { return };
    let leases = || -> f64 { group.replicas.iter().map(|replica| replica.metric("belljar_quota_leases_total")).sum() };
    let (total, rest, from_leases) = group.undisturbed(|| {
        assert_eq!(group.redis.ask(&["FLUSHALL"]), "+OK");
        let (mut total, before) = (0, leases());
        let mut clients: Vec<_> = (0..3).map(|at| group.client(at)).collect();
        let refusal = loop {
            match clients[total % 3].read(URI) {
                Ok(_) => total += 1,
                Err(error) => break error,
            }
            if total > 4000 {
                return (total, 0, 0.0);
            }
        };
        assert_eq!(kind(&refusal), "busy");
        // Units that another replica holds come back within seconds. Then the rest of the rate is granted.
        let (rest, _) = granted(&group, 3, Duration::from_secs(3));
        (total, rest, leases() - before)
    });
    assert!((2970..=3001).contains(&(total + rest)), "{total} and {rest} reads of 3000");
    assert!(from_leases > total as f64 / 2.0, "only {from_leases} of {total} reads did not ask the store");
}

#[test]
fn requests_without_a_rate_ask_the_store_nothing() {
    let Some(group) = Group::start(1, FIXTURE, "", |_| {}) else { return };
    let replica = &group.replicas[0];
    let mut client = group.client(0);
    client.text(URI);
    let before = replica.metric("belljar_store_questions_total");
    let began = Instant::now();
    for _ in 0..500 {
        client.text(URI);
    }
    // A few for each second: the replica says that it lives.
    let of_itself = began.elapsed().as_secs_f64() * 5.0 + 50.0;
    let asked = replica.metric("belljar_store_questions_total") - before;
    assert!(asked <= of_itself, "{asked} questions for 500 reads without a rate");
}
