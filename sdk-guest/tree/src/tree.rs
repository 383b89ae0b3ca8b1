//! Which files may be seen, and under which path: the granted directories as one tree, without what is ignored. A path
//! is relative, decoded, without `.` and `..`, and has no `/` at its end; `""` is the top.
//!
//! Only regular files and directories are ever opened, and what something is, is asked before it is opened. That a path
//! cannot lead out of its directory is the host's promise, which nothing here relies on knowing.

#[cfg(not(target_os = "wasi"))]
mod native;
#[cfg(target_os = "wasi")]
mod wasi;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{SystemTime, UNIX_EPOCH};

use belljar_guest::{Error, Result, reference};

use crate::ignore::Rules;

#[cfg(not(target_os = "wasi"))]
pub use native::{Directory, File, granted, granted_paths};
#[cfg(target_os = "wasi")]
pub use wasi::{Directory, File, granted, granted_paths};

/// The granted directories as one tree. With one grant, its directory is the top; with several, the top holds one
/// directory for each, named after its guest path.
#[derive(Debug)]
pub struct Tree {
    grants: Grants,
    rules: Rules,
}

#[derive(Debug)]
enum Grants {
    One(Directory),
    Several(BTreeMap<String, Directory>),
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, where links are not followed.
    Symlink,
    /// A device, pipe or socket: never opened.
    Other,
}

/// What is known of something without opening it. Links are followed.
#[derive(Debug, Clone)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last written to.
    pub modified: Option<SystemTime>,
}

/// Something in a directory. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// A path that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// Without a `/` at its end.
    pub path: String,
    /// There was one: only a directory will do.
    pub is_directory: bool,
}

/// The first few of many entries.
#[derive(Debug, Default)]
pub struct Smallest {
    /// In ascending order of their keys.
    pub entries: Vec<Entry>,
    /// How many there were.
    pub seen: usize,
}

impl Tree {
    /// The tree over what was granted, without what the patterns in the setting `IGNORE` match.
    pub fn open_granted() -> Result<Self> {
        Tree::new(granted(), &std::env::var("IGNORE").unwrap_or_default())
    }

    /// The tree over `grants`, each a guest path and its directory, without what the patterns in `ignore` match.
    pub fn new(grants: Vec<(String, Directory)>, ignore: &str) -> Result<Self> {
        let rules = Rules::parse(ignore);
        let mut named = BTreeMap::new();
        let several = grants.len() > 1;
        for (guest_path, directory) in grants {
            if !several {
                return Ok(Tree { grants: Grants::One(directory), rules });
            }
            let name = grant_name(&guest_path);
            if named.insert(name.clone(), directory).is_some() {
                return Err(Error::failed(format_args!(
                    "two granted directories are both called \"{name}\" here: give one another guest path"
                )));
            }
        }
        if named.is_empty() {
            return Err(Error::denied(
                "no directory was granted: this provider needs one, such as  fs = { \"/files\" = \"DIR\" }  in the \
                 configuration of its mount",
            ));
        }
        Ok(Tree { grants: Grants::Several(named), rules })
    }

    /// What is in a directory, in no order. What is ignored, or has a name that no reference can carry, is left out.
    pub fn entries(&self, path: &str) -> Result<Box<dyn Iterator<Item = Entry> + '_>> {
        let Some((directory, inner)) = self.place(path)? else {
            return Ok(Box::new(self.grant_names().map(|name| Entry { name: name.clone(), kind: Kind::Directory })));
        };
        self.check(inner, Kind::Directory)?;
        let inner = inner.to_owned();
        let entries = directory.entries(&inner)?;
        Ok(Box::new(entries.filter(move |entry| {
            can_be_named(&entry.name) && !self.rules.ignore(&inner, &entry.name, entry.kind == Kind::Directory)
        })))
    }

    /// The file that a reference without its query is about, what is known of it, and the segments behind it, decoded: the
    /// first segment that is a file `is_served` ends the path.
    pub fn find(&self, encoded: &str, is_served: fn(&str) -> bool) -> Result<(String, Meta, Vec<String>)> {
        let mut segments: Vec<String> = encoded.split('/').map(reference::decode).collect::<Result<_>>()?;
        if segments.last().is_some_and(String::is_empty) {
            segments.pop();
        }
        for end in 1..=segments.len() {
            let (path, inside) = segments.split_at_checked(end).unwrap_or_default();
            if !path.last().is_some_and(|name| is_served(name)) {
                continue;
            }
            let path = Path::checked(path.iter().map(String::as_str))?.path;
            match self.meta(&path) {
                Ok(meta) if meta.kind == Kind::File => return Ok((path, meta, inside.to_vec())),
                // A directory may be called like that.
                Ok(_) | Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::NotFound)
    }

    /// What is at a path.
    pub fn meta(&self, path: &str) -> Result<Meta> {
        let Some((directory, inner)) = self.place(path)? else {
            return Ok(Meta { kind: Kind::Directory, size: 0, modified: None });
        };
        // The kind is needed for rules that hold for directories only; for the directories on the way it is known.
        if let Some((parent, _)) = inner.rsplit_once('/') {
            self.check(parent, Kind::Directory)?;
        }
        let meta = directory.meta(inner)?;
        self.check(inner, meta.kind)?;
        Ok(meta)
    }

    /// The first `length` bytes of a file, or all when it has fewer. The caller has made sure that it is one.
    pub fn read(&self, path: &str, length: u64) -> Result<Vec<u8>> {
        let (directory, inner) = self.place(path)?.ok_or(Error::NotFound)?;
        self.check(inner, Kind::File)?;
        directory.read(inner, length)
    }

    /// A file, to be read from any place. The caller has made sure that it is one.
    pub fn open(&self, path: &str) -> Result<File> {
        let (directory, inner) = self.place(path)?.ok_or(Error::NotFound)?;
        self.check(inner, Kind::File)?;
        directory.file(inner)
    }

    /// The granted directory that a path lies in, and the path within. None for the top of several.
    fn place<'a>(&self, path: &'a str) -> Result<Option<(&Directory, &'a str)>> {
        match &self.grants {
            Grants::One(directory) => Ok(Some((directory, path))),
            Grants::Several(_) if path.is_empty() => Ok(None),
            Grants::Several(grants) => {
                let (name, inner) = path.split_once('/').unwrap_or((path, ""));
                Ok(Some((grants.get(name).ok_or(Error::NotFound)?, inner)))
            }
        }
    }

    fn grant_names(&self) -> impl Iterator<Item = &String> {
        match &self.grants {
            Grants::One(_) => None,
            Grants::Several(grants) => Some(grants.keys()),
        }
        .into_iter()
        .flatten()
    }

    /// Fails when the path, or a directory on the way to it, is ignored.
    fn check(&self, inner: &str, kind: Kind) -> Result<()> {
        let ends = inner.match_indices('/').map(|(end, _)| (end, true));
        for (end, is_directory) in ends.chain([(inner.len(), kind == Kind::Directory)]) {
            let part = inner.get(..end).unwrap_or(inner);
            let (directory, name) = part.rsplit_once('/').unwrap_or(("", part));
            if !name.is_empty() && self.rules.ignore(directory, name, is_directory) {
                return Err(Error::NotFound);
            }
        }
        Ok(())
    }
}

