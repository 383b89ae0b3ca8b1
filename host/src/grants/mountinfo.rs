//! The kernel's mount table, `/proc/self/mountinfo`: the file system of a handle, and the mount points below a
//! directory. Reading the table asks no file system, so this module never waits for a drive.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

use crate::model::Guard;

/// File system types that answer without asking another machine or another program.
const LOCAL_TYPES: &[&str] = &[
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "msdos", "ntfs3",
    "overlay", "ramfs", "reiserfs", "squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
];

/// File system types by which the kernel exposes its own state and its devices. They hold no data, so no grant enters
/// them.
const KERNEL_TYPES: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
];

/// The largest table that is read, in bytes. A system with thousands of containers has some hundred kilobytes.
const MAX_TABLE_BYTES: usize = 16 << 20;

/// How a file system answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::grants) enum FilesystemKind {
    /// It answers without waiting.
    Local,
    /// It may wait for a network or a program, or its type is unknown.
    MayStall,
    /// It exposes the kernel's state; see [`KERNEL_TYPES`].
    Kernel,
}

impl FilesystemKind {
    /// The kind of a type of file systems, such as `ext4`.
    pub(in crate::grants) fn of_type(name: &str) -> Self {
        match name {
            name if LOCAL_TYPES.contains(&name) => Self::Local,
            name if KERNEL_TYPES.contains(&name) => Self::Kernel,
            _ => Self::MayStall,
        }
    }

    /// True if no grant may read from this kind of file system.
    pub(in crate::grants) fn is_forbidden(self) -> bool {
        refuses_place(self == Self::Kernel)
    }
}

/// Returns `found`, or false if [`Guard::Place`] is off. `found` says that a path has a reason to be refused.
pub(in crate::grants) fn refuses_place(found: bool) -> bool {
    found && Guard::Place.is_on()
}

/// Identifies a file or directory on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::grants) struct FileIdentity {
    device: (u32, u32),
    inode: u64,
    /// The mount id in the table. `None` on kernels before 5.8.
    mount: Option<u64>,
}

impl FileIdentity {
    /// The identity of an open file. Uses the kernel's cached data, so it does not wait for the drive.
    pub(in crate::grants) fn of(file: &File) -> Result<Self, Errno> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = statx(file, c"", flags, StatxFlags::INO | StatxFlags::MNT_ID)?;
        let mount = (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id);
        Ok(Self { device: (stat.stx_dev_major, stat.stx_dev_minor), inode: stat.stx_ino, mount })
    }

    /// The kind of file system that the file lies on. [`FilesystemKind::MayStall`] if the table does not list its
    /// mount.
    pub(in crate::grants) fn kind(&self) -> FilesystemKind {
        let of = |table: &MountTable| table.mounts.iter().find(|one| Some(one.id) == self.mount).map(|one| one.kind);
        with_table(of).flatten().unwrap_or(FilesystemKind::MayStall)
    }

    /// True if both lie on the same mount.
    pub(in crate::grants) fn shares_mount(&self, other: &Self) -> bool {
        self.mount.is_some() && self.mount == other.mount
    }
}

/// True if a mount point lies below `dir`, or if the table cannot be read. `dir` must be without symbolic links.
pub(in crate::grants) fn has_mount_below(dir: &Path) -> bool {
    with_table(|table| table.below(dir).next().is_some()).unwrap_or(true)
}

/// The mount points below `dir` whose file system is not local. `dir` must be without symbolic links.
pub fn stalling_mounts_below(dir: &Path) -> Vec<PathBuf> {
    let stalling = |table: &MountTable| {
        let below = table.below(dir).filter(|mount| mount.kind != FilesystemKind::Local);
        below.map(|mount| mount.path.clone()).collect()
    };
    with_table(stalling).unwrap_or_default()
}

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
struct MountPoint {
    id: u64,
    path: PathBuf,
    kind: FilesystemKind,
}

/// The table as of the last read.
struct MountTable {
    /// Polling this file tells whether the table has changed.
    file: File,
    mounts: Vec<MountPoint>,
}

/// One table for the process: all its threads share one mount namespace.
static TABLE: Mutex<Option<MountTable>> = Mutex::new(None);

