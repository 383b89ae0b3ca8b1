//! The host memory of one call: the charge of each handle, and the sum.

use std::collections::HashMap;
use std::fmt;

use wasmtime::component::Resource;

use crate::limits::memory_account::{MemoryAccount, MemoryCharge};
use crate::model::Guard;
use crate::model::error::{Limit, LimitKind};

/// Bytes of the header fields of one request or response, as `wasi:http` counts them.
pub(in crate::sandbox) const MAX_FIELDS: usize = 64 << 10;

/// Bytes of one entry of the handle table: the entry, its value, and its place in the guest's own table.
const TABLE_ENTRY: u64 = 512;

/// Entries charged at once, so that a call with few handles is charged once.
const ENTRIES_AT_ONCE: u32 = 32;

/// The host memory of the call is exhausted. The account records the limit, and the call ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct HostMemoryExceeded;

impl fmt::Display for HostMemoryExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host memory of this call is exhausted")
    }
}

impl std::error::Error for HostMemoryExceeded {}

/// `bytes` while [`Guard::HostMemory`] is on, otherwise 0.
fn if_guarded(bytes: u64) -> u64 {
    if Guard::HostMemory.is_on() { bytes } else { 0 }
}

/// The host memory of one call.
pub(in crate::sandbox) struct HostMemory {
    account: MemoryAccount,
    /// Charged entries of the handle table: the highest number used at once.
    entries: u32,
    /// Further bytes, by handle.
    bytes: HashMap<u32, u64>,
    /// Bytes of the last value that the host returned to the guest.
    returned_value: u64,
    /// HTTP requests and responses that the guest is building.
    requests: u64,
    max_requests: u64,
}

impl HostMemory {
    /// An empty account. At most `max_requests` requests can be built at once.
    pub(in crate::sandbox) fn new(account: MemoryAccount, max_requests: u64) -> Self {
        Self { account, entries: 0, bytes: HashMap::new(), returned_value: 0, requests: 0, max_requests }
    }

    pub(in crate::sandbox) fn take(&self, bytes: u64) -> Result<(), HostMemoryExceeded> {
        let bytes = if_guarded(bytes);
        if bytes == 0 || self.account.take(bytes) { Ok(()) } else { Err(HostMemoryExceeded) }
    }

    pub(in crate::sandbox) fn release(&self, bytes: u64) {
        let bytes = if_guarded(bytes);
        if bytes > 0 {
            self.account.release(bytes);
        }
    }

    /// Charges a new handle. A freed place in the table is reused, so it is charged only once.
    pub(in crate::sandbox) fn charge_handle<T>(
        &mut self,
        handle: Resource<T>,
    ) -> Result<Resource<T>, HostMemoryExceeded>
    where
        T: 'static,
    {
        if handle.rep() >= self.entries {
            let entries = (handle.rep() / ENTRIES_AT_ONCE).saturating_add(1).saturating_mul(ENTRIES_AT_ONCE);
            self.take(u64::from(entries - self.entries) * TABLE_ENTRY)?;
            self.entries = entries;
        }
        Ok(handle)
    }

    /// Charges `more` bytes to a handle, up to `most` in all.
    pub(in crate::sandbox) fn add(&mut self, handle: u32, more: u64, most: u64) -> Result<(), HostMemoryExceeded> {
        let before = self.charged_to(handle);
        self.set(handle, before.saturating_add(more).min(most.max(before)))
    }

    /// Sets the charge of a handle to `bytes`.
    pub(in crate::sandbox) fn set(&mut self, handle: u32, bytes: u64) -> Result<(), HostMemoryExceeded> {
        let before = self.charged_to(handle);
        self.take(bytes.saturating_sub(before))?;
        self.release(before.saturating_sub(bytes));
        if bytes > 0 {
            self.bytes.insert(handle, bytes);
        } else if before > 0 {
            self.bytes.remove(&handle);
        }
        Ok(())
    }

    /// Charges a handle of a grant, and the `bytes` behind it.
    pub(in crate::sandbox) fn charge_grant_handle(
        &mut self,
        handle: u32,
        bytes: u64,
    ) -> Result<(), HostMemoryExceeded> {
        self.charge_handle(Resource::<()>::new_own(handle))?;
        self.set(handle, bytes)
    }

    /// The charge of a handle.
    pub(in crate::sandbox) fn charged_to(&self, handle: u32) -> u64 {
        self.bytes.get(&handle).copied().unwrap_or_default()
    }

    /// Releases the charge of a dropped handle.
    pub(in crate::sandbox) fn release_handle(&mut self, handle: u32) {
        if !self.bytes.is_empty()
            && let Some(bytes) = self.bytes.remove(&handle)
        {
            self.release(bytes);
        }
    }

