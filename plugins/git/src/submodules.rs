//! Paths that lead into submodules, whose objects are in repositories of their own.

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use crate::config::Config;
use crate::names::shown;
use crate::repository::Repository;
use crate::tree::{self, Entry, Found};

/// The deepest level of submodules in submodules.
const MAX_LEVEL: usize = 8;

/// What `.gitmodules` says of a submodule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) url: Option<String>,
}

/// The entry at a path below a tree, with the repository that has its object if this is a submodule's.
pub(crate) fn locate(repository: &Repository, root: ObjectId, path: &[u8]) -> Result<(Option<Repository>, Entry)> {
    locate_at(repository, root, path, MAX_LEVEL)
}

fn locate_at(
    repository: &Repository,
    root: ObjectId,
    path: &[u8],
    level: usize,
) -> Result<(Option<Repository>, Entry)> {
    match tree::find(&repository.objects, &root, path)?.ok_or(Error::NotFound)? {
        Found::Entry(entry) => Ok((None, entry)),
        Found::Inside(entry, rest) => {
            let (inner, root) = open(repository, root, &entry, level)?;
            let (deeper, mut found) = locate_at(&inner, root, &rest, level - 1)?;
            found.path = tree::join(&entry.path, &found.path);
            Ok((Some(deeper.unwrap_or(inner)), found))
        }
    }
}

/// Opens a submodule. Returns its repository, and the tree of the commit that the entry names.
pub(crate) fn open(
    repository: &Repository,
    root: ObjectId,
    entry: &Entry,
    level: usize,
) -> Result<(Repository, ObjectId)> {
    let module = described(repository, root, &entry.path)?;
    let place = shown(&entry.path);
    let from = module.url.as_ref().map(|url| format!(" of \"{url}\"")).unwrap_or_default();
    let absent =
        |why: &str| Error::failed(format_args!("\"{place}\" is a submodule: the commit {}{from}; {why}", entry.id));
    if level == 0 {
        return Err(absent("it is in too many other submodules"));
    }
    let path = String::from_utf8_lossy(&entry.path);
    let inner = repository.submodule(&path, &module.name).ok_or_else(|| {
        absent("its repository is not below the granted directory; run  git submodule update --init, or grant it too")
    })?;
    if !inner.objects.contains(&entry.id)? {
        return Err(absent("its repository lacks that commit; run  git submodule update"));
    }
    let tree = inner.tree_of(entry.id)?;
    Ok((inner, tree))
}

/// What the file `.gitmodules` of a tree says of the submodule at a path. By default, its name is its path.
pub(crate) fn described(repository: &Repository, root: ObjectId, path: &[u8]) -> Result<Module> {
    let path = String::from_utf8_lossy(path).into_owned();
    let file = match tree::find(&repository.objects, &root, b".gitmodules")? {
        Some(Found::Entry(entry)) if matches!(entry.mode.kind(), EntryKind::Blob | EntryKind::BlobExecutable) => {
            repository.objects.find(&entry.id)?
        }
        _ => None,
    };
    let config = file.map(|file| Config::parse(&String::from_utf8_lossy(&file.data))).unwrap_or_default();
    let named = config.section("submodule").find(|setting| setting.name == "path" && setting.value == path);
    let Some(name) = named.map(|setting| setting.subsection.clone()) else {
        return Ok(Module { name: path, url: None });
    };
    let is_url = |setting: &&crate::config::Setting| setting.name == "url" && setting.subsection == name;
    let url = config.section("submodule").find(is_url).map(|setting| setting.value.clone());
    Ok(Module { url, name })
}
