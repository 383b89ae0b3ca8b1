//! `completion`, an optional interface: suggests values for the variables of a template.

pub(super) mod conformance;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::fields::ENTRY_CHARGE;
use super::function::{Function, MountContext, Returned};
use super::generated::completion as generated;
use crate::grants::secrets::Redactor;
use crate::model::template::{expand, variables};
use crate::model::{CompletionInput, ReadError, Suggestions, reference, text};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "completion";

/// The indices of the interface's functions in a component.
pub(super) type CompletionIndices = generated::GuestIndices;

/// The most values in a response (MCP, completion).
pub const MAX_SUGGESTIONS: usize = 100;

/// The longest suggested value, in characters: the length of the longest URI.
pub(super) const MAX_VALUE: usize = reference::MAX_URI;

/// `complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete(pub CompletionInput);

fn argument((name, value): (&str, &str)) -> generated::Argument {
    generated::Argument { name: name.to_owned(), value: value.to_owned() }
}

impl Function for Complete {
    type Indices = CompletionIndices;
    type Reply = Suggestions;
    type Checked = Suggestions;
    const NAME: &'static str = "complete";
    const ACTION: Action = Action::Complete;

    fn input(&self) -> Option<Vec<&str>> {
        let CompletionInput { template, name, value, resolved } = &self.0;
        let resolved = resolved.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        Some([template.as_str(), name, value].into_iter().chain(resolved).collect())
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.0.template)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &CompletionIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Suggestions> {
        let guest = indices.load(&mut *store, instance)?;
        let CompletionInput { template, name, value, resolved } = &self.0;
        let resolved: Vec<_> = resolved.iter().map(|(name, value)| argument((name, value))).collect();
        let given = guest.call_complete(store, template, &argument((name, value)), &resolved).await?;
        Ok(given.map(|given| Suggestions { values: given.values, total: given.total }).map_err(Into::into))
    }

    fn bytes(given: &Suggestions) -> usize {
        given.values.iter().map(|value| value.len() + ENTRY_CHARGE).sum()
    }

    fn redact(Suggestions { values, total: _ }: &mut Suggestions, redactor: Option<&Redactor>) {
        if let Some(redactor) = redactor {
            values.iter_mut().for_each(|text| redactor.mask(text));
        }
    }

    /// Always measured: each value may be expanded and routed.
    fn effort(_: &Suggestions) -> usize {
        usize::MAX
    }

    /// Cleans the suggestions. Leaves out duplicates, long values, and values that expand the template to another
    /// mount's URI.
    fn check(&self, mut given: Suggestions, names: &dyn MountContext) -> Result<Suggestions, ReadError> {
        let asked = &self.0;
        let mut seen = HashSet::new();
        let values = given.values.into_iter().filter(|value| value.len() <= MAX_VALUE);
        let mut others = 0;
        let is_own = |value: &String| {
            let known =
                |name: &str| asked.resolved.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
            let value_of = |name: &str| if name == asked.name { Some(value.as_str()) } else { known(name) };
            // The URI is only known as far as the variables before this one have values.
            let mut before = variables(&asked.template).into_iter().take_while(|name| *name != asked.name);
            before.any(|name| known(name).is_none()) || names.absolute(&expand(&asked.template, value_of)).is_ok()
        };
        given.values = values
            .map(|value| text::cleaned(value, MAX_VALUE))
            .filter(|value| {
                let is_own = is_own(value);
                others += usize::from(!is_own);
                is_own && seen.insert(value.clone())
            })
            .take(MAX_SUGGESTIONS + 1)
            .collect();
        if others > 0 {
            given.total = None;
        }
        Ok(given)
    }
}