/// Runs `query` on the current table. `None` if the table cannot be read.
fn with_table<R>(query: impl FnOnce(&MountTable) -> R) -> Option<R> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    match table.as_mut() {
        Some(known) if !known.has_changed() => {}
        Some(known) => match read_table(&known.file) {
            Some(mounts) => known.mounts = mounts,
            None => *table = None,
        },
        None => *table = MountTable::open(),
    }
    table.as_ref().map(query)
}

impl MountTable {
    fn open() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "the kernel's own list of mounts")]
        let file = File::open("/proc/self/mountinfo").ok()?;
        let mounts = read_table(&file)?;
        Some(Self { file, mounts })
    }

    /// True if something was mounted or unmounted since the last call of this function (`proc_pid_mountinfo(5)`).
    fn has_changed(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut [PollFd::new(&self.file, PollFlags::PRI)], Some(&now)), Ok(0))
    }

    fn below<'t>(&'t self, dir: &'t Path) -> impl Iterator<Item = &'t MountPoint> {
        self.mounts.iter().filter(move |mount| mount.path != dir && mount.path.starts_with(dir))
    }
}

fn read_table(file: &File) -> Option<Vec<MountPoint>> {
    let mut text = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read_at(&mut chunk, text.len() as u64) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(chunk.get(..count)?),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if text.len() > MAX_TABLE_BYTES {
            return None;
        }
    }
    Some(text.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

/// Reads one line. Fields in `proc_pid_mountinfo(5)`: id, parent, device, root, mount point, options, optional fields,
/// "-", type, ...
fn parse_line(line: &[u8]) -> Option<MountPoint> {
    use std::os::unix::ffi::OsStringExt as _;

    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let point = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.nth(3)?)));
    fields.find(|field| *field == b"-")?;
    let name = std::str::from_utf8(fields.next()?).ok()?;
    Some(MountPoint { id, path: point, kind: FilesystemKind::of_type(name) })
}

/// Decodes a field: the kernel writes white space, backslash and `#` as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, behind @ ..] = rest {
        let octal = |digit: &u8| (b'0'..=b'7').contains(digit).then(|| u16::from(digit - b'0'));
        let code = match behind {
            [a, b, c, ..] if *first == b'\\' => octal(a).zip(octal(b)).zip(octal(c)),
            _ => None,
        };
        match code.and_then(|((a, b), c)| u8::try_from(a * 64 + b * 8 + c).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read() {
        let parsed = |line: &str| parse_line(line.as_bytes()).map(|mount| (mount.id, mount.path, mount.kind));
        let one =
            parsed("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
        assert_eq!(one, Some((36, "/mnt 2".into(), FilesystemKind::Local)));
        assert_eq!(parsed("7 1 0:5 / /p rw - proc proc rw").unwrap().2, FilesystemKind::Kernel);
        for network in ["nfs4", "fuse.sshfs", "cifs", "autofs", "9p", "fuseblk", "something-new"] {
            assert_eq!(
                parsed(&format!("7 1 0:5 / /p rw - {network} x rw")).unwrap().2,
                FilesystemKind::MayStall,
                "{network}"
            );
        }
        assert_eq!(parsed("7 1 0:5 / /a\\134040b\\12 rw - xfs x rw").unwrap().1, PathBuf::from("/a\\040b\\12"));
        for broken in ["", "x 1 0:5 / /p rw - proc", "7 1 0:5 / /p rw", "7 1 0:5"] {
            assert_eq!(parse_line(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn handles_are_found_in_the_table() {
        let root = File::open("/").unwrap();
        let proc = File::open("/proc/self").unwrap();
        assert_eq!(FileIdentity::of(&proc).unwrap().kind(), FilesystemKind::Kernel);
        assert!(!FileIdentity::of(&proc).unwrap().shares_mount(&FileIdentity::of(&root).unwrap()));
        assert_eq!(FileIdentity::of(&root).unwrap(), FileIdentity::of(&File::open("/").unwrap()).unwrap());
        assert!(has_mount_below(Path::new("/")));
        assert!(!has_mount_below(&tempfile::tempdir().unwrap().path().canonicalize().unwrap()));
        assert!(stalling_mounts_below(Path::new("/")).contains(&PathBuf::from("/proc")));
    }
}
