//! `revisions`, an optional interface: a revision changes when a list or a resource changes.

pub(super) mod conformance;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::fields::ENTRY_CHARGE;
use super::function::{Function, MountContext, Returned};
use super::generated::revisions as generated;
use super::redaction;
use crate::grants::secrets::Redactor;
use crate::model::ReadError;
use crate::model::bounds::MAX_REVISION;
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "revisions";

/// The indices of the interface's functions in a component.
pub(super) type RevisionIndices = generated::GuestIndices;

/// `catalog-revision`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogRevision;

impl Function for CatalogRevision {
    type Indices = RevisionIndices;
    type Reply = String;
    type Checked = String;
    const NAME: &'static str = "catalog-revision";
    // A list asks for it, to learn whether its cached entries are current.
    const ACTION: Action = Action::List;

    async fn call<T: Send + 'static>(
        &self,
        indices: &RevisionIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<String> {
        let guest = indices.load(&mut *store, instance)?;
        Ok(guest.call_catalog_revision(store).await?.map_err(Into::into))
    }

    fn bytes(revision: &String) -> usize {
        revision.len()
    }

    fn redact(revision: &mut String, redactor: Option<&Redactor>) {
        if let Some(redactor) = redactor {
            redactor.mask(revision);
        }
    }

    fn check(&self, revision: String, _: &dyn MountContext) -> Result<String, ReadError> {
        self::revision(revision)
    }
}

/// `resource-revisions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRevisions {
    /// The relative references, already checked.
    pub references: Vec<String>,
}

impl Function for ResourceRevisions {
    type Indices = RevisionIndices;
    /// One result for each reference, in order. The number is checked later.
    type Reply = Vec<Result<String, ReadError>>;
    type Checked = Vec<Result<String, ReadError>>;
    const NAME: &'static str = "resource-revisions";
    const ACTION: Action = Action::Watch;

    fn input(&self) -> Option<Vec<&str>> {
        match self.references.as_slice() {
            [one] => Some(vec![one]),
            _ => None,
        }
    }

    fn shown(&self) -> Option<&str> {
        self.references.first().map(String::as_str)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &RevisionIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Self::Reply> {
        let guest = indices.load(&mut *store, instance)?;
        let given = guest.call_resource_revisions(store, &self.references).await?;
        Ok(Ok(given.into_iter().map(|one| one.map_err(Into::into)).collect()))
    }

    fn bytes(all: &Self::Reply) -> usize {
        all.iter().map(|one| ENTRY_CHARGE + one.as_ref().map_or(0, String::len)).sum()
    }

    fn redact(all: &mut Self::Reply, redactor: Option<&Redactor>) {
        for one in all {
            match (one, redactor) {
                (Ok(revision), Some(redactor)) => redactor.mask(revision),
                (Ok(_), None) => {}
                (Err(error), _) => redaction::redact_error(error, redactor),
            }
        }
    }

    /// Checks that there is one revision for each reference.
    fn check(&self, given: Self::Reply, _: &dyn MountContext) -> Result<Self::Checked, ReadError> {
        if given.len() != self.references.len() {
            return Err(ReadError::BadOutput(format!(
                "resource-revisions gave {} results for {} references; expected one for each",
                given.len(),
                self.references.len()
            )));
        }
        Ok(given.into_iter().map(|one| one.and_then(revision)).collect())
    }
}

/// Checks the length of a revision.
fn revision(given: String) -> Result<String, ReadError> {
    let (bytes, most) = (given.len(), MAX_REVISION.get());
    if bytes > most {
        return Err(ReadError::BadOutput(format!("a revision has {bytes} bytes; the limit is {most}")));
    }
    Ok(given)
}
