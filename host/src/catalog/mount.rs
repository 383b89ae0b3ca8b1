//! A mount that is served, and the file that its component is read from.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};

use super::kept::Slot;
use super::watch::{Reach, Watched, Watcher};
use crate::admission::Gate;
use crate::config::{Ask, Cache};
use crate::grants::needs::{Need, Needs};
use crate::model::error::show_bytes;
use crate::model::{Digest, Guard, Limits, MountName, Resource, Template, command, text};
use crate::sandbox::{Loaded, Profile, read_capped};

/// A mount that is served.
pub struct Mount {
    /// Its name.
    pub name: MountName,
    /// The URI prefix of everything in it.
    pub base: String,
    /// The component's file name.
    pub file: String,
    /// The component's digest.
    pub digest: Digest,
    /// What is loaded for it in the sandbox: whoever has the mount can call it, also when another is served in its place.
    pub loaded: Loaded,
    /// What the operator wrote for it, as far as nothing else here says it.
    pub written: Written,
    /// Its turnstile and limits.
    pub gate: Gate,
    /// Whether a person may be asked for what it does not hold.
    pub ask: Ask,
    /// Whether its answers may be served again.
    pub cache: Cache,
    /// Whether a search looks into its contents.
    pub search: bool,
    /// The kinds of grants that it holds.
    pub holds: Vec<&'static str>,
    /// The kinds of grants that its component could use.
    pub uses: Vec<&'static str>,
    /// What its component declares that it needs.
    pub needs: Arc<Needs>,
    /// What of that is not granted.
    pub lacks: Vec<Need>,
    /// Whether its component suggests values for variables of templates.
    pub completes: bool,
    /// Whether its component tells revisions.
    pub revises: bool,
    /// Something the operator should know about its file.
    pub warning: Option<&'static str>,
    /// The host directories that it was granted, unless a look at them may stall.
    pub directories: Vec<PathBuf>,
    /// How often it was seen that what it serves changed in ways that nobody knows in detail: answers from before count no
    /// more.
    pub changes: AtomicU64,
    /// Whether something that it may do was taken back: what its calls give counts no more.
    pub withdrawn: AtomicBool,
    /// What it listed, as long as that stands: resources, and templates.
    pub lists: (Slot<Resource>, Slot<Template>),
}

impl Mount {
    /// A mount that holds nothing and whose component is nowhere: what the others are made from.
    pub fn plain(name: MountName, base: &str, limits: Limits) -> Self {
        Self {
            gate: Gate::new(name.clone(), limits),
            name,
            base: base.to_owned(),
            file: "x.wasm".to_owned(),
            digest: Digest::of(b""),
            loaded: Loaded::none(),
            written: Written::default(),
            ask: Ask::Never,
            cache: Cache::default(),
            search: false,
            holds: Vec::new(),
            uses: Vec::new(),
            needs: Arc::default(),
            lacks: Vec::new(),
            completes: false,
            revises: false,
            warning: None,
            directories: Vec::new(),
            changes: AtomicU64::new(0),
            withdrawn: AtomicBool::new(false),
            lists: <_>::default(),
        }
    }

    /// Notes that something was taken back that it may do.
    pub(super) fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// Whether something was taken back that it may do: another mount is served in its place, or none.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire) && Guard::Revoke.is_on()
    }

    /// Whether `other` may do all that this may: what was read here may then be given to whoever reads there.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.written.is_within(&other.written) && self.ask <= other.ask
    }

    /// Whether it was granted directories in which changes can be watched.
    pub fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Watches the directories that it was granted. Blocks for as long as the file system takes.
    ///
    /// # Errors
    /// When one of them cannot be watched.
    pub fn watch(&self, watcher: &Watcher) -> Result<Vec<Watched>, String> {
        self.directories.iter().map(|dir| watcher.watch(dir, Reach::Deep)).collect()
    }
}

/// A kind of grant, and what is written of it.
pub type Line = (&'static str, String);

/// What the operator wrote for a mount about its grants, to tell whether it is still the same.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Of everything that is written, values included; none where nothing is.
    pub grants: Option<Digest>,
    /// Of the secrets that are named there, as they were read.
    pub secrets: Option<Digest>,
    /// What is granted, one line a thing.
    pub granted: Vec<(&'static str, String)>,
    /// Of these, what must be asked for; with the line that it has where nobody is asked.
    pub unasked: Vec<(Line, Line)>,
}

impl Written {
    /// Whether all of it is written in `other` too, with the same secrets.
    pub fn is_within(&self, other: &Self) -> bool {
        let is_plain = |line| {
            let plain = self.unasked.iter().find(|(asked, _)| asked == line).map(|(_, plain)| plain);
            plain.is_some_and(|plain| other.granted.contains(plain))
        };
        self.granted.iter().all(|line| other.granted.contains(line) || is_plain(line))
            && (self.secrets.is_none() || self.secrets == other.secrets)
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }
}

/// Whether files of this user are as good as one's own.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Something in the plugin directory or the configuration that is not served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// The mount's name, or the file's where it has none; sanitised.
    pub name: String,
    /// Why, and the cure; sanitised.
    pub reason: String,
    /// The names that it would have; nobody else has them meanwhile.
    pub base: Option<String>,
    /// Whether a restart of belljar is the cure.
    pub needs_restart: bool,
}

