//! A Git repository as resources: branches and tags, the log, commits with their diffs, and files and directories at any
//! revision.
//!
//! This module implements the provider. It is the only module that knows resources and the list. `address` parses
//! references to resources, and `repository` resolves revisions. `tree`, `log` and `show` build the answers from the
//! objects in `objects`, which reads `pack`s by seeking and applies `delta`s. The parsers, the reference store and the diff
//! come from gix. Its object store maps packs into memory, which a sandbox cannot do. `tools`
//! and `prompts` give the same answers to models and people.

mod address;
mod delta;
mod log;
mod objects;
mod pack;
mod prompts;
mod repository;
mod show;
mod tools;
mod tree;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Suggestions,
    Template, reference,
};
use gix_hash::ObjectId;
use gix_object::tree::EntryKind;
use serde_json::{Value as Json, json};

use address::{Address, MAX_LIMIT};
use log::Filter;
use repository::{Reference, Repository};
use tree::Entry;

/// The provider.
#[derive(Debug)]
pub struct Git {
    repository: Repository,
    began: Instant,
}

/// Entries per page of the list.
const PAGE: usize = 1000;

/// The longest reference that the host accepts, in bytes.
const MAX_REFERENCE_BYTES: usize = 2 * 1024;

/// Commits per page of the log when the reference has no `limit`.
const DEFAULT_LIMIT: usize = 50;

/// The most entries of a directory in one read.
const MAX_ENTRIES: usize = 5_000;

/// The number of entries of a directory whose sizes are shown. Each size needs a look-up of the object.
const MAX_SIZES: usize = 500;

/// The largest file, or part of a file, in one read, in bytes.
const MAX_BYTES: u64 = 6 * 1024 * 1024;

/// How long a call searches a log or computes diffs. A slow processor stays below the host's time limit for a call. A fast
/// one stays below the fuel limit: it uses about four thousand million units in a second.
/// An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 700 });

/// The lifetime of cached reads at a full commit ID. Their contents never change.
const IMMUTABLE_FRESH_FOR: Duration = Duration::from_secs(3600);

/// The hex digits of a commit ID in a reference to the next page: unambiguous in any repository, and short enough for many
/// IDs in one reference.
const ID_DIGITS: usize = 20;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

const LOG: &str = "log{?rev,path,limit,from}";
const COMMIT: &str = "commits/{rev}";
const TREE: &str = "tree/{rev}/{+path}{?offset,length}";
const REFS: &str = "refs{?after,limit}";

