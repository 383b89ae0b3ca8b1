//! When to look at what changed: soon, but not while it is still changing, and never so often that looking is all that is
//! done.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::Guard;

/// A change is looked at when nothing else has changed for so long: whoever copies a file has finished by then.
pub(super) const QUIET: Duration = Duration::from_millis(250);

/// A change is looked at after so long at the latest, whatever else changes.
pub(super) const LATEST: Duration = Duration::from_secs(2);

/// A look that took long is rested from: so many times as long as it took.
const REST: u32 = 9;

/// But no longer than this: a machine that is busy makes looks long that cost little.
const REST_MOST: Duration = Duration::from_secs(2);

/// What is known of changes that nobody has looked at yet.
#[derive(Default)]
pub struct Pace {
    /// When the first and the last of them happened.
    changes: Option<(Instant, Instant)>,
    /// Until when nothing is looked at.
    rest: Option<Instant>,
}

impl Pace {
    /// Something changed.
    pub fn changed(&mut self, now: Instant) {
        self.changes = Some((self.changes.map_or(now, |(first, _)| first), now));
    }

    /// When to look; none while nothing has changed.
    pub fn due(&self) -> Option<Instant> {
        let (first, last) = self.changes?;
        if !Guard::Pace.is_on() {
            return Some(first);
        }
        let due = (last + QUIET).min(first + LATEST);
        Some(self.rest.map_or(due, |rest| due.max(rest)))
    }

    /// It is looked at now. What changes from here on is another change.
    pub fn begin(&mut self) {
        self.changes = None;
    }

    /// It was looked at, from `began` on.
    pub fn end(&mut self, began: Instant, now: Instant) {
        self.rest = Some(now + QUIET.max((REST * now.saturating_duration_since(began)).min(REST_MOST)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_change_waits_for_quiet_but_not_for_ever() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.due(), None);
        pace.changed(now);
        assert_eq!(pace.due(), Some(now + QUIET));
        for ms in (0..10_000).step_by(10) {
            pace.changed(now + ms * MS);
            assert!(pace.due().unwrap() <= now + LATEST);
        }
        pace.begin();
        assert_eq!(pace.due(), None);
    }

    #[test]
    fn looking_is_rested_from() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.end(now, now + 100 * MS);
        pace.changed(now + 200 * MS);
        assert_eq!(pace.due(), Some(now + 1000 * MS), "a tenth of the time at most");
        pace.end(now, now + 1000 * MS);
        pace.changed(now + 1000 * MS);
        assert_eq!(pace.due(), Some(now + 1000 * MS + REST_MOST));
        pace.begin();
        pace.changed(now + 200 * MS);
        pace.end(now, now);
        assert_eq!(pace.due(), Some(now + 200 * MS + QUIET), "four looks a second at most");
    }
}
