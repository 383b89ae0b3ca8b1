//! A Git repository as resources: its branches and tags, its log, commits with what they changed, and files and directories
//! at any revision.
//!
//! This module is the provider itself, and the only one that knows of resources and the list. `address` knows what a
//! reference asks for; `repository` what a revision means; `tree`, `log` and `show` answer. They all get objects from
//! `objects`, which reads `pack`s by seeking and puts `delta`s together: gix, whose parsers, references and differences are
//! used here, maps packs into memory, which a sandbox cannot.

mod address;
mod delta;
mod log;
mod objects;
mod pack;
mod repository;
mod show;
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

use address::{Address, MOST};
use repository::{Reference, Repository};
use tree::Entry;

/// The provider.
#[derive(Debug)]
pub struct Git {
    repository: Repository,
    began: Instant,
}

/// How many entries a page of the list holds.
const PAGE: usize = 1000;

/// The longest reference that the host takes.
const LONGEST_REFERENCE: usize = 2 * 1024;

/// How many commits or references whoever does not say gets.
const USUAL: usize = 50;

/// How many entries of a directory are given; of the first of them the size, too.
const ENTRIES: usize = 5_000;
const SIZED: usize = 500;

/// The largest file that is given whole, and the longest part of one.
const WHOLE: u64 = 6 * 1024 * 1024;

/// How long a log is searched, or differences are made: less than what the host gives a call, of time on a slow processor and of
/// fuel on a quick one, which uses up some four thousand million in a second.
const TIME: Duration = Duration::from_millis(700);

