//! The newest pictures below a directory, for screenshots and cameras.

use std::time::{Duration, Instant, SystemTime};

use belljar_guest::{Contents, Error, Result, reference};
use belljar_tree::{Kind, MAX_REFERENCE_BYTES, Path, Tree, join};

use crate::query::{Picture, Query};
use crate::{Settings, is_file, read};

/// The most files whose times are compared.
const MAX_FILES: usize = 50_000;

/// How long the times are compared. An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1500 });

/// The most files that are opened to find out if they are pictures.
const MAX_OPENED: usize = 2000;

/// The contents of the newest pictures, the newest first. Each has its share of `most`.
pub(crate) fn read(
    tree: &Tree,
    directory: &Path,
    query: &Query,
    settings: Settings,
    most: u64,
) -> Result<Vec<Contents>> {
    let newest = newest(tree, directory, query.count)?;
    let share = most / newest.len().max(1) as u64;
    let mut contents = Vec::new();
    for picture in &newest {
        let reference = reference::encode(&picture.path);
        match read::picture(tree, &reference, picture, query, settings, share) {
            Ok(read) => contents.extend(read),
            // One damaged picture must not hide the others.
            Err(error) if newest.len() > 1 => {
                contents.push(Contents::text(reference, format!("[{error}]\n")).mime_type("text/plain"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(contents)
}

/// Changes with the newest pictures.
pub(crate) fn revision(tree: &Tree, directory: &Path, query: &Query) -> Result<String> {
    let newest = newest(tree, directory, query.count)?;
    let mut hasher = std::hash::DefaultHasher::new();
    for picture in &newest {
        std::hash::Hash::hash(&(&picture.path, picture.meta.facts()), &mut hasher);
    }
    Ok(format!("{:016x}", std::hash::Hasher::finish(&hasher)))
}

/// The `count` newest pictures. Pictures of the same time are in the order of their paths.
fn newest(tree: &Tree, directory: &Path, count: usize) -> Result<Vec<Picture>> {
    let mut files: Vec<(SystemTime, String)> = Vec::new();
    let until = Instant::now() + TIME;
    let mut directories = vec![directory.path.clone()];
    while let Some(path) = directories.pop() {
        let entries = match tree.entries(&path) {
            Ok(entries) => entries,
            Err(error) if path == directory.path => return Err(error),
            Err(_) => continue,
        };
        for entry in entries {
            let path = join(&path, &entry.name);
            match entry.kind {
                Kind::Directory => directories.push(path),
                Kind::File | Kind::Symlink => {
                    if let Some(meta) = is_file(tree, &path) {
                        files.push((meta.modified.unwrap_or(SystemTime::UNIX_EPOCH), path));
                    }
                }
                Kind::Other => {}
            }
            if files.len() + directories.len() > MAX_FILES || (files.len() % 50 == 49 && Instant::now() > until) {
                return Err(Error::failed(format_args!(
                    "there are too many files to compare their times ({} so far): read \"latest\" of a directory below, such as \
                     2026/latest",
                    files.len()
                )));
            }
        }
    }
    files.sort_unstable_by(|(time, path), (other, its)| other.cmp(time).then_with(|| path.cmp(its)));
    let mut newest = Vec::new();
    for (_, path) in files.into_iter().take(MAX_OPENED) {
        if newest.len() == count {
            break;
        }
        let Some(meta) = is_file(tree, &path) else { continue };
        let picture = Picture::at(tree, path, meta).ok().flatten();
        newest.extend(picture.filter(|picture| reference::encode(&picture.path).len() <= MAX_REFERENCE_BYTES));
    }
    if newest.is_empty() {
        return Err(Error::failed(format_args!(
            "there is no picture among the newest {MAX_OPENED} files of \"{}/\"",
            directory.path
        )));
    }
    Ok(newest)
}
