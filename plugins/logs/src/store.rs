//! Which logs there are: the granted directories, and in them the files of each log, by their names, sizes and times.
//!
//! That a path cannot lead out of its directory is the host's promise; nothing here relies on it, and no `..` gets here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use belljar_guest::{Error, Result};
use belljar_tree::join;
use fast_glob::glob_match;
use jiff::civil::Date;

use crate::rotation::{Age, Name};

/// How many directories deep logs are looked for.
const DEEPEST: usize = 8;

/// How many entries are looked at to find the logs. There are logs in the thousands nowhere but where something else is
/// kept, too; the list says when it ends here.
pub(crate) const MOST: usize = 20_000;

/// How much of a file's end tells whether it is text.
const SNIFFED: u64 = 1024;

/// The granted directories. With one, its logs are `app.log`; with several, they are below a name for each.
#[derive(Debug)]
pub(crate) struct Store {
    roots: Vec<(String, PathBuf)>,
    /// Patterns of names or paths that are not to be seen.
    ignore: Vec<String>,
}

/// A log: a file that is written to, and those that it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    /// What it is called here, decoded.
    pub(crate) path: String,
    /// The newest first; never empty.
    pub(crate) files: Vec<LogFile>,
}

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    /// The day in its name.
    pub(crate) date: Option<Date>,
    /// Compressed with gzip.
    pub(crate) packed: bool,
}

/// The logs of one directory, and the directories in it.
#[derive(Debug, Default)]
struct Directory {
    logs: Vec<Log>,
    below: Vec<String>,
    seen: usize,
}

/// All logs.
#[derive(Debug)]
pub(crate) struct Logs {
    /// In the order of their paths as bytes.
    pub(crate) logs: Vec<Log>,
    /// There was too much to look at.
    pub(crate) cut: bool,
}

impl Store {
    /// The store over `grants`, each a guest path and where it is, without what the patterns in `ignore` match, which
    /// are separated by commas or line ends.
    pub(crate) fn new(grants: Vec<(String, PathBuf)>, ignore: &str) -> Result<Self> {
        let several = grants.len() > 1;
        let mut roots: Vec<(String, PathBuf)> = Vec::new();
        for (guest_path, path) in grants {
            let segments: Vec<&str> = guest_path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
            let name = match several {
                false => String::new(),
                true if segments.is_empty() => "root".to_owned(),
                true => segments.join("-"),
            };
            if roots.iter().any(|(known, _)| *known == name) {
                return Err(Error::failed(format_args!(
                    "two granted directories are both called \"{name}\" here: give one another guest path"
                )));
            }
            roots.push((name, path));
        }
        if roots.is_empty() {
            return Err(Error::denied(
                "no directory was granted: this provider needs one, such as  fs = { \"/logs\" = \"/var/log/app\" }  in \
                 the configuration of its mount",
            ));
        }
        let patterns = ignore.split([',', '\n']).map(str::trim).filter(|pattern| !pattern.is_empty());
        Ok(Store { roots, ignore: patterns.map(str::to_owned).collect() })
    }

