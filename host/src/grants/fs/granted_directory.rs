//! One granted directory: its paths, its handle, and the state of its file system.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::error::{DirectoryGrantError, OpenError};
use super::name::NAME;
use super::open_directory;
use super::root::OpenRoot;
use crate::grants::ambient::Ambient;
use crate::grants::call_record::CallRecord;
use crate::grants::drive_timeout::run_with_timeout;
use crate::grants::mountinfo::{FileIdentity, FilesystemKind, refuses_place};
use crate::grants::outside::OutsideOpener;
use crate::model::{DecisionKind, text};

/// A handle older than this is checked against its path, to find a directory that was replaced or remounted. The time
/// is too short for people to notice, and long compared to the cost of a check.
const RECHECK_AFTER: Duration = Duration::from_secs(1);

/// Directories that expose the kernel and devices. They hold no data, so they are never granted.
const FORBIDDEN_DIRECTORIES: &[&str] = &["/proc", "/sys", "/dev"];

/// Why a granted directory is unavailable to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryUnavailable {
    /// The path does not exist any more.
    Gone,
    /// A file or a symbolic link lies at the path.
    Replaced,
    /// The user that runs belljar may not open it, or Landlock hides a new directory at the path.
    PermissionDenied,
    /// The drive reports an error.
    DriveError,
}

impl DirectoryUnavailable {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Gone,
            Errno::NOTDIR | Errno::LOOP => Self::Replaced,
            Errno::ACCESS | Errno::PERM => Self::PermissionDenied,
            _ => Self::DriveError,
        }
    }

    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Gone, Self::Replaced, Self::PermissionDenied, Self::DriveError];

    /// The reason and the cure, for the audit record. `needs_restart`: the second wall hides a new directory at the path.
    pub(super) fn cure(self, needs_restart: bool) -> String {
        let cure = match self {
            Self::Gone => "the directory does not exist any more; put it back, or grant another",
            Self::Replaced => "a link or a file has replaced the directory; put the directory back, or grant another",
            Self::PermissionDenied => {
                "permission denied on the host; let the user that runs belljar read the directory"
            }
            Self::DriveError => "its drive reports errors; mount it again, or grant another directory",
        };
        let restart = match needs_restart && self != Self::DriveError {
            true => "; a new directory at this path can be read after a restart (unless wall = \"off\")",
            false => "",
        };
        format!("{cure}{restart}")
    }
}

/// The result of the last check of the path.
struct LastCheck {
    at: Instant,
    root: Result<Arc<OpenRoot>, DirectoryUnavailable>,
}

/// A granted directory of a mount.
pub(super) struct GrantedDirectory {
    guest: Arc<str>,
    /// The absolute host path, without symbolic links.
    host: Arc<Path>,
    /// No thread waits for a drive while it holds this lock.
    last_check: Mutex<LastCheck>,
    ask: bool,
    /// True in a worker process: the front looks for a directory that was replaced.
    is_lent: bool,
    /// Opens the directory if the second wall hides it.
    outside: Option<Arc<dyn OutsideOpener>>,
}

impl GrantedDirectory {
    /// Checks both paths and opens the directory. `ask`: a person must consent before a call gets it.
    pub(super) fn open(guest: &str, host: &Path, ask: bool, ambient: &Ambient) -> Result<Self, DirectoryGrantError> {
        check_guest(guest)?;
        let asked = shown(host);
        let found: Arc<Path> = resolve_host_path(host, ambient)?.into();
        let guest: Arc<str> = guest.into();
        let (own, outside) = ((Arc::clone(&guest), Arc::clone(&found)), ambient.outside.clone());
        let root = match run_with_timeout(&found, move || OpenRoot::open(&own.0, &own.1, outside.as_deref())) {
            Ok(opened) => {
                opened.map_err(|errno| open_error(&asked, errno, open_directory::is_openat2_blocked(errno)))?
            }
            Err(stalled) => return Err(unopened(asked, stalled)),
        };
        if root.kind().is_forbidden() {
            return Err(DirectoryGrantError::OfKernel(asked));
        }
        let last_check = Mutex::new(LastCheck { at: Instant::now(), root: Ok(Arc::new(root)) });
        Ok(Self { guest, host: found, last_check, ask, is_lent: false, outside: ambient.outside.clone() })
    }

