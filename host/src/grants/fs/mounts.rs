//! The kernel's table of mounts: which file system a handle lies on, and what is mounted below a directory. Reading it
//! asks no file system, so it never waits for a drive.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

/// File systems that answer without asking another machine or program.
const LOCAL: &[&str] = &[
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "msdos", "ntfs3",
    "overlay", "ramfs", "reiserfs", "squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
];

/// File systems by which the kernel tells of itself and of devices. They hold no data, and are never entered.
const KERNEL: &[&str] = &[
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

/// How large the table may be. A system with thousands of containers has some hundred kilobytes.
const MOST: usize = 16 << 20;

/// What a mounted file system is to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It answers at once.
    Local,
    /// It waits for a network, a program or something unknown.
    MayStall,
    /// The kernel's own; see [`KERNEL`].
    Kernel,
}

/// What tells one directory or file from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    /// The number of its mount in the table; none on kernels older than 5.8.
    mount: Option<u64>,
}

impl Identity {
    /// Of what a handle names. It takes what the kernel knows already, so it does not wait for the drive.
    pub(super) fn of(file: &File) -> Result<Self, Errno> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = statx(file, c"", flags, StatxFlags::INO | StatxFlags::MNT_ID)?;
        let mount = (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id);
        Ok(Self { device: (stat.stx_dev_major, stat.stx_dev_minor), inode: stat.stx_ino, mount })
    }

    /// What file system it lies on. What is not in the table may stall.
    pub(super) fn kind(&self) -> Kind {
        let of = |table: &Table| table.mounts.iter().find(|one| Some(one.id) == self.mount).map(|one| one.kind);
        with_table(of).flatten().unwrap_or(Kind::MayStall)
    }

    /// Whether both lie on the same mount.
    pub(super) fn shares_mount(&self, other: &Self) -> bool {
        self.mount.is_some() && self.mount == other.mount
    }
}

/// Whether anything is mounted below `dir`, which has no symbolic link in it. True where that cannot be found out.
pub(super) fn any_below(dir: &Path) -> bool {
    with_table(|table| table.below(dir).next().is_some()).unwrap_or(true)
}

/// What is mounted below `dir` and is not local. `dir` has no symbolic link in it.
pub(super) fn stalling_below(dir: &Path) -> Vec<PathBuf> {
    let stalling = |table: &Table| {
        let below = table.below(dir).filter(|mount| mount.kind != Kind::Local);
        below.map(|mount| mount.point.clone()).collect()
    };
    with_table(stalling).unwrap_or_default()
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    point: PathBuf,
    kind: Kind,
}

/// The table as it was read last.
struct Table {
    /// The kernel tells by it that the table is another one.
    file: File,
    mounts: Vec<Mount>,
}

/// The process lives in one mount namespace, and so has one table.
static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Gives `look` the table as it is now; none where it cannot be read.
fn with_table<R>(look: impl FnOnce(&Table) -> R) -> Option<R> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    match table.as_mut() {
        Some(known) if !known.has_changed() => {}
        Some(known) => match read(&known.file) {
            Some(mounts) => known.mounts = mounts,
            None => *table = None,
        },
        None => *table = Table::open(),
    }
    table.as_ref().map(look)
}

impl Table {
    fn open() -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "the kernel's own list of mounts")]
        let file = File::open("/proc/self/mountinfo").ok()?;
        let mounts = read(&file)?;
        Some(Self { file, mounts })
    }

    /// Whether something was mounted or unmounted since this was asked last (`proc_pid_mountinfo(5)`).
    fn has_changed(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut [PollFd::new(&self.file, PollFlags::PRI)], Some(&now)), Ok(0))
    }

    fn below<'t>(&'t self, dir: &'t Path) -> impl Iterator<Item = &'t Mount> {
        self.mounts.iter().filter(move |mount| mount.point != dir && mount.point.starts_with(dir))
    }
}

fn read(file: &File) -> Option<Vec<Mount>> {
    let mut text = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read_at(&mut chunk, text.len() as u64) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(chunk.get(..count)?),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if text.len() > MOST {
            return None;
        }
    }
    Some(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// `proc_pid_mountinfo(5)`: id, parent, device, root, mount point, options, optional fields, "-", type, ...
fn parse(line: &[u8]) -> Option<Mount> {
    use std::os::unix::ffi::OsStringExt as _;

    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let point = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.nth(3)?)));
    fields.find(|field| *field == b"-")?;
    let name = std::str::from_utf8(fields.next()?).ok()?;
    let kind = match name {
        name if LOCAL.contains(&name) => Kind::Local,
        name if KERNEL.contains(&name) => Kind::Kernel,
        _ => Kind::MayStall,
    };
    Some(Mount { id, point, kind })
}

/// White space, backslash and `#` stand there as three octal digits.
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
        let parsed = |line: &str| parse(line.as_bytes()).map(|mount| (mount.id, mount.point, mount.kind));
        let one =
            parsed("36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
        assert_eq!(one, Some((36, "/mnt 2".into(), Kind::Local)));
        assert_eq!(parsed("7 1 0:5 / /p rw - proc proc rw").unwrap().2, Kind::Kernel);
        for network in ["nfs4", "fuse.sshfs", "cifs", "autofs", "9p", "fuseblk", "something-new"] {
            assert_eq!(parsed(&format!("7 1 0:5 / /p rw - {network} x rw")).unwrap().2, Kind::MayStall, "{network}");
        }
        assert_eq!(parsed("7 1 0:5 / /a\\134040b\\12 rw - xfs x rw").unwrap().1, PathBuf::from("/a\\040b\\12"));
        for broken in ["", "x 1 0:5 / /p rw - proc", "7 1 0:5 / /p rw", "7 1 0:5"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn handles_are_found_in_the_table() {
        let root = File::open("/").unwrap();
        let proc = File::open("/proc/self").unwrap();
        assert_eq!(Identity::of(&proc).unwrap().kind(), Kind::Kernel);
        assert!(!Identity::of(&proc).unwrap().shares_mount(&Identity::of(&root).unwrap()));
        assert_eq!(Identity::of(&root).unwrap(), Identity::of(&File::open("/").unwrap()).unwrap());
        assert!(any_below(Path::new("/")));
        assert!(!any_below(&tempfile::tempdir().unwrap().path().canonicalize().unwrap()));
        assert!(stalling_below(Path::new("/")).contains(&PathBuf::from("/proc")));
    }
}
