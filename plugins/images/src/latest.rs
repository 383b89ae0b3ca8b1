//! The newest pictures below a directory, for screenshots and cameras.

use std::time::{Duration, Instant, SystemTime};

use belljar_guest::{Body, Contents, Error, Result, reference};
use belljar_tree::{Kind, MAX_REFERENCE_BYTES, Path, Tree, join};
use serde_json::json;

use crate::query::{Picture, Query};
use crate::{Settings, is_file, read};

/// The bytes of an answer that are left for the names.
const NAMES_BYTES: u64 = 64 * 1024;

/// The most files whose times are compared.
const MAX_FILES: usize = 50_000;

/// How long the times are compared. An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1500 });

/// The most files that are opened to find out if they are pictures.
const MAX_OPENED: usize = 2000;

/// The newest pictures, the newest first, and their names as JSON. Each picture has its share of `most`.
///
/// All contents have the requested reference: an answer must not name other resources.
pub(crate) fn read(
    tree: &Tree,
    reference: &str,
    directory: &Path,
    query: &Query,
    settings: Settings,
    most: u64,
) -> Result<Vec<Contents>> {
    let newest = newest(tree, directory, query.count)?;
    let share = most.saturating_sub(NAMES_BYTES) / newest.len().max(1) as u64;
    let (mut contents, mut names) = (Vec::new(), Vec::new());
    for picture in &newest {
        let mut name = json!({ "reference": reference::encode(&picture.path), "bytes": picture.meta.size });
        let mut add = |key: &str, value: String| {
            if let Some(object) = name.as_object_mut() {
                object.insert(key.to_owned(), json!(value));
            }
        };
        if let Some(time) = picture.meta.last_modified() {
            add("last_modified", time);
        }
        match read::picture(tree, reference, picture, query, settings, share) {
            Ok(read) => {
                for part in read {
                    match part.body {
                        Body::Text(note) => add("note", note.trim().to_owned()),
                        Body::Blob(_) => contents.push(part),
                    }
                }
            }
            // One damaged picture must not hide the others.
            Err(error) if newest.len() > 1 => add("not_shown", error.to_string()),
            Err(error) => return Err(error),
        }
        names.push(name);
    }
    let text = json!({ "pictures": names });
    contents.push(Contents::text(reference, format!("{text:#}\n")).mime_type("application/json"));
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