    /// A directory that the front has opened, in a worker process. `host` is its path on the host.
    pub(super) fn lent(guest: &str, host: &Path, dir: File, ask: bool) -> Result<Self, Errno> {
        let (guest, host): (Arc<str>, Arc<Path>) = (guest.into(), host.into());
        let identity = FileIdentity::of(&dir)?;
        let root = OpenRoot::new(&guest, &host, &dir, identity, identity.kind())?;
        let last_check = Mutex::new(LastCheck { at: Instant::now(), root: Ok(Arc::new(root)) });
        Ok(Self { guest, host, last_check, ask, is_lent: true, outside: None })
    }

    pub(super) fn guest(&self) -> Arc<str> {
        Arc::clone(&self.guest)
    }

    /// Adds that the directory is unavailable to the record of a call.
    pub(super) fn record_absent(&self, absent: DirectoryUnavailable, record: &CallRecord) {
        let needs_restart = !self.outside.as_ref().is_some_and(|outside| outside.is_running());
        let cure = || Some(absent.cure(needs_restart));
        record.add_decision(NAME, &self.guest, DecisionKind::Unavailable, cure);
    }

    pub(super) fn needs_consent(&self) -> bool {
        self.ask
    }

    /// True if a call of this mount needs a dedicated thread from its start. Either the file system may stall, or only
    /// a blocking check can tell what lies at the path now. Never blocks itself.
    pub(super) fn needs_thread(&self) -> bool {
        let mut check = self.last_check();
        if self.is_lent || check.at.elapsed() < RECHECK_AFTER {
            return check.root.as_ref().is_ok_and(|root| root.may_stall());
        }
        let root = match open_directory::open_canonical_cached(&self.host) {
            Ok(handle) => {
                let Ok(identity) = FileIdentity::of(&handle) else { return true };
                match &check.root {
                    Ok(known) if known.identity() == identity => Ok(Arc::clone(known)),
                    // A new directory. If it is local, opening it does not block.
                    _ if identity.kind() == FilesystemKind::Local => {
                        match OpenRoot::new(&self.guest, &self.host, &handle, identity, FilesystemKind::Local) {
                            // Another process opens it, and this thread must not wait for that.
                            Err(Errno::ACCESS) if self.outside.is_some() => return true,
                            root => root.map(Arc::new).map_err(DirectoryUnavailable::of),
                        }
                    }
                    _ => return true,
                }
            }
            Err(Errno::NOENT) => Err(DirectoryUnavailable::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(DirectoryUnavailable::Replaced),
            Err(_) => return true,
        };
        let needs_thread = root.as_ref().is_ok_and(|root| root.may_stall());
        *check = LastCheck { at: Instant::now(), root };
        needs_thread
    }

    /// The directory at the path, as of at most a second ago. `may_block`: this thread may wait for the drive.
    /// Otherwise returns the result of the last check, which [`GrantedDirectory::needs_thread`] made.
    pub(super) fn root(&self, may_block: bool) -> Result<Arc<OpenRoot>, DirectoryUnavailable> {
        {
            let check = self.last_check();
            if self.is_lent || !may_block || (check.at.elapsed() < RECHECK_AFTER && check.root.is_ok()) {
                return check.root.clone();
            }
        }
        let opened = OpenRoot::open(&self.guest, &self.host, self.outside.as_deref());
        let opened = opened.map(Arc::new).map_err(DirectoryUnavailable::of);
        *self.last_check() = LastCheck { at: Instant::now(), root: opened.clone() };
        opened
    }

    /// Makes the last check so old that the path is checked again.
    #[cfg(test)]
    pub(super) fn expire_last_check(&self) {
        let mut check = self.last_check();
        check.at = check.at.checked_sub(RECHECK_AFTER).unwrap_or(check.at);
    }

    fn last_check(&self) -> MutexGuard<'_, LastCheck> {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error for the directory `asked`. `is_blocked`: the system call itself is forbidden.
pub(super) fn open_error(asked: &str, errno: Errno, is_blocked: bool) -> DirectoryGrantError {
    match errno {
        Errno::NOSYS => DirectoryGrantError::NoOpenat2,
        Errno::PERM if is_blocked => DirectoryGrantError::ForbiddenOpenat2,
        Errno::NOTDIR => DirectoryGrantError::NotADirectory(asked.to_owned()),
        errno => unopened(asked.to_owned(), std::io::Error::from(errno)),
    }
}

fn unopened(path: String, reason: impl Into<OpenError>) -> DirectoryGrantError {
    DirectoryGrantError::Unopened { path, reason: reason.into() }
}

/// The canonical path of a directory, if it may be granted. Waits for its drive until a timeout.
pub(super) fn resolve_host_path(host: &Path, ambient: &Ambient) -> Result<PathBuf, DirectoryGrantError> {
    let path = ambient.absolute(host)?;
    let asked = shown(host);
    let (own, reserved) = (path.clone(), ambient.reserved.clone());
    let access = move || {
        #[expect(
            clippy::disallowed_methods,
            reason = "a grant is configured here: the operator's path becomes a handle"
        )]
        let found = std::fs::canonicalize(&own).map_err(|error| unopened(asked, error))?;
        check_host(&found, &reserved)?;
        // The Landlock sandbox will access this path again. Access it here now, under the timeout, so that a stalled
        // drive is found here.
        let is_local =
            |handle| FileIdentity::of(&handle).is_ok_and(|identity| identity.kind() == FilesystemKind::Local);
        if !open_directory::open_canonical(&found).is_ok_and(is_local) {
            let _ = found.is_dir();
        }
        Ok(found)
    };
    match run_with_timeout(&path, access) {
        Ok(found) => found,
        Err(stalled) => Err(unopened(shown(host), stalled)),
    }
}

