//! The list below a reference.

use belljar_guest::{Error, Page, Resource, Result};

use crate::directory;

/// Entries on a page.
pub(crate) const PAGE: usize = 1000;

/// The number of files in `dir/`.
const FILES: u64 = 2500;

/// The number of files in `crowd/`.
const CROWD: u64 = 1_000_000;

/// The files of the mount, which are also its list of resources.
pub(crate) fn files() -> Vec<Resource> {
    let mut files = vec![
        file("blob/9437184", "application/octet-stream", 9 << 20),
        file("empty.txt", "text/plain", 0),
        file("lines/262144", "text/plain", 16 << 20),
        file("lines/67108864", "text/plain", 4 << 30),
        file("long-line", "text/plain", (9 << 20) + 13),
        Resource::new("rows/1000000").mime_type("application/json"),
        file("small.txt", "text/plain", 14),
        Resource::new("stream/262144").mime_type("text/plain"),
    ];
    files.sort_by(|a, b| a.reference.cmp(&b.reference));
    files
}

/// One page of the entries below `reference`.
pub(crate) fn list(reference: &str, cursor: Option<&str>) -> Result<Page> {
    match reference.strip_suffix('/').unwrap_or(reference) {
        "" => {
            let mut entries = files();
            entries.extend(["crowd/", "dir/", "lies/", "pair/"].map(directory));
            entries.sort_by(|a, b| a.reference.cmp(&b.reference));
            Ok(Page::of(entries, cursor, PAGE))
        }
        "dir" => numbered("dir", ["dir/deep/", "dir/empty/"], FILES, cursor),
        "dir/deep" => Ok(Page::of([directory("dir/deep/deeper/")], cursor, PAGE)),
        "dir/deep/deeper" => Ok(Page::of([Resource::new("dir/deep/deeper/x")], cursor, PAGE)),
        "dir/empty" | "lies" => Ok(Page::default()),
        "pair" => Ok(Page::of(["pair/a", "pair/b"].map(Resource::new), cursor, PAGE)),
        "crowd" => numbered("crowd", [], CROWD, cursor),
        _ => Err(Error::NotFound),
    }
}

/// The directories and then the numbered files of a directory. The cursor is the number of entries on earlier pages.
fn numbered<const N: usize>(name: &str, directories: [&str; N], count: u64, cursor: Option<&str>) -> Result<Page> {
    let wrong = |_| Error::invalid("the cursor is not one of this provider's");
    let start = cursor.map_or(Ok(0), str::parse::<u64>).map_err(wrong)?;
    let all = count + N as u64;
    let end = all.min(start.saturating_add(PAGE as u64));
    let entries = (start..end).map(|at| match directories.get(at as usize) {
        Some(one) => directory(*one),
        None => Resource::new(format!("{name}/{:07}.txt", at - N as u64)).mime_type("text/plain"),
    });
    let page = Page::new(entries);
    Ok(if end < all { page.next_cursor(end.to_string()) } else { page })
}

fn file(reference: &str, mime_type: &str, size: u64) -> Resource {
    Resource::new(reference).mime_type(mime_type).size(size)
}
