//! Metadata, outline and attached files of a document. Their objects form a graph that may have cycles, and every walk
//! stops at an object that it has visited.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use belljar_guest::{Error, Result, reference};
use hayro_syntax::object::{Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, Stream, String as Text};
use serde::Serialize;

use crate::document::{Document, pages};
use crate::strings;

/// The most entries of an outline or a name tree that are visited, and the deepest level of the outline.
const MAX_ENTRIES: usize = 5000;
const MAX_DEPTH: usize = 32;

/// The facts of a document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info {
    document: String,
    bytes: u64,
    pages: usize,
    encrypted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keywords: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    producer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    outline: Vec<Entry>,
    attachments: Vec<Attached>,
}

/// An entry of the outline.
#[derive(Debug, Serialize)]
struct Entry {
    depth: usize,
    title: String,
    /// The target page, counted from 1.
    page: Option<usize>,
}

/// An attached file.
#[derive(Debug, Serialize)]
struct Attached {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl Info {
    pub(crate) fn of(document: &Document) -> Info {
        let metadata = document.pdf.metadata();
        let text = |bytes: &Option<Box<[u8]>>| bytes.as_deref().map(strings::decode).filter(|text| !text.is_empty());
        let date = |date: &Option<hayro_syntax::object::DateTime>| {
            date.as_ref().map(|at| {
                let zone = match (at.utc_offset_hour, at.utc_offset_minute) {
                    (0, 0) => "Z".to_owned(),
                    (hour, minute) => {
                        format!("{}{:02}:{minute:02}", if hour < 0 { '-' } else { '+' }, hour.unsigned_abs())
                    }
                };
                let (date, time) = ((at.year, at.month, at.day), (at.hour, at.minute, at.second));
                format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{zone}", date.0, date.1, date.2, time.0, time.1, time.2)
            })
        };
        Info {
            document: document.path.clone(),
            bytes: document.size,
            pages: document.len(),
            encrypted: document.is_encrypted,
            title: text(&metadata.title),
            author: text(&metadata.author),
            subject: text(&metadata.subject),
            keywords: text(&metadata.keywords),
            creator: text(&metadata.creator),
            producer: text(&metadata.producer),
            created: date(&metadata.creation_date),
            modified: date(&metadata.modification_date),
            outline: outline(document),
            attachments: attachments(document)
                .into_iter()
                .map(|(name, file)| Attached {
                    description: file.get::<Text<'_>>("Desc").map(|text| strings::decode(text.as_bytes())),
                    name,
                })
                .collect(),
        }
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// As Markdown. `base` is the reference of the document; links begin with it.
    pub(crate) fn markdown(&self, base: &str) -> String {
        let mut text = format!("# {}\n\n", inline(self.title.as_ref().unwrap_or(&self.document)));
        let _ = writeln!(text, "- document: {}", inline(&self.document));
        let locked = if self.encrypted { ", encrypted" } else { "" };
        let _ =
            writeln!(text, "- [{}]({base}/pages/1-{}), {} bytes{locked}", pages(self.pages), self.pages, self.bytes);
        let facts = [
            ("author", &self.author),
            ("subject", &self.subject),
            ("keywords", &self.keywords),
            ("created", &self.created),
            ("modified", &self.modified),
            ("creator", &self.creator),
            ("producer", &self.producer),
        ];
        for (name, value) in facts {
            if let Some(value) = value {
                let _ = writeln!(text, "- {name}: {}", inline(value));
            }
        }
        text.push_str("\n## Outline\n\n");
        for entry in &self.outline {
            let indent = "  ".repeat(entry.depth);
            let title = inline(&entry.title);
            let _ = match entry.page {
                Some(page) => writeln!(text, "{indent}- [{title}]({base}/pages/{page}) (page {page})"),
                None => writeln!(text, "{indent}- {title}"),
            };
        }
        if self.outline.is_empty() {
            text.push_str("(none)\n");
        }
        if !self.attachments.is_empty() {
            text.push_str("\n## Attached files\n\n");
        }
        for file in &self.attachments {
            let link = reference::encode_segment(&file.name).replace('(', "%28").replace(')', "%29");
            let about = file.description.as_ref().map(|text| format!(": {}", inline(text))).unwrap_or_default();
            let _ = writeln!(text, "- [{}]({base}/attachments/{link}){about}", inline(&file.name));
        }
        text
    }
}

/// Text escaped for use within a line of Markdown.
pub(crate) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '[' | ']' | '`' | '*' | '<' | '|' | '#') {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

/// The outline in document order, each entry once.
fn outline(document: &Document) -> Vec<Entry> {
    let mut entries = Vec::new();
    let Some(root) = document.root() else { return entries };
    let Some(top) = root.get::<Dict<'_>>("Outlines") else { return entries };
    let places = Destinations::of(document, &root);
    let mut seen: HashSet<ObjectIdentifier> = HashSet::new();
    // A stack: the next entry to visit is the last one.
    let mut waiting: Vec<(usize, Dict<'_>)> =
        top.get::<Dict<'_>>("First").map(|first| (0, first)).into_iter().collect();
    while let Some((depth, item)) = waiting.pop() {
        if entries.len() >= MAX_ENTRIES || item.obj_id().is_some_and(|id| !seen.insert(id)) {
            break;
        }
        let title = item.get::<Text<'_>>("Title").map(|title| strings::decode(title.as_bytes())).unwrap_or_default();
        entries.push(Entry { depth, title, page: places.page_of(&item) });
        let is_new = |next: &Dict<'_>| next.obj_id().is_some_and(|id| !seen.contains(&id));
        waiting.extend(item.get::<Dict<'_>>("Next").filter(is_new).map(|next| (depth, next)));
        let below = item.get::<Dict<'_>>("First").filter(|below| depth < MAX_DEPTH && is_new(below));
        waiting.extend(below.map(|below| (depth + 1, below)));
    }
    entries
}

/// Resolves link targets to page numbers.
struct Destinations<'a> {
    pages: HashMap<ObjectIdentifier, usize>,
    named: HashMap<Vec<u8>, Object<'a>>,
}

impl<'a> Destinations<'a> {
    fn of(document: &'a Document, root: &Dict<'a>) -> Self {
        let pages = document.pdf.pages().iter().enumerate();
        let pages = pages.filter_map(|(at, page)| Some((page.raw().obj_id()?, at + 1))).collect();
        let mut named = HashMap::new();
        if let Some(tree) = root.get::<Dict<'_>>("Names").and_then(|names| names.get::<Dict<'_>>("Dests")) {
            names(&tree, &mut |name, value| {
                named.insert(name.to_vec(), value);
            });
        }
        // PDF 1.1 kept named destinations in this dictionary.
        if let Some(old) = root.get::<Dict<'_>>("Dests") {
            for (name, value) in old.entries().take(MAX_ENTRIES) {
                if let Some(value) = resolved(document, value) {
                    named.insert(name.as_str().as_bytes().to_vec(), value);
                }
            }
        }
        Destinations { pages, named }
    }

    /// The target page of an outline entry.
    fn page_of(&self, item: &Dict<'a>) -> Option<usize> {
        let action = || item.get::<Dict<'_>>("A").filter(|action| Document::is_named(action, b"S", "GoTo"));
        let target = item.get::<Object<'_>>("Dest").or_else(|| action()?.get::<Object<'_>>("D"))?;
        self.page(target, 0)
    }

