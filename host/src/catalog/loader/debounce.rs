//! Decides when to scan the plugin directory and the configuration after a change: soon, but not while changes continue,
//! and with a pause after each scan, so that scans leave time for other work.

use tokio::time::Instant;

use crate::model::bounds::{DEBOUNCE, MAX_DEBOUNCE, MAX_SCAN_REST};

/// The next scan waits this many times the duration of the last one, but at most [`MAX_SCAN_REST`].
const REST_FACTOR: u32 = 9;

/// Changes that were not scanned yet.
#[derive(Default)]
pub struct Debounce {
    /// The times of the first and the last change. `None` if there is none.
    changes: Option<(Instant, Instant)>,
    /// No scan starts before this time.
    rest: Option<Instant>,
}

impl Debounce {
    /// Records a change.
    pub fn changed(&mut self, now: Instant) {
        self.changes = Some((self.changes.map_or(now, |(first, _)| first), now));
    }

    /// The time of the next scan. `None` if nothing has changed.
    pub fn due(&self) -> Option<Instant> {
        let (first, last) = self.changes?;
        let due = (last + DEBOUNCE.get()).min(first + MAX_DEBOUNCE.get());
        Some(self.rest.map_or(due, |rest| due.max(rest)))
    }

    /// Records the start of a scan. Later changes need another scan.
    pub fn begin(&mut self) {
        self.changes = None;
    }

    /// Records the end of the scan that started at `began`.
    pub fn end(&mut self, began: Instant, now: Instant) {
        self.rest = Some(
            now + DEBOUNCE.get().max((REST_FACTOR * now.saturating_duration_since(began)).min(MAX_SCAN_REST.get())),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_change_waits_for_quiet_but_within_a_bound() {
        let (mut debounce, now) = (Debounce::default(), Instant::now());
        assert_eq!(debounce.due(), None);
        debounce.changed(now);
        assert_eq!(debounce.due(), Some(now + DEBOUNCE.get()));
        for ms in (0..10_000).step_by(10) {
            debounce.changed(now + ms * MS);
            assert!(debounce.due().unwrap() <= now + MAX_DEBOUNCE.get());
        }
        debounce.begin();
        assert_eq!(debounce.due(), None);
    }

    #[test]
    fn a_long_scan_delays_the_next() {
        let (mut debounce, now) = (Debounce::default(), Instant::now());
        debounce.end(now, now + 100 * MS);
        debounce.changed(now + 200 * MS);
        assert_eq!(debounce.due(), Some(now + 1000 * MS), "scans take at most a tenth of the time");
        debounce.end(now, now + 1000 * MS);
        debounce.changed(now + 1000 * MS);
        assert_eq!(debounce.due(), Some(now + 1000 * MS + MAX_SCAN_REST.get()));
        debounce.begin();
        debounce.changed(now + 200 * MS);
        debounce.end(now, now);
        assert_eq!(debounce.due(), Some(now + 200 * MS + DEBOUNCE.get()), "at most four scans a second");
    }
}
