//! The interface of `wit/`, generated, and its translation into the host's own model: the one place that knows version
//! 0.1 of it. Values are moved, never copied.

use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::InstancePre;

use super::state::State;
use crate::model::{
    Annotations, Answer, Body, Contents, Description, Icon, Operation, Page, ReadError, Reading, Resource, Role,
    Suggestions, Template,
};

mod generated {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "belljar:provider/full-provider",
        exports: { default: async },
    });
}

use generated::belljar::provider::types as wit;
use generated::exports::belljar::provider::{completion, resource_provider as provider, revisions};

/// A component that was checked against the interfaces that it exports and linked, ready to be instantiated.
pub(super) struct Ready {
    pre: InstancePre<State>,
    provider: provider::GuestIndices,
    completion: Option<completion::GuestIndices>,
    revisions: Option<revisions::GuestIndices>,
}

/// What an interface is called, with a version that any 0.1.x is matched to.
fn named(interface: &str) -> String {
    format!("belljar:provider/{interface}@0.1.0")
}

impl Ready {
    /// Finds the interfaces. An optional one that is not exported is absent; one that is exported with other types is an
    /// error, as with the mandatory one.
    pub(super) fn new(pre: InstancePre<State>) -> wasmtime::Result<Self> {
        let exports = |interface| pre.component().get_export_index(None, named(interface)).is_some();
        let completion = exports("completion").then(|| completion::GuestIndices::new(&pre)).transpose()?;
        let revisions = exports("revisions").then(|| revisions::GuestIndices::new(&pre)).transpose()?;
        Ok(Self { provider: provider::GuestIndices::new(&pre)?, completion, revisions, pre })
    }

    /// Instantiates and runs one export. The outer error is a trap or a limit, the inner one the provider's.
    pub(super) async fn run(
        &self,
        store: &mut Store<State>,
        operation: &Operation,
    ) -> wasmtime::Result<Result<Answer, ReadError>> {
        let absent = |interface| Ok(Err(ReadError::Internal(format!("{interface} is not exported"))));
        let instance = self.pre.instantiate_async(&mut *store).await?;
        Ok(match operation {
            Operation::Complete(completing) => {
                let Some(indices) = &self.completion else { return absent("completion") };
                let guest = indices.load(&mut *store, &instance)?;
                let resolved: Vec<_> = completing.resolved.iter().map(argument).collect();
                let argument = argument(&(completing.name.clone(), completing.value.clone()));
                guest
                    .call_complete(store, &completing.template, &argument, &resolved)
                    .await?
                    .map(|given| Answer::Suggestions(Suggestions { values: given.values, total: given.total }))
                    .map_err(Into::into)
            }
            Operation::CatalogRevision => {
                let Some(indices) = &self.revisions else { return absent("revisions") };
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_catalog_revision(store).await?.map(Answer::Revision).map_err(Into::into)
            }
            Operation::Revisions { references } => {
                let Some(indices) = &self.revisions else { return absent("revisions") };
                let guest = indices.load(&mut *store, &instance)?;
                let given = guest.call_resource_revisions(store, references).await?;
                Ok(Answer::Revisions(given.into_iter().map(|one| one.map_err(Into::into)).collect()))
            }
            Operation::Describe | Operation::List { .. } | Operation::Templates | Operation::Read { .. } => {
                let guest = self.provider.load(&mut *store, &instance)?;
                mandatory(&guest, store, operation).await?
            }
        })
    }
}

/// Runs an export of the mandatory interface.
async fn mandatory(
    guest: &provider::Guest,
    store: &mut Store<State>,
    operation: &Operation,
) -> wasmtime::Result<Result<Answer, ReadError>> {
    Ok(match operation {
        Operation::List { cursor } => guest
            .call_list_resources(store, cursor.as_deref())
            .await?
            .map(|page| Answer::Page(page.into()))
            .map_err(Into::into),
        Operation::Templates => guest
            .call_list_templates(store)
            .await?
            .map(|all| Answer::Templates(all.into_iter().map(Into::into).collect()))
            .map_err(Into::into),
        Operation::Read { reference } => {
            guest.call_read(store, reference).await?.map(|reading| Answer::Reading(reading.into())).map_err(Into::into)
        }
        _ => Ok(Answer::Description(guest.call_describe(store).await?.into())),
    })
}

fn argument((name, value): &(String, String)) -> completion::Argument {
    completion::Argument { name: name.clone(), value: value.clone() }
}

impl From<wit::ProviderError> for ReadError {
    fn from(error: wit::ProviderError) -> Self {
        // As the guest said it: `crossing` makes it fit to be shown.
        match error {
            wit::ProviderError::NotFound => Self::NotFound,
            wit::ProviderError::Invalid(why) => Self::Invalid(why),
            wit::ProviderError::Denied(why) => Self::Denied { message: why, denial: None },
            wit::ProviderError::Unavailable(why) => Self::Down(why),
            wit::ProviderError::Failed(why) => Self::Provider(why),
        }
    }
}

impl From<provider::ProviderInfo> for Description {
    fn from(info: provider::ProviderInfo) -> Self {
        Self { title: info.title, version: info.version, description: info.description }
    }
}

impl From<provider::ResourcePage> for Page {
    fn from(page: provider::ResourcePage) -> Self {
        Self { resources: page.resources.into_iter().map(Into::into).collect(), next: page.next_cursor }
    }
}

impl From<provider::Reading> for Reading {
    fn from(reading: provider::Reading) -> Self {
        Self {
            contents: reading.contents.into_iter().map(Into::into).collect(),
            fresh_for: reading.fresh_for.map(|ms| Duration::from_millis(ms.into())),
        }
    }
}

impl From<wit::ResourceInfo> for Resource {
    fn from(info: wit::ResourceInfo) -> Self {
        Self {
            reference: info.reference,
            name: info.name,
            title: info.title,
            description: info.description,
            mime_type: info.mime_type,
            size: info.size,
            annotations: info.annotations.map(Into::into),
            icons: info.icons.into_iter().map(Into::into).collect(),
            meta: info.meta,
        }
    }
}

impl From<wit::TemplateInfo> for Template {
    fn from(info: wit::TemplateInfo) -> Self {
        Self {
            template: info.template,
            name: info.name,
            title: info.title,
            description: info.description,
            mime_type: info.mime_type,
            annotations: info.annotations.map(Into::into),
            icons: info.icons.into_iter().map(Into::into).collect(),
            meta: info.meta,
        }
    }
}

impl From<wit::Annotations> for Annotations {
    fn from(annotations: wit::Annotations) -> Self {
        let role = |role| match role {
            wit::Role::User => Role::User,
            wit::Role::Assistant => Role::Assistant,
        };
        Self {
            audience: annotations.audience.into_iter().map(role).collect(),
            priority: annotations.priority,
            last_modified: annotations.last_modified,
        }
    }
}

impl From<wit::Icon> for Icon {
    fn from(icon: wit::Icon) -> Self {
        Self { src: icon.src, mime_type: icon.mime_type, sizes: icon.sizes }
    }
}

impl From<wit::Contents> for Contents {
    fn from(contents: wit::Contents) -> Self {
        let body = match contents.body {
            wit::Body::Text(text) => Body::Text(text),
            wit::Body::Blob(bytes) => Body::Blob(bytes),
        };
        Self { reference: contents.reference, mime_type: contents.mime_type, body, meta: contents.meta }
    }
}
