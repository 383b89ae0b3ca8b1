//! The entries of a directory as a list, by pages.

use std::time::{Duration, Instant};

use belljar_guest::{Page, Resource, Result, reference};
use belljar_tree::{Entry, Kind, MAX_REFERENCE_BYTES, Path, Start, name};

use crate::Files;

/// How long a page looks up metadata. On a cold disk, a look-up takes as long as a thousand do otherwise: then a page has
/// fewer entries.
const TIME: Duration = Duration::from_millis(30);

/// The least number of entries of such a page.
const LEAST: usize = 50;

/// The media type of directories.
const DIRECTORY: &str = "inode/directory";

impl Files {
    /// A page of at most `size` entries of a directory.
    pub(crate) fn below(&self, directory: &Path, cursor: Option<&str>, size: usize) -> Result<Page> {
        let start = cursor.map(Start::parse).transpose()?.unwrap_or_default();
        let found = self.tree.below(&directory.path, &start, size)?;
        if found.unnamed > 0 {
            unnamed(&directory.path, found.unnamed);
        }
        let until = Instant::now() + TIME;
        let mut resources = Vec::new();
        for (index, entry) in found.entries.iter().enumerate() {
            resources.extend(self.entry(directory, entry));
            let is_look = index % 10 == 9 && index >= LEAST && index + 1 < found.entries.len();
            if is_look && Instant::now() > until {
                return Ok(Page::new(resources).next_cursor(found.after(index).text()));
            }
        }
        let page = Page::new(resources);
        Ok(match found.next {
            Some(next) => page.next_cursor(next.text()),
            None => page,
        })
    }

    /// The list's entry for an entry of a directory. `None` for one that is neither a file nor a directory.
    fn entry(&self, directory: &Path, entry: &Entry) -> Option<Resource> {
        let path = directory.child(&entry.name);
        let meta = self.tree.meta(&path).ok()?;
        match meta.kind {
            Kind::File => self.resource(&path, &meta),
            Kind::Directory => {
                let reference = format!("{}/", reference::encode(&path));
                let fits = reference.len() <= MAX_REFERENCE_BYTES;
                fits.then(|| Resource::new(reference).name(name(&path)).mime_type(DIRECTORY))
            }
            Kind::Symlink | Kind::Other => None,
        }
    }
}

/// Tells the operator which names are missing: stderr goes to the host's log.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
pub(crate) fn unnamed(directory: &str, count: usize) {
    eprintln!("left out of the list: {count} names in \"{directory}/\" that are not UTF-8; rename these files");
}
