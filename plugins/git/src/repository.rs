//! Opens a repository and resolves revisions.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::{CommitRef, Kind, TagRef};

use crate::config::Config;
use crate::graph::{Graph, Node};
use crate::history::Commit;
use crate::objects::{Gaps, Object, Objects};
use crate::place::{self, Place};
use crate::references::{Reference, References};

/// The longest chain of tags of tags.
const MAX_CHAIN: usize = 8;

/// The most steps to parents in one revision.
const MAX_STEPS: usize = 20_000;

/// The longest list of shallow commits or grafts, in bytes.
const MAX_LIST: u64 = 4 * 1024 * 1024;

/// A repository.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) place: Place,
    references: References,
    pub(crate) objects: Objects,
    pub(crate) hash: gix_hash::Kind,
    /// The parents of commits that differ from what their objects say: shallow commits and grafts.
    parents: HashMap<ObjectId, Vec<ObjectId>>,
    /// Opened when a search first needs it.
    graph: OnceCell<Option<Graph>>,
    grants: Vec<PathBuf>,
}

impl Repository {
    /// Opens the repository in a granted directory: a work tree, a bare repository or a `.git` directory. What it names
    /// elsewhere must be below `grants`.
    pub(crate) fn open(root: &Path, grants: &[PathBuf]) -> Result<Repository> {
        let place = Place::find(root, grants)?;
        // A configuration that cannot be read is treated as empty.
        let config = Config::parse(&place::text(&place.common.join("config")).unwrap_or_default());
        let hash = config.hash()?;
        let references = References::open(&place, &config, hash)?;
        let mut parents = list(&place.common.join("info/grafts"));
        let shallow = list(&place.common.join("shallow"));
        let is_shallow = !shallow.is_empty();
        parents.extend(shallow.into_keys().map(|id| (id, Vec::new())));
        let (stores, alternates) = place.stores(grants);
        let gaps = Gaps { partial: config.partial(), is_shallow, alternates, unindexed: Vec::new() };
        let mut objects = Objects::at(stores, hash, gaps)?;
        if has_replacements(&place, &references) {
            let (all, _) = references.all()?;
            let replaced = all.iter().filter_map(|reference| {
                let id = reference.name.strip_prefix("refs/replace/")?;
                Some((ObjectId::from_hex(id.as_bytes()).ok()?, reference.id))
            });
            objects.replaced = replaced.collect();
        }
        Ok(Repository { place, references, objects, hash, parents, graph: OnceCell::new(), grants: grants.to_vec() })
    }

    /// All references below `refs/`, sorted by name, and the names of those that cannot be read.
    pub(crate) fn references(&self) -> Result<(Vec<Reference>, Vec<String>)> {
        self.references.all()
    }

    /// The full name of the checked-out branch, and its commit. A detached HEAD has no branch. A new repository has no
    /// commit.
    pub(crate) fn head(&self) -> Result<(Option<String>, Option<ObjectId>)> {
        self.references.head()
    }

    /// The repository of a submodule at a path, which has the name `name` in `.gitmodules`. `None` if it is not below the
    /// grants.
    pub(crate) fn submodule(&self, path: &str, name: &str) -> Option<Repository> {
        let inside = |name: &str| !name.split('/').any(|part| part == "..") && !name.starts_with('/');
        let stored = self.place.common.join("modules").join(name);
        let places = [Some(stored).filter(|_| inside(name)), self.place.work_tree.as_ref().map(|root| root.join(path))];
        places.into_iter().flatten().find_map(|place| {
            let is_own = place.join(".git").exists() || place.join("HEAD").is_file();
            Repository::open(&place, &self.grants).ok().filter(|_| is_own)
        })
    }

