//! Slows down clients whose credentials are refused.
//!
//! The first ten failures of an address within a minute are answered at once. Each further failure closes the address for
//! a while: one second, then twice as long each time, up to five minutes. While an address is closed, its unknown
//! credentials are refused without being checked. So a client that guesses costs next to nothing.
//!
//! Others behind the same address are served meanwhile:
//! - API keys, and tokens that were verified a short time ago. They are known, so the address is not asked for.
//! - Tokens that were verified lately. A token is verified anew from time to time.
//!
//! No failure counts that an honest client makes: a key that was revoked, a token that was accepted lately, one that has
//! expired, and a request without a well-formed credential, which a link on any web page could send.
//!
//! An IPv6 client usually has a whole /64 network, so that network counts as one address.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::Instant;

use crate::model::bounds::MAX_FAILED_AUTHENTICATIONS;

/// The time in which failures are counted.
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// The first time for which an address is closed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time for which an address is closed.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// After this time without a failure, an address begins anew with [`FIRST_PAUSE`].
const FORGET_AFTER: Duration = Duration::from_secs(900);

/// Most addresses that are remembered, about 100 bytes each.
const MAX_ADDRESSES: usize = 8192;

/// Most accepted credentials that are remembered, and how long after their last use.
const MAX_ACCEPTED: u64 = 4096;
const ACCEPTED_TIME: Duration = Duration::from_secs(600);

/// The failures of all addresses, and the credentials that were accepted lately.
pub(super) struct FailureLimit {
    addresses: Mutex<HashMap<IpAddr, AddressFailures>>,
    /// Keyed hashes of accepted credentials. A collision lets a credential be checked, not pass.
    accepted: Cache<u64, ()>,
    hasher: RandomState,
}

/// The failures of one address.
#[derive(Debug)]
struct AddressFailures {
    /// The begin of the current window.
    began: Instant,
    /// Failures in the window.
    failures: u32,
    last_failure: Instant,
    /// The last time for which it was closed. Zero: never.
    pause: Duration,
    /// It is closed until this time.
    closed_until: Instant,
}

impl AddressFailures {
    fn new(now: Instant) -> Self {
        Self { began: now, failures: 0, last_failure: now, pause: Duration::ZERO, closed_until: now }
    }

    /// Begins a new window if the current one is over.
    fn update(&mut self, now: Instant) {
        if now.duration_since(self.began) >= WINDOW && now >= self.closed_until {
            (self.began, self.failures) = (now, 0);
        }
        if now.duration_since(self.last_failure) >= FORGET_AFTER {
            self.pause = Duration::ZERO;
        }
    }

    /// True if nothing of it affects later requests.
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= WINDOW
            && now >= self.closed_until
            && (self.pause.is_zero() || now.duration_since(self.last_failure) >= FORGET_AFTER)
    }
}

/// The address under which a client is counted.
pub(super) fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

impl Default for FailureLimit {
    fn default() -> Self {
        let accepted = Cache::builder().max_capacity(MAX_ACCEPTED).time_to_idle(ACCEPTED_TIME).build();
        Self { addresses: Mutex::default(), accepted, hasher: RandomState::new() }
    }
}

