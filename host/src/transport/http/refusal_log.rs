//! Decides which refused authentications get a line of the record. Anyone can send them, so without a bound they would
//! fill the disk, or drive the lines of others out of the record.
//!
//! An address gets three lines a minute for requests without a credential, because the first request of most clients has
//! none, and ten for malformed credentials. All addresses together get a thousand lines at once, and then one a second.
//! What gets no line is counted, and the next line of the address, or of all, stands for it too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::failure_limit::{WINDOW, counted};

/// Why a request has no well-formed credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It has none.
    Missing,
    /// It has several, or one of another form.
    Malformed,
}

impl Unusable {
    /// Lines of one address in [`WINDOW`].
    fn max_lines(self) -> u32 {
        match self {
            Self::Missing => 3,
            Self::Malformed => 10,
        }
    }
}

/// Lines of all addresses at once, after a pause.
const BURST: u32 = 1000;

/// The time after which one more line is free.
const INTERVAL: Duration = Duration::from_secs(1);

/// Most addresses that are remembered.
const MAX_ADDRESSES: usize = 8192;

/// The refusals of all addresses.
#[derive(Default)]
pub(super) struct RefusalLog(Mutex<State>);

#[derive(Default)]
struct State {
    addresses: HashMap<IpAddr, AddressLines>,
    /// The time at which all lines are free again.
    full_at: Option<Instant>,
    /// Refusals without a line, of addresses that are not remembered, or for lack of a line.
    unwritten: u32,
}

/// The lines of one address.
struct AddressLines {
    began: Instant,
    missing: u32,
    malformed: u32,
    unwritten: u32,
}

impl RefusalLog {
    /// Counts a refused credential. Returns how many refusals its line stands for. `None`: it gets no line.
    pub(super) fn refused(&self, address: IpAddr, now: Instant) -> Option<u32> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = state.addresses.get_mut(&counted(address)).map(|one| std::mem::take(&mut one.unwritten));
        state.line(1_u32.saturating_add(of_address.unwrap_or_default()), now)
    }

    /// Counts a request without a well-formed credential. As [`RefusalLog::refused`].
    pub(super) fn unusable(&self, address: IpAddr, why: Unusable, now: Instant) -> Option<u32> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = state.of(address, now);
        let lines = if why == Unusable::Missing { &mut one.missing } else { &mut one.malformed };
        *lines = lines.saturating_add(1);
        if *lines > why.max_lines() {
            one.unwritten = one.unwritten.saturating_add(1);
            return None;
        }
        let count = 1_u32.saturating_add(std::mem::take(&mut one.unwritten));
        state.line(count, now)
    }

    /// Counts a request of a closed address. It gets no line of its own.
    pub(super) fn closed(&self, address: IpAddr, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let one = state.of(address, now);
        one.unwritten = one.unwritten.saturating_add(1);
    }
}

impl RefusalLog {
    /// The refusals without a line. Removes them.
    pub(super) fn take_unwritten(&self) -> u32 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_addresses = state.addresses.values_mut().map(|one| std::mem::take(&mut one.unwritten));
        let of_addresses = of_addresses.fold(0, u32::saturating_add);
        std::mem::take(&mut state.unwritten).saturating_add(of_addresses)
    }
}

impl AddressLines {
    fn new(now: Instant) -> Self {
        Self { began: now, missing: 0, malformed: 0, unwritten: 0 }
    }
}

impl State {
    fn of(&mut self, address: IpAddr, now: Instant) -> &mut AddressLines {
        let address = counted(address);
        if self.addresses.len() >= MAX_ADDRESSES && !self.addresses.contains_key(&address) {
            // Whole, because a search for the oldest one would cost more than it saves. No count is lost.
            let unwritten = self.addresses.drain().map(|(_, one)| one.unwritten).fold(0, u32::saturating_add);
            self.unwritten = self.unwritten.saturating_add(unwritten);
        }
        let one = self.addresses.entry(address).or_insert_with(|| AddressLines::new(now));
        if now.duration_since(one.began) >= WINDOW {
            (one.began, one.missing, one.malformed) = (now, 0, 0);
        }
        one
    }

    /// Takes a line for `count` refusals, if one is free. The line stands for all that had none, too.
    fn line(&mut self, count: u32, now: Instant) -> Option<u32> {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + INTERVAL;
        let count = self.unwritten.saturating_add(count);
        if full_at.duration_since(now) > INTERVAL * BURST {
            self.unwritten = count;
            return None;
        }
        (self.full_at, self.unwritten) = (Some(full_at), 0);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));

    #[test]
    fn few_malformed_requests_of_an_address_get_lines_and_none_is_lost() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        let lines = |why, now| (0..100).filter_map(|_| log.unusable(ADDRESS, why, now)).collect::<Vec<_>>();
        assert_eq!(lines(Unusable::Malformed, now), [1; 10]);
        assert_eq!(lines(Unusable::Missing, now), [91, 1, 1], "the first line stands for the 90 before it");
        assert_eq!(lines(Unusable::Missing, now + WINDOW), [98, 1, 1]);
        log.closed(ADDRESS, now + WINDOW);
        assert_eq!(log.refused(ADDRESS, now + WINDOW), Some(99), "a refused credential always asks for a line");
    }

    #[test]
    fn all_addresses_together_get_a_line_a_second_after_a_burst() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        let refuse = |number: u32, now| log.refused(IpAddr::V4(number.into()), now);
        let lines = (0..5000).filter_map(|number| refuse(number, now)).count();
        assert_eq!(lines, 1000);
        assert_eq!(refuse(0, now + INTERVAL), Some(4001), "the line stands for those without one");
        assert_eq!(refuse(0, now + INTERVAL), None);
        assert_eq!(refuse(0, now + INTERVAL * 2), Some(2));
    }

    #[test]
    fn the_table_is_bounded() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        (0..20_000_u32).for_each(|number| log.closed(IpAddr::V4(number.into()), now));
        assert!(log.0.lock().unwrap().addresses.len() <= MAX_ADDRESSES);
        let counted: u32 = {
            let state = log.0.lock().unwrap();
            state.unwritten + state.addresses.values().map(|one| one.unwritten).sum::<u32>()
        };
        assert_eq!(counted, 20_000);
    }
}
