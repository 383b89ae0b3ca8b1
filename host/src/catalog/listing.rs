//! Listings: where one stands in the walk over all mounts, and what of a provider's entries may be shown.
//!
//! Pure: the gateway fetches pages, this judges them. A position holds everything that the walk needs, so that it
//! survives a restart: the list is then fetched anew up to there.

use iri_string::types::UriStr;
use mediatype::MediaType;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kept::Slot;
use super::{Mount, Snapshot};
use crate::model::{
    Annotations, Answer, Guard, Icon, Meta, MountName, Operation, ReadError, Resource, Template, meta, reference, text,
};

/// Entries of a page, for the first pages of a walk.
const PAGE: usize = 1000;

/// After so many pages the page doubles: a client that gives up after 64 pages has seen two million entries by then.
const DOUBLES_AFTER: u32 = 8;

/// Entries of a page at the most.
const MAX_PAGE: usize = 128_000;

/// Bytes of a page after which it is closed, whatever its entries.
const PAGE_BYTES: usize = 4 << 20;

/// Templates of one mount.
const MAX_TEMPLATES: usize = 1000;

const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 4096;
const MAX_ICONS: usize = 8;
const MAX_ICON_BYTES: usize = 8 << 10;
const MAX_META: usize = 32;
const MAX_META_BYTES: usize = 16 << 10;

/// The largest integer that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Where a walk stands: what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The mount; or the next one by name, when it is gone.
    pub mount: MountName,
    /// The listing of the mount in which the walk goes on, while it is kept.
    pub list: u32,
    /// Entries of it that were walked already.
    pub offset: u64,
    /// Pages of the walk that ended because the mount took all of their time.
    pub slow: u32,
    /// Pages of the walk that were served.
    pub pages: u32,
}

impl Position {
    /// The start of a mount's listing, after `pages` pages of the walk.
    pub fn start_of(mount: &MountName, pages: u32) -> Self {
        Self { mount: mount.clone(), list: 0, offset: 0, slow: 0, pages }
    }

    /// Whether this is where a mount's listing starts.
    pub fn is_start(&self) -> bool {
        self.offset == 0 && self.slow == 0
    }
}

/// How many entries the page after `pages` others has.
pub fn page_size(pages: u32) -> usize {
    PAGE.saturating_mul(1 << (pages / DOUBLES_AFTER).min(16)).min(MAX_PAGE)
}

/// What can be listed: resources and templates, through the same walk.
pub trait Listed: Sized + Send + Serialize + DeserializeOwned + 'static {
    /// The operation that gives the page behind `cursor`.
    fn operation(cursor: Option<String>) -> Operation;

    /// The entries of an answer, and the provider's next cursor.
    ///
    /// # Errors
    /// When the answer is one to another operation.
    fn unpack(answer: Answer) -> Result<(Vec<Self>, Option<String>), ReadError>;

    /// Where a mount's listings of these are kept.
    fn slot(mount: &Mount) -> &Slot<Self>;

    /// Makes an entry fit to be kept: its texts clean, what breaks a rule left out. Its name stays relative.
    ///
    /// # Errors
    /// Why the entry as a whole is left out.
    fn clean(self) -> Result<Self, String>;

    /// Whether the name of a clean entry leads to this mount.
    ///
    /// # Errors
    /// Whose it is, or what else is wrong with it.
    fn belongs(&self, mount: &Mount, snapshot: &Snapshot) -> Result<(), String>;

    /// Makes the name of a clean entry absolute.
    ///
    /// # Errors
    /// When the name would not lead to this mount.
    fn place(self, mount: &Mount, snapshot: &Snapshot) -> Result<Self, String>;

    /// Both at once: what a client may see of an entry.
    ///
    /// # Errors
    /// Why the entry as a whole is left out.
    fn check(self, mount: &Mount, snapshot: &Snapshot) -> Result<Self, String> {
        self.clean()?.place(mount, snapshot)
    }

    /// The name, to find duplicates.
    fn key(&self) -> &str;

    /// About how many bytes it takes on the wire.
    fn weight(&self) -> usize;
}