impl Provider for Git {
    fn open() -> Result<Self> {
        let below = std::env::var("REPOSITORY").ok().filter(|value| !value.trim().is_empty());
        let [(guest_path, root)] =
            <[(String, PathBuf); 1]>::try_from(granted()).map_err(|grants| match grants.len() {
                0 => Error::denied("no directory is granted; grant the mount the directory of a repository, as fs"),
                several => Error::failed(format_args!(
                    "{several} directories are granted: expected one; mount the component once for each repository"
                )),
            })?;
        let root = match below {
            Some(below) => root.join(below.strip_prefix(&guest_path).unwrap_or(&below).trim_start_matches('/')),
            None => root,
        };
        Git::over(root)
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Git".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description(
                "A Git repository: branches and tags, the log, commits with their diffs, files at any revision",
            )
    }

    /// First the resources about the whole repository, then the files at HEAD sorted by path.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let after = match cursor {
            None => "",
            Some(cursor) => {
                let foreign = "the cursor does not begin with \"files:\": use one from a list of this provider";
                cursor.strip_prefix("files:").ok_or_else(|| Error::invalid(foreign))?
            }
        };
        let mut page = Page::default();
        if cursor.is_none() {
            let of = |reference: &str, name: &str, kind: &str, description: &str| {
                Resource::new(reference).name(name).mime_type(kind).description(description)
            };
            page.resources = vec![
                of("", "overview", JSON, "The current branch, the last commit, and the numbers of branches and tags"),
                of("commits/HEAD", "HEAD", TEXT, "The last commit with its diff"),
                of("log", "log", JSON, "The last commits; each page names the next one"),
                of("refs", "refs", JSON, "Branches and tags with their commits"),
            ];
        }
        let (_, Some(head)) = self.repository.head()? else {
            page.resources.retain(|resource| matches!(resource.name.as_str(), "overview" | "refs"));
            return Ok(page);
        };
        let root = self.repository.tree_of(head)?;
        let files = tree::files(&self.repository.objects, &root, after.as_bytes(), PAGE)?;
        let last = files.last().map(|file| String::from_utf8_lossy(&file.path).into_owned());
        page.next_cursor = last
            .filter(|last| files.len() == PAGE && last.len() < MAX_REFERENCE_BYTES)
            .map(|last| format!("files:{last}"));
        page.resources.extend(files.iter().filter_map(listed));
        Ok(page)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let revisions = "A revision is a branch, a tag, a full or short commit ID, or HEAD; the suffix ~3 goes three commits \
                         back, ^2 to the second parent.";
        Ok(vec![
            Template::new(TREE).name("tree").title("A file at a revision").description(format!(
                "The file at {{path}} at the revision {{rev}}, or the entries of a directory. Large files can be read in \
                 parts of {{length}} bytes from {{offset}}. {revisions}"
            )),
            Template::new(COMMIT).name("commit").title("A commit").mime_type(TEXT).description(format!(
                "The commit {{rev}}: author, date, message and diff. {revisions}"
            )),
            Template::new(LOG).name("log").title("The log").mime_type(JSON).description(format!(
                "The commits from {{rev}} (default HEAD) backwards, at most {{limit}} of them (default {DEFAULT_LIMIT}, \
                 maximum {MAX_LIMIT}); with {{path}}, only those that changed this file or directory. Each page names the \
                 next one, which begins at {{from}}. {revisions}"
            )),
            Template::new(REFS).name("refs").title("Branches and tags").mime_type(JSON).description(
                "Branches and tags sorted by full name: at most {limit} of them after the full name {after}",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let address = Address::parse(reference)?;
        let contents = match &address {
            Address::Overview => self.overview(reference)?,
            Address::References { after, limit } => self.references(reference, after, limit.unwrap_or(MAX_LIMIT))?,
            Address::Log { revision, path, from, limit } => {
                let from = match from {
                    Some(from) => from.iter().map(|name| self.commit(name)).collect::<Result<Vec<_>>>()?,
                    None => vec![self.commit(revision)?],
                };
                self.log(reference, &from, path.as_deref(), limit.unwrap_or(DEFAULT_LIMIT))?
            }
            Address::Commit { revision } => {
                let id = self.commit(revision)?;
                Contents::text(reference, show::text(&self.repository, &id, self.began + TIME)?).mime_type(TEXT)
            }
            Address::Tree { revision, path, part } => self.tree(reference, revision, path, *part)?,
        };
        let reading = Reading::from(contents);
        Ok(match &address {
            Address::Commit { revision } | Address::Tree { revision, .. } if is_full(revision) => {
                reading.fresh_for(IMMUTABLE_FRESH_FOR)
            }
            _ => reading,
        })
    }
}

impl Completion for Git {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        if ![LOG, COMMIT, TREE, REFS].contains(&template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let value = argument.value.as_str();
        match argument.name.as_str() {
            "rev" => {
                let all = self.repository.references()?;
                let names = std::iter::once("HEAD").chain(all.iter().map(|reference| short(&reference.name)));
                Ok(Suggestions::starting_with(value, names))
            }
            "path" => {
                let revision =
                    resolved.iter().find(|argument| argument.name == "rev").map(|argument| argument.value.as_str());
                let directory = value.rfind('/').and_then(|end| value.get(..=end)).unwrap_or("");
                let found = self.root(revision.filter(|revision| !revision.is_empty()).unwrap_or("HEAD"));
                let found = found.and_then(|root| tree::find(&self.repository.objects, &root, directory));
                let Ok(Some(found)) = found else { return Ok(Suggestions::default()) };
                if found.mode.kind() != EntryKind::Tree {
                    return Ok(Suggestions::default());
                }
                let entries = tree::entries(&self.repository.objects, &found.id)?;
                let paths = entries.iter().filter_map(|entry| {
                    let end = if entry.mode.is_tree() { "/" } else { "" };
                    Some(format!("{directory}{}{end}", std::str::from_utf8(&entry.path).ok()?))
                });
                Ok(Suggestions::starting_with(value, paths))
            }
            "limit" => Ok(Suggestions::starting_with(value, ["10", "50", "200", "1000"])),
            _ => Ok(Suggestions::default()),
        }
    }
}

impl Revisions for Git {
    /// The ID of the tree at HEAD, whose files are the list.
    fn catalog_revision(&self) -> Result<String> {
        match self.repository.head()? {
            (_, Some(head)) => Ok(self.repository.tree_of(head)?.to_string()),
            (_, None) => Ok("empty".to_owned()),
        }
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        Ok(match Address::parse(reference)? {
            Address::Overview | Address::References { .. } => {
                digest(&self.repository.references()?, self.repository.head()?)
            }
            Address::Log { from: Some(from), .. } => from.join(","),
            Address::Log { revision, .. } | Address::Commit { revision } => self.commit(&revision)?.to_string(),
            Address::Tree { revision, path, .. } => {
                let root = self.root(&revision)?;
                let entry = tree::find(&self.repository.objects, &root, &path)?.ok_or(Error::NotFound)?;
                format!("{:o}-{}", entry.mode.value(), entry.id)
            }
        })
    }
}

impl Git {
    fn over(root: PathBuf) -> Result<Self> {
        Ok(Git { repository: Repository::open(&root)?, began: Instant::now() })
    }

    fn commit(&self, revision: &str) -> Result<ObjectId> {
        self.repository.resolve(revision).and_then(|id| self.repository.commit_of(id))
    }

    fn root(&self, revision: &str) -> Result<ObjectId> {
        self.repository.resolve(revision).and_then(|id| self.repository.tree_of(id))
    }

    fn overview(&self, asked: &str) -> Result<Contents> {
        let (branch, head) = self.repository.head()?;
        let references = self.repository.references()?;
        let count = |start: &str| references.iter().filter(|reference| reference.name.starts_with(start)).count();
        let mut about = json!({
            "head": branch, "commit": null, "readme": null,
            "branches": count("refs/heads/"), "tags": count("refs/tags/"), "remote_branches": count("refs/remotes/"),
        });
        if let (Some(head), Some(about)) = (head, about.as_object_mut()) {
            let id = self.repository.commit_of(head)?;
            about.insert("commit".to_owned(), log::describe(&id, &self.repository.objects.get(&id)?)?);
            let entries = tree::entries(&self.repository.objects, &self.repository.tree_of(id)?)?;
            let mut readmes = entries.iter().filter_map(|entry| std::str::from_utf8(&entry.path).ok());
            let readme = readmes.find(|name| name.to_ascii_lowercase().starts_with("readme"));
            about.insert(
                "readme".to_owned(),
                json!(readme.map(|name| format!("tree/HEAD/{}", reference::encode(name)))),
            );
        }
        Ok(pretty(asked, &about))
    }

    fn references(&self, asked: &str, after: &str, limit: usize) -> Result<Contents> {
        let all = self.repository.references()?;
        let mut rest = all.iter().filter(|reference| reference.name.as_str() > after);
        let given: Vec<&Reference> = rest.by_ref().take(limit).collect();
        let next = rest.next().and(given.last()).map(|last| {
            format!("refs?after={}&limit={limit}", reference::encode_segment(&last.name).replace('&', "%26"))
        });
        let lines = given.iter().map(|reference| {
            let kind = ["refs/heads/", "refs/tags/", "refs/remotes/"]
                .into_iter()
                .zip(["branch", "tag", "remote branch"])
                .find(|(start, _)| reference.name.starts_with(start))
                .map_or("other", |(_, kind)| kind);
            // An annotated tag is an object of its own, which names a commit.
            let commit = self.repository.commit_of(reference.id).ok();
            json!({
                "name": short(&reference.name), "type": kind, "full_name": reference.name,
                "id": reference.id.to_string(), "commit": commit.map(|id| id.to_string()),
            })
        });
        Ok(lines_of(asked, &[("next", json!(next))], "refs", lines))
    }

    fn log(&self, asked: &str, from: &[ObjectId], path: Option<&str>, limit: usize) -> Result<Contents> {
        let page = log::page(&self.repository, from, Filter { path, text: None }, limit, self.began + TIME)?;
        let names: Vec<String> = page.next.iter().map(|id| id.to_hex_with_len(ID_DIGITS).to_string()).collect();
        let mut next = format!("log?from={}&limit={limit}", names.join(","));
        if let Some(path) = path {
            next.push_str(&format!("&path={}", reference::encode(path).replace('&', "%26")));
        }
        let fits = !names.is_empty() && next.len() < MAX_REFERENCE_BYTES - 64;
        let head = [
            ("next", json!(fits.then_some(next))),
            ("cut", json!(!fits && !names.is_empty())),
            ("unfinished", json!(page.unfinished)),
        ];
        Ok(lines_of(asked, &head, "commits", page.commits.into_iter()))
    }

    fn tree(&self, asked: &str, revision: &str, path: &str, part: Option<(u64, Option<u64>)>) -> Result<Contents> {
        let objects = &self.repository.objects;
        let entry = tree::find(objects, &self.root(revision)?, path)?.ok_or(Error::NotFound)?;
        let mode = json!({ "mode": format!("{:06o}", entry.mode.value()), "id": entry.id.to_string() }).to_string();
        match entry.mode.kind() {
            EntryKind::Tree => return self.directory(asked, revision, &entry),
            EntryKind::Commit => {
                let about = json!({ "type": "submodule", "commit": entry.id.to_string() });
                return Ok(pretty(asked, &about).meta("git/entry", mode));
            }
            _ => {}
        }
        let (_, size) = objects.header(&entry.id)?.ok_or_else(|| objects.missing(&entry.id))?;
        let bytes = match part {
            None if size > MAX_BYTES => {
                return Err(Error::failed(format_args!(
                    "the file has {size} bytes, the limit of one read is {MAX_BYTES}; ask for parts with \
                     ?offset=0&length={MAX_BYTES}"
                )));
            }
            None => objects.get(&entry.id)?.data.to_vec(),
            Some((offset, length)) => {
                let length = length.unwrap_or(MAX_BYTES).min(MAX_BYTES);
                match objects.part(&entry.id, offset, length)? {
                    Some(bytes) => bytes,
                    None => {
                        let whole = objects.get(&entry.id)?.data;
                        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(whole.len());
                        let rest = whole.get(start..).unwrap_or_default();
                        rest.get(..usize::try_from(length).unwrap_or(usize::MAX)).unwrap_or(rest).to_vec()
                    }
                }
            }
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let contents =
            if bytes.contains(&0) { Contents::blob(asked, bytes) } else { Contents::from_bytes(asked, bytes) };
        let kind = media(name, &contents);
        let about = json!({ "mode": format!("{:06o}", entry.mode.value()), "id": entry.id.to_string(), "type": entry.kind(), "size": size });
        Ok(contents.mime_type(kind).meta("git/entry", about.to_string()))
    }

    fn directory(&self, asked: &str, revision: &str, directory: &Entry) -> Result<Contents> {
        let entries = tree::entries(&self.repository.objects, &directory.id)?;
        let revision = reference::encode_segment(revision);
        let lines = entries.iter().take(MAX_ENTRIES).enumerate().map(|(index, entry)| {
            let path = match directory.path.as_slice() {
                [] => entry.path.clone(),
                path => [path, b"/", &entry.path].concat(),
            };
            let size = match entry.mode.kind() {
                EntryKind::Tree | EntryKind::Commit => None,
                _ if index >= MAX_SIZES => None,
                _ => self.repository.objects.header(&entry.id).ok().flatten().map(|(_, size)| size),
            };
            let read =
                std::str::from_utf8(&path).ok().map(|path| format!("tree/{revision}/{}", reference::encode(path)));
            json!({ "name": String::from_utf8_lossy(&entry.path), "type": entry.kind(), "size": size, "read": read })
        });
        let head = [
            ("path", json!(String::from_utf8_lossy(&directory.path))),
            ("tree", json!(directory.id.to_string())),
            ("cut", json!(entries.len() > MAX_ENTRIES)),
        ];
        Ok(lines_of(asked, &head, "entries", lines))
    }
}

/// The list's entry for a file at HEAD. `None` if the path is not UTF-8 or too long for a reference.
fn listed(file: &Entry) -> Option<Resource> {
    let path = std::str::from_utf8(&file.path).ok()?;
    let reference = format!("tree/HEAD/{}", reference::encode(path));
    let name = path.rsplit('/').next().unwrap_or(path);
    let resource = Resource::new(reference).name(name);
    let resource = match file.kind() {
        // Without a known extension, the MIME type is decided by the contents at the read.
        "file" => match by_name(name) {
            Some(kind) => resource.mime_type(kind),
            None => resource,
        },
        "submodule" => resource.mime_type(JSON).description("A submodule: the ID of a commit in another repository"),
        _ => resource.mime_type(TEXT).description("A symbolic link: the path of its target"),
    };
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
}

/// The MIME type of a file's contents: by its name, except for text whose name belongs to a binary type.
fn media(name: &str, contents: &Contents) -> &'static str {
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

/// True if a revision is a full object ID, which always names the same object.
fn is_full(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The short name of a reference: `main` for `refs/heads/main`.
fn short(name: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name)
}

fn digest(references: &[Reference], head: (Option<String>, Option<ObjectId>)) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for reference in references {
        (&reference.name, reference.id.as_bytes()).hash(&mut hasher);
    }
    (head.0, head.1.map(|id| id.to_string())).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn pretty(asked: &str, value: &Json) -> Contents {
    Contents::text(asked, serde_json::to_string_pretty(value).unwrap_or_default()).mime_type(JSON)
}

/// A JSON object of the fields `head` and the array `name`, with one element a line.
fn lines_of(asked: &str, head: &[(&str, Json)], name: &str, lines: impl Iterator<Item = Json>) -> Contents {
    let head: String = head.iter().map(|(name, value)| format!("\"{name}\": {value},\n")).collect();
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    Contents::text(asked, format!("{{\n{head}\"{name}\": [\n{}\n]\n}}\n", lines.join(",\n"))).mime_type(JSON)
}

/// The granted directories, each with its guest path.
fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}

belljar_guest::export!(Git: Completion, Revisions, Tools, Prompts);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
