//! The references of a repository: in files (by gix) or in a reftable.

use std::collections::BTreeMap;

use belljar_guest::{Error, Result};
use gix_hash::ObjectId;
use gix_ref::Target;
use gix_ref::file::Store;

use crate::config::Config;
use crate::place::Place;
use crate::reftable::{self, Value};

/// The longest chain of symbolic references.
const MAX_CHAIN: usize = 8;

/// A Git reference: a branch, a tag, or another name below `refs/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The full name, such as `refs/heads/main`.
    pub(crate) name: String,
    /// The target: a commit, or the object of an annotated tag.
    pub(crate) id: ObjectId,
    /// The object behind an annotated tag, if the store says it.
    pub(crate) peeled: Option<ObjectId>,
}

/// The store of references.
#[derive(Debug)]
pub(crate) enum References {
    /// A file for each reference, and `packed-refs`.
    Files(Box<Store>),
    /// The records of all files of the reftable.
    Table(BTreeMap<String, Value>),
}

/// The value of one reference.
struct Found {
    target: Value,
}

impl References {
    /// The references of a repository. In a linked work tree, `HEAD` is its own.
    pub(crate) fn open(place: &Place, config: &Config, hash: gix_hash::Kind) -> Result<References> {
        if config.has_reftable()? {
            let mut all = reftable::read(&place.common.join("reftable"), hash)?;
            if place.own != place.common {
                let is_shared = |name: &String, _: &mut Value| name.starts_with("refs/") && !is_own(name);
                all.retain(is_shared);
                all.extend(reftable::read(&place.own.join("reftable"), hash)?);
            }
            return Ok(References::Table(all));
        }
        let mut store = match place.own == place.common {
            true => Store::at(place.own.clone(), hash),
            false => Store::for_linked_worktree(place.own.clone(), place.common.clone(), hash),
        };
        // A sandbox cannot map files into memory.
        store.set_packed_buffer_mmap_threshold(u64::MAX);
        Ok(References::Files(Box::new(store)))
    }

    /// All references below `refs/`, sorted by name, and the names of those that cannot be read or lead nowhere.
    pub(crate) fn all(&self) -> Result<(Vec<Reference>, Vec<String>)> {
        let (mut all, mut unreadable) = (Vec::new(), Vec::new());
        match self {
            References::Files(store) => {
                let platform = store.iter().map_err(Error::failed)?;
                for reference in platform.all().map_err(Error::failed)? {
                    let reference = match reference {
                        Ok(reference) => reference,
                        Err(error) => {
                            unreadable.push(error.to_string());
                            continue;
                        }
                    };
                    let name = crate::names::shown(reference.name.as_bstr()).into_owned();
                    match self.follow(value(reference.target, reference.peeled)) {
                        Ok(Some((id, peeled))) => all.push(Reference { name, id, peeled }),
                        _ => unreadable.push(name),
                    }
                }
            }
            References::Table(table) => {
                for (name, value) in table.iter().filter(|(name, _)| name.starts_with("refs/")) {
                    match self.follow(value.clone()) {
                        Ok(Some((id, peeled))) => all.push(Reference { name: name.clone(), id, peeled }),
                        _ => unreadable.push(name.clone()),
                    }
                }
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((all, unreadable))
    }

    /// The full name of the checked-out branch, and its commit. A detached HEAD has no branch. A new repository has no
    /// commit.
    pub(crate) fn head(&self) -> Result<(Option<String>, Option<ObjectId>)> {
        let Some(head) = self.named("HEAD").map_err(|error| Error::failed(format_args!("HEAD: {error}")))? else {
            return Ok((None, None));
        };
        let branch = match &head.target {
            Value::Symbolic(name) => Some(name.clone()),
            Value::Object(..) => None,
        };
        Ok((branch, self.follow(head.target)?.map(|(id, _)| id)))
    }

    /// The object that a name such as `main`, `v1.0` or `refs/heads/main` stands for. `None` if there is no such reference.
    /// The inner `None` is a branch without commits.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Option<ObjectId>>> {
        // An invalid name is an error of the store; it may still be a short ID.
        let Ok(Some(found)) = self.named(name) else { return Ok(None) };
        Ok(Some(self.follow(found.target)?.map(|(id, _)| id)))
    }

    fn named(&self, name: &str) -> Result<Option<Found>> {
        match self {
            References::Files(store) => {
                let found = store.try_find(name).map_err(Error::failed)?;
                Ok(found.map(|found| Found { target: value(found.target, found.peeled) }))
            }
            References::Table(table) => {
                let places = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
                let mut names: Vec<String> = places.iter().map(|start| format!("{start}{name}")).collect();
                names.push(format!("refs/remotes/{name}/HEAD"));
                Ok(names.iter().find_map(|name| table.get(name)).map(|target| Found { target: target.clone() }))
            }
        }
    }

    fn follow(&self, target: Value) -> Result<Option<(ObjectId, Option<ObjectId>)>> {
        let mut target = target;
        for _ in 0..MAX_CHAIN {
            match target {
                Value::Object(id, peeled) => return Ok(Some((id, peeled))),
                Value::Symbolic(name) => {
                    let next = self.named(&name);
                    match next.map_err(|error| Error::failed(format_args!("the reference \"{name}\": {error}")))? {
                        Some(found) => target = found.target,
                        None => return Ok(None),
                    }
                }
            }
        }
        Err(Error::failed("a chain of symbolic references is too long or a cycle; see  git symbolic-ref"))
    }
}

fn value(target: Target, peeled: Option<ObjectId>) -> Value {
    match target {
        Target::Object(id) => Value::Object(id, peeled),
        Target::Symbolic(name) => Value::Symbolic(name.as_bstr().to_string()),
    }
}

/// True for references that each work tree has for itself.
fn is_own(name: &str) -> bool {
    ["refs/bisect/", "refs/worktree/", "refs/rewritten/"].iter().any(|start| name.starts_with(start))
}
