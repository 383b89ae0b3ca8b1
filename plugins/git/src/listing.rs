//! The list of resources, and the entries below a directory.

use belljar_guest::{Contents, Error, Page, Resource, Result, reference};
use gix_object::tree::EntryKind;

use crate::names::{referable, referred};
use crate::repository::Repository;
use crate::tree::{self, Entry};
use crate::{JSON, MAX_REFERENCE_BYTES, PAGE, TEXT, short, submodules};

/// The media type of a directory.
const DIRECTORY: &str = "inode/directory";

/// The list: first the resources about the whole repository, then the files at HEAD sorted by path.
pub(crate) fn all(repository: &Repository, cursor: Option<&str>) -> Result<Page> {
    let after = match cursor {
        None => "",
        Some(cursor) => {
            let foreign = "the cursor does not begin with \"files:\": use one from a list of this provider";
            cursor.strip_prefix("files:").ok_or_else(|| Error::invalid(foreign))?
        }
    };
    let mut page = Page::default();
    if cursor.is_none() {
        page.resources = of_repository();
    }
    let (_, Some(head)) = repository.head()? else {
        page.resources.retain(|resource| resource.name != "HEAD");
        return Ok(page);
    };
    let root = repository.tree_of(head)?;
    let files = tree::files(&repository.objects, &root, &referred(after), PAGE)?;
    let last = files.last().map(|file| referable(&file.path).into_owned());
    page.next_cursor =
        last.filter(|last| files.len() == PAGE && last.len() < MAX_REFERENCE_BYTES).map(|last| format!("files:{last}"));
    page.resources.extend(files.iter().filter_map(|file| listed("HEAD", file)));
    Ok(page)
}

/// The resources directly below a reference.
pub(crate) fn below(repository: &Repository, asked: &str, cursor: Option<&str>) -> Result<Page> {
    let trimmed = asked.trim_end_matches('/');
    let rest = match trimmed.split_once('/') {
        None if trimmed.is_empty() => {
            let mut resources = of_repository();
            resources.push(directory("tree/".to_owned(), "tree", "Files at each revision"));
            return Ok(Page::new(resources));
        }
        None if trimmed == "tree" => return revisions(repository, cursor),
        Some(("tree", rest)) => rest,
        _ => return Err(Error::NotFound),
    };
    let (revision, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (revision, path) = (reference::decode(revision)?, reference::decode(path)?);
    let root = repository.resolve(&revision).and_then(|id| repository.tree_of(id))?;
    let (inner, mut found) = submodules::locate(repository, root, &referred(&path))?;
    let mut opened = None;
    if found.mode.kind() == EntryKind::Commit {
        let (module, tree) = submodules::open(repository, root, &found, 1)?;
        found = Entry { id: tree, mode: EntryKind::Tree.into(), ..found };
        opened = Some(module);
    }
    if found.mode.kind() != EntryKind::Tree {
        return Err(Error::NotFound);
    }
    let repository = opened.as_ref().or(inner.as_ref()).unwrap_or(repository);
    let after = cursor.map(referred);
    let (entries, has_more) = tree::page(&repository.objects, &found.id, after.as_deref(), PAGE)?;
    let next = entries.last().filter(|_| has_more).map(|last| referable(&last.path).into_owned());
    let entries = entries.into_iter().map(|entry| Entry { path: tree::join(&found.path, &entry.path), ..entry });
    let mut page = Page::new(entries.filter_map(|entry| listed(&revision, &entry)));
    page.next_cursor = next;
    Ok(page)
}

/// The resources about the whole repository.
fn of_repository() -> Vec<Resource> {
    let of = |reference: &str, name: &str, kind: &str, description: &str| {
        Resource::new(reference).name(name).mime_type(kind).description(description)
    };
    vec![
        of("", "overview", JSON, "The current branch, the last commit, and the numbers of branches and tags"),
        of("commits/HEAD", "HEAD", TEXT, "The last commit with its diff"),
        of("log", "log", JSON, "The last commits; each page names the next one"),
        of("refs", "refs", JSON, "Branches and tags with their commits"),
    ]
}

/// The roots of the trees at HEAD and at each branch and tag.
fn revisions(repository: &Repository, cursor: Option<&str>) -> Result<Page> {
    let (all, _) = repository.references()?;
    let after = cursor.unwrap_or_default();
    let mut rest = all.iter().filter(|reference| reference.name.as_str() > after).peekable();
    let mut resources = Vec::new();
    if cursor.is_none() {
        resources.push(directory("tree/HEAD/".to_owned(), "HEAD", "Files at the checked-out commit"));
    }
    let mut last = None;
    for found in rest.by_ref().take(PAGE) {
        let name = short(&found.name);
        let place = format!("tree/{}/", reference::encode_segment(name));
        resources.push(directory(place, name, &format!("Files at {}", found.name)));
        last = Some(found.name.clone());
    }
    let mut page = Page::new(resources);
    page.next_cursor = rest.peek().and(last);
    Ok(page)
}

fn directory(reference: String, name: &str, description: &str) -> Resource {
    Resource::new(reference).name(name).mime_type(DIRECTORY).description(description)
}

/// The list's entry for a file or a directory at a revision. `None` if the path is too long for a reference; then the directory
/// that has it names it.
fn listed(revision: &str, file: &Entry) -> Option<Resource> {
    let path = referable(&file.path);
    let reference = format!("tree/{}/{}", reference::encode_segment(revision), reference::encode(&path));
    let shown = crate::names::shown(file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
    let resource = match file.mode.kind() {
        EntryKind::Tree => Resource::new(format!("{reference}/")).mime_type(DIRECTORY),
        EntryKind::Commit => Resource::new(reference)
            .mime_type(JSON)
            .description("A submodule: the ID of a commit in another repository"),
        EntryKind::Link => {
            Resource::new(reference).mime_type(TEXT).description("A symbolic link: the path of its target")
        }
        // Without a known extension, the MIME type is decided by the contents at the read.
        EntryKind::Blob | EntryKind::BlobExecutable => match by_name(&shown) {
            Some(kind) => Resource::new(reference).mime_type(kind),
            None => Resource::new(reference),
        },
    };
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then(|| resource.name(shown))
}

/// The MIME type of a file's contents: by its name, except for text whose name belongs to a binary type.
pub(crate) fn media(name: &str, contents: &Contents) -> &'static str {
    match &contents.body {
        belljar_guest::Body::Text(_) => by_name(name).filter(|kind| !is_binary(kind)).unwrap_or(TEXT),
        belljar_guest::Body::Blob(bytes) => {
            by_name(name).or(infer::get(bytes).map(|kind| kind.mime_type())).unwrap_or("application/octet-stream")
        }
    }
}

fn by_name(name: &str) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    match extension {
        _ if stem.is_empty() => None,
        // `mime_guess` has video types for these.
        "ts" | "mts" | "cts" | "tsx" => Some("text/typescript"),
        extension => mime_guess::from_ext(extension).first_raw(),
    }
}

fn is_binary(kind: &str) -> bool {
    let families = ["image/", "audio/", "video/", "font/"];
    kind == "application/octet-stream"
        || (!kind.ends_with("+xml") && families.iter().any(|family| kind.starts_with(family)))
}
