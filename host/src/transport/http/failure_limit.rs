//! Slows down clients whose credentials are refused.
//!
//! The first ten failures of an address within a minute are answered at once. Each further failure closes the address for
//! a while: one second, then twice as long each time, up to five minutes. While an address is closed, its credentials
//! are refused without being checked, except those that were accepted lately. So one client with a wrong key does not
//! shut out the others behind the same address, and costs next to nothing. A success opens nothing: otherwise a client
//! with one valid key could guess without end.
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
const WINDOW: Duration = Duration::from_secs(60);

/// The first time for which an address is closed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time for which an address is closed.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// After this time without a failure, an address begins anew with [`FIRST_PAUSE`].
const FORGET_AFTER: Duration = Duration::from_secs(900);

/// Most addresses that are remembered, about 100 bytes each.
const MAX_ADDRESSES: usize = 8192;

/// Requests without a credential of one address within [`WINDOW`] that are recorded. The first request of most clients
/// has none.
const MAX_RECORDED_CHALLENGES: u32 = 3;

/// Most accepted credentials that are remembered, and for how long.
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
    /// Requests without a credential in the window.
    challenges: u32,
    last_failure: Instant,
    /// The last time for which it was closed. Zero: never.
    pause: Duration,
    /// It is closed until this time.
    closed_until: Instant,
}

impl AddressFailures {
    fn new(now: Instant) -> Self {
        let pause = Duration::ZERO;
        Self { began: now, failures: 0, challenges: 0, last_failure: now, pause, closed_until: now }
    }

    /// Begins a new window if the current one is over.
    fn update(&mut self, now: Instant) {
        if now.duration_since(self.began) >= WINDOW && now >= self.closed_until {
            (self.began, self.failures, self.challenges) = (now, 0, 0);
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

/// The address under which failures are counted.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

impl Default for FailureLimit {
    fn default() -> Self {
        let accepted = Cache::builder().max_capacity(MAX_ACCEPTED).time_to_live(ACCEPTED_TIME).build();
        Self { addresses: Mutex::default(), accepted, hasher: RandomState::new() }
    }
}

impl FailureLimit {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, AddressFailures>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time until the credential may be sent again. `None` if it may be checked now.
    pub(super) fn refused_for(&self, address: IpAddr, credential: &str, now: Instant) -> Option<Duration> {
        let closed_until = self.lock().get(&counted(address))?.closed_until;
        let wait = closed_until.checked_duration_since(now).filter(|wait| !wait.is_zero())?;
        (!self.accepted.contains_key(&self.hasher.hash_one(credential))).then_some(wait)
    }

    /// Remembers an accepted credential.
    pub(super) fn accept(&self, credential: &str) {
        let key = self.hasher.hash_one(credential);
        if !self.accepted.contains_key(&key) {
            self.accepted.insert(key, ());
        }
    }

    /// Counts a refused credential.
    pub(super) fn count_failure(&self, address: IpAddr, now: Instant) {
        let most = MAX_FAILED_AUTHENTICATIONS.get();
        self.update(address, now, |one| {
            one.failures = one.failures.saturating_add(1);
            one.last_failure = now;
            if one.failures >= most {
                one.pause = if one.pause.is_zero() { FIRST_PAUSE } else { (one.pause * 2).min(MAX_PAUSE) };
                one.closed_until = now + one.pause;
            }
        });
    }

    /// Counts a request without a credential. True if it is recorded.
    pub(super) fn count_challenge(&self, address: IpAddr, now: Instant) -> bool {
        self.update(address, now, |one| {
            one.challenges = one.challenges.saturating_add(1);
            one.challenges <= MAX_RECORDED_CHALLENGES
        })
    }

    fn update<T>(&self, address: IpAddr, now: Instant, change: impl FnOnce(&mut AddressFailures) -> T) -> T {
        let mut all = self.lock();
        let address = counted(address);
        if all.len() >= MAX_ADDRESSES && !all.contains_key(&address) {
            make_room(&mut all, now);
        }
        let one = all.entry(address).or_insert_with(|| AddressFailures::new(now));
        one.update(now);
        change(one)
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
            if let Some(wait) = limit.refused_for(address, "wrong", now) {
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
            now += limit.refused_for(ADDRESS, "wrong", now).unwrap_or_default();
            assert_eq!(limit.refused_for(ADDRESS, "wrong", now), None, "the pause is over");
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
            assert_eq!(limit.refused_for(ADDRESS, "wrong", now), None);
            now += Duration::from_secs(7);
        }
    }

    #[test]
    fn others_and_accepted_credentials_are_not_refused() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        limit.accept("right");
        fail(&limit, ADDRESS, now);
        assert_eq!(limit.refused_for(ADDRESS, "right", now), None, "it was accepted before");
        assert!(limit.refused_for(ADDRESS, "new", now).is_some(), "it is not looked at");
        assert_eq!(limit.refused_for("203.0.113.8".parse().unwrap(), "new", now), None, "another address");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        for host in 0..10_u16 {
            limit.count_failure(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, host).into(), now);
        }
        let refused = |address: &str| limit.refused_for(address.parse().unwrap(), "wrong", now).is_some();
        assert!(refused("2001:db8:0:1:ffff::1") && !refused("2001:db8:0:2::1"));
        (0..10).for_each(|_| limit.count_failure("::ffff:198.51.100.1".parse().unwrap(), now));
        assert!(refused("198.51.100.1") && !refused("198.51.100.2"), "a dual-stack socket shows IPv4 so");
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_closed_addresses() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        fail(&limit, ADDRESS, now);
        for number in 0..100_000_u32 {
            limit.count_failure(IpAddr::V4(number.into()), now);
        }
        assert!(limit.lock().len() <= MAX_ADDRESSES);
        assert!(limit.refused_for(ADDRESS, "wrong", now).is_some());
    }

    #[test]
    fn few_requests_without_a_credential_are_recorded() {
        let (limit, now) = (FailureLimit::default(), Instant::now());
        let recorded = |now| (0..100).filter(|_| limit.count_challenge(ADDRESS, now)).count();
        assert_eq!((recorded(now), recorded(now + WINDOW)), (3, 3));
        assert_eq!(limit.refused_for(ADDRESS, "wrong", now), None, "they are no failures");
    }
}
