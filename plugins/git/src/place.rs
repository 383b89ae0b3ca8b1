//! Where the files of a repository are: its own directory, the directory that linked work trees share, and the object
//! stores that it borrows from. Paths inside a repository are those of the host, so they are searched below the grants.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

use belljar_guest::{Error, Result};

/// The longest file that names another place, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// The most object stores that one repository borrows from. Git stops at five levels.
const MAX_ALTERNATES: usize = 32;

/// Where the files of a repository are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// `HEAD` and what else belongs to one work tree.
    pub(crate) own: PathBuf,
    /// Objects, references and the configuration.
    pub(crate) common: PathBuf,
    /// The root of the work tree. `None` for a bare repository.
    pub(crate) work_tree: Option<PathBuf>,
}

impl Place {
    /// The repository at `root`: a work tree, a bare repository or a `.git` directory. Other places must be below `grants`.
    pub(crate) fn find(root: &Path, grants: &[PathBuf]) -> Result<Place> {
        if is_repository(root) {
            let work_tree = root.file_name().filter(|name| *name == ".git").and(root.parent()).map(Path::to_path_buf);
            return Place::shared(root.to_path_buf(), work_tree, grants);
        }
        let inner = root.join(".git");
        let own = match fs::symlink_metadata(&inner) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::failed(
                    "the granted directory is not a Git repository: expected a work tree with .git in it, or a bare repository",
                ));
            }
            Ok(meta) if meta.is_file() => pointed(&inner, root, grants)?,
            Ok(meta) if meta.is_symlink() && !is_repository(&inner) => {
                return Err(Error::denied(
                    "\".git\" is a symbolic link to a directory that is not granted or not a repository; grant the \
                     repository itself",
                ));
            }
            _ if is_repository(&inner) => inner,
            _ => return Err(Error::failed("\".git\" is not a repository: HEAD or objects are missing")),
        };
        Place::shared(own, Some(root.to_path_buf()), grants)
    }

    /// Follows `commondir`, which a linked work tree has.
    fn shared(own: PathBuf, work_tree: Option<PathBuf>, grants: &[PathBuf]) -> Result<Place> {
        let Some(named) = line(&own.join("commondir")) else {
            return Ok(Place { common: own.clone(), own, work_tree });
        };
        let common = reach(&named, &own, grants, |place| place.join("objects").is_dir()).ok_or_else(|| {
            Error::failed(format_args!(
                "the granted directory has only the files of one linked work tree of the repository \"{named}\"; grant the \
                 repository that it belongs to, or a directory that has both, and name this one in REPOSITORY"
            ))
        })?;
        Ok(Place { own, common, work_tree })
    }

    /// The directories of objects, the repository's own first, and the stores it names that cannot be reached.
    pub(crate) fn stores(&self, grants: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
        let mut found = vec![self.common.join("objects")];
        let mut unreachable = Vec::new();
        let mut next = 0;
        while let Some(store) = found.get(next).cloned() {
            next += 1;
            for named in alternates(&text(&store.join("info/alternates")).unwrap_or_default()) {
                // No store borrows from itself.
                let is_other = |place: &Path| {
                    place.is_dir() && place != store && Some(place) != found.first().map(PathBuf::as_path)
                };
                match reach(&named, &store, grants, is_other) {
                    Some(place) if found.contains(&place) => {}
                    Some(place) if found.len() < MAX_ALTERNATES => found.push(place),
                    _ => unreachable.push(named),
                }
            }
        }
        (found, unreachable)
    }
}

/// The paths in a file `alternates`. A path in quotes has escapes as in C.
pub(crate) fn alternates(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let unquoted = |line: &str| match crate::names::unquote(line) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => line.to_owned(),
    };
    lines.take(MAX_ALTERNATES).map(unquoted).collect()
}

/// The directory that the file `.git` of a work tree names.
fn pointed(file: &Path, root: &Path, grants: &[PathBuf]) -> Result<PathBuf> {
    let malformed = || Error::failed("\".git\" is a file without \"gitdir: PATH\"; see  git worktree repair");
    let line = line(file).ok_or_else(malformed)?;
    let named = line.strip_prefix("gitdir:").ok_or_else(malformed)?.trim();
    reach(named, root, grants, is_repository).ok_or_else(|| {
        Error::failed(format_args!(
            "\".git\" is a file that points to \"{named}\", which is not below the granted directory; grant that repository \
             itself, or a directory that has both, and name this work tree in REPOSITORY"
        ))
    })
}

