//! Where a symbolic link leads, for guests: told only if it stays below the granted directory. What the link says is text of
//! the host's, and may spell its paths.

use std::path::{Component, Path};

use rustix::fs::{FileType, readlinkat};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::descriptor::Dir;
use super::resolve::{Refused, Resolver};

/// The target of the link at `path` below `dir`, which is relative and stays below the granted directory.
pub(super) fn read(dir: &Dir, path: &str, may_wait: bool) -> Result<String, Refused> {
    let resolver = Resolver { root: &dir.root, base: &dir.file, may_wait };
    let (link, stat) = resolver.look(path, false, false)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Err(Refused::Failed(ErrorCode::Invalid));
    }
    let target = readlinkat(&link, c"", Vec::new())?;
    let target = target.into_string().map_err(|_| Refused::Failed(ErrorCode::IllegalByteSequence))?;
    if !stays_below(dir, path, &target, may_wait)? {
        return Err(Refused::Outside);
    }
    Ok(target)
}

/// Whether `target`, as the link at `path` has it, names nothing but what lies below the granted directory.
fn stays_below(dir: &Dir, path: &str, target: &str, may_wait: bool) -> Result<bool, Refused> {
    let mut climbs = false;
    for component in Path::new(target).components() {
        match component {
            Component::Normal(_) | Component::CurDir => {}
            Component::ParentDir => climbs = true,
            Component::RootDir | Component::Prefix(_) => return Ok(false),
        }
    }
    if !climbs {
        return Ok(!target.is_empty());
    }
    // The kernel says where "up" leads, because directories on the way may be links themselves. It walks from the granted
    // directory, so that a link may lead above the one that the guest has opened.
    let parent = path.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = if parent.is_empty() { "." } else { parent };
    let Some(parent) = dir.path_from_root(parent) else { return Ok(false) };
    let resolver = Resolver { root: &dir.root, base: dir.root.dir(), may_wait };
    let leads = |target: &str| match resolver.look(&format!("{parent}/{target}"), false, false) {
        Ok(_) => Ok(true),
        Err(Refused::NeedsThread) => Err(Refused::NeedsThread),
        Err(_) => Ok(false),
    };
    // What it names need not be there, but the directory that it would lie in is.
    let holder = match target.trim_end_matches('/').rsplit_once('/') {
        Some((holder, name)) if name != ".." => holder,
        _ => target,
    };
    leads(holder)
}