/// A path of the operator, shortened and cleaned for a terminal.
fn shown(path: &Path) -> String {
    text::excerpt(&path.to_string_lossy(), 500)
}

fn check_guest(guest: &str) -> Result<(), DirectoryGrantError> {
    let shown = || text::excerpt(guest, 80);
    let segments = guest.strip_prefix('/').ok_or_else(|| DirectoryGrantError::GuestRelative(shown()))?;
    if guest.len() > 255 || !text::is_clean(guest, 255) {
        return Err(DirectoryGrantError::GuestUnclean(shown()));
    }
    if segments.split('/').any(|s| matches!(s, "." | "..") || (s.is_empty() && guest != "/")) {
        return Err(DirectoryGrantError::GuestSegment(shown()));
    }
    Ok(())
}

fn check_host(host: &Path, reserved: &[PathBuf]) -> Result<(), DirectoryGrantError> {
    let path = shown(host);
    if refuses_place(host.components().all(|c| matches!(c, Component::RootDir | Component::Prefix(_)))) {
        return Err(DirectoryGrantError::Whole(path));
    }
    if let Some(below) = FORBIDDEN_DIRECTORIES.iter().find(|below| refuses_place(host.starts_with(below))) {
        return Err(DirectoryGrantError::Forbidden { path, below });
    }
    for own in reserved {
        let real = canonical_or_parent(own);
        if refuses_place(real.starts_with(host) || host.starts_with(&real)) {
            return Err(DirectoryGrantError::Own { path, own: shown(own) });
        }
    }
    Ok(())
}

/// The canonical form of `path`. If `path` does not exist yet, resolves its nearest existing ancestor.
fn canonical_or_parent(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        #[expect(
            clippy::disallowed_methods,
            reason = "a grant is configured here: the directories of belljar's own files are resolved"
        )]
        if let Ok(real) = std::fs::canonicalize(there) {
            return path.strip_prefix(there).map_or_else(|_| real.clone(), |rest| real.join(rest));
        }
    }
    path.to_owned()
}
