//! What the host keeps for a guest, charged to the memory of the call: handles, header fields, requests, bodies, bytes on
//! their way into a stream, lists that are waited for.
//!
//! Every function of `wasi:http/types`, `wasi:http/outgoing-handler`, `wasi:io/streams` and `wasi:io/poll` passes through
//! here, by the traits that the library generates: one that it adds does not compile until somebody has said what it
//! keeps. The same functions of the library do the work. All of this is for components without grants too: these
//! interfaces are linked for everyone.

mod handles;
mod http;
mod io;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use wasmtime::component::{HasData, Linker, Resource};

use super::state::State;
use crate::admission::account::{Account, Charge};
use crate::admission::freed;
use crate::model::Guard;
use crate::model::error::{Bound, Limit};

pub(super) use http::HttpHost;
pub(super) use io::IoHost;

/// Bytes of the header fields of one request or answer, as `wasi:http` counts them.
pub(super) const FIELDS: usize = 64 << 10;

/// Bytes that one entry of the handle table takes with what is always behind it: the entry, its value, its place in the
/// guest's own table.
const ENTRY: u64 = 512;

/// Entries that are charged together, so that a call with few handles pays once.
const BLOCK: u32 = 32;

/// Charges what the host keeps, in place of the library's own definitions.
///
/// # Errors
/// When the linker refuses a definition.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    http::link(linker)?;
    io::link(linker)?;
    handles::link(linker)
}

/// The memory of the call is used up; the account has the limit, and the call ends with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host may keep no more for this call")
    }
}

impl std::error::Error for Refused {}

/// What the host keeps for one call.
pub(super) struct HostMemory {
    account: Account,
    /// Entries of the handle table that are paid for: as many as were ever used at once.
    entries: u32,
    /// Bytes beside that, by the handle that keeps them.
    bytes: HashMap<u32, u64>,
    /// Bytes of the last value that the host made for the guest.
    given: u64,
    /// Requests and answers that the guest is making.
    requests: u64,
    most_requests: u64,
    /// Bytes that were ever charged.
    all: Cell<u64>,
}

impl HostMemory {
    /// Nothing is kept yet; at most `most_requests` requests can be made at the same time.
    pub(super) fn new(account: Account, most_requests: u64) -> Self {
        Self { account, entries: 0, bytes: HashMap::new(), given: 0, requests: 0, most_requests, all: Cell::new(0) }
    }

    fn take(&self, bytes: u64) -> Result<(), Refused> {
        let is_let = bytes == 0 || !Guard::HostMemory.is_on() || self.account.take(bytes);
        self.all.set(self.all.get().saturating_add(bytes));
        if is_let { Ok(()) } else { Err(Refused) }
    }

    fn give(&self, bytes: u64) {
        if bytes > 0 && Guard::HostMemory.is_on() {
            self.account.give(bytes);
        }
    }

    /// Pays for a handle that was made. What it frees is used for the next one, so it is paid for once.
    fn made<T>(&mut self, handle: Resource<T>) -> Result<Resource<T>, Refused>
    where
        T: 'static,
    {
        if handle.rep() >= self.entries {
            let entries = (handle.rep() / BLOCK).saturating_add(1).saturating_mul(BLOCK);
            self.take(u64::from(entries - self.entries) * ENTRY)?;
            self.entries = entries;
        }
        Ok(handle)
    }

    /// Charges `more` bytes to a handle, which has at most `most`.
    fn add(&mut self, handle: u32, more: u64, most: u64) -> Result<(), Refused> {
        let before = self.of(handle);
        self.set(handle, before.saturating_add(more).min(most.max(before)))
    }

    /// Charges `bytes` to a handle, in place of what it was charged before.
    fn set(&mut self, handle: u32, bytes: u64) -> Result<(), Refused> {
        let before = self.of(handle);
        self.take(bytes.saturating_sub(before))?;
        self.give(before.saturating_sub(bytes));
        if bytes > 0 {
            self.bytes.insert(handle, bytes);
        } else if before > 0 {
            self.bytes.remove(&handle);
        }
        Ok(())
    }

    /// Pays for a handle of a grant's, and for what is kept behind it.
    pub(super) fn keeps(&mut self, handle: u32, bytes: u64) -> Result<(), Refused> {
        self.made(Resource::<()>::new_own(handle))?;
        self.set(handle, bytes)
    }

    /// What is charged to a handle.
    fn of(&self, handle: u32) -> u64 {
        self.bytes.get(&handle).copied().unwrap_or_default()
    }

    /// Gives back what a handle was charged: it is dropped.
    pub(super) fn dropped(&mut self, handle: u32) {
        if !self.bytes.is_empty()
            && let Some(bytes) = self.bytes.remove(&handle)
        {
            self.give(bytes);
        }
    }