/// Whether a page of `entries` entries and `bytes` bytes is full, after `pages` others.
pub fn is_full(entries: usize, bytes: usize, pages: u32) -> bool {
    entries >= page_size(pages) || bytes >= PAGE_BYTES
}

impl Listed for Resource {
    fn operation(cursor: Option<String>) -> Operation {
        Operation::List { cursor }
    }

    fn unpack(answer: Answer) -> Result<(Vec<Self>, Option<String>), ReadError> {
        match answer {
            Answer::Page(page) => Ok((page.resources, page.next)),
            _ => Err(Answer::to_another()),
        }
    }

    fn slot(mount: &Mount) -> &Slot<Self> {
        &mount.lists.0
    }

    fn clean(mut self) -> Result<Self, String> {
        let shown = |r: &str| text::quoted(r, 80);
        reference::check(&self.reference).map_err(|why| format!("the reference {} {why}", shown(&self.reference)))?;
        self.name = text::cleaned(self.name, MAX_NAME);
        self.title = self.title.map(|title| text::cleaned(title, MAX_NAME));
        self.description = self.description.map(|description| text::cleaned(description, MAX_DESCRIPTION));
        self.mime_type = mime_type(self.mime_type);
        self.size = self.size.filter(|size| *size <= MAX_SAFE_INTEGER || !Guard::Fields.is_on());
        self.annotations = self.annotations.and_then(annotations);
        self.icons = icons(self.icons);
        self.meta = meta(self.meta);
        Ok(self)
    }

    fn belongs(&self, mount: &Mount, snapshot: &Snapshot) -> Result<(), String> {
        snapshot.name_in(mount, &self.reference).map(drop)
    }

    fn place(mut self, mount: &Mount, snapshot: &Snapshot) -> Result<Self, String> {
        self.reference = snapshot.name_in(mount, &self.reference)?;
        self.name = named(self.name, &self.reference);
        Ok(self)
    }

    fn key(&self) -> &str {
        &self.reference
    }

    fn weight(&self) -> usize {
        160 + self.reference.len()
            + self.name.len()
            + self.title.as_ref().map_or(0, String::len)
            + self.description.as_ref().map_or(0, String::len)
            + self.meta.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>()
            + self.icons.iter().map(|icon| icon.src.len()).sum::<usize>()
    }
}

impl Listed for Template {
    fn operation(_: Option<String>) -> Operation {
        Operation::Templates
    }

    fn unpack(answer: Answer) -> Result<(Vec<Self>, Option<String>), ReadError> {
        match answer {
            Answer::Templates(all) if all.len() > MAX_TEMPLATES && Guard::Entries.is_on() => Err(ReadError::BadOutput(
                format!("list-templates gave {} templates; at most {MAX_TEMPLATES} are served", all.len()),
            )),
            Answer::Templates(all) => Ok((all, None)),
            _ => Err(Answer::to_another()),
        }
    }

    fn slot(mount: &Mount) -> &Slot<Self> {
        &mount.lists.1
    }

    fn clean(mut self) -> Result<Self, String> {
        let shown = |t: &str| text::quoted(t, 80);
        reference::check_template(&self.template)
            .map_err(|why| format!("the template {} {why}", shown(&self.template)))?;
        self.name = text::cleaned(self.name, MAX_NAME);
        self.title = self.title.map(|title| text::cleaned(title, MAX_NAME));
        self.description = self.description.map(|description| text::cleaned(description, MAX_DESCRIPTION));
        self.mime_type = mime_type(self.mime_type);
        self.annotations = self.annotations.and_then(annotations);
        self.icons = icons(self.icons);
        self.meta = meta(self.meta);
        Ok(self)
    }

