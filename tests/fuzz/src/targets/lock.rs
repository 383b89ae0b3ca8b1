//! The lock of digests: `config::lock`. Whoever can damage it must not be able to have other bytes trusted.

use std::sync::LazyLock;

use belljar::config::lock::Lock;

use crate::{corpus, oracle};

/// The locks that belljar wrote, of the corpus.
static WRITTEN: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let seeds = corpus::seeds(crate::target("lock"));
    let texts = seeds.iter().filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let locks: Vec<Lock> = texts.filter_map(|text| Lock::parse(text).ok()).collect();
    assert!(locks.len() > 1, "no lock of the corpus is whole");
    locks
});

/// What is read is what belljar wrote, whatever was done to it; a checksum of another lock is not found by chance.
pub(super) fn lock(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Lock::parse(text) {
        Ok(lock) => {
            assert!(WRITTEN.contains(&lock), "a lock that nobody wrote: {lock:?}");
            assert_eq!(Lock::parse(&lock.to_text()).as_ref(), Ok(&lock));
        }
        Err(why) => {
            oracle::assert_plain(&why, "a refusal");
            let line = why.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
            let line = line.unwrap_or_else(|| panic!("{why:?} names no line"));
            assert!((1..=text.matches('\n').count() + 1).contains(&line), "{why:?} of {text:?}");
        }
    }
}
