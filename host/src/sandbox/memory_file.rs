//! Files in memory, which other processes get.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

/// Makes an empty file in memory that can be sealed, and that no process can execute. `name` is for people.
///
/// # Errors
/// If the kernel refuses it, or this process has no descriptor left.
pub(super) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Linux 6.3 to 6.5 refuse a file without this flag if `vm.memfd_noexec` is 2. Older kernels do not know it.
    let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    Ok(made?)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{SealFlags, fcntl_add_seals, fstat};

    use super::*;

    #[test]
    fn a_file_in_memory_can_be_sealed_and_not_be_executed() {
        let knows_flag = memfd_create(c"other", MemfdFlags::NOEXEC_SEAL).is_ok();
        let file = memory_file(c"a file").unwrap();
        fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        assert!(rustix::io::write(&file, b"text").is_err(), "it cannot grow");
        assert_eq!(fstat(&file).unwrap().st_mode & 0o111 == 0, knows_flag);
    }
}