    /// Lists the linked work trees: name, path and what is checked out.
    pub(crate) fn work_trees(&self) -> Vec<(String, String, String)> {
        let Ok(entries) = std::fs::read_dir(self.place.common.join("worktrees")) else { return Vec::new() };
        let mut all: Vec<(String, String, String)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let path = place::line(&entry.path().join("gitdir"))?;
                let head = place::line(&entry.path().join("HEAD")).unwrap_or_default();
                let head = head.strip_prefix("ref:").map_or(head.as_str(), str::trim).to_owned();
                let path = path.strip_suffix("/.git").unwrap_or(&path).to_owned();
                Some((entry.file_name().to_string_lossy().into_owned(), path, head))
            })
            .collect();
        all.sort();
        all
    }

    /// The number of grafts and of replaced objects, which change the history that is shown.
    pub(crate) fn rewritten(&self) -> (usize, usize) {
        let grafts = self.parents.values().filter(|parents| !parents.is_empty()).count();
        (grafts, self.objects.replaced.len())
    }

    /// The commit-graph. `None` if there is none, or if grafts, replacements or a shallow history contradict it.
    pub(crate) fn graph(&self) -> Option<&Graph> {
        if !self.parents.is_empty() || !self.objects.replaced.is_empty() {
            return None;
        }
        self.graph.get_or_init(|| Graph::of(&self.place.common.join("objects"), self.hash)).as_ref()
    }

    /// The tree, the parents and the date of a commit, from the commit-graph if it has the commit. The object is not checked
    /// against its ID: whoever shows its contents must do that.
    pub(crate) fn node(&self, id: &ObjectId) -> Result<Commit> {
        if let Some(graph) = self.graph()
            && let Some(position) = graph.position(id)
            && let Some(node) = graph.node(position)
        {
            self.objects.add_work(20_000);
            return Ok(Commit { id: *id, node, position: Some(position), object: None });
        }
        let object = self.objects.find_unchecked(id)?.ok_or_else(|| self.objects.missing(id))?;
        let node = {
            let read = commit(id, &object)?;
            let seconds = read.committer().ok().and_then(|who| who.time().ok()).map_or(0, |time| time.seconds);
            Node { tree: read.tree(), parents: self.parents_in(id, &read), seconds }
        };
        Ok(Commit { id: *id, node, position: None, object: Some(object) })
    }

    /// Resolves a revision: a branch, a tag, a full or short object ID, or `HEAD`, with suffixes such as `~3` or `^2`.
    pub(crate) fn resolve(&self, revision: &str) -> Result<ObjectId> {
        let invalid = |why: &str| Error::invalid(format_args!("the revision \"{revision}\" {why}"));
        if revision.is_empty() || revision.contains(':') || revision.contains("..") || revision.contains("@{") {
            return Err(invalid("is not supported: use a branch, a tag or a commit, perhaps with ~1 or ^2"));
        }
        let (base, mut steps) = revision.split_at(revision.find(['~', '^']).unwrap_or(revision.len()));
        let mut id = self.base(if base == "@" { "HEAD" } else { base })?;
        let mut taken = 0;
        while let Some(step) = steps.chars().next() {
            let rest = steps.get(1..).unwrap_or_default();
            if let Some(after) =
                rest.strip_prefix("{}").or_else(|| rest.strip_prefix("{commit}")).filter(|_| step == '^')
            {
                id = self.commit_of(id)?;
                steps = after;
                continue;
            }
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits);
            let count: usize = match number {
                "" => 1,
                number => number.parse().map_err(|_| invalid("has a number of steps that is too large"))?,
            };
            if !matches!(after.chars().next(), None | Some('~' | '^')) {
                return Err(invalid("has an unknown suffix: expected ~N, ^N, ^{} or ^{commit}"));
            }
            steps = after;
            id = self.commit_of(id)?;
            let walk = if step == '~' { vec![1; count.min(MAX_STEPS + 1)] } else { vec![count] };
            for parent in walk {
                taken += 1;
                if taken > MAX_STEPS {
                    return Err(invalid(&format!("goes more than {MAX_STEPS} steps back")));
                }
                if parent > 0 {
                    id = self.node(&id)?.node.parents.get(parent - 1).copied().ok_or(Error::NotFound)?;
                }
            }
        }
        Ok(id)
    }

    fn base(&self, base: &str) -> Result<ObjectId> {
        let is_hex = base.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex && base.len() == self.hash.len_in_hex() {
            let id = ObjectId::from_hex(base.to_ascii_lowercase().as_bytes()).map_err(Error::invalid)?;
            return if self.objects.contains(&id)? { Ok(id) } else { Err(self.unknown(&id)) };
        }
        if let Some(found) = self.references.find(base)? {
            return found.ok_or_else(|| Error::failed(format_args!("\"{base}\" has no commits yet")));
        }
        if !is_hex || !(4..self.hash.len_in_hex()).contains(&base.len()) {
            return Err(Error::NotFound);
        }
        let mut found = self.objects.begin_with(&base.to_ascii_lowercase())?;
        if found.len() > 1 {
            // A single commit or tag among them takes precedence.
            let is_commit = |id: &ObjectId| matches!(self.objects.header(id), Ok(Some((Kind::Commit | Kind::Tag, _))));
            let commits: Vec<ObjectId> = found.iter().copied().filter(is_commit).collect();
            if commits.len() == 1 {
                found = commits;
            }
        }
        match found.as_slice() {
            [] => Err(Error::NotFound),
            [one] => Ok(*one),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(Error::invalid(format_args!("the short ID \"{base}\" is ambiguous: {}", names.join(", "))))
            }
        }
    }

    /// The commit behind an ID, which may be an annotated tag.
    pub(crate) fn commit_of(&self, id: ObjectId) -> Result<ObjectId> {
        match self.peel(id)? {
            (id, Object { kind: Kind::Commit, .. }) => Ok(id),
            (id, object) => Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind))),
        }
    }

    /// The tree of a commit, or the tree with this ID.
    pub(crate) fn tree_of(&self, id: ObjectId) -> Result<ObjectId> {
        match self.peel(id)? {
            (id, Object { kind: Kind::Tree, .. }) => Ok(id),
            (id, object) if object.kind == Kind::Commit => Ok(commit(&id, &object)?.tree()),
            (id, object) => Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind))),
        }
    }

    fn peel(&self, mut id: ObjectId) -> Result<(ObjectId, Object)> {
        for _ in 0..MAX_CHAIN {
            let object = self.objects.get(&id)?;
            if object.kind != Kind::Tag {
                return Ok((id, object));
            }
            let tag = TagRef::from_bytes(&object.data, self.hash);
            id = tag.map_err(|error| Error::failed(format_args!("the tag {id} is damaged: {error}")))?.target();
        }
        Err(Error::failed(format_args!("the chain of tags at {id} is longer than {MAX_CHAIN}")))
    }

    /// The parents of a commit that is already parsed; none at the boundary of a shallow clone.
    pub(crate) fn parents_in(&self, id: &ObjectId, commit: &CommitRef<'_>) -> Vec<ObjectId> {
        self.parents.get(id).cloned().unwrap_or_else(|| commit.parents().collect())
    }

    /// The error for a full ID that the repository does not have.
    fn unknown(&self, id: &ObjectId) -> Error {
        match self.objects.gaps().partial.is_some() || !self.objects.gaps().alternates.is_empty() {
            true => self.objects.missing(id),
            false => Error::NotFound,
        }
    }
}

