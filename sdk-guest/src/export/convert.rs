//! Converts between the generated types and those of [`crate::model`], and implements the generated traits for every
//! provider. Conversions move values, and copy no text.

mod call;
mod part;
mod prompt;
mod skill;
#[cfg(feature = "tools")]
mod tool;

use std::time::Duration;

use super::provider::belljar::provider::types as wit;
use super::provider::exports::belljar::provider::resource_provider;
use super::{Exported, completion, revisions};
use crate::provider::call;
use crate::{
    Annotations, Argument, Body, Completion, Contents, Error, Icon, Info, Page, Provider, Reading, Resource, Revisions,
    Role, Suggestions, Template,
};

use completion::exports::belljar::provider::completion as wit_completion;
use revisions::exports::belljar::provider::revisions as wit_revisions;

impl<P: Provider> resource_provider::Guest for Exported<P> {
    fn describe() -> resource_provider::ProviderInfo {
        let Info { title, version, description } = P::describe();
        resource_provider::ProviderInfo { title, version, description }
    }

    fn list_resources(cursor: Option<String>) -> Result<resource_provider::ResourcePage, wit::ProviderError> {
        let Page { resources, next_cursor } = call(|provider: &P| provider.list_resources(cursor.as_deref()))?;
        Ok(resource_provider::ResourcePage { resources: into_all(resources), next_cursor })
    }

    fn list_templates() -> Result<Vec<wit::TemplateInfo>, wit::ProviderError> {
        Ok(into_all(call(|provider: &P| provider.list_templates())?))
    }

    fn read(reference: String) -> Result<resource_provider::Reading, wit::ProviderError> {
        let Reading { contents, fresh_for } = call(|provider: &P| provider.read(&reference))?;
        Ok(resource_provider::Reading { contents: into_all(contents), fresh_for: fresh_for.map(milliseconds) })
    }
}

impl<P: Completion> wit_completion::Guest for Exported<P> {
    fn complete(
        template: String,
        argument: wit_completion::Argument,
        resolved: Vec<wit_completion::Argument>,
    ) -> Result<wit_completion::Suggestions, wit::ProviderError> {
        let (argument, resolved): (Argument, Vec<Argument>) = (argument.into(), into_all(resolved));
        let Suggestions { values, total } = call(|provider: &P| provider.complete(&template, &argument, &resolved))?;
        Ok(wit_completion::Suggestions { values, total })
    }
}

impl<P: Revisions> wit_revisions::Guest for Exported<P> {
    fn catalog_revision() -> Result<String, wit::ProviderError> {
        Ok(call(|provider: &P| provider.catalog_revision())?)
    }

    fn resource_revisions(references: Vec<String>) -> Vec<Result<String, wit::ProviderError>> {
        match call(|provider: &P| Ok(provider.resource_revisions(&references))) {
            Ok(revisions) => revisions.into_iter().map(|revision| revision.map_err(Into::into)).collect(),
            Err(error) => references.iter().map(|_| Err(error.clone().into())).collect(),
        }
    }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn into_all<A: Into<B>, B>(all: Vec<A>) -> Vec<B> {
    all.into_iter().map(Into::into).collect()
}

impl From<Error> for wit::ProviderError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => wit::ProviderError::NotFound,
            Error::Invalid(why) => wit::ProviderError::Invalid(why),
            Error::Denied(why) => wit::ProviderError::Denied(why),
            Error::Unavailable(why) => wit::ProviderError::Unavailable(why),
            Error::Failed(why) => wit::ProviderError::Failed(why),
        }
    }
}

impl From<Resource> for wit::ResourceInfo {
    fn from(resource: Resource) -> Self {
        let Resource { reference, name, title, description, mime_type, size, annotations, icons, meta } = resource;
        wit::ResourceInfo {
            reference,
            name,
            title,
            description,
            mime_type,
            size,
            annotations: annotations.map(Into::into),
            icons: into_all(icons),
            meta,
        }
    }
}

impl From<Template> for wit::TemplateInfo {
    fn from(template: Template) -> Self {
        let Template { template, name, title, description, mime_type, annotations, icons, meta } = template;
        wit::TemplateInfo {
            template,
            name,
            title,
            description,
            mime_type,
            annotations: annotations.map(Into::into),
            icons: into_all(icons),
            meta,
        }
    }
}

impl From<Annotations> for wit::Annotations {
    fn from(annotations: Annotations) -> Self {
        let Annotations { audience, priority, last_modified } = annotations;
        wit::Annotations { audience: into_all(audience), priority, last_modified }
    }
}

impl From<Role> for wit::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => wit::Role::User,
            Role::Assistant => wit::Role::Assistant,
        }
    }
}

impl From<Icon> for wit::Icon {
    fn from(icon: Icon) -> Self {
        let Icon { src, mime_type, sizes } = icon;
        wit::Icon { src, mime_type, sizes }
    }
}

impl From<Contents> for wit::Contents {
    fn from(contents: Contents) -> Self {
        let Contents { reference, mime_type, body, meta } = contents;
        let body = match body {
            Body::Text(text) => wit::Body::Text(text),
            Body::Blob(bytes) => wit::Body::Blob(bytes),
        };
        wit::Contents { reference, mime_type, body, meta }
    }
}

impl From<wit_completion::Argument> for Argument {
    fn from(argument: wit_completion::Argument) -> Self {
        let wit_completion::Argument { name, value } = argument;
        Argument { name, value }
    }
}