    /// Detaches the charge of a handle without releasing it: something else keeps the bytes from now on.
    pub(in crate::sandbox) fn detach(&mut self, handle: u32) -> u64 {
        self.bytes.remove(&handle).unwrap_or_default()
    }

    /// Attaches an existing charge to a handle.
    pub(in crate::sandbox) fn attach(&mut self, handle: u32, bytes: u64) {
        if bytes > 0 {
            *self.bytes.entry(handle).or_default() += bytes;
        }
    }

    /// Charges bytes until the returned value is dropped.
    pub(in crate::sandbox) fn charge(&self, bytes: u64) -> Result<Option<MemoryCharge>, HostMemoryExceeded> {
        let bytes = if_guarded(bytes);
        if bytes == 0 {
            return Ok(None);
        }
        self.account.charge(bytes).map(Some).ok_or(HostMemoryExceeded)
    }

    /// Charges a value that the host is about to return to the guest, in place of the one before. The value may stay in
    /// host memory until the guest has allocated room for it.
    pub(in crate::sandbox) fn charge_returned_value(&mut self, bytes: u64) -> Result<(), HostMemoryExceeded> {
        self.take(bytes.saturating_sub(self.returned_value))?;
        self.release(self.returned_value.saturating_sub(bytes));
        self.returned_value = bytes;
        Ok(())
    }

    /// Counts a request that the guest begins to build.
    pub(in crate::sandbox) fn begin_request(&mut self) -> Result<(), HostMemoryExceeded> {
        self.requests += 1;
        if self.requests <= self.max_requests {
            return Ok(());
        }
        self.account.record_limit(Limit { kind: LimitKind::Requests, used: self.requests, cap: self.max_requests });
        Err(HostMemoryExceeded)
    }

    /// Records that a request was sent or dropped.
    pub(in crate::sandbox) fn end_request(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::memory_budget::{Allowance, MemoryBudget};

    fn memory(cap: u64) -> (HostMemory, MemoryAccount) {
        let account = MemoryAccount::new(cap, Allowance::of(&MemoryBudget::new(1 << 30)));
        (HostMemory::new(account.clone(), 2), account)
    }

    /// Bytes in use, found by probing the remaining bytes.
    fn used(account: &MemoryAccount, cap: u64) -> u64 {
        (0..=cap).rev().step_by(8).find(|used| account.charge(cap - used).is_none()).map_or(0, |used| used + 8)
    }

    #[test]
    fn a_handle_is_charged_once() {
        let (mut memory, account) = memory(1 << 20);
        for rep in [0, 1, 5, 31, 0] {
            memory.charge_handle(Resource::<u8>::new_own(rep)).unwrap();
        }
        assert_eq!(account.peak(), u64::from(ENTRIES_AT_ONCE) * TABLE_ENTRY);
        memory.charge_handle(Resource::<u8>::new_own(32)).unwrap();
        assert_eq!(account.peak(), 2 * u64::from(ENTRIES_AT_ONCE) * TABLE_ENTRY);
        assert!(memory.charge_handle(Resource::<u8>::new_own(1 << 20)).is_err());
    }

    #[test]
    fn the_charge_of_a_handle_is_released_with_it() {
        let (mut memory, account) = memory(4096);
        memory.set(3, 800).unwrap();
        memory.add(3, 800, 1200).unwrap();
        assert_eq!((memory.charged_to(3), used(&account, 4096)), (1200, 1200));
        let moved = memory.detach(3);
        memory.attach(4, moved);
        memory.release_handle(3);
        assert_eq!((memory.charged_to(4), used(&account, 4096)), (1200, 1200));
        assert!(memory.add(4, 4000, u64::MAX).is_err());
        memory.set(4, 80).unwrap();
        assert_eq!(used(&account, 4096), 80);
        memory.release_handle(4);
        assert_eq!(used(&account, 4096), 0);
    }

    #[test]
    fn only_the_last_returned_value_is_charged() {
        let (mut memory, account) = memory(4096);
        for bytes in [800, 1600, 80] {
            memory.charge_returned_value(bytes).unwrap();
        }
        assert_eq!((account.peak(), used(&account, 4096)), (1600, 80));
        assert!(memory.charge_returned_value(5000).is_err());
    }

    #[test]
    fn requests_are_counted_while_they_are_built() {
        let (mut memory, account) = memory(4096);
        assert!(memory.begin_request().is_ok() && memory.begin_request().is_ok());
        memory.end_request();
        assert!(memory.begin_request().is_ok() && memory.begin_request().is_err());
        let limit = Limit { kind: LimitKind::Requests, used: 3, cap: 2 };
        assert_eq!(account.refusal(), Some(crate::model::ReadError::Exhausted(limit)));
    }
}