/// The place that a path of the host names, seen from `base`. An absolute path is searched below the grants: the longest end of
/// it that `fits`.
pub(crate) fn reach(named: &str, base: &Path, grants: &[PathBuf], fits: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = normal(&base.join(named));
    let is_granted = |path: &Path| grants.iter().any(|grant| path.starts_with(grant));
    if is_granted(&path) && fits(&path) {
        return Some(path);
    }
    if !Path::new(named).is_absolute() {
        return None;
    }
    let parts: Vec<&std::ffi::OsStr> = path.iter().skip(1).collect();
    // One name alone, such as `objects`, is in any repository.
    let ends = (0..parts.len().saturating_sub(1))
        .filter_map(|skipped| Some(parts.get(skipped..)?.iter().collect::<PathBuf>()));
    let places = ends.flat_map(|end| grants.iter().map(move |grant| grant.join(&end)));
    places.into_iter().find(|place| fits(place))
}

/// True for a directory with `HEAD` and objects, or with a file that says where the objects are.
fn is_repository(place: &Path) -> bool {
    place.join("HEAD").is_file() && (place.join("objects").is_dir() || place.join("commondir").is_file())
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The text of a small file. `None` if there is no such file.
pub(crate) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line of a small file.
pub(crate) fn line(path: &Path) -> Option<String> {
    Some(text(path)?.lines().next()?.trim().to_owned())
}

/// True if a file `packed-refs` has a name that begins with `start`. The file is sorted, so a search reads little of it.
pub(crate) fn has_packed(path: &Path, start: &str) -> Option<bool> {
    /// The longest line that is expected.
    const LINE: usize = 1024;
    let file = fs::File::open(path).ok()?;
    let (mut low, mut high) = (0, file.metadata().ok()?.len());
    let mut buffer = vec![0; 2 * LINE];
    // The first whole line after an offset that has a name.
    let mut name_after = |offset: u64| {
        let got = crate::pack::read_some(&file, offset, &mut buffer).ok()?;
        let text = buffer.get(..got)?;
        let mut lines = text.split(|byte| *byte == b'\n');
        if offset > 0 {
            lines.next();
        }
        let line = lines.find(|line| !line.is_empty() && !line.starts_with(b"#") && !line.starts_with(b"^"))?;
        let name = line.iter().position(|byte| *byte == b' ').and_then(|space| line.get(space + 1..))?;
        Some(name.to_vec())
    };
    while high - low > LINE as u64 {
        let middle = low + (high - low) / 2;
        match name_after(middle) {
            Some(name) if name.as_slice() < start.as_bytes() => low = middle,
            _ => high = middle,
        }
    }
    let mut near = vec![0; 4 * LINE];
    let got = crate::pack::read_some(&file, low, &mut near).ok()?;
    Some(memchr::memmem::find(near.get(..got)?, format!(" {start}").as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_a_long_sorted_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("packed-refs");
        let line = |name: &str| format!("{} {name}\n^{}\n", "1".repeat(40), "2".repeat(40));
        let heads: String = (0..3000).map(|n| line(&format!("refs/heads/b{n:04}"))).collect();
        let tags: String = (0..3000).map(|n| line(&format!("refs/tags/v{n:04}"))).collect();
        let header = "# pack-refs with: peeled fully-peeled sorted\n";
        for (middle, expected) in
            [(line("refs/replace/aa"), true), (String::new(), false), (line("refs/remotes/o/x"), false)]
        {
            fs::write(&path, format!("{header}{heads}{middle}{tags}")).unwrap();
            assert_eq!(has_packed(&path, "refs/replace/"), Some(expected), "{middle}");
        }
        fs::write(&path, format!("{header}{}", line("refs/replace/aa"))).unwrap();
        assert_eq!(has_packed(&path, "refs/replace/"), Some(true));
        assert_eq!(has_packed(&directory.path().join("none"), "refs/replace/"), None);
    }

    #[test]
    fn a_path_of_the_host_is_searched_below_the_grants() {
        let directory = tempfile::tempdir().unwrap();
        let grants = [directory.path().to_path_buf()];
        let place = directory.path().join("main/.git");
        fs::create_dir_all(&place).unwrap();
        let found = |named: &str| reach(named, &directory.path().join("side"), &grants, Path::is_dir);
        assert_eq!(found("../main/.git"), Some(place.clone()));
        assert_eq!(found("/srv/other/work/main/.git"), Some(place));
        assert_eq!(found("../../outside"), None);
        assert_eq!(found("/srv/other/other/.git"), None);
    }

    #[test]
    fn a_store_that_is_elsewhere_is_not_taken_for_the_own_one() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join(".git");
        fs::create_dir_all(own.join("objects/info")).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let grants = [directory.path().to_path_buf()];
        for named in ["/srv/other/objects", "/srv/other/.git/objects", "../../../other/objects"] {
            fs::write(own.join("objects/info/alternates"), format!("{named}\n")).unwrap();
            let place = Place::find(directory.path(), &grants).unwrap();
            assert_eq!(place.stores(&grants), (vec![own.join("objects")], vec![named.to_owned()]));
        }
    }
}
