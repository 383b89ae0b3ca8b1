//! What a trail keeps.

use super::*;

#[test]
fn refusals_hide_nothing_that_was_allowed() {
    let mut trail = Trail::default();
    for n in 0..3 * MAX_TRAIL {
        trail.add("fs", &format!("open ../{n}"), Verdict::Denied, || None);
    }
    for n in 0..3 * MAX_TRAIL {
        trail.add("http", &format!("GET https://{n}.example"), Verdict::Allowed, || None);
    }
    let allowed = trail.decisions().iter().filter(|d| d.verdict == Verdict::Allowed).count();
    assert_eq!((allowed, trail.decisions().len()), (3 * MAX_TRAIL, 4 * MAX_TRAIL));
    assert_eq!(trail.dropped as usize, 2 * MAX_TRAIL);
}
