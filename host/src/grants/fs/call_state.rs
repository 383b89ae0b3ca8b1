//! The state of the grant `fs` in a call, and the audit texts of its refusals.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::name::NAME;
use super::resolve::ResolveError;
use super::root::OpenRoot;
use crate::grants::call_record::CallRecord;
use crate::grants::dedicated_thread::DedicatedThread;
use crate::grants::memory_directory::{MemoryDirectory, MemoryFile, MemoryFileError};
use crate::model::{DecisionKind, MountName};

/// The most refused paths of a call that the audit record names. Further paths are counted together, so that a guest
/// cannot fill the record with paths.
const MAX_NAMED_PATHS: usize = 12;

const READ_ONLY: &str = "nothing allows this: filesystem grants are read-only";
const SPECIAL: &str = "nothing allows this: only regular files and directories can be opened";
const KERNEL: &str = "nothing allows this: /proc, /sys and the like are never read, wherever they are mounted";
const NO_PERMISSION: &str =
    "permission denied on the host; let the user that runs belljar read it there (chmod, chown)";
const OUTSIDE: &str = "the path leads out of the granted directory; to allow it, grant the directory that it leads to, under another guest path, in fs of [mounts.NAME]";
const LINK_OUTSIDE: &str = "the link leads out of the granted directory, so its target is hidden; to allow it, grant the directory that it leads to, under another guest path, in fs of [mounts.NAME]";

/// The cures of refused operations. "NAME" stands for the mount.
pub(super) const CURES: [&str; 6] = [READ_ONLY, SPECIAL, KERNEL, NO_PERMISSION, OUTSIDE, LINK_OUTSIDE];

/// An operation that a guest tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileOperation {
    Open,
    Stat,
    ReadLink,
    OpenForWriting,
    CreateDirectory,
    RemoveDirectory,
    RemoveFile,
    Rename,
    Link,
    Symlink,
    SetTimes,
    SetSize,
    Write,
}

impl FileOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::ReadLink => "read the link",
            Self::OpenForWriting => "open to change",
            Self::CreateDirectory => "create the directory",
            Self::RemoveDirectory => "remove the directory",
            Self::RemoveFile => "remove the file",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Symlink => "create the link",
            Self::SetTimes => "set the times of",
            Self::SetSize => "set the size of",
            Self::Write => "write to",
        }
    }
}

/// The state of the grant `fs` in one call.
pub struct FsCallState {
    roots: Vec<Arc<OpenRoot>>,
    memory: Vec<Arc<dyn MemoryDirectory>>,
    mount: MountName,
    record: CallRecord,
    thread: DedicatedThread,
    /// The refused paths that the record names.
    named_paths: Vec<String>,
}

impl FsCallState {
    pub(super) fn new(
        roots: Vec<Arc<OpenRoot>>,
        memory: Vec<Arc<dyn MemoryDirectory>>,
        mount: MountName,
        record: CallRecord,
        thread: DedicatedThread,
    ) -> Self {
        Self { roots, memory, mount, record, thread, named_paths: Vec::new() }
    }

    /// The directories of files in memory of the call.
    pub(super) fn memory(&self) -> &[Arc<dyn MemoryDirectory>] {
        &self.memory
    }

    /// The directories of the call.
    pub(super) fn roots(&self) -> &[Arc<OpenRoot>] {
        &self.roots
    }

    pub(super) fn record(&self) -> &CallRecord {
        &self.record
    }

    pub(super) fn thread(&self) -> &DedicatedThread {
        &self.thread
    }

    /// Adds the refusal of `operation` on `path` to the call's record, and returns the error for the guest. Errors of
    /// the file system itself are not decisions and are not recorded.
    pub(super) fn refuse(&mut self, operation: FileOperation, path: &str, error: ResolveError) -> ErrorCode {
        let (why, cure) = match error {
            ResolveError::Outside if operation == FileOperation::ReadLink => ("", LINK_OUTSIDE),
            ResolveError::Outside => ("", OUTSIDE),
            ResolveError::Kernel => ("", KERNEL),
            ResolveError::Special => ("", SPECIAL),
            ResolveError::NoPermission => (" (permission denied on the host)", NO_PERMISSION),
            ResolveError::NeedsThread | ResolveError::Failed(_) => return error.code(),
        };
        self.add(operation, path, why, cure);
        error.code()
    }

    /// Adds the refusal of a write to the call's record, and returns the error for the guest.
    pub(super) fn refuse_write(&mut self, operation: FileOperation, path: &str) -> ErrorCode {
        self.add(operation, path, "", READ_ONLY);
        ErrorCode::NotPermitted
    }

    /// Adds the result of opening a file in memory to the call's record, and returns the file or the error for the guest.
    /// Only the directory's own names are recorded, so they are few. `is_recorded`: the front has recorded the result.
    pub(super) fn record_memory_file(
        &mut self,
        operation: FileOperation,
        dir: &dyn MemoryDirectory,
        name: &str,
        opened: Result<Arc<MemoryFile>, MemoryFileError>,
        is_recorded: bool,
    ) -> Result<Arc<MemoryFile>, ErrorCode> {
        let path = format!("{}/{name}", dir.guest());
        let add = |target: &str, verdict, cure| {
            if !is_recorded {
                self.record.add_decision(dir.kind(), target, verdict, || cure);
            }
        };
        match opened {
            Ok(file) => {
                add(&path, DecisionKind::Allowed, None);
                Ok(file)
            }
            Err(MemoryFileError::NotGranted) => {
                let action = format!("{} {path}", operation.as_str());
                add(&action, DecisionKind::Denied, dir.cure(self.mount.as_str(), name));
                Err(ErrorCode::NotPermitted)
            }
            Err(MemoryFileError::Unavailable(why)) => {
                add(&path, DecisionKind::Unavailable, Some(why));
                Err(ErrorCode::Io)
            }
            Err(MemoryFileError::Absent) => Err(ErrorCode::NoEntry),
            Err(MemoryFileError::NeedsThread) => Err(ErrorCode::Busy),
        }
    }

    fn add(&mut self, operation: FileOperation, path: &str, why: &str, cure: &str) {
        let path = self.record.excerpt(path, 120);
        let is_new = !self.named_paths.contains(&path);
        let path = match is_new && self.named_paths.len() >= MAX_NAMED_PATHS {
            true => "more paths",
            false => &path,
        };
        let action = format!("{} {path}{why}", operation.as_str());
        self.record
            .add_decision(NAME, &action, DecisionKind::Denied, || Some(cure.replace("NAME", self.mount.as_str())));
        if is_new && self.named_paths.len() < MAX_NAMED_PATHS {
            let path = path.to_owned();
            self.named_paths.push(path);
        }
    }
}
