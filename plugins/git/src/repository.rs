//! A repository: where it is, its references, and what a revision's spelling means.

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

/// How far a reference may lead by way of others, and a tag by way of tags.
const FARTHEST: usize = 8;

/// How many steps up a revision may ask for.
const STEPS: usize = 20_000;

/// A repository.
#[derive(Debug)]
pub(crate) struct Repository {
    references: Store,
    pub(crate) objects: Objects,
    /// Commits whose parents were not fetched.
    shallow: HashSet<ObjectId>,
}

/// A branch, a tag or the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// In full, such as `refs/heads/main`.
    pub(crate) name: String,
    /// What it leads to: a commit, or a tag with a message.
    pub(crate) id: ObjectId,
}

impl Repository {
    /// The repository in a granted directory: a work tree, a bare one, or a `.git` itself.
    pub(crate) fn open(root: &Path) -> Result<Repository> {
        let place = place(root)?;
        if place.join("commondir").exists() {
            return Err(Error::failed(
                "this is the part of a repository that belongs to one work tree; grant the repository that it was made from",
            ));
        }
        let mut config = String::new();
        if let Ok(file) = fs::File::open(place.join("config")) {
            // What is no text says nothing that matters here.
            let _ = file.take(256 * 1024).read_to_string(&mut config);
        }
        let config: Vec<String> = config
            .lines()
            .map(|line| line.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase())
            .collect();
        for (unknown, what) in [
            ("objectformat=sha256", "its objects have SHA-256 names"),
            ("refstorage=reftable", "it keeps references as reftable"),
        ] {
            if config.iter().any(|line| line.starts_with(unknown)) {
                return Err(Error::failed(format_args!(
                    "the repository cannot be read: {what}, which is not known here"
                )));
            }
        }
        let shallow = fs::read_to_string(place.join("shallow")).unwrap_or_default();
        let shallow = shallow.lines().filter_map(|line| ObjectId::from_hex(line.trim().as_bytes()).ok()).collect();
        let mut references = Store::at(place.clone(), gix_hash::Kind::Sha1);
        // There is no mapping files into memory in a sandbox.
        references.set_packed_buffer_mmap_threshold(u64::MAX);
        Ok(Repository { references, objects: Objects::at(place.join("objects"))?, shallow })
    }

    /// All references below `refs/`, in the order of their names. What leads nowhere is left out.
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

    /// The branch that is checked out, and what it leads to if there is a commit yet.
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
        for _ in 0..FARTHEST {
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
        Err(Error::failed("a reference leads to itself, by way of others; see  git symbolic-ref"))
    }

    /// What a revision means: a branch, a tag, a name in full or in short, `HEAD`, each with `~3` or `^2` behind it.
    pub(crate) fn resolve(&self, revision: &str) -> Result<ObjectId> {
        let invalid = |why: &str| Error::invalid(format_args!("the revision \"{revision}\" {why}"));
        if revision.is_empty() || revision.contains(':') || revision.contains("..") || revision.contains("@{") {
            return Err(invalid(
                "is of no kind that is known here: use a branch, a tag or a commit, perhaps with ~1 or ^2",
            ));
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
                number => number.parse().map_err(|_| invalid("asks for too many steps"))?,
            };
            if !matches!(after.chars().next(), None | Some('~' | '^')) {
                return Err(invalid("has something behind it that is not understood"));
            }
            steps = after;
            id = self.commit_of(id)?;
            let walk = if step == '~' { vec![1; count.min(STEPS + 1)] } else { vec![count] };
            for parent in walk {
                taken += 1;
                if taken > STEPS {
                    return Err(invalid(&format!("asks for more than {STEPS} steps")));
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
        // What cannot be the name of a reference is none.
        if let Ok(Some(found)) = self.references.try_find(base) {
            let looped = self.follow(found.target)?;
            return looped.ok_or_else(|| Error::failed(format_args!("\"{base}\" has no commits yet")));
        }
        if !is_hex || !(4..40).contains(&base.len()) {
            return Err(Error::NotFound);
        }
        let mut found = self.objects.begin_with(&base.to_ascii_lowercase())?;
        if found.len() > 1 {
            // A commit is meant, if one of them is.
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
                Err(Error::invalid(format_args!("\"{base}\" is short for several: {}", names.join(", "))))
            }
        }
    }

    /// The commit that something leads to by way of tags.
    pub(crate) fn commit_of(&self, id: ObjectId) -> Result<ObjectId> {
        match self.peel(id)? {
            (id, Object { kind: Kind::Commit, .. }) => Ok(id),
            (id, object) => Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind))),
        }
    }

    /// The tree of a commit, or the one that is named itself.
    pub(crate) fn tree_of(&self, id: ObjectId) -> Result<ObjectId> {
        match self.peel(id)? {
            (id, Object { kind: Kind::Tree, .. }) => Ok(id),
            (id, object) if object.kind == Kind::Commit => Ok(commit(&id, &object)?.tree()),
            (id, object) => Err(Error::invalid(format_args!("{id} is a {}, not a commit", object.kind))),
        }
    }

    fn peel(&self, mut id: ObjectId) -> Result<(ObjectId, Object)> {
        for _ in 0..FARTHEST {
            let object = self.objects.get(&id)?;
            if object.kind != Kind::Tag {
                return Ok((id, object));
            }
            let tag = TagRef::from_bytes(&object.data, gix_hash::Kind::Sha1);
            id = tag.map_err(|error| Error::failed(format_args!("the tag {id} is damaged: {error}")))?.target();
        }
        Err(Error::failed(format_args!("{id} is a tag of a tag of a tag, and so on")))
    }

    /// The parents of a commit, as far as they were fetched.
    pub(crate) fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>> {
        let object = self.objects.get(&id)?;
        Ok(self.parents_in(&id, &commit(&id, &object)?))
    }

    /// The same, of a commit that was read already.
    pub(crate) fn parents_in(&self, id: &ObjectId, commit: &CommitRef<'_>) -> Vec<ObjectId> {
        if self.shallow.contains(id) { Vec::new() } else { commit.parents().collect() }
    }
}

/// Reads a commit.
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
            "the granted directory is no Git repository: expected a work tree with .git in it, or a bare repository",
        )),
        Ok(meta) if meta.is_file() => Err(Error::failed(
            "the .git here is a file, which says that the repository is elsewhere; grant the repository itself",
        )),
        Ok(meta) if meta.is_symlink() && !is_one(&inner) => Err(Error::denied(
            "the .git here is a symbolic link to something that was not granted, or no repository; grant the repository itself",
        )),
        _ if is_one(&inner) => Ok(inner),
        _ => Err(Error::failed("the .git here is no repository: HEAD or objects are missing")),
    }
}