/// How long what has a full name may be served again: it never changes.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// How many digits name a commit where a page of the log ends: enough for any repository, and short enough for many.
const DIGITS: usize = 20;

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
                0 => Error::denied("no directory is granted; give the mount the one of a repository, as fs"),
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
                "A Git repository: branches and tags, the log, commits with what they changed, files at any revision",
            )
    }

    /// The files at HEAD, in the order of their paths, after what is about all of it.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let after = match cursor {
            None => "",
            Some(cursor) => {
                cursor.strip_prefix("files:").ok_or_else(|| Error::invalid("the cursor is none of this provider's"))?
            }
        };
        let mut page = Page::default();
        if cursor.is_none() {
            let of = |reference: &str, name: &str, kind: &str, what: &str| {
                Resource::new(reference).name(name).mime_type(kind).description(what)
            };
            page.resources = vec![
                of("", "overview", JSON, "The branch, the last commit, how many branches and tags there are"),
                of("commits/HEAD", "HEAD", TEXT, "The last commit, with what it changed"),
                of("log", "log", JSON, "The last commits; each page names the next one"),
                of("refs", "refs", JSON, "Branches and tags, and the commits that they lead to"),
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
            .filter(|last| files.len() == PAGE && last.len() < LONGEST_REFERENCE)
            .map(|last| format!("files:{last}"));
        page.resources.extend(files.iter().filter_map(listed));
        Ok(page)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let revisions = "A revision is a branch, a tag, a commit's name in full or in short, or HEAD; ~3 behind it goes three \
                         commits back, ^2 to the second parent.";
        Ok(vec![
            Template::new(TREE).name("tree").title("A file at a revision").description(format!(
                "The file at {{path}} as it was at the revision {{rev}}, or what a directory holds; large files in parts of \
                 {{length}} bytes from {{offset}} on. {revisions}"
            )),
            Template::new(COMMIT).name("commit").title("A commit").mime_type(TEXT).description(format!(
                "The commit {{rev}}: author, date, message, and what it changed, line by line. {revisions}"
            )),
            Template::new(LOG).name("log").title("The log").mime_type(JSON).description(format!(
                "Commits from {{rev}} (HEAD unless you say otherwise) on back, at most {{limit}} of them ({USUAL} unless you say \
                 otherwise, {MOST} at most); with {{path}} those that changed this file or directory. Each page names the \
                 next one, which begins at {{from}}. {revisions}"
            )),
            Template::new(REFS).name("refs").title("Branches and tags").mime_type(JSON).description(
                "Branches and tags in the order of their full names, after the one called {after}, at most {limit} of them",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let address = Address::parse(reference)?;
        let contents = match &address {
            Address::Overview => self.overview(reference)?,
            Address::References { after, limit } => self.references(reference, after, limit.unwrap_or(MOST))?,
            Address::Log { revision, path, from, limit } => {
                let from = match from {
                    Some(from) => from.iter().map(|name| self.commit(name)).collect::<Result<Vec<_>>>()?,
                    None => vec![self.commit(revision)?],
                };
                self.log(reference, &from, path.as_deref(), limit.unwrap_or(USUAL))?
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
                reading.fresh_for(FOR_EVER)
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
    /// Of the tree at HEAD, which is what is listed.
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
            // What a tag with a message leads to.
            let commit = self.repository.commit_of(reference.id).ok();
            json!({
                "name": short(&reference.name), "type": kind, "full_name": reference.name,
                "id": reference.id.to_string(), "commit": commit.map(|id| id.to_string()),
            })
        });
        Ok(lines_of(asked, &[("next", json!(next))], "refs", lines))
    }

    fn log(&self, asked: &str, from: &[ObjectId], path: Option<&str>, limit: usize) -> Result<Contents> {
        let page = log::page(&self.repository, from, path, limit, self.began + TIME)?;
        let names: Vec<String> = page.next.iter().map(|id| id.to_hex_with_len(DIGITS).to_string()).collect();
        let mut next = format!("log?from={}&limit={limit}", names.join(","));
        if let Some(path) = path {
            next.push_str(&format!("&path={}", reference::encode(path).replace('&', "%26")));
        }
        let fits = !names.is_empty() && next.len() < LONGEST_REFERENCE - 64;
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
            None if size > WHOLE => {
                return Err(Error::failed(format_args!(
                    "the file has {size} bytes, and {WHOLE} are given at once; ask for parts with ?offset=0&length={WHOLE}"
                )));
            }
            None => objects.get(&entry.id)?.data.to_vec(),
            Some((offset, length)) => {
                let length = length.unwrap_or(WHOLE).min(WHOLE);
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
        let lines = entries.iter().take(ENTRIES).enumerate().map(|(index, entry)| {
            let path = match directory.path.as_slice() {
                [] => entry.path.clone(),
                path => [path, b"/", &entry.path].concat(),
            };
            let size = match entry.mode.kind() {
                EntryKind::Tree | EntryKind::Commit => None,
                _ if index >= SIZED => None,
                _ => self.repository.objects.header(&entry.id).ok().flatten().map(|(_, size)| size),
            };
            let read =
                std::str::from_utf8(&path).ok().map(|path| format!("tree/{revision}/{}", reference::encode(path)));
            json!({ "name": String::from_utf8_lossy(&entry.path), "type": entry.kind(), "size": size, "read": read })
        });
        let head = [
            ("path", json!(String::from_utf8_lossy(&directory.path))),
            ("tree", json!(directory.id.to_string())),
            ("cut", json!(entries.len() > ENTRIES)),
        ];
        Ok(lines_of(asked, &head, "entries", lines))
    }
}

/// The list's entry for a file at HEAD. None for a path that is no UTF-8 or too long, which nobody could ask for.
fn listed(file: &Entry) -> Option<Resource> {
    let path = std::str::from_utf8(&file.path).ok()?;
    let reference = format!("tree/HEAD/{}", reference::encode(path));
    let name = path.rsplit('/').next().unwrap_or(path);
    let resource = Resource::new(reference).name(name);
    let resource = match file.kind() {
        // What a name does not tell is known when it is read.
        "file" => match by_name(name) {
            Some(kind) => resource.mime_type(kind),
            None => resource,
        },
        "submodule" => {
            resource.mime_type(JSON).description("A submodule: which commit of another repository belongs here")
        }
        _ => resource.mime_type(TEXT).description("A symbolic link: where it leads to"),
    };
    (resource.reference.len() <= LONGEST_REFERENCE).then_some(resource)
}

/// The media type of a file's contents: by its name, unless that says that text is something else.
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
        // The table takes it for video.
        "ts" | "mts" | "cts" | "tsx" => Some("text/typescript"),
        extension => mime_guess::from_ext(extension).first_raw(),
    }
}

fn is_binary(kind: &str) -> bool {
    let families = ["image/", "audio/", "video/", "font/"];
    kind == "application/octet-stream"
        || (!kind.ends_with("+xml") && families.iter().any(|family| kind.starts_with(family)))
}

/// Whether a revision is a name that always means the same.
fn is_full(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A reference's name as people write it.
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

/// An object of some fields, and a list with an element on each line.
fn lines_of(asked: &str, head: &[(&str, Json)], name: &str, lines: impl Iterator<Item = Json>) -> Contents {
    let head: String = head.iter().map(|(name, value)| format!("\"{name}\": {value},\n")).collect();
    let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
    Contents::text(asked, format!("{{\n{head}\"{name}\": [\n{}\n]\n}}\n", lines.join(",\n"))).mime_type(JSON)
}

/// The granted directories, each with its guest path.
fn granted() -> Vec<(String, PathBuf)> {
    belljar_tree::granted_paths().into_iter().map(|path| (path.clone(), PathBuf::from(path))).collect()
}

belljar_guest::export!(Git: Completion, Revisions);
belljar_guest::needs!("../needs.toml");
