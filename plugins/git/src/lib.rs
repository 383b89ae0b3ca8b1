//! A Git repository as resources: branches and tags, the log, commits with their diffs, differences of revisions, the commits
//! of lines, and files and directories at any revision.
//!
//! This module implements the provider. `address` parses references to resources, `repository` resolves revisions, and
//! `answers`, `blobs` and `listing` make the contents. They use `tree`, `log`, `show` and `blame`, which read the objects in
//! `objects`. That module reads `pack`s by seeking and applies `delta`s. The parsers, the store of references and the comparison
//! of lines come from gix. Its object store maps packs into memory, which a sandbox cannot do. `tools` and `prompts` give the
//! same answers to models and people.

mod address;
mod answers;
mod blame;
mod blobs;
mod budget;
mod changes;
mod charset;
mod chunks;
mod config;
mod delta;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod history;
mod listing;
mod log;
mod names;
mod objects;
mod pack;
mod patch;
mod place;
mod prompts;
mod range;
mod references;
mod reftable;
mod renames;
mod repository;
mod show;
mod submodules;
mod tools;
mod tree;

use std::path::PathBuf;
use std::time::Duration;

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, PartialReading, Parts, Provider, Range, Reading, Result,
    Revisions, Suggestions, Template, Unit,
};
use gix_hash::ObjectId;
use gix_object::tree::EntryKind;
use serde_json::Value as Json;

use address::{Address, MAX_LIMIT};
use budget::Budget;
use repository::Repository;
use tree::Found;

/// The provider.
#[derive(Debug)]
pub struct Git {
    repository: Repository,
    budget: Budget,
}

/// Entries per page of a list.
const PAGE: usize = 1000;

/// The longest reference that the host accepts, in bytes.
const MAX_REFERENCE_BYTES: usize = 2 * 1024;

/// Commits per page of the log when the reference has no `limit`.
const DEFAULT_LIMIT: usize = 50;

/// The size of a read without a limit from the host, in bytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// The lifetime of cached reads at a full commit ID. Their contents never change.
const IMMUTABLE_FRESH_FOR: Duration = Duration::from_secs(3600);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

const LOG: &str = "log{?rev,path,author,since,until,grep,limit,from}";
const COMMIT: &str = "commits/{rev}{?renames,after}";
const DIFF: &str = "diff/{from}..{to}{?path,format,renames,after}";
const BLAME: &str = "blame/{rev}/{+path}{?lines}";
const TREE: &str = "tree/{rev}/{+path}{?lines,bytes,after,limit}";
const REFS: &str = "refs{?after,limit}";

