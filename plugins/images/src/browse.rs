//! The list of all pictures, and of the entries of one directory, by pages. Each file is opened to find its type.

use std::time::{Duration, Instant};

use belljar_guest::{Annotations, Error, Page, Resource, Result, reference};
use belljar_tree::{Kind, MAX_REFERENCE_BYTES, Path, Start, Step, Walk, name};

use crate::Images;
use crate::query::{Picture, entry};

/// Pictures per page of the list. Clients stop after some tens of pages, so small pages would hide pictures from them.
pub(crate) const PAGE: usize = 1000;

/// How long a page opens files. On a cold disk, or among many other files, it has fewer pictures.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

/// The most files that one page opens. Most of them may be no pictures.
const MAX_OPENED: usize = 20_000;

/// The media type of directories.
const DIRECTORY: &str = "inode/directory";

impl Images {
    /// A page of at most `size` pictures.
    pub(crate) fn page(&self, cursor: Option<&str>, size: usize) -> Result<Page> {
        let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
        let mut walk = Walk::new(&self.tree, start, size);
        let mut resources: Vec<Resource> = Vec::new();
        let until = Instant::now() + TIME;
        let mut opened = 0;
        loop {
            let is_late = opened % 50 == 49 && Instant::now() > until;
            let next = (resources.len() == size || opened == MAX_OPENED || is_late).then(|| walk.position());
            let path = match (walk.next()?, next) {
                // One path beyond the page shows that there is a next page; its file is not opened.
                (Step::File(_), Some(next)) => return Ok(Page::new(resources).next_cursor(reference::encode(&next))),
                (Step::File(path), None) => path,
                (Step::Paused(position), _) => {
                    return Ok(Page::new(resources).next_cursor(reference::encode(&position)));
                }
                (Step::End, _) => return Ok(Page::new(resources)),
            };
            opened += 1;
            // The file may have been deleted meanwhile, or be a link: dangling, out of the grant, or to a directory.
            if let Some(meta) = crate::is_file(&self.tree, &path).filter(|meta| meta.size > 0)
                && let Ok(Some(picture)) = Picture::at(&self.tree, path, meta)
            {
                resources.extend(resource(&picture));
            }
        }
    }

    /// A page of at most `size` directories and pictures of one directory.
    pub(crate) fn below(&self, encoded: &str, cursor: Option<&str>, size: usize) -> Result<Page> {
        let (path, query) = reference::split(encoded);
        let directory = Path::parse(path)?;
        if !query.is_empty() || self.tree.meta(&directory.path)?.kind != Kind::Directory {
            return Err(Error::NotFound);
        }
        let start = cursor.map(Start::parse).transpose()?.unwrap_or_default();
        let found = self.tree.below(&directory.path, &start, size)?;
        let until = Instant::now() + TIME;
        let mut resources = Vec::new();
        for (index, listed) in found.entries.iter().enumerate() {
            if listed.kind == Kind::Directory {
                let reference = format!("{}/", reference::encode(&directory.child(&listed.name)));
                let fits = reference.len() <= MAX_REFERENCE_BYTES;
                resources
                    .extend(fits.then(|| Resource::new(reference).name(listed.name.as_str()).mime_type(DIRECTORY)));
            } else if let Some(picture) = entry(&self.tree, &directory, &listed.name) {
                resources.extend(resource(&picture));
            }
            if index % 50 == 49 && Instant::now() > until && index + 1 < found.entries.len() {
                return Ok(Page::new(resources).next_cursor(found.after(index).text()));
            }
        }
        let page = Page::new(resources);
        Ok(match found.next {
            Some(next) => page.next_cursor(next.text()),
            None => page,
        })
    }
}

/// The list's entry for a picture. `None` if its reference is longer than the host accepts.
fn resource(picture: &Picture) -> Option<Resource> {
    let reference = reference::encode(&picture.path);
    if reference.len() > MAX_REFERENCE_BYTES {
        return None;
    }
    let resource = Resource::new(reference).name(name(&picture.path)).size(picture.meta.size);
    let mut resource = resource.mime_type(picture.format.mime_type());
    resource.annotations = picture.meta.last_modified().map(|time| Annotations::new().last_modified(time));
    Some(resource)
}
