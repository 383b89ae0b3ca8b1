//! The grant `fs`: directories, read-only.
//!
//! When a mount is configured, each granted path becomes a directory handle. During a call the kernel resolves every
//! guest path below such a handle (`resolve`). Only regular files and directories are opened.
//!
//! belljar implements all functions of `wasi:filesystem` itself (`functions`, `write_functions`). Work that may
//! wait for a drive runs on the call's dedicated thread ([`super::DedicatedThread`]). Access outside
//! of calls runs on a thread with a timeout ([`super::drive_timeout`]).
//!
//! Other kinds of grants may give a mount directories of files in memory (`memory_directory`). `memory` shows
//! them beside the granted directories.

mod call_state;
mod config;
mod descriptor;
mod directory_entries;
mod directory_records;
mod editor;
mod error;
mod functions;
mod granted_directory;
mod handle;
mod hard_links;
mod kind;
mod lent;
mod memory;
mod memory_file;
mod metadata;
mod name;
mod on_thread;
mod open_directory;
mod resolve;
mod root;
mod stream;
mod symlinks;
mod write_functions;

pub use call_state::FsCallState;
pub use config::FsConfig;
pub use error::{DirectoryGrantError, OpenError};
pub use kind::FsMountState;
pub use lent::{DirectoryLoan, LentDirectories};
pub use name::Fs;
pub use open_directory::open_for_reading;

#[cfg(test)]
mod tests;
