//! The granted directories as one tree, without ignored files. A path is relative, decoded, without `.` and `..`, and
//! without a `/` at its end; `""` is the top.
//!
//! Opens only regular files and directories, and looks up the kind before opening. The host promises that no path leads out
//! of a granted directory; this module does not rely on it.

#[cfg(not(target_os = "wasi"))]
mod native;
#[cfg_attr(not(target_os = "wasi"), cfg(test))]
mod records;
#[cfg(target_os = "wasi")]
mod wasi;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use belljar_guest::{Error, Result, reference};

use crate::below::SORTED;
use crate::escape::{on_disk, shown};
use crate::ignore::Rules;
use crate::part::Seekable as _;

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
    /// The most entries of a directory that [`below`](Tree::below) and the walk sort.
    pub(crate) sorted: usize,
    /// The number of names so far that no reference can hold.
    unnamed: Cell<usize>,
}

#[derive(Debug)]
enum Grants {
    One(Directory),
    Several(BTreeMap<String, Directory>),
}

/// The kind of a directory entry.
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

/// The metadata of a file or directory, looked up without opening it. Follows links.
#[derive(Debug, Clone)]
pub struct Meta {
    /// The kind of the target.
    pub kind: Kind,
    /// The size in bytes.
    pub size: u64,
    /// The modification time.
    pub modified: Option<SystemTime>,
}

/// An entry of a directory. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name within the directory.
    pub name: String,
    /// The kind of the entry itself, not of a link's target.
    pub kind: Kind,
}

/// A name in a directory.
enum Found {
    Entry(Entry),
    /// The name cannot be the name of an entry: it is not UTF-8.
    Unnamed,
}

/// Entries from one position of a directory, in the order of the file system.
pub(crate) struct Chunk<T> {
    /// The entries, each with the position after it.
    pub(crate) entries: Vec<(T, u64)>,
    /// The position after all of them. `None`: the directory has no more.
    pub(crate) next: Option<u64>,
}

/// A requested path.
#[derive(Debug, PartialEq, Eq)]
pub struct Path {
    /// The path without a `/` at its end.
    pub path: String,
    /// True if the request had a `/` at its end, so that it must be a directory.
    pub is_directory: bool,
}

/// The first few of many entries.
#[derive(Debug, Default)]
pub struct Smallest {
    /// Sorted by key.
    pub entries: Vec<Entry>,
    /// The number of all entries.
    pub seen: usize,
    heap: BinaryHeap<Entry>,
}

impl Tree {
    /// A tree over the granted directories, without files that match the patterns in the setting `IGNORE`.
    pub fn open_granted() -> Result<Self> {
        Tree::new(granted(), &std::env::var("IGNORE").unwrap_or_default())
    }

    /// A tree over `grants`, pairs of guest path and directory, without files that match the patterns in `ignore`.
    pub fn new(grants: Vec<(String, Directory)>, ignore: &str) -> Result<Self> {
        let over = |grants| Tree { grants, rules: Rules::parse(ignore), sorted: SORTED, unnamed: Cell::new(0) };
        let mut named = BTreeMap::new();
        let several = grants.len() > 1;
        for (guest_path, directory) in grants {
            if !several {
                return Ok(over(Grants::One(directory)));
            }
            let name = grant_name(&guest_path);
            if named.insert(name.clone(), directory).is_some() {
                return Err(Error::failed(format_args!(
                    "two granted directories have the name \"{name}\": give one of them another guest path"
                )));
            }
        }
        if named.is_empty() {
            return Err(Error::denied(
                "no directory was granted: this provider needs one, such as  fs = { \"/files\" = \"DIR\" }  in the \
                 configuration of its mount",
            ));
        }
        Ok(over(Grants::Several(named)))
    }

