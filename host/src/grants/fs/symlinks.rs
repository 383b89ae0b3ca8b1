//! Reads symbolic links for guests. A guest gets the target only if it stays below the granted directory: the target is
//! text of the host and may reveal its paths.

use std::path::{Component, Path};

use rustix::fs::{FileType, readlinkat};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::descriptor::Dir;
use super::resolve::{PathResolver, ResolveError};

/// The target of the link at `path` below `dir`. Refuses targets that are absolute or lead out of the granted
/// directory.
pub(super) fn read(dir: &Dir, path: &str, may_block: bool) -> Result<String, ResolveError> {
    let resolver = PathResolver { root: &dir.root, base: &dir.file, may_block };
    let (link, stat) = resolver.lookup(path, false, false)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Err(ResolveError::Failed(ErrorCode::Invalid));
    }
    let target = readlinkat(&link, c"", Vec::new())?;
    let target = target.into_string().map_err(|_| ResolveError::Failed(ErrorCode::IllegalByteSequence))?;
    if !stays_below(dir, path, &target, may_block)? {
        return Err(ResolveError::Outside);
    }
    Ok(target)
}

/// True if `target`, relative to the link at `path`, stays below the granted directory.
fn stays_below(dir: &Dir, path: &str, target: &str, may_block: bool) -> Result<bool, ResolveError> {
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
    // Let the kernel resolve "..", because directories on the way may be links themselves. Start at the granted
    // directory, because a link may lead above the directory that the guest has opened.
    let parent = path.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    let parent = if parent.is_empty() { "." } else { parent };
    let Some(parent) = dir.path_from_root(parent) else { return Ok(false) };
    let resolver = PathResolver { root: &dir.root, base: dir.root.dir(), may_block };
    let leads = |target: &str| match resolver.lookup(&format!("{parent}/{target}"), false, false) {
        Ok(_) => Ok(true),
        Err(ResolveError::NeedsThread) => Err(ResolveError::NeedsThread),
        Err(_) => Ok(false),
    };
    // The target need not exist, but its directory must.
    let holder = match target.trim_end_matches('/').rsplit_once('/') {
        Some((holder, name)) if name != ".." => holder,
        _ => target,
    };
    leads(holder)
}