    fn page(&self, target: Object<'a>, depth: usize) -> Option<usize> {
        if depth > 4 {
            return None;
        }
        match target {
            Object::Array(array) => match array.raw_iter().next()? {
                MaybeRef::Ref(page) => self.pages.get(&page.into()).copied(),
                // The standard allows no page number here, but some programs write one.
                MaybeRef::NotRef(object) => usize::try_from(object.into_i32()?).ok().map(|page| page + 1),
            },
            Object::Dict(dict) => self.page(dict.get::<Object<'_>>("D")?, depth + 1),
            Object::String(name) => self.page(self.named.get(name.as_bytes())?.clone(), depth + 1),
            Object::Name(name) => self.page(self.named.get(name.as_str().as_bytes())?.clone(), depth + 1),
            _ => None,
        }
    }
}

fn resolved<'a>(document: &'a Document, value: MaybeRef<Object<'a>>) -> Option<Object<'a>> {
    match value {
        MaybeRef::Ref(id) => document.pdf.xref().get::<Object<'_>>(id.into()),
        MaybeRef::NotRef(object) => Some(object),
    }
}

/// Calls `each` for every entry of a name tree (ISO 32000-1, 7.9.6).
fn names<'a>(tree: &Dict<'a>, each: &mut dyn FnMut(&[u8], Object<'a>)) {
    let mut seen: HashSet<ObjectIdentifier> = HashSet::new();
    let mut waiting = vec![tree.clone()];
    let mut count = 0;
    while let Some(node) = waiting.pop() {
        if node.obj_id().is_some_and(|id| !seen.insert(id)) || count > MAX_ENTRIES {
            continue;
        }
        count += 1;
        if let Some(leaves) = node.get::<Array<'_>>("Names") {
            let mut leaves = leaves.flex_iter();
            while let (Some(name), Some(value)) = (leaves.next::<Text<'_>>(), leaves.next::<Object<'_>>()) {
                count += 1;
                if count > MAX_ENTRIES {
                    return;
                }
                each(name.as_bytes(), value);
            }
        }
        if let Some(kids) = node.get::<Array<'_>>("Kids") {
            let mut kids: Vec<Dict<'_>> = kids.iter::<Dict<'_>>().take(MAX_ENTRIES).collect();
            kids.reverse();
            waiting.extend(kids);
        }
    }
}

