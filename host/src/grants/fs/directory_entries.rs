//! Directory listings, one entry at a time: memory use does not grow with the directory.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::metadata::type_of;
use super::resolve::error_code;

/// A directory that is being listed.
pub(super) enum DirectoryEntryStream {
    Kernel(Dir),
    /// The names of files in memory.
    Memory(std::vec::IntoIter<&'static str>),
}

impl DirectoryEntryStream {
    /// Opens a stream that starts at the first entry. Ignores what was read through `dir` before.
    pub(super) fn open(dir: &File) -> Result<Self, ErrorCode> {
        Ok(Self::Kernel(Dir::new(reopen(dir)?).map_err(error_code)?))
    }
}

/// Opens a directory again, so that two readers of one directory have two positions. `O_NOATIME` keeps the access time
/// unchanged; the kernel allows this flag to the owner of the directory only.
pub(super) fn reopen(dir: &File) -> Result<OwnedFd, ErrorCode> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = match openat(dir, c".", flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(dir, c".", flags, Mode::empty()),
        opened => opened,
    };
    own.map_err(error_code)
}

impl Iterator for DirectoryEntryStream {
    type Item = Result<DirectoryEntry, ErrorCode>;

    fn next(&mut self) -> Option<Self::Item> {
        let dir = match self {
            Self::Kernel(dir) => dir,
            Self::Memory(names) => {
                let name = names.next()?.to_owned();
                return Some(Ok(DirectoryEntry { type_: DescriptorType::RegularFile, name }));
            }
        };
        loop {
            let entry = match dir.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(error_code(errno))),
            };
            let name = match entry.file_name().to_str() {
                Ok("." | "..") => continue,
                Ok(name) => name.to_owned(),
                // The guest gets an error for this name, and can read the next entry.
                Err(_) => return Some(Err(ErrorCode::IllegalByteSequence)),
            };
            let type_ = type_of(entry.file_type());
            return Some(Ok(DirectoryEntry { type_, name }));
        }
    }
}