impl Refused {
    /// One that has no names yet, and that no restart cures.
    pub fn new(name: String, reason: String) -> Self {
        Self { name, reason, base: None, needs_restart: false }
    }
}

/// Why a component file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It changed while it was read; it is looked at again.
    BeingWritten,
    /// It cannot be used; says why, and the cure.
    Bad(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeingWritten => "it is being written",
            Self::Bad(why) => why,
        })
    }
}

impl From<String> for Unread {
    fn from(why: String) -> Self {
        Self::Bad(why)
    }
}

/// A component file that was read.
pub struct Source {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their digest.
    pub digest: Digest,
    /// Something the operator should know about the file.
    pub warning: Option<&'static str>,
    /// By what it is recognised.
    stamp: Stamp,
}

/// By what a file is recognised without reading it: device, inode, size, and when it and its entry were changed, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    place: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A file that changed less than this before it was read may have changed once more at the same time, as its file system
/// tells time.
const SETTLED: Duration = Duration::from_millis(100);

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            place: (meta.dev(), meta.ino()),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The stamp of a file as it lies there.
    pub(super) fn read(dir: &Dir, file: &str) -> Option<Self> {
        dir.symlink_metadata(file).ok().map(|meta| Self::of(&meta))
    }

    /// Whether whoever saw this stamp `at` that time has seen all of the file that it stands for.
    pub(super) fn is_settled(&self, at: SystemTime) -> bool {
        let changed = u64::try_from(self.changed.0).ok().and_then(|seconds| {
            let nanos = u32::try_from(self.changed.1).ok()?;
            SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
        });
        changed.and_then(|changed| at.duration_since(changed).ok()).is_some_and(|age| age > SETTLED)
    }
}

impl Source {
    /// Reads a file of `dir`: a regular one, at most `cap` bytes, not through a link. What is hashed is what is used.
    ///
    /// # Errors
    /// Says why, and the cure.
    pub fn read(dir: &Dir, file: &str, cap: u64) -> Result<Self, Unread> {
        let fail = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no \"{}\" in the plugin directory", text::excerpt(file, 100)),
            io::ErrorKind::PermissionDenied => "belljar may not read it; change its permissions".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        let special =
            "it is not a regular file (a link, a FIFO, a device or a directory); put a copy of the component there";
        // Looked at before it is opened, so that no FIFO or device is touched; O_NONBLOCK and the second look are for one
        // that takes its place meanwhile.
        if !dir.symlink_metadata(file).map_err(|error| fail(&error))?.is_file() && Guard::Regular.is_on() {
            return Err(special.to_owned().into());
        }
        let flags = match Guard::Regular.is_on() {
            true => rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW,
            false => rustix::fs::OFlags::empty(),
        };
        #[expect(clippy::cast_possible_wrap, reason = "open flags are small")]
        let flags = flags.bits() as i32;
        let mut opened =
            dir.open_with(file, OpenOptions::new().read(true).custom_flags(flags)).map_err(|error| fail(&error))?;
        let meta = opened.metadata().map_err(|error| fail(&error))?;
        if !meta.is_file() && Guard::Regular.is_on() {
            return Err(special.to_owned().into());
        }
        let cap = if Guard::Component.is_on() { cap } else { u64::MAX };
        if meta.len() > cap {
            let set = format!("component = \"{}MiB\"", meta.len().div_ceil(1 << 20));
            return Err(Unread::Bad(format!(
                "it has {}, over the limit of {}; to allow more, set {set} under [limits], or run: {}",
                show_bytes(meta.len()),
                show_bytes(cap),
                command::line(["set", &format!("limits.{set}")])
            )));
        }
        let bytes = read_capped(&mut opened, meta.len(), cap).map_err(|error| fail(&error))?;
        let stamp = Stamp::of(&meta);
        // When another file takes its place meanwhile, its entry changes; what was read of it is whole all the same.
        let after = opened.metadata().map(|meta| Stamp::of(&meta)).map_err(|error| fail(&error))?;
        if (after.size, after.modified) != (stamp.size, stamp.modified) {
            return Err(Unread::BeingWritten);
        }
        let warning = if meta.mode() & 0o002 != 0 {
            Some("anyone on this machine can change the file; take away its write permission for others")
        } else if !is_trusted(meta.uid()) {
            Some("the file belongs to another user, who can change it; put a copy of your own there")
        } else {
            None
        };
        Ok(Self { digest: Digest::of(&bytes), bytes, warning, stamp })
    }
}

impl Source {
    pub(super) fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// Reads a file of `dir` that must be a provider.
pub(super) fn look(dir: &Dir, file: &str, cap: u64) -> Result<(Source, Profile), Unread> {
    let source = Source::read(dir, file, cap)?;
    let profile = Profile::read(&source.bytes).map_err(|why| format!("it is {why}"))?;
    profile.check().map_err(|why| format!("it is {why}"))?;
    Ok((source, profile))
}

#[cfg(test)]
pub(crate) mod tests;
