//! Finds logs: the files of each log in the granted directories, with names, sizes and times.
//!
//! The host promises that no path leads out of a granted directory. This module does not rely on it: it refuses `..`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use belljar_guest::{Error, Result};
use belljar_tree::join;
use fast_glob::glob_match;
use jiff::civil::Date;

use crate::encoding::Encoding;
use crate::rotation::{Age, Name};
use crate::unpack::FORMATS;

/// How many levels of directories are searched for logs.
const MAX_DEPTH: usize = 8;

/// The most directory entries that a search visits. Larger directories usually contain other files than logs. If the list
/// is cut, the provider writes a message to the host's log.
pub(crate) const MAX_ENTRIES: usize = 20_000;

/// How many bytes of a file's end are tested for text.
const SNIFF_BYTES: u64 = 1024;

/// The granted directories. With one directory, the path of a log is `app.log`. With several, each path begins with the
/// name of its directory.
#[derive(Debug)]
pub(crate) struct Store {
    roots: Vec<(String, PathBuf)>,
    /// Patterns of names or paths to leave out.
    ignore: Vec<String>,
}

/// A log: the current file and the rotated ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    /// Its path below the mount, decoded.
    pub(crate) path: String,
    /// Its files, newest first; never empty.
    pub(crate) files: Vec<LogFile>,
    /// The names of its files that are not read, because of their compression.
    pub(crate) unread: Vec<String>,
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
    /// Compressed in a format that is read.
    pub(crate) packed: bool,
}

/// The logs of one directory, and the directories in it.
#[derive(Debug, Default)]
struct Directory {
    logs: Vec<Log>,
    below: Vec<String>,
    /// Files that are not read, each with the name of its log.
    unread: Vec<(String, String)>,
    seen: usize,
    unnamed: usize,
}

/// All logs.
#[derive(Debug)]
pub(crate) struct Logs {
    /// Sorted by the bytes of their paths.
    pub(crate) logs: Vec<Log>,
    /// True if the search stopped at [`MAX_ENTRIES`] directory entries.
    pub(crate) cut: bool,
    /// The paths of compressed files that are not read.
    pub(crate) unread: Vec<String>,
    /// The number of files whose names no reference can hold: they are not UTF-8, or have control characters.
    pub(crate) unnamed: usize,
}

