//! One granted directory: which path, which handle, and whether its file system may stall.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::super::Ambient;
use super::mounts::{Identity, Kind};
use super::patience::{Stalled, within};
use super::resolve;
use crate::model::{Guard, text};

/// For how long a handle is used before the path is looked at anew, so that a directory that was replaced or
/// remounted is found again. Far below what a person notices, and far above what a look costs.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Where the kernel and devices are reached, not data.
const FORBIDDEN: &[&str] = &["/proc", "/sys", "/dev"];

/// A granted directory as it lay at its path at one time.
#[derive(Debug)]
pub(super) struct Root {
    guest: Arc<str>,
    host: Arc<Path>,
    dir: Arc<File>,
    identity: Identity,
    kind: Kind,
    /// The user that belljar runs as.
    user: u32,
}

impl Root {
    /// Takes what `look` is a handle of. Waits for the drive, if it may stall.
    fn new(guest: &Arc<str>, host: &Arc<Path>, look: &File, identity: Identity, kind: Kind) -> Result<Self, Errno> {
        Ok(Self {
            guest: Arc::clone(guest),
            host: Arc::clone(host),
            dir: Arc::new(resolve::read_dir(look)?),
            identity,
            kind,
            user: rustix::process::geteuid().as_raw(),
        })
    }

    /// What lies at the path now. Waits for the drive.
    fn open(guest: &Arc<str>, host: &Arc<Path>) -> Result<Self, Errno> {
        let look = resolve::canonical(host)?;
        let identity = Identity::of(&look)?;
        Self::new(guest, host, &look, identity, identity.kind())
    }

    /// The path that the guest sees.
    pub(super) fn guest(&self) -> &str {
        &self.guest
    }

    /// Where it lies: absolute, without symbolic links.
    pub(super) fn host(&self) -> &Path {
        &self.host
    }

    /// The directory, opened for reading.
    pub(super) fn dir(&self) -> &Arc<File> {
        &self.dir
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    pub(super) fn user(&self) -> u32 {
        self.user
    }

    /// Whether it lies on a file system that can stall (network, FUSE, unknown).
    pub(super) fn may_stall(&self) -> bool {
        self.kind != Kind::Local
    }
}

/// Why there is no directory at a path that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// Nothing lies there.
    Gone,
    /// Something else does: a file, or a symbolic link.
    Other,
    /// This user may not open it, or the second wall keeps a new directory shut.
    Shut,
    /// The drive says no.
    Broken,
}

impl Absent {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Gone,
            Errno::NOTDIR | Errno::LOOP => Self::Other,
            Errno::ACCESS | Errno::PERM => Self::Shut,
            _ => Self::Broken,
        }
    }

    /// Why, and what helps.
    pub(super) fn cure(self) -> &'static str {
        match self {
            Self::Gone => {
                "the directory is no longer there; put it back, or grant another; a new one in its place is read after a restart (unless wall = \"off\")"
            }
            Self::Other => {
                "a link or a file lies where the directory was; put the directory back, or grant another; a new one in its place is read after a restart (unless wall = \"off\")"
            }
            Self::Shut => {
                "permission denied on the host; let the user that runs belljar read the directory; one that is new in its place is read after a restart (unless wall = \"off\")"
            }
            Self::Broken => "its drive fails; mount it again, or grant another directory",
        }
    }
}

/// What was seen at the path last.
struct Seen {
    at: Instant,
    root: Result<Arc<Root>, Absent>,
}

/// One granted directory.
pub(super) struct Place {
    guest: Arc<str>,
    /// Absolute, without symbolic links.
    host: Arc<Path>,
    /// Nobody waits for a drive while holding this.
    seen: Mutex<Seen>,
    ask: bool,
}

impl Place {
    /// Checks both paths and opens the directory. `ask`: whether a person is asked before a call gets it.
    pub(super) fn open(guest: &str, host: &Path, ask: bool, ambient: &Ambient) -> Result<Self, String> {
        check_guest(guest)?;
        let asked = shown(host);
        let found: Arc<Path> = find(host, ambient)?.into();
        let guest: Arc<str> = guest.into();
        let own = (Arc::clone(&guest), Arc::clone(&found));
        let root = match within(&found, move || Root::open(&own.0, &own.1)) {
            Ok(opened) => opened.map_err(|errno| refusal(&asked, errno, resolve::is_blocked(errno)))?,
            Err(Stalled) => return Err(format!("cannot open the directory \"{asked}\": {}", Stalled::WHY)),
        };
        if root.kind == Kind::Kernel && Guard::Place.is_on() {
            return Err(format!(
                "\"{asked}\" lies on a file system of the kernel's, which is not data and is never granted"
            ));
        }
        let seen = Mutex::new(Seen { at: Instant::now(), root: Ok(Arc::new(root)) });
        Ok(Self { guest, host: found, seen, ask })
    }

    pub(super) fn guest(&self) -> Arc<str> {
        Arc::clone(&self.guest)
    }

    pub(super) fn asks(&self) -> bool {
        self.ask
    }

