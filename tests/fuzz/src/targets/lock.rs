//! `belljar.lock`: `config::lock`. Damage to the file must never make another component trusted.

use std::sync::LazyLock;

use belljar::config::lock::Lock;
use belljar_fuzz_run::corpus;

use crate::oracle;

/// The valid locks of the corpus, which belljar wrote.
static WRITTEN: LazyLock<Vec<Lock>> = LazyLock::new(|| {
    let seeds = corpus::seeds(crate::target("lock"));
    let texts = seeds.iter().filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let locks: Vec<Lock> = texts.filter_map(|text| Lock::parse(text).ok()).collect();
    assert!(locks.len() > 1, "the corpus has no valid lock");
    locks
});

/// A mutated lock must be refused, or parse to a lock of the corpus. A mutation does not find a new checksum by chance.
pub(super) fn lock(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Lock::parse(text) {
        Ok(lock) => {
            assert!(WRITTEN.contains(&lock), "a mutated lock was accepted: {lock:?}");
            assert_eq!(Lock::parse(&lock.to_text()).as_ref(), Ok(&lock));
        }
        Err(why) => {
            let why = why.to_string();
            oracle::assert_plain(&why, "a refusal");
            let line = why.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
            let line = line.unwrap_or_else(|| panic!("{why:?} names no line"));
            assert!((1..=text.matches('\n').count() + 1).contains(&line), "{why:?} of {text:?}");
        }
    }
}