impl Meta {
    /// When it was last written to, in RFC 3339. None for a time that it cannot write.
    pub fn last_modified(&self) -> Option<String> {
        /// The first second of the year 10000.
        const END: u64 = 253_402_300_800;
        let time: SystemTime = self.modified?;
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        (since.as_secs() < END).then(|| humantime::format_rfc3339_seconds(time).to_string())
    }
}

/// Sorts after every name: the last character there is, which stands for nothing. Names that contain it are left out.
pub(crate) const LAST: char = '\u{10FFFF}';

impl Entry {
    /// What entries are sorted by. The `/` after a directory's name makes the order of a depth-first walk the byte
    /// order of whole paths.
    pub fn key(&self) -> String {
        match self.kind {
            Kind::Directory => format!("{}/", self.name),
            _ => self.name.clone(),
        }
    }

    /// Compares keys without making them: with large directories, most of the work is here.
    fn cmp_key(&self, other: &Entry) -> Ordering {
        let (mine, its) = (self.name.as_bytes(), other.name.as_bytes());
        let common = mine.len().min(its.len());
        mine.get(..common).cmp(&its.get(..common)).then_with(|| self.key_byte(common).cmp(&other.key_byte(common)))
    }

    /// The byte of the key at a place in the name or right after it.
    fn key_byte(&self, at: usize) -> Option<u8> {
        self.name.as_bytes().get(at).copied().or((self.kind == Kind::Directory).then_some(b'/'))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_key(other).then(self.kind.cmp(&other.kind))
    }
}

impl Path {
    /// The path of a reference without its query.
    ///
    /// The host hands over no dot segment in any spelling; this refuses them too. A segment that holds a `/` once
    /// decoded is no name of anything.
    pub fn parse(encoded: &str) -> Result<Self> {
        let (encoded, is_directory) = match encoded.strip_suffix('/') {
            Some(rest) => (rest, true),
            None => (encoded, encoded.is_empty()),
        };
        if encoded.is_empty() {
            return if is_directory { Ok(Path { path: String::new(), is_directory }) } else { Err(Error::NotFound) };
        }
        let segments: Vec<String> = encoded.split('/').map(reference::decode).collect::<Result<_>>()?;
        let path = Path::checked(segments.iter().map(String::as_str))?;
        Ok(Path { is_directory, ..path })
    }

    /// A path of decoded segments.
    pub fn checked<'a>(segments: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut path = String::new();
        for segment in segments {
            if matches!(segment, "." | "..") {
                return Err(Error::invalid("the path has a dot segment"));
            }
            if segment.is_empty() || segment.contains(|c: char| c.is_control() || c == '/') {
                return Err(Error::NotFound);
            }
            path = join(&path, segment);
        }
        Ok(Path { path, is_directory: false })
    }

    /// The path of something below this one.
    pub fn child(&self, key: &str) -> String {
        join(&self.path, key)
    }
}

/// The `count` entries with the smallest keys, in memory for that many, however many there are.
pub fn smallest(entries: impl Iterator<Item = Entry>, count: usize) -> Smallest {
    let mut heap: BinaryHeap<Entry> = BinaryHeap::new();
    let mut seen = 0;
    for entry in entries {
        seen += 1;
        if heap.len() < count {
            heap.push(entry);
        } else if let Some(mut largest) = heap.peek_mut()
            && entry < *largest
        {
            *largest = entry;
        }
    }
    Smallest { entries: heap.into_sorted_vec(), seen }
}

/// The last segment of a path.
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether a reference can carry a name, and the walk can place it.
fn can_be_named(name: &str) -> bool {
    // Most names are plain, and there may be very many.
    let plain = |b: u8| (b' '..0x7f).contains(&b) && b != b'/';
    (name.bytes().all(plain) || !name.contains(|c: char| c.is_control() || c == '/' || c == LAST))
        && !matches!(name, "" | "." | "..")
}

/// The path of a name in a directory.
pub fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// `/notes` is called `notes`, `/srv/notes` is `srv-notes`.
fn grant_name(guest_path: &str) -> String {
    let segments: Vec<&str> = guest_path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if segments.is_empty() { "root".to_owned() } else { segments.join("-") }
}
