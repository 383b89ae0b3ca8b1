//! Finds databases: the files in the granted directories that begin with SQLite's magic bytes, or the one that the operator
//! names.
//!
//! The host promises that no path leads out of a granted directory. This module does not rely on it: it refuses `..`.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};

use crate::name;

/// How many levels of directories are searched for databases.
const MAX_DEPTH: usize = 4;

/// The most directory entries that a search visits. With more, the operator grants a smaller directory or sets `DATABASE`.
const MAX_ENTRIES: usize = 20_000;

/// The notice of a list that does not have all databases.
pub(crate) const NOT_ALL: &str = "the granted directories have more than 20000 entries or more than four levels, and the rest \
    was not searched; grant a smaller directory, or set DATABASE";

/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The first bytes of a database of SQLite 2.
const MAGIC_2: &[u8] = b"** This file contains an SQLite 2";

/// The ends of names that programs give to SQLite databases.
const ENDS: &[&str] = &["db", "db3", "s3db", "sl3", "sqlite", "sqlite3", "sqlitedb", "gpkg", "mbtiles"];

/// The reason why a file is not read that begins like no database.
pub(crate) const NOT_A_DATABASE: &str = "the file is not an SQLite 3 database, or it is encrypted (SQLCipher, SEE and similar \
    programs); this provider has no keys, so decrypt a copy, for example with sqlcipher_export";

const OLD: &str = "the file is a database of SQLite 2, which this provider does not read; convert it with  sqlite OLD .dump | \
    sqlite3 NEW";

/// The reason why a file with these first bytes is not read. An empty file is an empty database.
pub(crate) fn problem(head: &[u8]) -> Option<&'static str> {
    match () {
        () if head.is_empty() || head.starts_with(MAGIC) => None,
        () if head.starts_with(MAGIC_2) => Some(OLD),
        () => Some(NOT_A_DATABASE),
    }
}

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

    /// All databases, in the order of their references.
    pub(crate) fn databases(&self) -> Result<Vec<Database>> {
        self.search().map(|(databases, _)| databases)
    }

    /// All databases, and false if a part of the directories was not searched.
    pub(crate) fn search(&self) -> Result<(Vec<Database>, bool)> {
        if let Some(named) = &self.named {
            return Ok((vec![self.configured(named)?], true));
        }
        if self.roots.is_empty() {
            return Err(Error::denied("no directory is granted; grant the mount the directory of a database, as fs"));
        }
        let mut found = Vec::new();
        let mut left = Left { entries: MAX_ENTRIES, is_whole: true };
        for (guest_path, root) in &self.roots {
            let name = if self.roots.len() > 1 { guest_path.trim_matches('/') } else { "" };
            walk(root, name, MAX_DEPTH, &mut left, &mut found)?;
        }
        found.sort_by_cached_key(|database: &Database| name::segment(&database.name));
        Ok((found, left.is_whole))
    }

    /// The database called `name` in references.
    pub(crate) fn find(&self, name: &str) -> Result<Database> {
        if let Some(named) = &self.named {
            return self.configured(named);
        }
        let decoded = name::unescape(name).and_then(|bytes| String::from_utf8(bytes).ok());
        let name = decoded.as_deref().unwrap_or(name);
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

/// What a search may still visit.
struct Left {
    entries: usize,
    /// False once something was not searched.
    is_whole: bool,
}

fn walk(place: &Path, name: &str, depth: usize, left: &mut Left, found: &mut Vec<Database>) -> Result<()> {
    let mut below = Vec::new();
    for entry in fs::read_dir(place)? {
        if left.entries == 0 {
            left.is_whole = false;
            return Ok(());
        }
        left.entries -= 1;
        let Ok(entry) = entry else { continue };
        let Ok(own) = entry.file_name().into_string() else { continue };
        if own.starts_with('.') {
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
    if depth == 0 {
        left.is_whole &= below.is_empty();
        return Ok(());
    }
    for (path, whole) in below {
        // A directory that cannot be read is skipped.
        let _ = walk(&path, &whole, depth - 1, left, found);
    }
    Ok(())
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// True for a database, and for a file that is named like one: reading it gives the reason why it is none.
fn is_database(path: &Path) -> bool {
    if !is_file(path) {
        return false;
    }
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    if ENDS.iter().any(|known| known.eq_ignore_ascii_case(end)) {
        return true;
    }
    let mut head = Vec::with_capacity(MAGIC_2.len());
    let read = fs::File::open(path).and_then(|file| file.take(MAGIC_2.len() as u64).read_to_end(&mut head));
    read.is_ok() && (head.starts_with(MAGIC) || head.starts_with(MAGIC_2))
}

/// The granted directories, each with its guest path.
pub(crate) fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}