impl Provider for Git {
    fn open() -> Result<Self> {
        let below = std::env::var("REPOSITORY").ok().filter(|value| !value.trim().is_empty());
        let grants: Vec<PathBuf> = belljar_tree::granted_paths().into_iter().map(PathBuf::from).collect();
        Git::over(&grants, below.as_deref())
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
        listing::all(&self.repository, cursor)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let revisions = "A revision is a branch, a tag, a full or short commit ID, or HEAD; the suffix ~3 goes three commits \
                         back, ^2 to the second parent.";
        Ok(vec![
            Template::new(TREE).name("tree").title("A file at a revision").description(format!(
                "The file at {{path}} at the revision {{rev}}, or a part of it, or at most {{limit}} entries of a directory \
                 after the name {{after}}. {revisions}"
            )),
            Template::new(COMMIT).name("commit").title("A commit").mime_type(TEXT).description(format!(
                "The commit {{rev}}: author, date, message and diff, with {{renames}} \"yes\" for renamed files. A long diff \
                 goes on after the path {{after}}. {revisions}"
            )),
            Template::new(DIFF).name("diff").title("The differences of two revisions").description(format!(
                "The unified diff from {{from}} to {{to}}, or with the {{format}} \"stat\" the numbers of lines as JSON; with \
                 {{path}}, only of this file or directory. Three points compare with the common ancestor. {revisions}"
            )),
            Template::new(BLAME).name("blame").title("The commits of lines").mime_type(TEXT).description(format!(
                "For each line of the file at {{path}} at {{rev}}, or only for {{lines}} such as 10-20, the commit that last \
                 changed it. {revisions}"
            )),
            Template::new(LOG).name("log").title("The log").mime_type(JSON).description(format!(
                "The commits from {{rev}} (default HEAD) backwards, at most {{limit}} of them (default {DEFAULT_LIMIT}, \
                 maximum {MAX_LIMIT}). Only those that changed {{path}}, whose author contains {{author}}, whose message \
                 contains {{grep}}, and with dates from {{since}} to {{until}}, such as 2026-01-31 or \"2 weeks ago\". Each \
                 page names the next one, which begins at {{from}}. {revisions}"
            )),
            Template::new(REFS).name("refs").title("Branches and tags").mime_type(JSON).description(
                "Branches and tags sorted by full name: at most {limit} of them after the full name {after}",
            ),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let PartialReading { contents, fresh_for, extent, .. } = self.read_part(reference, None, MAX_BYTES)?;
        if extent.is_some_and(|extent| extent.more) {
            return Err(Error::invalid(format_args!(
                "the resource has more than {MAX_BYTES} bytes; read a part of it, such as ?bytes=0-65535"
            )));
        }
        let reading = Reading::new(contents);
        Ok(match fresh_for {
            Some(time) => reading.fresh_for(time),
            None => reading,
        })
    }
}

impl Parts for Git {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let address = Address::parse(reference)?;
        let part = match &address {
            Address::Tree { revision, path, after, limit, part } => {
                self.tree(reference, (revision, path), (after.as_deref(), *limit), (range, *part), most)?
            }
            Address::Blame { revision, path } => {
                let lines = range.filter(|range| range.unit == Unit::Lines).map(|range| range.positions);
                let at = (self.commit(revision)?, names::referred(path));
                let (text, extent) = blame::text(&self.repository, (at.0, &at.1), lines, &self.budget)?;
                let contents = Contents::text(reference, text).mime_type(TEXT);
                match lines {
                    // As many lines as asked for are in memory already.
                    Some(_) if contents.body.len() as u64 <= most => PartialReading::part(contents, extent),
                    Some(_) => return Err(Error::invalid("so many lines exceed the limit of a read; ask for fewer")),
                    None => PartialReading::cut(contents, range, most)?,
                }
            }
            other => PartialReading::cut(self.made(reference, other)?, range, most)?,
        };
        Ok(match &address {
            Address::Commit { revision, .. } | Address::Tree { revision, .. } | Address::Blame { revision, .. }
                if is_full(revision) =>
            {
                part.fresh_for(IMMUTABLE_FRESH_FOR)
            }
            _ => part,
        })
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        listing::below(&self.repository, reference, cursor)
    }
}

impl Completion for Git {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        if ![LOG, COMMIT, DIFF, BLAME, TREE, REFS].contains(&template) {
            return Err(Error::invalid(format_args!("no template \"{template}\"")));
        }
        let value = argument.value.as_str();
        match argument.name.as_str() {
            "rev" | "from" | "to" if template != LOG || argument.name == "rev" => {
                let (all, _) = self.repository.references()?;
                let names = std::iter::once("HEAD").chain(all.iter().map(|reference| short(&reference.name)));
                Ok(Suggestions::starting_with(value, names))
            }
            "path" => {
                let is_revision = |argument: &&Argument| argument.name == "rev" || argument.name == "to";
                let revision = resolved.iter().find(is_revision).map(|argument| argument.value.as_str());
                let directory = value.rfind('/').and_then(|end| value.get(..=end)).unwrap_or("");
                let found = self.root(revision.filter(|revision| !revision.is_empty()).unwrap_or("HEAD"));
                let found = found.and_then(|root| tree::find(&self.repository.objects, &root, directory.as_bytes()));
                let Ok(Some(Found::Entry(found))) = found else { return Ok(Suggestions::default()) };
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
            "renames" => Ok(Suggestions::starting_with(value, ["yes", "no"])),
            "format" => Ok(Suggestions::starting_with(value, ["patch", "stat"])),
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
                answers::digest(&self.repository.references()?.0, self.repository.head()?)
            }
            Address::Log { from: Some(from), .. } => from.join(","),
            Address::Log { revision, .. } if self.is_unborn(&revision)? => "empty".to_owned(),
            Address::Log { revision, .. } | Address::Commit { revision, .. } | Address::Blame { revision, .. } => {
                self.commit(&revision)?.to_string()
            }
            Address::Diff(diff) => format!("{}-{}", self.commit(&diff.from)?, self.commit(&diff.to)?),
            Address::Tree { revision, path, .. } => {
                let (_, entry) = submodules::locate(&self.repository, self.root(&revision)?, &names::referred(&path))?;
                format!("{:o}-{}", entry.mode.value(), entry.id)
            }
        })
    }
}

impl Git {
    /// Opens the repository in the granted directories, or the one at the path `below`.
    fn over(grants: &[PathBuf], below: Option<&str>) -> Result<Self> {
        let budget = Budget::new();
        let Some(first) = grants.first() else {
            return Err(Error::denied("no directory is granted; grant the mount the directory of a repository, as fs"));
        };
        let root = match below {
            None if grants.len() > 1 => {
                return Err(Error::failed(format_args!(
                    "{} directories are granted; name the one of the repository in REPOSITORY, such as \"{}\"",
                    grants.len(),
                    first.display()
                )));
            }
            None => first.clone(),
            Some(below) => {
                let named = PathBuf::from(below);
                match grants.iter().any(|grant| named.starts_with(grant)) {
                    true => named,
                    false => first.join(below.trim_start_matches('/')),
                }
            }
        };
        Ok(Git { repository: Repository::open(&root, grants)?, budget })
    }

    fn commit(&self, revision: &str) -> Result<ObjectId> {
        self.repository.resolve(revision).and_then(|id| self.repository.commit_of(id))
    }

    fn root(&self, revision: &str) -> Result<ObjectId> {
        self.repository.resolve(revision).and_then(|id| self.repository.tree_of(id))
    }

    /// True if a revision is the branch of a repository without commits.
    fn is_unborn(&self, revision: &str) -> Result<bool> {
        Ok(matches!(revision, "HEAD" | "@") && self.repository.head()?.1.is_none())
    }
}

/// True if a revision is a full object ID, which always names the same object.
fn is_full(revision: &str) -> bool {
    matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The short name of a reference: `main` for `refs/heads/main`.
fn short(name: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name)
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

belljar_guest::export!(Git: Parts, Completion, Revisions, Tools, Prompts);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
