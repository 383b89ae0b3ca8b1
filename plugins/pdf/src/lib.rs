//! PDF documents in granted directories: the text of their pages, outline, facts, images and attached files.
//!
//! This module implements the provider. It is the only module that knows resources and the list. `query` parses references
//! and `read` builds the answer. `document` opens a file, `text` and `images` process pages, and `info` reads metadata,
//! outline and attachments. The crate `hayro` parses PDF.

mod document;
mod images;
mod info;
mod query;
mod read;
mod search;
mod strings;
mod text;

use std::fmt::Write as _;

use belljar_guest::{
    Annotations, Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions,
    Suggestions, Template, reference,
};
use belljar_tree::{Bounds, Kind, MAX_REFERENCE_BYTES, Meta, Step, Tree, Walk, name};

use document::Document;
use query::{Place, Query, is_served};

/// The provider.
#[derive(Debug)]
pub struct Documents {
    tree: Tree,
    passwords: Vec<String>,
}

/// Documents per page of the list.
const PAGE: usize = 1000;

const PAGES: &str = "{+path}/pages/{pages}{?order}";
const SEARCH: &str = "{+path}{?search}";
const INFO: &str = "{+path}/info{?format}";
const IMAGES: &str = "{+path}/pages/{page}/images";
const IMAGE: &str = "{+path}/pages/{page}/images/{image}";
const ATTACHMENT: &str = "{+path}/attachments/{name}";

