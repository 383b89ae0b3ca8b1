//! Maps a page in the place of the vDSO, which valgrind removes.
//!
//! The vDSO is a page with functions of the kernel. Valgrind unmaps it and hides its address. But rustix gets the address from
//! the kernel and reads the page: without a page, the program crashes. With a page of zeros, rustix finds no vDSO and makes
//! system calls.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// The key of the address of the vDSO: `AT_SYSINFO_EHDR` of `getauxval(3)`.
const FUNCTIONS: u64 = 33;

const PAGE: usize = 4096;

/// Maps a page of zeros at the address of the vDSO.
pub(crate) fn fill() {
    // Valgrind emulates this file under its other names, such as `/proc/self/auxv`.
    let auxv = std::fs::read("/proc/thread-self/auxv").expect("the auxiliary vector of this program");
    let Some(address) = address(&auxv) else { return };
    let place = ptr::with_exposed_provenance_mut::<c_void>(address);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
    #[expect(unsafe_code, reason = "only `mmap` puts a page at a given address")]
    // SAFETY: valgrind has unmapped this address, so the page replaces no other and no reference to it exists.
    let page = unsafe { mmap_anonymous(place, PAGE, ProtFlags::READ, flags) };
    assert_eq!(page.map(|page| page.expose_provenance()), Ok(address), "a page at that address");
}

/// Finds the address of the vDSO in the auxiliary vector, which has pairs of a key and a value.
fn address(auxv: &[u8]) -> Option<usize> {
    let (words, _) = auxv.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pairs = pairs.iter().map(|pair| pair.map(u64::from_ne_bytes));
    pairs.into_iter().find_map(|[name, value]| (name == FUNCTIONS).then(|| usize::try_from(value).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_among_others() {
        let auxv: Vec<u8> = [6u64, 4096, 33, 0x7fff_1000, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(address(&auxv), Some(0x7fff_1000));
        assert_eq!(address(&auxv[..16]), None);
        assert_eq!(address(&[]), None);
    }
}
