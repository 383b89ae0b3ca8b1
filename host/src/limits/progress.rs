//! Reports of a call about its progress, on their way to the caller.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::model::Guard;

/// Reports that may be sent at once, and in each second after that.
const BURST: f64 = 10.0;

/// Reports that wait for the caller. More are dropped: each new one says more than those before.
const WAITING: usize = 16;

/// The most bytes of a note.
pub const MAX_NOTE: usize = 200;

/// One report.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressReport {
    /// How much is done.
    pub done: f64,
    /// How much there is in all.
    pub total: Option<f64>,
    /// What is being done.
    pub note: Option<String>,
}

/// The end of a channel into which a call reports.
#[derive(Debug)]
pub struct ProgressSender {
    sender: mpsc::Sender<ProgressReport>,
    rate: Mutex<ProgressRate>,
}

/// The reports that a call may make: they grow, and do not come too fast.
#[derive(Debug)]
pub struct ProgressRate {
    last: f64,
    tokens: f64,
    at: Instant,
}

impl ProgressRate {
    /// The rate of a call that has not reported yet.
    pub fn new() -> Self {
        Self { last: f64::NEG_INFINITY, tokens: BURST, at: Instant::now() }
    }

    /// True for a report that may be sent. False for one that does not grow, is no finite number, or comes too soon.
    pub fn admits(&mut self, done: f64, total: Option<f64>) -> bool {
        let is_finite = done.is_finite() && total.is_none_or(f64::is_finite);
        let (is_on, now) = (Guard::Progress.is_on(), Instant::now());
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * BURST).min(BURST);
        self.at = now;
        if is_on && (!is_finite || done <= self.last || self.tokens < 1.0) {
            return false;
        }
        self.tokens -= 1.0;
        self.last = done;
        true
    }
}

impl Default for ProgressRate {
    fn default() -> Self {
        Self::new()
    }
}

/// A channel for the reports of one request.
pub fn channel() -> (ProgressSender, mpsc::Receiver<ProgressReport>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (ProgressSender { sender, rate: Mutex::default() }, receiver)
}

impl ProgressSender {
    /// Sends a report, if [`ProgressRate`] admits it.
    pub fn send(&self, report: ProgressReport) {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        if rate.admits(report.done, report.total) {
            // A full channel belongs to a caller that does not take its reports.
            let _ = self.sender.try_send(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_grow_and_come_at_a_bounded_rate() {
        let (sender, mut receiver) = channel();
        let report = |done| ProgressReport { done, total: Some(100.0), note: None };
        for done in [0.0, 5.0, 5.0, 4.0, f64::NAN, f64::INFINITY, 6.0] {
            sender.send(report(done));
        }
        let mut taken = Vec::new();
        while let Ok(report) = receiver.try_recv() {
            taken.push(report.done);
        }
        assert_eq!(taken, [0.0, 5.0, 6.0]);
        (0..1000).for_each(|n| sender.send(report(f64::from(n) + 10.0)));
        let mut count = 0;
        while receiver.try_recv().is_ok() {
            count += 1;
        }
        assert!((1..=12).contains(&count), "{count}");
    }
}