/// The attached files with their names.
fn attachments(document: &Document) -> Vec<(String, Dict<'_>)> {
    let mut files: Vec<(String, Dict<'_>)> = Vec::new();
    let tree = document.root().and_then(|root| root.get::<Dict<'_>>("Names")?.get::<Dict<'_>>("EmbeddedFiles"));
    if let Some(tree) = tree {
        names(&tree, &mut |key, value| {
            let Object::Dict(file) = value else { return };
            let own = file.get::<Text<'_>>("UF").or_else(|| file.get::<Text<'_>>("F"));
            let name = own.map_or_else(|| strings::decode(key), |own| strings::decode(own.as_bytes()));
            // A name must be one segment of a reference.
            let name = name.replace(['/', '\\'], "_");
            if !matches!(name.as_str(), "" | "." | "..") && files.iter().all(|(other, _)| *other != name) {
                files.push((name, file));
            }
        });
    }
    files
}

/// The names of the attached files.
pub(crate) fn attachment_names(document: &Document) -> Vec<String> {
    attachments(document).into_iter().map(|(name, _)| name).collect()
}

/// The bytes of an attached file, and its declared MIME type.
pub(crate) fn attachment(document: &Document, name: &str) -> Result<(Vec<u8>, Option<String>)> {
    let all = attachments(document);
    let (_, file) = all.iter().find(|(other, _)| other == name).ok_or(Error::NotFound)?;
    if document.has_locked_files {
        return Err(Error::failed(format_args!(
            "the attached files of \"{}\" are encrypted, and no password in the setting PASSWORD of this mount opens them; its \
             pages are not encrypted",
            document.path
        )));
    }
    let stream = file
        .get::<Dict<'_>>("EF")
        .and_then(|files| files.get::<Stream<'_>>("UF").or_else(|| files.get::<Stream<'_>>("F")))
        .ok_or_else(|| {
            Error::failed(format_args!(
                "\"{}\" lists the attached file \"{name}\", but does not contain it",
                document.path
            ))
        })?;
    let kind =
        stream.dict().get::<Name<'_>>("Subtype").map(|kind| kind.as_str().to_owned()).filter(|kind| kind.contains('/'));
    let bytes = stream
        .decoded()
        .map_err(|_| Error::failed(format_args!("the attached file \"{name}\" of \"{}\" is damaged", document.path)))?;
    Ok((bytes.into_owned(), kind))
}
