//! Granted directories as resources: every file can be listed and read, every directory reads as a listing.
//!
//! This module is the provider itself, and the only one that knows of resources and references. `belljar_tree` knows which
//! files may be seen and in which order. Sizes, times, types
//! and titles are looked up for what goes onto a page, and for nothing else; `revision` tells by them what changed.

mod index;
mod media;
mod revision;
mod title;

use belljar_guest::{
    Annotations, Argument, Body, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result,
    Revisions, Suggestions, Template, reference,
};

use belljar_tree::{Bounds, Kind, LONGEST_REFERENCE, Meta, Path, Step, Tree, Walk};

/// The provider.
#[derive(Debug)]
pub struct Files {
    tree: Tree,
}

/// How many files a page of the list holds. Clients stop after some tens of pages, so small pages would hide files from
/// them.
const PAGE: usize = 1000;

/// The largest file that is read. The whole of it has to fit into the sandbox's memory, 64 MiB unless the operator says
/// otherwise. The host's own cap on results is lower by default, and meant to be what people run into: it can be
/// raised.
const LARGEST: u64 = 32 * 1024 * 1024;

/// How much of a Markdown file is searched for its title.
const HEAD: u64 = 4 * 1024;

const TEMPLATE: &str = "{+path}";

impl Provider for Files {
    fn open() -> Result<Self> {
        Ok(Files { tree: Tree::open_granted()? })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Files".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("The files of the directories that were granted")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
        self.page(start, PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(TEMPLATE).name("file").title("A file or directory by its path").description(
                "The contents of the file at {path}; a directory reads as a Markdown list of what is in it",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (path, query) = reference::split(reference);
        let wanted = Path::parse(path)?;
        let meta = self.tree.meta(&wanted.path)?;
        let contents = match meta.kind {
            Kind::Directory => index::read(&self.tree, reference, &wanted, query)?,
            Kind::File if wanted.is_directory => return Err(Error::NotFound),
            Kind::File if !query.is_empty() => return Err(Error::invalid("a file takes no query")),
            Kind::File => self.contents(reference, &wanted.path, &meta)?,
            Kind::Symlink | Kind::Other => return Err(Error::denied("neither a file nor a directory")),
        };
        Ok(contents.into())
    }
}

impl Completion for Files {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        if (template, argument.name.as_str()) != (TEMPLATE, "path") {
            return Err(Error::invalid(format_args!("no variable \"{}\" in \"{template}\"", argument.name)));
        }
        belljar_tree::complete(&self.tree, &argument.value, |_| true)
    }
}

impl Revisions for Files {
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::of_list(&self.tree, Bounds::default(), |_| true)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (path, query) = reference::split(reference);
        revision::of_resource(&self.tree, &Path::parse(path)?, query)
    }
}

impl Files {
    /// The page of at most `size` files that come after the path `start`.
    fn page(&self, start: String, size: usize) -> Result<Page> {
        let mut walk = Walk::new(&self.tree, start, size);
        let mut resources: Vec<Resource> = Vec::new();
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::Paused(position) => return Ok(Page::new(resources).next_cursor(reference::encode(&position))),
                Step::End => return Ok(Page::new(resources)),
            };
            // One file is looked at beyond the page, to tell whether there is a next one; it is not looked into.
            if resources.len() == size {
                let last = resources.last().map(|last| last.reference.clone()).unwrap_or_default();
                return Ok(Page::new(resources).next_cursor(last));
            }
            // It may be gone by now, or a link that leads nowhere, out, or to a directory.
            match self.tree.meta(&path) {
                Ok(meta) if meta.kind == Kind::File => resources.extend(self.resource(&path, &meta)),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// The list's entry for a file. None for a path that is too long to be asked for.
    fn resource(&self, path: &str, meta: &Meta) -> Option<Resource> {
        let reference = reference::encode(path);
        if reference.len() > LONGEST_REFERENCE {
            return None;
        }
        let name = belljar_tree::name(path);
        let media = media::by_name(name);
        let mut resource = Resource::new(reference).name(name).size(meta.size);
        resource.mime_type = media.map(str::to_owned);
        resource.title = title_of(&self.tree, path, media, meta);
        resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
        Some(resource)
    }

    fn contents(&self, reference: &str, path: &str, meta: &Meta) -> Result<Contents> {
        if meta.size > LARGEST {
            return Err(Error::failed(format_args!(
                "the file has {} bytes, and this provider reads at most {LARGEST}",
                meta.size
            )));
        }
        let mut contents = Contents::from_bytes(reference, self.tree.read(path, meta.size)?);
        contents.mime_type = Some(match &contents.body {
            Body::Text(text) => media::of_text(belljar_tree::name(path), text).to_owned(),
            Body::Blob(bytes) => media::of_bytes(belljar_tree::name(path), bytes).to_owned(),
        });
        Ok(contents)
    }
}

/// The title of a file that is Markdown and has one.
fn title_of(tree: &Tree, path: &str, media: Option<&str>, meta: &Meta) -> Option<String> {
    if meta.size == 0 || media != Some(media::MARKDOWN) {
        return None;
    }
    let head = tree.read(path, meta.size.min(HEAD)).ok()?;
    title::find(&String::from_utf8_lossy(&head))
}

belljar_guest::export!(Files: Completion, Revisions);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
