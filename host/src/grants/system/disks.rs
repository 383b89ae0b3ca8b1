//! The part `disks`: the mounted local file systems and their use. A file system of another machine or of a program is
//! named, and never asked: it may not answer.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use procfs_core::FromBufRead as _;
use procfs_core::process::MountInfos;
use rustix::fs::{StatVfsMountFlags, statvfs};
use serde::Serialize;

use super::error::CollectError;
use super::root::{SystemRoot, cleaned};
use crate::grants::drive_timeout::run_within;
use crate::grants::mountinfo::FilesystemKind;

/// The most file systems of each list.
const MAX_DISKS: usize = 256;

/// How long one file system may take to answer. Local ones answer from memory.
const ANSWER_TIME: Duration = Duration::from_millis(300);

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct DiskFacts {
    disks: Vec<Disk>,
    /// File systems that were not asked, or did not answer.
    not_asked: Vec<NotAsked>,
    /// File systems beyond those listed.
    left_out: usize,
}

/// One file system.
#[derive(Serialize)]
struct Disk {
    mount: String,
    #[serde(rename = "type")]
    kind: String,
    device: Option<String>,
    total: u64,
    used: u64,
    /// What programs without privileges can still use.
    available: u64,
    files: u64,
    files_free: u64,
    read_only: bool,
}

/// A file system without figures.
#[derive(Serialize)]
struct NotAsked {
    mount: String,
    #[serde(rename = "type")]
    kind: String,
    why: &'static str,
}

pub(super) fn collect(root: &SystemRoot) -> Result<DiskFacts, CollectError> {
    let file = "proc/self/mountinfo";
    let mounts = MountInfos::from_buf_read(Cursor::new(root.read(file)?));
    let mut mounts = mounts.map_err(|_| CollectError::Malformed(file.to_owned()))?.0;
    // Of several mounts at one path, the last one is on top and hides the others.
    mounts.reverse();
    // Of several mounts of one device, the one with the shortest path is the file system itself.
    mounts.sort_by_key(|mount| (mount.mount_point.as_os_str().len(), mount.mount_point.clone()));
    let (mut paths, mut devices) = (BTreeSet::new(), BTreeSet::new());
    let mut facts = DiskFacts { disks: Vec::new(), not_asked: Vec::new(), left_out: 0 };
    for mount in mounts {
        let is_hidden = !paths.insert(mount.mount_point.clone());
        let kind = FilesystemKind::of_type(&mount.fs_type);
        if is_hidden || kind == FilesystemKind::Kernel || !devices.insert(mount.majmin.clone()) {
            continue;
        }
        if facts.disks.len().max(facts.not_asked.len()) >= MAX_DISKS {
            facts.left_out += 1;
            continue;
        }
        let shown = shown(&mount.mount_point);
        let mut refused = |why| {
            facts.not_asked.push(NotAsked { mount: shown.clone(), kind: cleaned(mount.fs_type.as_bytes(), 40), why });
        };
        if kind != FilesystemKind::Local {
            refused("a file system of another machine, or of a program, may not answer");
            continue;
        }
        let path = mount.mount_point.clone();
        let Ok(answer) = run_within(&mount.mount_point, ANSWER_TIME, move || statvfs(&path)) else {
            refused("it does not answer");
            continue;
        };
        let Ok(stat) = answer else {
            refused("belljar may not ask it");
            continue;
        };
        // A file system without blocks has no use to show.
        if stat.f_blocks == 0 {
            continue;
        }
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        facts.disks.push(Disk {
            mount: shown,
            kind: cleaned(mount.fs_type.as_bytes(), 40),
            device: mount.mount_source.map(|source| cleaned(source.as_bytes(), 200)),
            total: bytes(stat.f_blocks),
            used: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
            available: bytes(stat.f_bavail),
            files: stat.f_files,
            files_free: stat.f_ffree,
            read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
        });
    }
    facts.disks.sort_by(|one, other| one.mount.cmp(&other.mount));
    Ok(facts)
}

fn shown(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;

    cleaned(path.as_os_str().as_bytes(), 400)
}
