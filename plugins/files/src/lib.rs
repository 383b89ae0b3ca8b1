//! Serves granted directories: every file can be listed and read; reading a directory gives a listing of its entries.
//!
//! This module implements the provider. It is the only module that knows resources and references. `belljar_tree` decides
//! which files are visible, and their order. Sizes, times, types and titles are looked up only for entries on the page.
//! The module `below` lists a directory, `revision` computes revisions from sizes and times, and
//! `tools` searches.

mod below;
mod index;
mod media;
mod revision;
mod title;
mod tools;

use std::time::{Duration, Instant};

use belljar_guest::{
    Annotations, Argument, Body, Completion, Error, Info, Page, PartialReading, Parts, Provider, Range, Reading,
    Resource, Result, Revisions, Suggestions, Template, reference,
};

use belljar_tree::{Bounds, Kind, MAX_PART, MAX_REFERENCE_BYTES, Meta, Path, Step, Tree, Walk, name};

/// The provider.
#[derive(Debug)]
pub struct Files {
    tree: Tree,
}

/// Files per page of the list. Clients stop after some tens of pages, so small pages would hide files from them.
const PAGE: usize = 1000;

/// How long a page of the list looks up metadata. On a cold disk it has fewer files.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 1 });

/// A file of more bytes says in its entry how it is read in parts. This is the host's default limit on results.
const LARGE: u64 = 8 * 1024 * 1024;

/// How many bytes of a Markdown file are searched for its title.
const HEAD: u64 = 4 * 1024;

const TEMPLATE: &str = "{+path}";

/// The template of a part.
const PART: &str = "{+path}{?lines,bytes}";

impl Provider for Files {
    fn open() -> Result<Self> {
        Ok(Files { tree: Tree::open_granted()? })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Files".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("The files of the granted directories")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
        self.page(start, PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(TEMPLATE)
                .name("file")
                .title("A file or directory by its path")
                .description("The contents of the file at {path}; a directory reads as a Markdown list of its entries"),
            Template::new(PART).name("part").title("A part of a file").description(
                "{lines} selects lines of the file at {path}: 1-200, 201-, or -50 for the last 50; \
                     {bytes} selects bytes: 0-65535, 65536-, or -1024",
            ),
        ])
    }

    /// For hosts that read no parts.
    fn read(&self, reference: &str) -> Result<Reading> {
        let PartialReading { contents, extent, .. } = self.read_part(reference, None, MAX_PART)?;
        match extent {
            None => Ok(Reading::new(contents)),
            Some(_) => Err(Error::failed(format_args!(
                "the file has more than {} bytes, and this host reads no parts of files",
                MAX_PART
            ))),
        }
    }
}

impl Parts for Files {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let (path, query) = reference::split(reference);
        let wanted = Path::parse(path)?;
        let meta = self.tree.meta(&wanted.path)?;
        match meta.kind {
            Kind::Directory => PartialReading::cut(index::read(&self.tree, reference, &wanted, query)?, range, most),
            Kind::File if wanted.is_directory => Err(Error::NotFound),
            Kind::File if !query.is_empty() => {
                Err(Error::invalid("a file has no parameters but \"lines\" and \"bytes\", such as ?lines=1-200"))
            }
            Kind::File => self.contents(reference, &wanted.path, range, most),
            Kind::Symlink | Kind::Other => Err(Error::denied("the path is neither a file nor a directory")),
        }
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        let (path, query) = reference::split(reference);
        let wanted = Path::parse(path)?;
        if !query.is_empty() || self.tree.meta(&wanted.path)?.kind != Kind::Directory {
            return Err(Error::NotFound);
        }
        self.below(&wanted, cursor, PAGE)
    }
}

impl Completion for Files {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        match (template, argument.name.as_str()) {
            (TEMPLATE | PART, "path") => {}
            (PART, "lines" | "bytes") => return Ok(Suggestions::default()),
            _ => return Err(Error::invalid(format_args!("no variable \"{}\" in \"{template}\"", argument.name))),
        }
        belljar_tree::complete(&self.tree, &argument.value, |_| true)
    }
}

impl Revisions for Files {
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::list_revision(&self.tree, Bounds::default(), |_| true)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (path, query) = reference::split(reference);
        revision::of_resource(&self.tree, &Path::parse(path)?, query)
    }
}

impl Files {
    /// A page of at most `size` files after the path `start`.
    fn page(&self, start: String, size: usize) -> Result<Page> {
        let mut walk = Walk::new(&self.tree, start, size);
        let mut resources: Vec<Resource> = Vec::new();
        let mut next = String::new();
        let until = Instant::now() + TIME;
        loop {
            let is_late = resources.len() % 50 == 49 && Instant::now() > until;
            let is_full = resources.len() == size || is_late;
            if is_full {
                next = walk.position();
            }
            let path = match walk.next()? {
                // One path beyond the page shows that there is a next page; its file is not opened.
                Step::File(_) if is_full => return Ok(Page::new(resources).next_cursor(reference::encode(&next))),
                Step::File(path) => path,
                Step::Paused(position) => return Ok(Page::new(resources).next_cursor(reference::encode(&position))),
                Step::End => {
                    if self.tree.unnamed() > 0 {
                        below::unnamed("", self.tree.unnamed());
                    }
                    return Ok(Page::new(resources));
                }
            };
            // The file may have been deleted meanwhile, or be a link: dangling, out of the grant, or to a directory.
            match self.tree.meta(&path) {
                Ok(meta) if meta.kind == Kind::File => resources.extend(self.resource(&path, &meta)),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// The list's entry for a file. `None` if its reference is longer than the host accepts.
    fn resource(&self, path: &str, meta: &Meta) -> Option<Resource> {
        let reference = reference::encode(path);
        if reference.len() > MAX_REFERENCE_BYTES {
            return None;
        }
        let name = name(path);
        let media = media::by_name(name);
        let mut resource = Resource::new(reference).name(name).size(meta.size);
        resource.mime_type = media.map(str::to_owned);
        if meta.size > LARGE {
            resource.description =
                Some("Large: read it in parts, such as ?lines=1-200, ?lines=-200 or ?bytes=0-65535".to_owned());
        }
        resource.title = title_of(&self.tree, path, media, meta);
        resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
        Some(resource)
    }
}

impl Files {
    fn contents(&self, reference: &str, path: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let mut read = belljar_tree::read_part(&self.tree.open(path)?, reference, range, most)?;
        let is_beginning = read.extent.is_none_or(|extent| extent.start == 0);
        for contents in &mut read.contents {
            contents.mime_type = Some(match &contents.body {
                Body::Text(text) => media::of_text(name(path), text).to_owned(),
                Body::Blob(bytes) => media::of_bytes(name(path), if is_beginning { bytes } else { &[] }).to_owned(),
            });
        }
        Ok(read)
    }
}

/// The title of a Markdown file, if it has one.
fn title_of(tree: &Tree, path: &str, media: Option<&str>, meta: &Meta) -> Option<String> {
    if meta.size == 0 || media != Some(media::MARKDOWN) {
        return None;
    }
    let head = tree.read(path, meta.size.min(HEAD)).ok()?;
    title::find(&String::from_utf8_lossy(&head))
}

belljar_guest::export!(Files: Completion, Revisions, Parts, Tools);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
