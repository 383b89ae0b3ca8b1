//! Room for what valgrind takes away and the kernel goes on to name: the page with the kernel's own functions.
//!
//! Valgrind unmaps that page and hides its address. rustix asks the kernel itself, is told the address, and looks whether a
//! program lies there: with nothing there at all, it dies. With a page of zeros it sees that there is none, and makes system
//! calls.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Where the kernel says that its functions are (`AT_SYSINFO_EHDR` of `getauxval(3)`).
const FUNCTIONS: u64 = 33;

const PAGE: usize = 4096;

/// Puts a page of zeros where the kernel's functions were.
pub(crate) fn fill() {
    // Valgrind has its own answer for this file under its other names.
    let told = std::fs::read("/proc/thread-self/auxv").expect("what the kernel told this program at its start");
    let Some(address) = address(&told) else { return };
    let place = ptr::with_exposed_provenance_mut::<c_void>(address);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
    #[expect(unsafe_code, reason = "memory at an address cannot be had otherwise")]
    // SAFETY: it replaces nothing, and nothing has a reference to what was never there.
    let page = unsafe { mmap_anonymous(place, PAGE, ProtFlags::READ, flags) };
    assert_eq!(page.map(|page| page.expose_provenance()), Ok(address), "a page at that address");
}

/// The address in pairs of a name and a value.
fn address(told: &[u8]) -> Option<usize> {
    let (words, _) = told.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pairs = pairs.iter().map(|pair| pair.map(u64::from_ne_bytes));
    pairs.into_iter().find_map(|[name, value]| (name == FUNCTIONS).then(|| usize::try_from(value).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_among_others() {
        let told: Vec<u8> = [6u64, 4096, 33, 0x7fff_1000, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(address(&told), Some(0x7fff_1000));
        assert_eq!(address(&told[..16]), None);
        assert_eq!(address(&[]), None);
    }
}
