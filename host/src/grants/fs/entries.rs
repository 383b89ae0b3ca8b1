//! The entries of a directory, one at a time: host memory does not grow with the directory.

use std::fs::File;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, ErrorCode};

use super::descriptor::type_of;
use super::resolve::code;

/// An open directory stream.
pub(super) struct Entries(Dir);

impl Entries {
    /// Starts at the first entry, whatever was read through `dir` before.
    pub(super) fn open(dir: &File) -> Result<Self, ErrorCode> {
        // A description of its own: two streams over one directory do not disturb each other. Reading leaves no trace where
        // the kernel allows that, which it does to the owner.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = match openat(dir, c".", flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => openat(dir, c".", flags, Mode::empty()),
            opened => opened,
        };
        let own = own.map_err(code)?;
        Ok(Self(Dir::new(own).map_err(code)?))
    }
}

impl Iterator for Entries {
    type Item = Result<DirectoryEntry, ErrorCode>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.0.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(code(errno))),
            };
            let name = match entry.file_name().to_str() {
                Ok("." | "..") => continue,
                Ok(name) => name.to_owned(),
                // The guest sees that there is something it cannot name, and may go on.
                Err(_) => return Some(Err(ErrorCode::IllegalByteSequence)),
            };
            let type_ = type_of(entry.file_type());
            return Some(Ok(DirectoryEntry { type_, name }));
        }
    }
}
