//! Tests of the capacity of [`DecisionLog`].

use super::*;

#[test]
fn refusals_do_not_displace_allowed_decisions() {
    let mut log = DecisionLog::default();
    for n in 0..3 * MAX_REFUSALS {
        log.add("fs", &format!("open ../{n}"), DecisionKind::Denied, || None);
    }
    for n in 0..3 * MAX_REFUSALS {
        log.add("http", &format!("GET https://{n}.example"), DecisionKind::Allowed, || None);
    }
    let allowed = log.decisions().iter().filter(|d| d.verdict == DecisionKind::Allowed).count();
    assert_eq!((allowed, log.decisions().len()), (3 * MAX_REFUSALS, 4 * MAX_REFUSALS));
    assert_eq!(log.dropped as usize, 2 * MAX_REFUSALS);
}
