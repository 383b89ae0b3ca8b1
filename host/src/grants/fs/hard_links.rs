//! Search for hard links. A file in a granted directory that has another name elsewhere can be read, and no open can
//! detect this. Therefore `belljar check` warns the operator.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat2, statat};

use crate::model::text;

/// The most entries that the search visits. It may miss hard links in larger directories.
const MAX_ENTRIES: usize = 50_000;

/// The deepest level of directories that the search visits.
const MAX_DEPTH: usize = 64;

/// The path of the first regular file below `dir` that has more than one name. Does not enter other mounts.
pub(super) fn find(dir: &File) -> Option<String> {
    find_below(dir.as_fd(), "", MAX_DEPTH, &mut MAX_ENTRIES.clone())
}

fn find_below(dir: BorrowedFd<'_>, path: &str, depth: usize, left: &mut usize) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let mut inner = Vec::new();
    for entry in Dir::read_from(dir).ok()?.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        *left = left.checked_sub(1)?;
        let kind = match entry.file_type() {
            // Do not stat directories: one may be a mount point of a drive that does not answer.
            FileType::RegularFile | FileType::Unknown => {
                let Ok(stat) = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                let kind = FileType::from_raw_mode(stat.st_mode);
                if kind == FileType::RegularFile && stat.st_nlink > 1 {
                    return Some(text::excerpt(&format!("{path}{}", name.to_string_lossy()), 200));
                }
                kind
            }
            kind => kind,
        };
        if kind == FileType::Directory && depth > 0 {
            inner.push(name.to_owned());
        }
    }
    inner.into_iter().find_map(|name| {
        let dir = openat2(dir, &name, flags, Mode::empty(), how).ok()?;
        find_below(dir.as_fd(), &format!("{path}{}/", name.to_string_lossy()), depth - 1, left)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hard_link_is_found() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("a/b")).unwrap();
        std::fs::write(temp.path().join("a/b/file"), "x").unwrap();
        let dir = File::open(temp.path()).unwrap();
        assert_eq!(find(&dir), None);
        std::fs::hard_link(temp.path().join("a/b/file"), temp.path().join("a/b/other")).unwrap();
        assert!(find(&dir).is_some_and(|path| path.starts_with("a/b/")));
    }
}