impl Store {
    /// A store over `grants`: pairs of guest path and actual path. Leaves out files that match a pattern in `ignore`;
    /// patterns are separated by commas or line ends.
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
                    "two granted directories have the name \"{name}\": give one of them another guest path"
                )));
            }
            roots.push((name, path));
        }
        if roots.is_empty() {
            return Err(Error::denied(
                "no directory is granted: add one such as  fs = { \"/logs\" = \"/var/log/app\" }  to the configuration of \
                 this mount",
            ));
        }
        let patterns = ignore.split([',', '\n']).map(str::trim).filter(|pattern| !pattern.is_empty());
        Ok(Store { roots, ignore: patterns.map(str::to_owned).collect() })
    }

    /// All logs that are text.
    pub(crate) fn logs(&self) -> Result<Logs> {
        let mut found = Logs { logs: Vec::new(), cut: false, unread: Vec::new(), unnamed: 0 };
        let mut left = MAX_ENTRIES;
        let mut directories: Vec<(String, usize)> = self.roots.iter().map(|(name, _)| (name.clone(), 0)).collect();
        let top = directories.len();
        let mut read = 0;
        while let Some((path, depth)) = directories.pop() {
            let directory = match self.directory(&path, left) {
                Ok(directory) => directory,
                // A directory that cannot be read is skipped, unless it is the only granted one.
                Err(error) if depth == 0 && top == 1 => return Err(error),
                Err(_) => continue,
            };
            read += 1;
            left = left.saturating_sub(directory.seen);
            found.cut |= left == 0;
            found.unnamed += directory.unnamed;
            found.unread.extend(directory.unread.iter().map(|(_, name)| join(&path, name)));
            found.logs.extend(directory.logs.into_iter().filter(Log::is_text));
            if depth < MAX_DEPTH {
                directories.extend(directory.below.into_iter().map(|name| (join(&path, &name), depth + 1)));
            }
        }
        if read == 0 {
            return Err(Error::NotFound);
        }
        found.logs.sort_by(|one, other| one.path.cmp(&other.path));
        found.unread.sort_unstable();
        Ok(found)
    }

    /// The logs in a directory that are text, and the directories in it.
    pub(crate) fn below(&self, path: &str) -> Result<(Vec<Log>, Vec<String>)> {
        let hidden = |segment: &str| segment.is_empty() || segment.starts_with('.');
        if !path.is_empty() && path.split('/').any(hidden) {
            return Err(Error::NotFound);
        }
        if path.is_empty() && self.roots.len() > 1 {
            return Ok((Vec::new(), self.roots.iter().map(|(name, _)| name.clone()).collect()));
        }
        let mut directory = self.directory(path, MAX_ENTRIES)?;
        directory.logs.retain(Log::is_text);
        Ok((directory.logs, directory.below))
    }

    /// The log with this path, or a single file of a log by its own name.
    pub(crate) fn find(&self, path: &str) -> Result<Log> {
        let dotted = |segment: &str| matches!(segment, "." | "..");
        if path.split('/').any(dotted) {
            return Err(Error::invalid("the path has a segment \".\" or \"..\""));
        }
        // The search skips hidden files and directories, so they cannot be read either.
        if path.split('/').any(|segment| segment.is_empty() || segment.starts_with('.') || segment.contains('\0')) {
            return Err(Error::NotFound);
        }
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        if directory.split('/').count() > MAX_DEPTH + 1 {
            return Err(Error::NotFound);
        }
        let found = self.directory(directory, MAX_ENTRIES)?;
        let whole = found.logs.iter().find(|log| log.path == path);
        let log = whole.cloned().or_else(|| {
            let mut alone = found.logs.iter().flat_map(|log| &log.files).filter(|file| file.name == name);
            alone.next().map(|file| Log { path: path.to_owned(), files: vec![file.clone()], unread: Vec::new() })
        });
        log.ok_or_else(|| match found.unread.iter().find(|(_, unread)| unread == name) {
            Some((_, unread)) => Error::failed(format_args!(
                "\"{unread}\" is not read: its compression is not {FORMATS}; unpack it, or compress it in one of these formats"
            )),
            None => Error::NotFound,
        })
    }

    /// The logs and subdirectories of a directory. Visits at most `most` entries.
    fn directory(&self, path: &str, most: usize) -> Result<Directory> {
        let place = self.place(path)?;
        let mut directory = Directory::default();
        let mut logs: BTreeMap<String, Vec<(Age, LogFile)>> = BTreeMap::new();
        let mut links: Vec<(String, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&place)?.take(most) {
            directory.seen += 1;
            let Ok(entry) = entry else { continue };
            // A reference cannot carry names that are not UTF-8, or have control characters.
            let Some(name) = entry.file_name().into_string().ok().filter(|name| !name.contains(char::is_control))
            else {
                directory.unnamed += 1;
                continue;
            };
            let (Ok(kind), false) = (entry.file_type(), name.starts_with('.')) else { continue };
            let whole = join(path, &name);
            if self.ignores(&whole, &name) {
                continue;
            }
            if kind.is_dir() {
                directory.below.push(name);
                continue;
            }
            let Some(parsed) = Name::parse(&name) else {
                directory.unread.extend(Name::unread(&name).map(|log| (log, name)));
                continue;
            };
            // Follows links, but only to files: opening a pipe would block.
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
        let logs: Vec<Log> = logs
            .into_iter()
            .map(|(name, mut files)| {
                files.sort_by(|(age, file), (other_age, other)| {
                    (age, file.packed).cmp(&(other_age, other.packed)).then_with(|| file.name.cmp(&other.name))
                });
                // While a file is being compressed, both versions exist.
                files.dedup_by(|(age, file), (before, _)| age == before && file.packed);
                // Drop a link to another file of the log: often, the log's name is a link to the file of today.
                let names: Vec<String> = files.iter().map(|(_, file)| file.name.clone()).collect();
                files.retain(|(_, file)| {
                    let target = links.iter().find(|(name, _)| *name == file.name).map(|(_, target)| target);
                    !target
                        .is_some_and(|target| names.iter().any(|name| Path::new(name) == target && *name != file.name))
                });
                let mut unread: Vec<String> =
                    directory.unread.iter().filter(|(log, _)| *log == name).map(|(_, file)| file.clone()).collect();
                unread.sort_unstable();
                Log { path: join(path, &name), files: files.into_iter().map(|(_, file)| file).collect(), unread }
            })
            .collect();
        directory.logs = logs;
        directory.logs.retain(|log| !log.files.is_empty());
        Ok(directory)
    }

    /// The actual path of a directory. `NotFound` if a pattern of `ignore` matches any part of the path.
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
    /// True if the end of the newest file is text; compressed and empty files are skipped.
    pub(crate) fn is_text(&self) -> bool {
        let mut plain = self.files.iter().filter(|file| !file.packed && file.size > 0);
        plain.next().is_none_or(|file| match end_of(file) {
            Ok(end) => is_text(&end),
            // The file was renamed meanwhile, so nothing is known about its contents.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        })
    }

    /// The latest modification time of its files.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.files.iter().filter_map(|file| file.modified).max()
    }

    /// The sum of the file sizes in bytes; compressed files count with their compressed size.
    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

fn end_of(file: &LogFile) -> std::io::Result<Vec<u8>> {
    let mut open = fs::File::open(&file.path)?;
    let mut end = Vec::new();
    // In UTF-16, a character has an even position.
    open.seek(SeekFrom::Start(file.size.saturating_sub(SNIFF_BYTES) & !1))?;
    open.take(SNIFF_BYTES).read_to_end(&mut end)?;
    Ok(end)
}

/// True if bytes are text: at most 2 % are control characters other than those common in logs. Leading zeros are allowed:
/// they are a hole, left when a log is truncated under a program that keeps its write position.
fn is_text(bytes: &[u8]) -> bool {
    let text = bytes.iter().position(|byte| *byte != 0).and_then(|start| bytes.get(start..)).unwrap_or_default();
    let common = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x1b | 0x08 | 0x0c);
    let odd = text.iter().filter(|byte| (**byte < b' ' && !common(**byte)) || **byte == 0x7f).count();
    let is_utf16 = matches!(Encoding::of(bytes), Encoding::Utf16 { .. });
    is_utf16 || (!text.contains(&0) && odd * 50 <= text.len() && (!text.is_empty() || bytes.is_empty()))
}

/// The granted directories, each with its guest path.
pub(crate) fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}