    /// All logs that are text.
    pub(crate) fn logs(&self) -> Result<Logs> {
        let mut found = Logs { logs: Vec::new(), cut: false };
        let mut left = MOST;
        let mut directories: Vec<(String, usize)> = self.roots.iter().map(|(name, _)| (name.clone(), 0)).collect();
        let top = directories.len();
        let mut read = 0;
        while let Some((path, depth)) = directories.pop() {
            let directory = match self.directory(&path, left) {
                Ok(directory) => directory,
                // A part that cannot be read is left out; but when that is all, it is the answer.
                Err(error) if depth == 0 && top == 1 => return Err(error),
                Err(_) => continue,
            };
            read += 1;
            left = left.saturating_sub(directory.seen);
            found.cut |= left == 0;
            found.logs.extend(directory.logs.into_iter().filter(Log::is_text));
            if depth < DEEPEST {
                directories.extend(directory.below.into_iter().map(|name| (join(&path, &name), depth + 1)));
            }
        }
        if read == 0 {
            return Err(Error::NotFound);
        }
        found.logs.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// The log of this path: one that is listed, or one file of it by its own name.
    pub(crate) fn find(&self, path: &str) -> Result<Log> {
        let dotted = |segment: &str| matches!(segment, "." | "..");
        if path.split('/').any(dotted) {
            return Err(Error::invalid("the path has a dot segment"));
        }
        // `with_name` has checked what comes last; hidden directories are not walked, and not to be read either.
        if path.split('/').any(|segment| segment.is_empty() || segment.starts_with('.') || segment.contains('\0')) {
            return Err(Error::NotFound);
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if directory.split('/').count() > DEEPEST + 1 {
            return Err(Error::NotFound);
        }
        let found = self.directory(directory, MOST)?;
        let whole = found.logs.iter().find(|log| log.path == path);
        let log = whole.cloned().or_else(|| {
            let mut alone = found.logs.iter().flat_map(|log| &log.files).filter(|file| file.name == name);
            alone.next().map(|file| Log { path: path.to_owned(), files: vec![file.clone()] })
        });
        log.ok_or(Error::NotFound)
    }

    /// What is in a directory, of which at most `most` entries are looked at.
    fn directory(&self, path: &str, most: usize) -> Result<Directory> {
        let place = self.place(path)?;
        let mut directory = Directory::default();
        let mut logs: BTreeMap<String, Vec<(Age, LogFile)>> = BTreeMap::new();
        let mut links: Vec<(String, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&place)?.take(most) {
            directory.seen += 1;
            let Ok(entry) = entry else { continue };
            // What no reference can carry is left out.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let (Ok(kind), false) = (entry.file_type(), name.starts_with('.') || name.chars().any(char::is_control))
            else {
                continue;
            };
            let whole = join(path, &name);
            if self.ignores(&whole, &name) {
                continue;
            }
            if kind.is_dir() {
                directory.below.push(name);
                continue;
            }
            let Some(parsed) = Name::parse(&name) else { continue };
            // Links are followed, to files: what a pipe is must be known before it is opened.
            let Ok(meta) = fs::metadata(place.join(&name)) else { continue };
            if !meta.is_file() {
                continue;
            }
            if kind.is_symlink()
                && let Ok(target) = fs::read_link(place.join(&name))
            {
                links.push((name.clone(), target));
            }
            let file = LogFile {
                path: place.join(&name),
                size: meta.len(),
                modified: meta.modified().ok(),
                date: parsed.date(),
                packed: parsed.packed,
                name,
            };
            logs.entry(parsed.log).or_default().push((parsed.age, file));
        }
        directory.logs.extend(logs.into_iter().map(|(name, mut files)| {
            files.sort_by(|(age, file), (other_age, other)| {
                (age, file.packed).cmp(&(other_age, other.packed)).then_with(|| file.name.cmp(&other.name))
            });
            // While a file is being compressed it is there twice.
            files.dedup_by(|(age, file), (before, _)| age == before && file.packed);
            // As it is when the log's own name leads to the file of today.
            let names: Vec<String> = files.iter().map(|(_, file)| file.name.clone()).collect();
            files.retain(|(_, file)| {
                let target = links.iter().find(|(name, _)| *name == file.name).map(|(_, target)| target);
                !target.is_some_and(|target| names.iter().any(|name| Path::new(name) == target && *name != file.name))
            });
            Log { path: join(path, &name), files: files.into_iter().map(|(_, file)| file).collect() }
        }));
        directory.logs.retain(|log| !log.files.is_empty());
        Ok(directory)
    }

    /// Where a directory is. Fails for one on the way to which something is ignored.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let (root, rest) = match self.roots.as_slice() {
            [(name, root)] if name.is_empty() => (root, path),
            roots => {
                let (first, rest) = path.split_once('/').unwrap_or((path, ""));
                (roots.iter().find(|(name, _)| name == first).map(|(_, root)| root).ok_or(Error::NotFound)?, rest)
            }
        };
        let mut whole = path.get(..path.len() - rest.len()).unwrap_or_default().trim_end_matches('/').to_owned();
        let mut place = root.clone();
        for segment in rest.split('/').filter(|segment| !segment.is_empty()) {
            whole = join(&whole, segment);
            if self.ignores(&whole, segment) {
                return Err(Error::NotFound);
            }
            place.push(segment);
        }
        Ok(place)
    }

    fn ignores(&self, path: &str, name: &str) -> bool {
        self.ignore.iter().any(|pattern| glob_match(pattern, name) || glob_match(pattern, path))
    }
}

impl Log {
    /// Whether it is text, by the end of its newest file that has one and can be looked at as it is.
    pub(crate) fn is_text(&self) -> bool {
        let mut plain = self.files.iter().filter(|file| !file.packed && file.size > 0);
        plain.next().is_none_or(|file| match end_of(file) {
            Ok(end) => is_text(&end),
            // Renamed just now: that says nothing of what it is.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        })
    }

    /// When it was last written to.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.files.iter().filter_map(|file| file.modified).max()
    }

    /// How many bytes its files have, as they are.
    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

fn end_of(file: &LogFile) -> std::io::Result<Vec<u8>> {
    let mut open = fs::File::open(&file.path)?;
    let mut end = Vec::new();
    open.seek(SeekFrom::Start(file.size.saturating_sub(SNIFFED)))?;
    open.take(SNIFFED).read_to_end(&mut end)?;
    Ok(end)
}

/// Whether bytes are text: hardly any that steer, apart from those that are common in logs. A hole before the text is what
/// is left when a log is emptied under a program that goes on writing where it was.
fn is_text(bytes: &[u8]) -> bool {
    let text = bytes.iter().position(|byte| *byte != 0).and_then(|start| bytes.get(start..)).unwrap_or_default();
    let common = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x08 | 0x0c);
    let odd = text.iter().filter(|byte| (**byte < b' ' && !common(**byte)) || **byte == 0x7f).count();
    !text.contains(&0) && odd * 50 <= text.len() && (!text.is_empty() || bytes.is_empty())
}

/// The granted directories, each with its guest path.
pub(crate) fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}
