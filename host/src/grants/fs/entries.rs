//! The entries of a directory, one at a time: host memory does not grow with the directory.

use std::fs::File;

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::beneath::code;

/// An open directory stream.
pub(super) struct Entries(Dir);

impl Entries {
    /// Starts at the first entry, whatever was read through `dir` before.
    pub(super) fn open(dir: &File) -> Result<Self, ErrorCode> {
        // A description of its own: two streams over one directory do not disturb each other.
        let own =
            openat(dir, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(code)?;
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
            let type_ = match entry.file_type() {
                FileType::RegularFile => DescriptorType::RegularFile,
                FileType::Directory => DescriptorType::Directory,
                FileType::Symlink => DescriptorType::SymbolicLink,
                FileType::Fifo => DescriptorType::Fifo,
                FileType::Socket => DescriptorType::Socket,
                FileType::CharacterDevice => DescriptorType::CharacterDevice,
                FileType::BlockDevice => DescriptorType::BlockDevice,
                FileType::Unknown => DescriptorType::Unknown,
            };
            return Some(Ok(DirectoryEntry { type_, name }));
        }
    }
}