impl FailureLimit {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, AddressFailures>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until the address is open again. `None` if it is open.
    pub(super) fn closed_for(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let closed_until = self.lock().get(&counted(address))?.closed_until;
        closed_until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// True if the credential was accepted lately.
    pub(super) fn was_accepted(&self, credential: &str) -> bool {
        self.accepted.get(&self.hasher.hash_one(credential)).is_some()
    }

    /// Remembers an accepted credential.
    pub(super) fn accept(&self, credential: &str) {
        let key = self.hasher.hash_one(credential);
        // A look-up renews its time, and costs less than an insertion.
        if self.accepted.get(&key).is_none() {
            self.accepted.insert(key, ());
        }
    }

    /// Counts a refused credential, unless it was accepted lately: then it is forgotten, and counts the next time.
    pub(super) fn refuse(&self, address: IpAddr, credential: &str, now: Instant) {
        if self.accepted.remove(&self.hasher.hash_one(credential)).is_none() {
            self.count_failure(address, now);
        }
    }

    fn count_failure(&self, address: IpAddr, now: Instant) {
        let mut all = self.lock();
        let address = counted(address);
        if all.len() >= MAX_ADDRESSES && !all.contains_key(&address) {
            make_room(&mut all, now);
        }
        let one = all.entry(address).or_insert_with(|| AddressFailures::new(now));
        one.update(now);
        one.failures = one.failures.saturating_add(1);
        one.last_failure = now;
        if one.failures >= MAX_FAILED_AUTHENTICATIONS.get() {
            one.pause = if one.pause.is_zero() { FIRST_PAUSE } else { (one.pause * 2).min(MAX_PAUSE) };
            one.closed_until = now + one.pause;
        }
    }
}

/// Forgets the addresses that no longer matter. If there are none, forgets the one that matters least.
fn make_room(all: &mut HashMap<IpAddr, AddressFailures>, now: Instant) {
    all.retain(|_, one| !one.is_over(now));
    if all.len() < MAX_ADDRESSES {
        return;
    }
    let least = all.iter().min_by_key(|(_, one)| (one.closed_until > now, one.pause, one.failures, one.began));
    if let Some(address) = least.map(|(address, _)| *address) {
        all.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

    /// The number of failures until the address is closed, at most 100, and the time for which it is closed.
    fn fail(limit: &FailureLimit, address: IpAddr, now: Instant) -> (usize, Duration) {
        for failures in 1..=100 {
            limit.count_failure(address, now);
            if let Some(wait) = limit.closed_for(address, now) {
                return (failures, wait);
            }
        }
        (100, Duration::ZERO)
    }

    #[test]
    fn after_ten_failures_the_pause_doubles_up_to_five_minutes() {
        let (limit, mut now) = (FailureLimit::default(), Instant::now());
        assert_eq!(fail(&limit, ADDRESS, now), (10, FIRST_PAUSE));
        let mut pauses = Vec::new();
        for _ in 0..12 {
            now += limit.closed_for(ADDRESS, now).unwrap_or_default();
            assert_eq!(limit.closed_for(ADDRESS, now), None, "the pause is over");
            pauses.push(fail(&limit, ADDRESS, now).1.as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
        now += FORGET_AFTER + MAX_PAUSE;
        assert_eq!(fail(&limit, ADDRESS, now), (10, FIRST_PAUSE), "all is forgotten");
    }

    #[test]
    fn rare_failures_never_close_an_address() {
        let (limit, mut now) = (FailureLimit::default(), Instant::now());
        for _ in 0..1000 {
            limit.count_failure(ADDRESS, now);
            assert_eq!(limit.closed_for(ADDRESS, now), None);
            now += Duration::from_secs(7);
        }
    }

    #[test]
    fn a_credential_that_was_accepted_lately_is_no_guess() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        limit.accept("right");
        fail(&limit, ADDRESS, now);
        assert!(limit.was_accepted("right") && !limit.was_accepted("new"));
        assert_eq!(limit.closed_for("203.0.113.8".parse().unwrap(), now), None, "another address");
        // Revoked: many requests of an honest client are under way.
        let other = "203.0.113.9".parse().unwrap();
        limit.refuse(other, "right", now);
        assert!(!limit.was_accepted("right"), "it counts from now on");
        assert!(limit.lock().get(&other).is_none(), "the first refusal does not count");
        (0..10).for_each(|_| limit.refuse(other, "right", now));
        assert!(limit.closed_for(other, now).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        for host in 0..10_u16 {
            limit.count_failure(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, host).into(), now);
        }
        let refused = |address: &str| limit.closed_for(address.parse().unwrap(), now).is_some();
        assert!(refused("2001:db8:0:1:ffff::1") && !refused("2001:db8:0:2::1"));
        (0..10).for_each(|_| limit.count_failure("::ffff:198.51.100.1".parse().unwrap(), now));
        assert!(refused("198.51.100.1") && !refused("198.51.100.2"), "a dual-stack socket shows IPv4 so");
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_closed_addresses() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        fail(&limit, ADDRESS, now);
        for number in 0..10_000_u32 {
            limit.count_failure(IpAddr::V4(number.into()), now);
        }
        assert!(limit.lock().len() <= MAX_ADDRESSES);
        assert!(limit.closed_for(ADDRESS, now).is_some());
    }
}