    /// The entries of a directory, unsorted. Leaves out ignored entries, and names that no reference can hold.
    pub fn entries(&self, path: &str) -> Result<Box<dyn Iterator<Item = Entry> + '_>> {
        let Some((directory, inner)) = self.place(path)? else {
            return Ok(Box::new(self.grant_names().map(|name| Entry { name: name.clone(), kind: Kind::Directory })));
        };
        self.check(inner, Kind::Directory)?;
        let inner = inner.to_owned();
        let entries = directory.entries(&on_disk(&inner)?)?;
        Ok(Box::new(entries.filter_map(move |found| self.visible(&inner, found))))
    }

    /// At least one and about `most` entries of a directory from `position`, in the order of the file system. `None` if the
    /// host cannot read a directory from a position.
    pub(crate) fn stored(&self, path: &str, position: u64, most: usize) -> Result<Option<Chunk<Entry>>> {
        let Some((directory, inner)) = self.place(path)? else { return Ok(None) };
        self.check(inner, Kind::Directory)?;
        let Some(chunk) = directory.stored(&on_disk(inner)?, position, most)? else { return Ok(None) };
        let visible = |(found, after)| Some((self.visible(inner, found)?, after));
        Ok(Some(Chunk { entries: chunk.entries.into_iter().filter_map(visible).collect(), next: chunk.next }))
    }

    /// An entry of `directory`, unless it is ignored or has no name.
    fn visible(&self, directory: &str, found: Found) -> Option<Entry> {
        let Found::Entry(Entry { name, kind }) = found else {
            self.unnamed.set(self.unnamed.get() + 1);
            return None;
        };
        let entry = Entry { name: shown(name), kind };
        if !can_be_named(&entry.name) {
            self.unnamed.set(self.unnamed.get() + 1);
            return None;
        }
        (!self.rules.ignore(directory, &entry.name, entry.kind == Kind::Directory)).then_some(entry)
    }

    /// The number of names that no reference can hold, among all that were read so far. Most of them are not UTF-8.
    pub fn unnamed(&self) -> usize {
        self.unnamed.get()
    }

    /// Splits a reference without its query into path and metadata of a file, and the decoded segments after it. The path
    /// ends with the first segment that is a file for which `is_served` is true.
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
                // A directory may have such a name, too.
                Ok(_) | Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::NotFound)
    }

    /// The metadata of a path.
    pub fn meta(&self, path: &str) -> Result<Meta> {
        let Some((directory, inner)) = self.place(path)? else {
            return Ok(Meta { kind: Kind::Directory, size: 0, modified: None });
        };
        // Rules for directories only need the kind of the last segment; the segments before it are directories.
        if let Some((parent, _)) = inner.rsplit_once('/') {
            self.check(parent, Kind::Directory)?;
        }
        let meta = directory.meta(&on_disk(inner)?)?;
        self.check(inner, meta.kind)?;
        Ok(meta)
    }

    /// The first `length` bytes of a file, or all of a shorter one. The caller has checked that the path is a file.
    pub fn read(&self, path: &str, length: u64) -> Result<Vec<u8>> {
        let (directory, inner) = self.place(path)?.ok_or(Error::NotFound)?;
        self.check(inner, Kind::File)?;
        directory.file(&on_disk(inner)?)?.read_at(0, length)
    }

    /// Opens a file for reading from any position. The caller has checked that the path is a file.
    pub fn open(&self, path: &str) -> Result<File> {
        let (directory, inner) = self.place(path)?.ok_or(Error::NotFound)?;
        self.check(inner, Kind::File)?;
        directory.file(&on_disk(inner)?)
    }

    /// The granted directory of a path, and the path within it. `None` for the top of several grants.
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
    /// The modification time in RFC 3339. `None` for a time before 1970 or after 9999.
    pub fn last_modified(&self) -> Option<String> {
        /// The first second of the year 10000.
        const END: u64 = 253_402_300_800;
        let time: SystemTime = self.modified?;
        let since = time.duration_since(UNIX_EPOCH).ok()?;
        (since.as_secs() < END).then(|| humantime::format_rfc3339_seconds(time).to_string())
    }
}

