//! What a call may do with directories, and the words in which it is told what it may not.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::super::{Grant as _, OwnThread, SharedTrail};
use super::Fs;
use super::place::Root;
use super::resolve::Refused;
use crate::model::{MountName, Verdict};

/// Paths of a call that stand on record by name when something is refused to them. Those after them are counted together, so
/// that a guest cannot fill the record with paths.
const NAMED: usize = 12;

const READ_ONLY: &str = "nothing allows this: filesystem grants are read-only";
const SPECIAL: &str = "nothing allows this: only regular files and directories can be opened";
const KERNEL: &str = "nothing allows this: /proc, /sys and the like are never read, wherever they are mounted";
const NO_PERMISSION: &str =
    "permission denied on the host; let the user that runs belljar read it there (chmod, chown)";
const OUTSIDE: &str = "the path leads out of the granted directory; to allow it, grant the directory that it leads to, under another guest path, in fs of [mounts.NAME]";
const LINK_OUTSIDE: &str = "the link leads out of the granted directory, and where to is not told; to allow it, grant the directory that it leads to, under another guest path, in fs of [mounts.NAME]";

/// What a guest wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Open,
    Stat,
    ReadLink,
    OpenToChange,
    CreateDirectory,
    RemoveDirectory,
    RemoveFile,
    Rename,
    Link,
    LinkSymbolically,
    SetTimes,
    SetSize,
    Write,
}

impl Deed {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::ReadLink => "read the link",
            Self::OpenToChange => "open to change",
            Self::CreateDirectory => "create the directory",
            Self::RemoveDirectory => "remove the directory",
            Self::RemoveFile => "remove the file",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::LinkSymbolically => "create the link",
            Self::SetTimes => "set the times of",
            Self::SetSize => "set the size of",
            Self::Write => "write to",
        }
    }
}

/// What a call holds.
pub struct Call {
    roots: Vec<Arc<Root>>,
    mount: MountName,
    trail: SharedTrail,
    thread: OwnThread,
    /// The refused paths that stand on record by name.
    named: Vec<String>,
}

impl Call {
    pub(super) fn new(roots: Vec<Arc<Root>>, mount: MountName, trail: SharedTrail, thread: OwnThread) -> Self {
        Self { roots, mount, trail, thread, named: Vec::new() }
    }

    /// The directories that it was given.
    pub(super) fn roots(&self) -> &[Arc<Root>] {
        &self.roots
    }

    pub(super) fn trail(&self) -> &SharedTrail {
        &self.trail
    }

    pub(super) fn thread(&self) -> &OwnThread {
        &self.thread
    }

    /// Puts on record that `deed` was refused to what lies at `path`, and why; what is no decision of anybody's is not.
    /// Gives what the guest is told.
    pub(super) fn refuse(&mut self, deed: Deed, path: &str, refused: Refused) -> ErrorCode {
        let (why, cure) = match refused {
            Refused::Outside if deed == Deed::ReadLink => ("", LINK_OUTSIDE),
            Refused::Outside => ("", OUTSIDE),
            Refused::Kernel => ("", KERNEL),
            Refused::Special => ("", SPECIAL),
            Refused::NoPermission => (" (permission denied on the host)", NO_PERMISSION),
            Refused::NeedsThread | Refused::Failed(_) => return refused.code(),
        };
        self.add(deed, path, why, cure);
        refused.code()
    }

    /// The same of what would change something.
    pub(super) fn refuse_change(&mut self, deed: Deed, path: &str) -> ErrorCode {
        self.add(deed, path, "", READ_ONLY);
        ErrorCode::NotPermitted
    }

    fn add(&mut self, deed: Deed, path: &str, why: &str, cure: &str) {
        let path = self.trail.words(path, 120);
        let is_new = !self.named.contains(&path);
        let path = match is_new && self.named.len() >= NAMED {
            true => "more paths",
            false => &path,
        };
        let what = format!("{} {path}{why}", deed.as_str());
        self.trail.add(Fs::NAME, &what, Verdict::Denied, || Some(cure.replace("NAME", self.mount.as_str())));
        if is_new && self.named.len() < NAMED {
            let path = path.to_owned();
            self.named.push(path);
        }
    }
}
