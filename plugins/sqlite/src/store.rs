//! Finds databases: the files in the granted directories that begin with SQLite's magic bytes, or the one that the operator
//! names.
//!
//! The host promises that no path leads out of a granted directory. This module does not rely on it: it refuses `..`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};

/// How many levels of directories are searched for databases.
const MAX_DEPTH: usize = 4;

/// The most directory entries that a search visits. With more, the operator grants a smaller directory or sets `DATABASE`.
const MAX_ENTRIES: usize = 5_000;

/// The most databases served. The list opens each of them.
const MAX_DATABASES: usize = 100;

/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Database {
    /// The first segment of its references; empty for the database that the operator named.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The granted directories, and the one database that the operator named, if any.
#[derive(Debug)]
pub(crate) struct Store {
    roots: Vec<(String, PathBuf)>,
    named: Option<String>,
}

impl Store {
    /// A store over `grants`: pairs of guest path and actual path. `named` is the file of the only database to serve.
    pub(crate) fn new(grants: Vec<(String, PathBuf)>, named: Option<String>) -> Store {
        Store { roots: grants, named }
    }

    /// True if references begin with the name of a database.
    pub(crate) fn has_several(&self) -> bool {
        self.named.is_none()
    }

    /// The file that the operator named.
    pub(crate) fn named(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// All databases, sorted by name.
    pub(crate) fn databases(&self) -> Result<Vec<Database>> {
        if let Some(named) = &self.named {
            return Ok(vec![self.configured(named)?]);
        }
        if self.roots.is_empty() {
            return Err(Error::denied("no directory is granted; grant the mount the directory of a database, as fs"));
        }
        let mut found = Vec::new();
        let mut left = MAX_ENTRIES;
        for (guest_path, root) in &self.roots {
            let name = if self.roots.len() > 1 { guest_path.trim_matches('/') } else { "" };
            walk(root, name, MAX_DEPTH, &mut left, &mut found)?;
        }
        found.sort_by(|one: &Database, other| one.name.cmp(&other.name));
        found.truncate(MAX_DATABASES);
        Ok(found)
    }

    /// The database called `name` in references.
    pub(crate) fn find(&self, name: &str) -> Result<Database> {
        if let Some(named) = &self.named {
            return self.configured(named);
        }
        // Only checks the path: a search for all databases would cost more than the read itself.
        for (guest_path, root) in &self.roots {
            let rest = match self.roots.len() {
                1 => Some(name),
                _ => name.strip_prefix(guest_path.trim_matches('/')).and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(rest) = rest.filter(|rest| is_plain(rest)) else { continue };
            let path = root.join(rest);
            if is_database(&path) {
                return Ok(Database { name: name.to_owned(), path });
            }
        }
        if self.roots.is_empty() {
            return Err(Error::denied("no directory is granted; grant the mount the directory of a database, as fs"));
        }
        Err(Error::NotFound)
    }

    fn configured(&self, named: &str) -> Result<Database> {
        let paths = self.roots.iter().map(|(guest_path, root)| {
            let below = named.strip_prefix(guest_path.as_str()).map(|rest| rest.trim_start_matches('/'));
            root.join(below.unwrap_or(named))
        });
        let mut there = paths.filter(|path| is_file(path));
        there.next().map(|path| Database { name: String::new(), path }).ok_or_else(|| {
            Error::unavailable(format_args!(
                "DATABASE is \"{named}\": no granted directory has this file, or it is a symbolic link; grant the \
                 directory that contains it with its -wal and -journal files"
            ))
        })
    }
}

/// True if [`walk`] could have found this name.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.split('/').all(|segment| !segment.is_empty() && !segment.starts_with('.'))
}

fn walk(place: &Path, name: &str, depth: usize, left: &mut usize, found: &mut Vec<Database>) -> Result<()> {
    let mut below = Vec::new();
    for entry in fs::read_dir(place)? {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let Ok(entry) = entry else { continue };
        let Ok(own) = entry.file_name().into_string() else { continue };
        if own.starts_with('.') || own.chars().any(char::is_control) {
            continue;
        }
        let whole = if name.is_empty() { own } else { format!("{name}/{own}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below.push((entry.path(), whole)),
            // Symbolic links are left out: the journal files are beside the link's target, not beside the link.
            Ok(kind) if kind.is_file() && is_database(&entry.path()) => {
                found.push(Database { name: whole, path: entry.path() });
            }
            _ => {}
        }
    }
    for (path, whole) in below.iter().take(if depth == 0 { 0 } else { usize::MAX }) {
        // A directory that cannot be read is skipped.
        let _ = walk(path, whole, depth - 1, left, found);
    }
    Ok(())
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    is_file(path) && fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == MAGIC
}

/// The granted directories, each with its guest path.
pub(crate) fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}