impl From<fs::Metadata> for Meta {
    fn from(metadata: fs::Metadata) -> Self {
        Meta { kind: metadata.file_type().into(), size: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl From<fs::FileType> for Kind {
    fn from(kind: fs::FileType) -> Self {
        if kind.is_symlink() {
            Kind::Symlink
        } else if kind.is_dir() {
            Kind::Directory
        } else if kind.is_file() {
            Kind::File
        } else {
            Kind::Other
        }
    }
}

/// A noncharacter that sorts after every name: the last code point of Unicode. Names that contain it are left out.
pub(crate) const LAST: char = '\u{10FFFF}';

impl Entry {
    /// The sort key. With a `/` after the names of directories, a depth-first walk visits paths in byte order.
    pub fn key(&self) -> String {
        match self.kind {
            Kind::Directory => format!("{}/", self.name),
            _ => self.name.clone(),
        }
    }

    /// Compares keys without allocating them. In large directories, most of the work is here.
    fn cmp_key(&self, other: &Entry) -> Ordering {
        let (mine, its) = (self.name.as_bytes(), other.name.as_bytes());
        let common = mine.len().min(its.len());
        mine.get(..common).cmp(&its.get(..common)).then_with(|| self.key_byte(common).cmp(&other.key_byte(common)))
    }

    /// The byte of the key at a position in the name or directly after it.
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
    /// Parses a reference without its query.
    ///
    /// The host refuses dot segments in every spelling, and so does this function. A segment with an encoded `/` is
    /// [`Error::NotFound`].
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

    /// Builds a path from decoded segments.
    pub fn checked<'a>(segments: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut path = String::new();
        for segment in segments {
            if matches!(segment, "." | "..") {
                return Err(Error::invalid("the path has a segment \".\" or \"..\""));
            }
            if segment.is_empty() || segment.contains(|c: char| c.is_control() || c == '/') {
                return Err(Error::NotFound);
            }
            path = join(&path, segment);
        }
        Ok(Path { path, is_directory: false })
    }

    /// The path of an entry of this directory.
    pub fn child(&self, key: &str) -> String {
        join(&self.path, key)
    }
}

/// The `count` entries with the smallest keys. Holds at most `count` entries in memory.
pub fn smallest(entries: impl Iterator<Item = Entry>, count: usize) -> Smallest {
    let mut found = Smallest::default();
    entries.for_each(|entry| found.add(entry, count));
    found.sorted()
}

impl Smallest {
    /// Adds an entry, if it is among the `count` smallest so far.
    pub(crate) fn add(&mut self, entry: Entry, count: usize) {
        self.seen += 1;
        if self.heap.len() < count {
            self.heap.push(entry);
        } else if let Some(mut largest) = self.heap.peek_mut()
            && entry < *largest
        {
            *largest = entry;
        }
    }

    /// The same with all entries in `entries`.
    pub(crate) fn sorted(mut self) -> Self {
        self.entries = std::mem::take(&mut self.heap).into_sorted_vec();
        self
    }
}

/// The last segment of a path.
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// True if a reference can contain a name, and the walk can sort it.
fn can_be_named(name: &str) -> bool {
    // Fast path: most names are plain ASCII, and a directory may have very many.
    let plain = |b: u8| (b' '..0x7f).contains(&b) && b != b'/';
    (name.bytes().all(plain) || !name.contains(['/', LAST])) && !matches!(name, "" | "." | "..")
}

/// The path of a name in a directory.
pub fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The name of a grant at the top: `notes` for `/notes`, `srv-notes` for `/srv/notes`.
fn grant_name(guest_path: &str) -> String {
    let segments: Vec<&str> = guest_path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if segments.is_empty() { "root".to_owned() } else { segments.join("-") }
}
