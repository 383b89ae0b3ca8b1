//! The entries of a directory as a list, by pages.

use belljar_guest::{Page, Resource, Result, reference};
use belljar_tree::{Entry, Kind, MAX_REFERENCE_BYTES, Path, Start, name};

use crate::Files;

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
        let page = Page::new(found.entries.iter().filter_map(|entry| self.entry(directory, entry)));
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