    fn belongs(&self, mount: &Mount, snapshot: &Snapshot) -> Result<(), String> {
        // The literal prefix is at least the mount's base; where it reaches into another mount's base, that mount answers
        // the reads, so that the template belongs to nobody.
        let (literal, expression) = self.template.split_once('{').unwrap_or((&self.template, ""));
        snapshot.name_in(mount, literal)?;
        // What such an expression begins with is literal too.
        match expression.chars().next().filter(|operator| "/.;?&".contains(*operator)) {
            Some(operator) => snapshot.name_in(mount, &format!("{literal}{operator}")).map(drop),
            None => Ok(()),
        }
    }

    fn place(mut self, mount: &Mount, snapshot: &Snapshot) -> Result<Self, String> {
        self.belongs(mount, snapshot)?;
        self.template.insert_str(0, &mount.base);
        self.name = named(self.name, &self.template);
        Ok(self)
    }

    fn key(&self) -> &str {
        &self.template
    }

    fn weight(&self) -> usize {
        160 + self.template.len() + self.name.len() + self.description.as_ref().map_or(0, String::len)
    }
}

/// The name of an entry, or its URI where it has none.
fn named(name: String, otherwise: &str) -> String {
    if name.trim().is_empty() { text::excerpt(otherwise, MAX_NAME) } else { name }
}

/// A MIME type of RFC 6838 syntax, or none.
pub fn mime_type(given: Option<String>) -> Option<String> {
    // The parser passes over tabs at the end.
    let is_plain = |mime: &str| mime.bytes().all(|b| (b' '..=b'~').contains(&b));
    let is_good = |mime: &String| mime.len() <= 127 && is_plain(mime) && MediaType::parse(mime).is_ok();
    given.filter(|mime| is_good(mime) || !Guard::Mime.is_on())
}

fn annotations(mut given: Annotations) -> Option<Annotations> {
    if !Guard::Fields.is_on() {
        return Some(given);
    }
    given.audience.dedup();
    given.audience.truncate(2);
    given.priority = given.priority.filter(|priority| (0.0..=1.0).contains(priority));
    given.last_modified =
        given.last_modified.filter(|at| at.len() <= 40 && chrono::DateTime::parse_from_rfc3339(at).is_ok());
    let empty = given.audience.is_empty() && given.priority.is_none() && given.last_modified.is_none();
    (!empty).then_some(given)
}

fn icons(given: Vec<Icon>) -> Vec<Icon> {
    if !Guard::Fields.is_on() {
        return given;
    }
    let fine = |icon: &Icon| {
        let scheme = icon.src.get(..8).unwrap_or(&icon.src).to_ascii_lowercase();
        icon.src.len() <= MAX_ICON_BYTES
            && (scheme.starts_with("https://") || scheme.starts_with("data:"))
            && UriStr::new(&icon.src).is_ok()
    };
    let sizes = |sizes: Vec<String>| sizes.into_iter().filter(|s| s == "any" || is_size(s)).take(8).collect();
    given
        .into_iter()
        .filter(fine)
        .take(MAX_ICONS)
        .map(|icon| Icon { mime_type: mime_type(icon.mime_type), sizes: sizes(icon.sizes), src: icon.src })
        .collect()
}

fn is_size(size: &str) -> bool {
    size.split_once('x')
        .is_some_and(|(w, h)| w.len() <= 5 && h.len() <= 5 && w.parse::<u32>().is_ok() && h.parse::<u32>().is_ok())
}

/// `_meta` entries with a name that a provider may use ([`meta::is_free`]) and one JSON value each.
pub fn meta(given: Meta) -> Meta {
    if !Guard::Fields.is_on() {
        return given;
    }
    let mut bytes = 0;
    let mut seen: Vec<String> = Vec::new();
    given
        .into_iter()
        .filter(|(key, value)| {
            bytes += key.len() + value.len();
            let fine = bytes <= MAX_META_BYTES
                && meta::is_free(key)
                && !seen.contains(key)
                && serde_json::from_str::<serde_json::Value>(value).is_ok();
            if fine {
                seen.push(key.clone());
            }
            fine
        })
        .take(MAX_META)
        .collect()
}

#[cfg(test)]
mod tests;