/// Parses a commit.
pub(crate) fn commit<'a>(id: &ObjectId, object: &'a Object) -> Result<CommitRef<'a>> {
    if object.kind != Kind::Commit {
        return Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind)));
    }
    CommitRef::from_bytes(&object.data, id.kind())
        .map_err(|error| Error::failed(format_args!("the commit {id} is damaged: {error}")))
}

/// The commits in the file of shallow commits or grafts, each with the parents after it.
fn list(path: &Path) -> HashMap<ObjectId, Vec<ObjectId>> {
    use std::io::Read as _;
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open(path) {
        // A list that is not text has no IDs.
        let _ = file.take(MAX_LIST).read_to_string(&mut text);
    }
    let id = |word: &str| ObjectId::from_hex(word.as_bytes()).ok();
    let of = |line: &str| {
        let mut ids = line.split_whitespace().map_while(id);
        Some((ids.next()?, ids.collect()))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(of).collect()
}

/// True if the repository may have replacements of objects. Cheap, because nearly no repository has any.
fn has_replacements(place: &Place, references: &References) -> bool {
    match references {
        References::Table(table) => table.keys().any(|name| name.starts_with("refs/replace/")),
        References::Files(_) => {
            place.common.join("refs/replace").is_dir()
                || place::has_packed(&place.common.join("packed-refs"), "refs/replace/").unwrap_or(false)
        }
    }
}
