//! What a call in progress has decided and used, shared by everything that adds to it and by whoever records the call: the
//! record is whole however the call ends.
//!
//! It is also where a guest's words leave the grants: they are masked here, before they are cut.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::secrets::Redactor;
use crate::model::{Consent, Guard, Trail, Usage, Verdict, text};

/// Characters of a cure: a command, with a path of a guest's in it.
const CURE: usize = 1024;

/// Characters of what was decided on.
const WHAT: usize = 200;

/// The trail of a call in progress.
#[derive(Clone, Default)]
pub struct SharedTrail(Arc<Shared>);

#[derive(Default)]
struct Shared {
    trail: Mutex<Trail>,
    redactor: OnceLock<Arc<Redactor>>,
    began: OnceLock<(Instant, u64)>,
    fuel: AtomicU64,
    /// Nanoseconds.
    cpu: AtomicU64,
    memory: AtomicU64,
}

impl SharedTrail {
    /// From now on, whatever is added has these secrets masked.
    pub(super) fn mask_with(&self, redactor: &Arc<Redactor>) {
        // The first stays: a trail belongs to one call of one mount.
        let _ = self.0.redactor.set(Arc::clone(redactor));
    }

    /// A guest's words, to stand in something that is added: masked, and then cleaned and cut.
    pub fn words(&self, text: &str, max: usize) -> String {
        match self.0.redactor.get() {
            Some(redactor) => redactor.words(text, max),
            None => text::excerpt(text, max),
        }
    }

    /// Adds a decision, in the guest's own words, of any length; see [`Trail::add`].
    pub fn add(&self, grant: &'static str, what: &str, verdict: Verdict, cure: impl FnOnce() -> Option<String>) {
        let what = self.words(what, WHAT);
        let cure = || cure().map(|cure| self.words(&cure, CURE));
        self.0.trail.lock().unwrap_or_else(PoisonError::into_inner).add(grant, &what, verdict, cure);
    }

    /// Notes what a person could allow; see [`Trail::ask`]. Nobody is asked about what has a secret in it.
    pub fn ask(&self, consent: Consent) {
        if self.words(&consent.what, usize::MAX >> 1) == consent.what || !Guard::Redact.is_on() {
            self.0.trail.lock().unwrap_or_else(PoisonError::into_inner).ask(consent);
        }
    }

    /// The call begins, with so much fuel.
    pub fn begin(&self, fuel: u64) {
        let _ = self.0.began.set((Instant::now(), fuel));
    }

    /// So much fuel is left.
    pub fn fuel_left(&self, left: u64) {
        if let Some((_, had)) = self.0.began.get() {
            self.0.fuel.fetch_max(had.saturating_sub(left), Ordering::Relaxed);
        }
    }

    /// So much processor time was used.
    pub fn cpu_used(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.cpu.fetch_max(nanos, Ordering::Relaxed);
    }

    /// So much memory was in use at once.
    pub fn memory_used(&self, bytes: u64) {
        self.0.memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// What was used so far.
    pub fn usage(&self) -> Usage {
        let Some((began, _)) = self.0.began.get() else { return Usage::default() };
        Usage {
            fuel: self.0.fuel.load(Ordering::Relaxed),
            time: began.elapsed(),
            cpu: Duration::from_nanos(self.0.cpu.load(Ordering::Relaxed)),
            memory: self.0.memory.load(Ordering::Relaxed),
            bytes: 0,
        }
    }

    /// What was decided so far.
    pub fn take(&self) -> Trail {
        std::mem::take(&mut *self.0.trail.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::secrets::Secret;
    use super::*;

    #[test]
    fn what_is_added_is_masked_before_it_is_cut_and_asked_of_nobody() {
        let secret = Secret::new("s", Zeroizing::new("SecRet-Tok3n-abcdefghij".to_owned())).unwrap();
        let trail = SharedTrail::default();
        trail.mask_with(&Arc::new(Redactor::new([&Arc::new(secret)]).unwrap()));
        for before in 150..=WHAT + 4 {
            let what = format!("open {}SecRet-Tok3n-abcdefghij", "x".repeat(before));
            trail.add("fs", &what, Verdict::Denied, || Some(format!("run: {what}")));
        }
        trail.add("http", "GET http://secret-tok3n-abcdefghij.evil.test", Verdict::Allowed, || None);
        trail.add("http", "GET http://x/%53ec\u{200b}Ret-tok3n-abcdefghij", Verdict::Denied, || None);
        trail.ask(Consent { grant: "http", what: "https://secret-tok3n-abcdefghij.evil.test".to_owned() });
        trail.ask(Consent { grant: "http", what: "https://fine.test".to_owned() });
        let trail = trail.take();
        for decision in trail.decisions() {
            for told in [Some(&decision.what), decision.cure.as_ref()].into_iter().flatten() {
                assert!(!told.to_lowercase().contains("sec") && !told.contains("tok"), "{told}");
            }
        }
        assert_eq!(trail.asks().iter().map(|ask| ask.what.as_str()).collect::<Vec<_>>(), ["https://fine.test"]);
    }

    #[test]
    fn what_is_used_is_seen_while_it_grows() {
        let trail = SharedTrail::default();
        assert_eq!(trail.usage(), Usage::default());
        trail.begin(100);
        let other = trail.clone();
        other.fuel_left(60);
        other.cpu_used(Duration::from_nanos(7));
        other.memory_used(9);
        let usage = trail.usage();
        assert_eq!((usage.fuel, usage.cpu, usage.memory), (40, Duration::from_nanos(7), 9));
    }
}