    /// Whether a call of this mount needs a thread of its own from the beginning: the directory's file system may stall, or
    /// only a look that may wait can tell what lies at the path now. Waits for nothing.
    pub(super) fn needs_thread(&self) -> bool {
        let mut seen = self.seen();
        if seen.at.elapsed() < LOOK_AFTER {
            return seen.root.as_ref().is_ok_and(|root| root.may_stall());
        }
        let root = match resolve::canonical_cached(&self.host) {
            Ok(look) => {
                let Ok(identity) = Identity::of(&look) else { return true };
                match &seen.root {
                    Ok(known) if known.identity == identity => Ok(Arc::clone(known)),
                    // A new one. Where it is local, opening it waits for nothing.
                    _ if identity.kind() == Kind::Local => {
                        let root = Root::new(&self.guest, &self.host, &look, identity, Kind::Local);
                        root.map(Arc::new).map_err(Absent::of)
                    }
                    _ => return true,
                }
            }
            Err(Errno::NOENT) => Err(Absent::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(Absent::Other),
            Err(_) => return true,
        };
        let needs_thread = root.as_ref().is_ok_and(|root| root.may_stall());
        *seen = Seen { at: Instant::now(), root };
        needs_thread
    }

    /// The directory that lies at the path now, or did within the last second. `may_wait`: whether this thread may wait for
    /// the drive; where not, it is what [`Place::needs_thread`] has seen.
    pub(super) fn root(&self, may_wait: bool) -> Result<Arc<Root>, Absent> {
        {
            let seen = self.seen();
            if !may_wait || (seen.at.elapsed() < LOOK_AFTER && seen.root.is_ok()) {
                return seen.root.clone();
            }
        }
        let opened = Root::open(&self.guest, &self.host).map(Arc::new).map_err(Absent::of);
        *self.seen() = Seen { at: Instant::now(), root: opened.clone() };
        opened
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the directory `asked` cannot be opened. `is_blocked`: something forbids the system call itself.
pub(super) fn refusal(asked: &str, errno: Errno, is_blocked: bool) -> String {
    match errno {
        Errno::NOSYS => "filesystem grants need the system call openat2, which this system does not offer; use Linux 5.6 or newer, and a container runtime that knows the call".to_owned(),
        Errno::PERM if is_blocked => "filesystem grants need the system call openat2, and something forbids it here (EPERM), as old container runtimes do; use a newer one (Docker 20.10 or later), or allow openat2 in its seccomp profile".to_owned(),
        Errno::NOTDIR => format!("\"{asked}\" is not a directory; grant the directory that holds it"),
        errno => format!("cannot open the directory \"{asked}\": {}", plain(&errno.into())),
    }
}

/// The path of a granted directory without symbolic links, if it may be granted. Waits for its drive, but not for long.
pub(super) fn find(host: &Path, ambient: &Ambient) -> Result<PathBuf, String> {
    let path = ambient.absolute(host)?;
    let asked = shown(host);
    let (own, reserved) = (path.clone(), ambient.reserved.clone());
    let look = move || {
        let fail = |error| format!("cannot open the directory \"{asked}\": {}", plain(&error));
        #[expect(
            clippy::disallowed_methods,
            reason = "a grant is configured here: the operator's path becomes a handle"
        )]
        let found = std::fs::canonicalize(&own).map_err(fail)?;
        check_host(&found, &reserved)?;
        // Whoever gets this path asks the drive again (the second wall does), and must not wait for it then.
        let is_local = |look| Identity::of(&look).is_ok_and(|identity| identity.kind() == Kind::Local);
        if !resolve::canonical(&found).is_ok_and(is_local) {
            let _ = found.is_dir();
        }
        Ok(found)
    };
    match within(&path, look) {
        Ok(found) => found,
        Err(Stalled) => Err(format!("cannot open the directory \"{}\": {}", shown(host), Stalled::WHY)),
    }
}

/// A path of the operator's, fit for a terminal.
fn shown(path: &Path) -> String {
    text::excerpt(&path.to_string_lossy(), 500)
}

/// The text of an I/O error without a path in it.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is none".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn check_guest(guest: &str) -> Result<(), String> {
    let shown = text::excerpt(guest, 80);
    let segments =
        guest.strip_prefix('/').ok_or_else(|| format!("the guest path \"{shown}\" does not begin with \"/\""))?;
    if guest.len() > 255 || !text::is_clean(guest, 255) {
        return Err(format!("the guest path \"{shown}\" is too long or has control characters"));
    }
    if segments.split('/').any(|s| matches!(s, "." | "..") || (s.is_empty() && guest != "/")) {
        return Err(format!(
            "the guest path \"{shown}\" has an empty or dot segment; write it plainly, as in \"/notes\""
        ));
    }
    Ok(())
}

fn check_host(host: &Path, reserved: &[PathBuf]) -> Result<(), String> {
    let shown = shown(host);
    if !Guard::Place.is_on() {
        return Ok(());
    }
    if host.components().all(|c| matches!(c, Component::RootDir | Component::Prefix(_))) {
        return Err(format!("\"{shown}\" is the whole file system; grant the directory that is needed"));
    }
    if let Some(kernel) = FORBIDDEN.iter().find(|kernel| host.starts_with(kernel)) {
        return Err(format!("\"{shown}\" lies in {kernel}, which is not data and is never granted"));
    }
    for own in reserved {
        let real = real(own);
        if real.starts_with(host) || host.starts_with(&real) {
            return Err(format!(
                "\"{shown}\" covers belljar's own \"{}\", which no provider may read; grant a directory beside it, or move belljar's files (plugins, configuration, cache, state) elsewhere",
                self::shown(own)
            ));
        }
    }
    Ok(())
}

/// Where `path` lies, links and `..` resolved as far as it exists: what is to be made later has a directory already.
fn real(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        #[expect(clippy::disallowed_methods, reason = "a grant is configured here: where belljar's own files are")]
        if let Ok(real) = std::fs::canonicalize(there) {
            return path.strip_prefix(there).map_or_else(|_| real.clone(), |rest| real.join(rest));
        }
    }
    path.to_owned()
}