impl Provider for Documents {
    fn open() -> Result<Self> {
        let passwords = std::env::var("PASSWORD").unwrap_or_default();
        let passwords = passwords.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Ok(Documents { tree: Tree::open_granted()?, passwords })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "PDF documents".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("The text, outline, images and attachments of PDF documents")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let start = cursor.map(reference::decode).transpose()?.unwrap_or_default();
        self.page(start, PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(PAGES).name("pages").title("Text of pages").mime_type("text/plain").description(
                "The text of pages of the document at {path}: {pages} is a page or a range (3, 3-7, 3-), counted from 1. Text \
                 is in reading order; {order}=written keeps the order of the document, {order}=position goes from the top of the \
                 page to the bottom",
            ),
            Template::new(SEARCH).name("search").title("Search in a document").mime_type("text/markdown").description(
                "The pages of the document at {path} that have the words {search}, with excerpts. Case does not matter",
            ),
            Template::new(INFO).name("info").title("Facts and outline").description(
                "Title, author, dates and number of pages of the document at {path}, its outline with pages, its attached \
                 files; {format} is markdown or json",
            ),
            Template::new(IMAGES).name("images").title("Images of a page").mime_type("text/markdown").description(
                "The images of page {page} of the document at {path}, with their sizes",
            ),
            Template::new(IMAGE).name("image").title("An image of a page").description(
                "Image {image} of page {page}, counted from 1: a JPEG unchanged, every other format converted to PNG",
            ),
            Template::new(ATTACHMENT).name("attachment").title("An attached file").description(
                "The file {name} that is attached to the document at {path}",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (path, query) = reference::split(reference);
        if path.is_empty() {
            return Ok(self.index(reference)?.into());
        }
        // An absent file is `NotFound`, even if the query is malformed.
        let place = Place::find(&self.tree, path)?;
        let query = Query::parse(query)?;
        Ok(read::read(&self.tree, reference, &place, &self.passwords, query)?.into())
    }
}

impl Completion for Documents {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        if ![PAGES, SEARCH, INFO, IMAGES, IMAGE, ATTACHMENT].contains(&template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let value = argument.value.as_str();
        let known =
            |name: &str| resolved.iter().find(|argument| argument.name == name).map(|found| found.value.as_str());
        // A document that cannot be opened gives no suggestions.
        let document = || {
            let place = Place::find(&self.tree, &reference::encode(known("path").unwrap_or_default())).ok()?;
            Document::open(&self.tree, &place, &self.passwords).ok()
        };
        let numbers = |count: usize| (1..=count).map(|number| number.to_string());
        Ok(match argument.name.as_str() {
            "path" => belljar_tree::complete(&self.tree, value, is_served)?,
            "pages" if template == PAGES => {
                let count = document().map_or(0, |document| document.len());
                let all = (count > 1).then(|| format!("1-{count}"));
                Suggestions::starting_with(value, numbers(count).chain(all))
            }
            "page" if [IMAGES, IMAGE].contains(&template) => {
                Suggestions::starting_with(value, numbers(document().map_or(0, |document| document.len())))
            }
            "image" if template == IMAGE => {
                let page = known("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or_default();
                let count =
                    document().and_then(|document| document.pdf.pages().get(page.checked_sub(1)?).map(images::count));
                Suggestions::starting_with(value, numbers(count.unwrap_or_default()))
            }
            "name" if template == ATTACHMENT => {
                let names = document().map(|document| info::attachment_names(&document));
                Suggestions::starting_with(value, names.unwrap_or_default())
            }
            "order" if template == PAGES => Suggestions::starting_with(value, ["reading", "written", "position"]),
            // Words are free.
            "search" if template == SEARCH => Suggestions::starting_with(value, [""; 0]),
            "format" if template == INFO => Suggestions::starting_with(value, ["markdown", "json"]),
            other => return Err(Error::invalid(format_args!("no variable \"{other}\" in \"{template}\""))),
        })
    }
}

impl Revisions for Documents {
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::list_revision(&self.tree, Bounds::default(), is_served)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (path, _) = reference::split(reference);
        if path.is_empty() {
            return self.catalog_revision();
        }
        Ok(Place::find(&self.tree, path)?.meta.revision())
    }
}

impl Documents {
    /// A page of at most `size` documents after the path `start`.
    fn page(&self, start: String, size: usize) -> Result<Page> {
        let mut walk = Walk::new(&self.tree, start, size).only(is_served);
        let mut resources: Vec<Resource> = Vec::new();
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::Paused(position) => return Ok(Page::new(resources).next_cursor(reference::encode(&position))),
                Step::End => return Ok(Page::new(resources)),
            };
            if resources.len() == size {
                let last = resources.last().map(|last| last.reference.clone()).unwrap_or_default();
                return Ok(Page::new(resources).next_cursor(last));
            }
            // The file may have been deleted meanwhile, or be a link that leads out of the grant.
            match self.tree.meta(&path) {
                Ok(meta) if meta.kind == Kind::File => resources.extend(resource(&path, &meta)),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// All documents, with links.
    fn index(&self, reference: &str) -> Result<Contents> {
        let page = self.page(String::new(), PAGE)?;
        let mut text = "# PDF documents\n\n".to_owned();
        for resource in &page.resources {
            let title = info::inline(resource.title.as_ref().unwrap_or(&resource.name));
            let link = resource.reference.replace('(', "%28").replace(')', "%29");
            let _ = writeln!(text, "- [{title}]({link}): [facts and outline]({link}/info)");
        }
        if page.resources.is_empty() {
            text.push_str("(none: this provider serves files whose names end in .pdf)\n");
        }
        if page.next_cursor.is_some() {
            text.push_str("\nThere are more documents; the list of resources has all of them.\n");
        }
        Ok(Contents::text(reference, text).mime_type("text/markdown"))
    }
}

/// The list's entry for a document. `None` if its reference is longer than the host accepts.
fn resource(path: &str, meta: &Meta) -> Option<Resource> {
    let mut resource = Resource::new(reference::encode(path))
        .name(name(path))
        .title(path)
        .mime_type("text/plain")
        .description(format!(
            "PDF document of {} bytes: reads as the text of its first pages; /info has facts and the outline, /pages/21-40 \
             other pages",
            meta.size
        ));
    resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
}

/// Entry points for fuzzing: they run the parsers over any bytes.
#[doc(hidden)]
pub mod fuzzing {
    use crate::{document, query, search, text};

    /// Opens a document, and reads the text of its first pages in each order.
    pub fn document(bytes: &[u8]) {
        let Ok(pdf) = hayro_syntax::Pdf::new(bytes.to_vec()) else { return };
        let fonts = text::Fonts::new();
        for page in pdf.pages().iter().take(3) {
            for order in [query::Order::Reading, query::Order::Written, query::Order::Position] {
                text::of(page, &fonts, order);
            }
        }
    }

    /// Looks for an encryption dictionary that encrypts only attached files.
    pub fn encryption(bytes: &[u8]) {
        document::without_file_encryption(bytes);
    }

    /// Puts a line into reading order, and searches in it.
    pub fn line(bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        text::parse_line(&text);
        if let Some(words) = search::Words::new(text.get(..3).unwrap_or(&text)) {
            search::excerpts(&text, &words, 3);
        }
    }

    /// Parses the query component of a reference.
    pub fn query(bytes: &[u8]) {
        drop(query::Query::parse(&String::from_utf8_lossy(bytes)));
    }
}

belljar_guest::export!(Documents: Completion, Revisions);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
