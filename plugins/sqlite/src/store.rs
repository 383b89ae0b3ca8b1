//! Which databases there are: files in the granted directories that begin as SQLite's do, or the one that the operator names.
//!
//! That a path cannot lead out of its directory is the host's promise; nothing here relies on it, and no `..` gets here.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};

/// How many directories deep databases are looked for.
const DEEPEST: usize = 4;

/// How many entries of directories are looked at. Whoever keeps more beside a database grants less, or names the database.
const MOST: usize = 5_000;

/// How many databases are served. Each one is opened for a list.
const DATABASES: usize = 100;

/// What a database begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Database {
    /// What references begin with; empty for the one that the operator named.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The granted directories, and which database in them is meant, if one is.
#[derive(Debug)]
pub(crate) struct Store {
    roots: Vec<(String, PathBuf)>,
    named: Option<String>,
}

impl Store {
    /// The store over `grants`, each a guest path and where it is. `named` is the file of the one database to serve.
    pub(crate) fn new(grants: Vec<(String, PathBuf)>, named: Option<String>) -> Store {
        Store { roots: grants, named }
    }

    /// Whether references begin with the name of a database.
    pub(crate) fn has_several(&self) -> bool {
        self.named.is_none()
    }

    /// All databases, in the order of their names.
    pub(crate) fn databases(&self) -> Result<Vec<Database>> {
        if let Some(named) = &self.named {
            return Ok(vec![self.the_named(named)?]);
        }
        if self.roots.is_empty() {
            return Err(Error::denied("no directory is granted; give the mount one that holds a database, as fs"));
        }
        let mut found = Vec::new();
        let mut left = MOST;
        for (guest_path, root) in &self.roots {
            let name = if self.roots.len() > 1 { guest_path.trim_matches('/') } else { "" };
            walk(root, name, DEEPEST, &mut left, &mut found)?;
        }
        found.sort_by(|one: &Database, other| one.name.cmp(&other.name));
        found.truncate(DATABASES);
        Ok(found)
    }

    /// The database called `name` in references.
    pub(crate) fn find(&self, name: &str) -> Result<Database> {
        if let Some(named) = &self.named {
            return self.the_named(named);
        }
        // By its path alone: looking for all of them would cost a call more than its read does.
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
            return Err(Error::denied("no directory is granted; give the mount one that holds a database, as fs"));
        }
        Err(Error::NotFound)
    }

    fn the_named(&self, named: &str) -> Result<Database> {
        let paths = self.roots.iter().map(|(guest_path, root)| {
            let below = named.strip_prefix(guest_path.as_str()).map(|rest| rest.trim_start_matches('/'));
            root.join(below.unwrap_or(named))
        });
        let mut there = paths.filter(|path| is_file(path));
        there.next().map(|path| Database { name: String::new(), path }).ok_or_else(|| {
            Error::unavailable(format_args!(
                "DATABASE is \"{named}\": there is no such file in what is granted, or it is a symbolic link; grant the \
                 directory that holds it, together with its -wal and -journal files"
            ))
        })
    }
}

/// Whether a name is one that `walk` could have found.
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
            // Links are left out: what SQLite keeps beside a database is beside the file that one leads to.
            Ok(kind) if kind.is_file() && is_database(&entry.path()) => {
                found.push(Database { name: whole, path: entry.path() });
            }
            _ => {}
        }
    }
    for (path, whole) in below.iter().take(if depth == 0 { 0 } else { usize::MAX }) {
        // One that may not be looked into holds nothing for this mount.
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
