//! One granted directory: which path, which handle, and what kind of file system it lies on.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::fstatfs;
use rustix::io::Errno;

use super::super::Ambient;
use super::beneath;
use crate::model::{Guard, text};

/// For how long a handle is used before the path is opened anew, so that a directory that was replaced or
/// remounted is found again. Far below what a person notices, and far above what opening costs.
const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// File systems that answer without asking another machine or program (`statfs(2)` magic numbers): ext2-4, xfs, btrfs,
/// tmpfs, overlayfs, f2fs, zfs, bcachefs, squashfs, erofs, ramfs, FAT, exFAT, NTFS3, ISO 9660, UDF.
const LOCAL: &[u64] = &[
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x794C_7630,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x7371_7368,
    0xE0F5_E1E2,
    0x8584_58F6,
    0x4D44,
    0x2011_BAB0,
    0x7366_746E,
    0x9660,
    0x1501_3346,
];

/// Where the kernel and devices are reached, not data.
const FORBIDDEN: &[&str] = &["/proc", "/sys", "/dev"];

/// One granted directory.
pub(super) struct Place {
    guest: Arc<str>,
    /// Absolute, without symbolic links.
    host: PathBuf,
    handle: Mutex<(Instant, Option<File>)>,
    ask: bool,
    may_stall: bool,
    crosses_mounts: bool,
}

impl Place {
    /// Checks both paths and opens the directory. `ask`: whether a person is asked before a call gets it.
    pub(super) fn open(guest: &str, host: &Path, ask: bool, ambient: &Ambient) -> Result<Self, String> {
        check_guest(guest)?;
        let asked = shown(host);
        let host = find(host, ambient)?;
        let dir = beneath::open_canonical(&host).map_err(|errno| match errno {
            Errno::NOSYS => "filesystem grants need the openat2 system call (Linux 5.6 or newer)".to_owned(),
            Errno::NOTDIR => format!("\"{asked}\" is not a directory; grant the directory that holds it"),
            errno => format!("cannot open the directory \"{asked}\": {}", plain(&errno.into())),
        })?;
        let (inner_stalls, crosses_mounts) = inner_mounts(&host);
        let may_stall = inner_stalls || !is_local(&dir);
        Ok(Self {
            guest: guest.into(),
            host,
            handle: Mutex::new((Instant::now(), Some(dir))),
            ask,
            may_stall,
            crosses_mounts,
        })
    }

    pub(super) fn guest(&self) -> Arc<str> {
        Arc::clone(&self.guest)
    }

    pub(super) fn asks(&self) -> bool {
        self.ask
    }

    pub(super) fn may_stall(&self) -> bool {
        self.may_stall
    }

    pub(super) fn crosses_mounts(&self) -> bool {
        self.crosses_mounts
    }

    /// A handle of the directory that lies at the path now, or did within the last second.
    pub(super) fn handle(&self) -> Option<File> {
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        // Where it may stall, an open that never returns must not take the lock's other users with it: there the handle
        // of the start is kept.
        if !self.may_stall && (handle.1.is_none() || handle.0.elapsed() >= REOPEN_AFTER) {
            *handle = (Instant::now(), beneath::open_canonical(&self.host).ok());
        }
        handle.1.as_ref()?.try_clone().ok()
    }
}

/// The path of a granted directory without symbolic links, if it may be granted.
pub(super) fn find(host: &Path, ambient: &Ambient) -> Result<PathBuf, String> {
    let path = ambient.absolute(host)?;
    #[expect(clippy::disallowed_methods, reason = "a grant is configured here: the operator's path becomes a handle")]
    let found = std::fs::canonicalize(&path)
        .map_err(|error| format!("cannot open the directory \"{}\": {}", shown(host), plain(&error)))?;
    check_host(&found, ambient)?;
    Ok(found)
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

fn check_host(host: &Path, ambient: &Ambient) -> Result<(), String> {
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
    for own in &ambient.reserved {
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

fn is_local(dir: &File) -> bool {
    fstatfs(dir).is_ok_and(|fs| {
        #[expect(clippy::cast_sign_loss, reason = "magic numbers are 32 bits wide whatever the field's type")]
        let magic = (fs.f_type as u64) & 0xFFFF_FFFF;
        LOCAL.contains(&magic)
    })
}

/// Whether a mount below `host` may stall, and whether there is any.
fn inner_mounts(host: &Path) -> (bool, bool) {
    #[expect(clippy::disallowed_methods, reason = "a grant is configured here; the kernel's own list of mounts")]
    let Ok(list) = std::fs::read_to_string("/proc/self/mountinfo") else {
        // Not knowing, enter none.
        return (false, false);
    };
    let (mut stalls, mut any) = (false, false);
    for line in list.lines() {
        // proc(5): ... (5) mount point ...; octal escapes for white space and backslash.
        let Some(point) = line.split(' ').nth(4) else { continue };
        let point = point.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
        let point = Path::new(&point);
        if point != host && point.starts_with(host) {
            any = true;
            stalls |= !beneath::open_canonical(point).is_ok_and(|dir| is_local(&dir));
        }
    }
    (stalls, any)
}