    /// Takes what a handle was charged away from it, and leaves it charged: something else keeps it from now on.
    fn moved(&mut self, handle: u32) -> u64 {
        self.bytes.remove(&handle).unwrap_or_default()
    }

    /// Charges to a handle what was charged before.
    fn put(&mut self, handle: u32, bytes: u64) {
        if bytes > 0 {
            *self.bytes.entry(handle).or_default() += bytes;
        }
    }

    /// Charges bytes until they are gone.
    fn charge(&self, bytes: u64) -> Result<Option<Charge>, Refused> {
        if bytes == 0 || !Guard::HostMemory.is_on() {
            return Ok(None);
        }
        self.all.set(self.all.get().saturating_add(bytes));
        self.account.charge(bytes).map(Some).ok_or(Refused)
    }

    /// Charges a value that the host is about to make for the guest, in place of the one before: it may be held for as long
    /// as the guest takes to make room for it.
    fn giving(&mut self, bytes: u64) -> Result<(), Refused> {
        self.take(bytes.saturating_sub(self.given))?;
        self.give(self.given.saturating_sub(bytes));
        self.given = bytes;
        Ok(())
    }

    /// Counts a request that the guest begins to make.
    fn begins_request(&mut self) -> Result<(), Refused> {
        self.requests += 1;
        if self.requests <= self.most_requests || !Guard::HostMemory.is_on() {
            return Ok(());
        }
        self.account.refuse(Limit { bound: Bound::Requests, used: self.requests, cap: self.most_requests });
        Err(Refused)
    }

    /// A request was sent or dropped.
    fn ends_request(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        freed::soon(self.all.get());
    }
}

/// The state as [`HttpHost`] sees it.
struct Http;

impl HasData for Http {
    type Data<'a> = HttpHost<'a>;
}

/// The state as [`IoHost`] sees it.
struct Io;

impl HasData for Io {
    type Data<'a> = IoHost<'a>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::budget::{Allowance, Budget};

    fn memory(cap: u64) -> (HostMemory, Account) {
        let account = Account::new(cap, Allowance::of(&Budget::new(1 << 30)));
        (HostMemory::new(account.clone(), 2), account)
    }

    /// What is in use: what is left to take, seen from the other side.
    fn used(account: &Account, cap: u64) -> u64 {
        (0..=cap).rev().step_by(8).find(|used| account.charge(cap - used).is_none()).map_or(0, |used| used + 8)
    }

    #[test]
    fn a_handle_is_paid_for_once() {
        let (mut memory, account) = memory(1 << 20);
        for rep in [0, 1, 5, 31, 0] {
            memory.made(Resource::<u8>::new_own(rep)).unwrap();
        }
        assert_eq!(account.peak(), u64::from(BLOCK) * ENTRY);
        memory.made(Resource::<u8>::new_own(32)).unwrap();
        assert_eq!(account.peak(), 2 * u64::from(BLOCK) * ENTRY);
        assert!(memory.made(Resource::<u8>::new_own(1 << 20)).is_err());
    }

    #[test]
    fn what_a_handle_keeps_is_given_back_with_it() {
        let (mut memory, account) = memory(4096);
        memory.set(3, 800).unwrap();
        memory.add(3, 800, 1200).unwrap();
        assert_eq!((memory.of(3), used(&account, 4096)), (1200, 1200));
        let moved = memory.moved(3);
        memory.put(4, moved);
        memory.dropped(3);
        assert_eq!((memory.of(4), used(&account, 4096)), (1200, 1200));
        assert!(memory.add(4, 4000, u64::MAX).is_err());
        memory.set(4, 80).unwrap();
        assert_eq!(used(&account, 4096), 80);
        memory.dropped(4);
        assert_eq!(used(&account, 4096), 0);
    }

    #[test]
    fn the_last_value_is_charged_alone() {
        let (mut memory, account) = memory(4096);
        for bytes in [800, 1600, 80] {
            memory.giving(bytes).unwrap();
        }
        assert_eq!((account.peak(), used(&account, 4096)), (1600, 80));
        assert!(memory.giving(5000).is_err());
    }

    #[test]
    fn requests_are_counted_while_they_are_made() {
        let (mut memory, account) = memory(4096);
        assert!(memory.begins_request().is_ok() && memory.begins_request().is_ok());
        memory.ends_request();
        assert!(memory.begins_request().is_ok() && memory.begins_request().is_err());
        let limit = Limit { bound: Bound::Requests, used: 3, cap: 2 };
        assert_eq!(account.refused(), Some(crate::model::ReadError::Exhausted(limit)));
    }
}
