//! Reads the file of a component.

use std::fmt;
use std::io;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};

use crate::grants::is_trusted_owner;
use crate::model::error::show_bytes;
use crate::model::{Digest, Guard, command, text};
use crate::sandbox::{Profile, read_capped};

/// The reason why a component file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentSourceError {
    /// The file changed while it was read. It is read again later.
    BeingWritten,
    /// The file cannot be used. Gives the reason and the cure.
    Unusable(String),
}

impl fmt::Display for ComponentSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeingWritten => "it is being written",
            Self::Unusable(why) => why,
        })
    }
}

impl From<String> for ComponentSourceError {
    fn from(why: String) -> Self {
        Self::Unusable(why)
    }
}

/// A component file that was read.
pub struct ComponentSource {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The digest of the bytes.
    pub digest: Digest,
    /// A warning about the file, for the operator.
    pub warning: Option<&'static str>,
    /// Identifies the version of the file.
    pub(super) stamp: ComponentStamp,
}

/// Identifies a version of a file without reading it: device, inode, size, and the times of modification and of status
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComponentStamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The resolution of file times. A file that changed less than this before it was read may have changed again without a
/// difference in its times.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(100);

impl ComponentStamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            inode: (meta.dev(), meta.ino()),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The current stamp of a file.
    pub(super) fn read(dir: &Dir, file: &str) -> Option<Self> {
        dir.symlink_metadata(file).ok().map(|meta| Self::of(&meta))
    }

    /// True if a file that was read `at` that time with this stamp cannot have changed since under the same stamp.
    pub(super) fn is_stable(&self, at: SystemTime) -> bool {
        let changed = u64::try_from(self.changed.0).ok().and_then(|seconds| {
            let nanos = u32::try_from(self.changed.1).ok()?;
            SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
        });
        changed.and_then(|changed| at.duration_since(changed).ok()).is_some_and(|age| age > CLOCK_RESOLUTION)
    }
}

impl ComponentSource {
    /// Reads a regular file of `dir`, of at most `cap` bytes, not through a link. The digest covers exactly the bytes
    /// that are used.
    ///
    /// # Errors
    /// The reason and the cure.
    pub fn read(dir: &Dir, file: &str, cap: u64) -> Result<Self, ComponentSourceError> {
        let fail = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("there is no \"{}\" in the plugin directory", text::excerpt(file, 100)),
            io::ErrorKind::PermissionDenied => "belljar may not read it; change its permissions".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        let not_regular =
            "it is not a regular file (a link, a FIFO, a device or a directory); put a copy of the component there";
        // Check before opening, so that no FIFO or device is opened. O_NONBLOCK and the second check cover a file that
        // is replaced in between.
        let is_checked = Guard::Regular.is_on();
        if !dir.symlink_metadata(file).map_err(|error| fail(&error))?.is_file() && is_checked {
            return Err(not_regular.to_owned().into());
        }
        let flags = match is_checked {
            true => rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW,
            false => rustix::fs::OFlags::empty(),
        };
        #[expect(clippy::cast_possible_wrap, reason = "open flags are small")]
        let flags = flags.bits() as i32;
        let mut opened =
            dir.open_with(file, OpenOptions::new().read(true).custom_flags(flags)).map_err(|error| fail(&error))?;
        let meta = opened.metadata().map_err(|error| fail(&error))?;
        if !meta.is_file() && is_checked {
            return Err(not_regular.to_owned().into());
        }
        if meta.len() > cap {
            let set = format!("component = \"{}MiB\"", meta.len().div_ceil(1 << 20));
            return Err(ComponentSourceError::Unusable(format!(
                "it has {}, over the limit of {}; to allow more, set {set} under [limits], or run: {}",
                show_bytes(meta.len()),
                show_bytes(cap),
                command::line(["set", &format!("limits.{set}")])
            )));
        }
        let bytes = read_capped(&mut opened, meta.len(), cap).map_err(|error| fail(&error))?;
        let stamp = ComponentStamp::of(&meta);
        // If another file replaces it meanwhile, only the directory entry changes: the bytes that were read are still
        // complete.
        let after = opened.metadata().map(|meta| ComponentStamp::of(&meta)).map_err(|error| fail(&error))?;
        if (after.size, after.modified) != (stamp.size, stamp.modified) {
            return Err(ComponentSourceError::BeingWritten);
        }
        let warning = if meta.mode() & 0o002 != 0 {
            Some("anyone on this machine can change the file; take away its write permission for others")
        } else if !is_trusted_owner(meta.uid()) {
            Some("the file belongs to another user, who can change it; put a copy of your own there")
        } else {
            None
        };
        Ok(Self { digest: Digest::of(&bytes), bytes, warning, stamp })
    }
}

/// Reads a file of `dir` that must be a provider.
pub(super) fn read_provider(
    dir: &Dir,
    file: &str,
    cap: u64,
) -> Result<(ComponentSource, Profile), ComponentSourceError> {
    let source = ComponentSource::read(dir, file, cap)?;
    let profile = Profile::read(&source.bytes).map_err(|why| format!("it is {why}"))?;
    profile.check().map_err(|why| format!("it is {why}"))?;
    Ok((source, profile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        std::fs::write(path("good.wasm"), b"12345678").unwrap();
        std::os::unix::fs::symlink("good.wasm", path("link.wasm")).unwrap();
        std::fs::create_dir(path("dir.wasm")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo.wasm"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        let sparse = std::fs::File::create(path("huge.wasm")).unwrap();
        sparse.set_len(2 << 30).unwrap();
        let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        assert_eq!(ComponentSource::read(&dir, "good.wasm", 8).unwrap().digest, Digest::of(b"12345678"));
        for special in ["link.wasm", "dir.wasm", "fifo.wasm"] {
            assert!(
                ComponentSource::read(&dir, special, 8).err().unwrap().to_string().contains("not a regular file"),
                "{special}"
            );
        }
        assert!(
            ComponentSource::read(&dir, "good.wasm", 7).err().unwrap().to_string().contains("8B, over the limit of 7B")
        );
        assert!(
            ComponentSource::read(&dir, "huge.wasm", 64 << 20)
                .err()
                .unwrap()
                .to_string()
                .contains("2GiB, over the limit of 64MiB")
        );
        assert!(
            ComponentSource::read(&dir, "none.wasm", 8)
                .err()
                .unwrap()
                .to_string()
                .contains("there is no \"none.wasm\"")
        );
    }
}
