//! Opens a repository, reads its references and resolves revisions.

use std::collections::HashSet;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_object::{CommitRef, Kind, TagRef};
use gix_ref::Target;
use gix_ref::file::Store;

use crate::objects::{self, Object, Objects};

/// The longest chain of symbolic references, and of tags of tags.
const MAX_CHAIN: usize = 8;

/// The most steps to parents in one revision.
const MAX_STEPS: usize = 20_000;

/// A repository.
#[derive(Debug)]
pub(crate) struct Repository {
    references: Store,
    pub(crate) objects: Objects,
    /// Commits whose parents were not fetched.
    shallow: HashSet<ObjectId>,
}

/// A Git reference: a branch, a tag, or another name below `refs/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The full name, such as `refs/heads/main`.
    pub(crate) name: String,
    /// The target: a commit, or the object of an annotated tag.
    pub(crate) id: ObjectId,
}

impl Repository {
    /// Opens the repository in a granted directory: a work tree, a bare repository or a `.git` directory.
    pub(crate) fn open(root: &Path) -> Result<Repository> {
        let place = place(root)?;
        if place.join("commondir").exists() {
            return Err(Error::failed(
                "the granted directory has only the files of one linked work tree; grant the repository that it belongs to",
            ));
        }
        let mut config = String::new();
        if let Ok(file) = fs::File::open(place.join("config")) {
            // An unreadable or non-UTF-8 configuration is treated as empty.
            let _ = file.take(256 * 1024).read_to_string(&mut config);
        }
        let config: Vec<String> = config
            .lines()
            .map(|line| line.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase())
            .collect();
        for (setting, feature) in [
            ("objectformat=sha256", "its object IDs are SHA-256"),
            ("refstorage=reftable", "it stores references as reftable"),
        ] {
            if config.iter().any(|line| line.starts_with(setting)) {
                return Err(Error::failed(format_args!(
                    "the repository cannot be read: {feature}, which is not supported"
                )));
            }
        }
        let shallow = fs::read_to_string(place.join("shallow")).unwrap_or_default();
        let shallow = shallow.lines().filter_map(|line| ObjectId::from_hex(line.trim().as_bytes()).ok()).collect();
        let mut references = Store::at(place.clone(), gix_hash::Kind::Sha1);
        // A sandbox cannot map files into memory.
        references.set_packed_buffer_mmap_threshold(u64::MAX);
        Ok(Repository { references, objects: Objects::at(place.join("objects"))?, shallow })
    }

    /// All references below `refs/`, sorted by name, without dangling ones.
    pub(crate) fn references(&self) -> Result<Vec<Reference>> {
        let platform = self.references.iter().map_err(Error::failed)?;
        let mut all = Vec::new();
        for reference in platform.all().map_err(Error::failed)? {
            let Ok(reference) = reference else { continue };
            let Ok(name) = String::from_utf8(reference.name.as_bstr().to_vec()) else { continue };
            if let Ok(Some(id)) = self.follow(reference.target) {
                all.push(Reference { name, id });
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// The full name of the checked-out branch, and its commit. A detached HEAD has no branch. A new repository has no
    /// commit.
    pub(crate) fn head(&self) -> Result<(Option<String>, Option<ObjectId>)> {
        let head = self.references.try_find("HEAD").map_err(|error| Error::failed(format_args!("HEAD: {error}")))?;
        let Some(head) = head else { return Ok((None, None)) };
        let branch = match &head.target {
            Target::Symbolic(name) => Some(name.as_bstr().to_string()),
            Target::Object(_) => None,
        };
        Ok((branch, self.follow(head.target)?))
    }

    fn follow(&self, target: Target) -> Result<Option<ObjectId>> {
        let mut target = target;
        for _ in 0..MAX_CHAIN {
            match target {
                Target::Object(id) => return Ok(Some(id)),
                Target::Symbolic(name) => {
                    let name = name.as_bstr().to_string();
                    let next = self.references.try_find(name.as_str());
                    match next.map_err(|error| Error::failed(format_args!("the reference \"{name}\": {error}")))? {
                        Some(reference) => target = reference.target,
                        None => return Ok(None),
                    }
                }
            }
        }
        Err(Error::failed("a chain of symbolic references is too long or a cycle; see  git symbolic-ref"))
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
                    id = self.parents(id)?.get(parent - 1).copied().ok_or(Error::NotFound)?;
                }
            }
        }
        Ok(id)
    }

    fn base(&self, base: &str) -> Result<ObjectId> {
        let is_hex = base.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hex && base.len() == 40 {
            let id = ObjectId::from_hex(base.to_ascii_lowercase().as_bytes()).map_err(Error::invalid)?;
            return self.objects.header(&id)?.map(|_| id).ok_or(Error::NotFound);
        }
        // An invalid reference name is an error of the store; such a base may still be a short ID.
        if let Ok(Some(found)) = self.references.try_find(base) {
            let target = self.follow(found.target)?;
            return target.ok_or_else(|| Error::failed(format_args!("\"{base}\" has no commits yet")));
        }
        if !is_hex || !(4..40).contains(&base.len()) {
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
            let tag = TagRef::from_bytes(&object.data, gix_hash::Kind::Sha1);
            id = tag.map_err(|error| Error::failed(format_args!("the tag {id} is damaged: {error}")))?.target();
        }
        Err(Error::failed(format_args!("the chain of tags at {id} is longer than {MAX_CHAIN}")))
    }

    /// The parents of a commit; empty at the boundary of a shallow clone.
    pub(crate) fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>> {
        let object = self.objects.get(&id)?;
        Ok(self.parents_in(&id, &commit(&id, &object)?))
    }

    /// The parents of a commit that is already parsed.
    pub(crate) fn parents_in(&self, id: &ObjectId, commit: &CommitRef<'_>) -> Vec<ObjectId> {
        if self.shallow.contains(id) { Vec::new() } else { commit.parents().collect() }
    }
}

/// Parses a commit.
pub(crate) fn commit<'a>(id: &ObjectId, object: &'a Object) -> Result<CommitRef<'a>> {
    if object.kind != Kind::Commit {
        return Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind)));
    }
    CommitRef::from_bytes(&object.data, gix_hash::Kind::Sha1)
        .map_err(|error| Error::failed(format_args!("the commit {id} is damaged: {error}")))
}

fn place(root: &Path) -> Result<PathBuf> {
    let is_one = |place: &Path| place.join("HEAD").is_file() && objects::are_in(place);
    if is_one(root) {
        return Ok(root.to_path_buf());
    }
    let inner = root.join(".git");
    match fs::symlink_metadata(&inner) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::failed(
            "the granted directory is not a Git repository: expected a work tree with .git in it, or a bare repository",
        )),
        Ok(meta) if meta.is_file() => {
            Err(Error::failed("\".git\" is a file that points to another directory; grant the repository itself"))
        }
        Ok(meta) if meta.is_symlink() && !is_one(&inner) => Err(Error::denied(
            "\".git\" is a symbolic link to a directory that is not granted or not a repository; grant the repository itself",
        )),
        _ if is_one(&inner) => Ok(inner),
        _ => Err(Error::failed("\".git\" is not a repository: HEAD or objects are missing")),
    }
}
