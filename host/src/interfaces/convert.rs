//! Converts the generated types of version 0.1 into the host's own model. Values are moved, never copied.

use std::time::Duration;

use super::generated::resource_provider as provider;
use super::generated::types as wit;
use crate::model::{
    Annotations, Body, Contents, Description, Icon, Page, ReadError, Reading, Resource, Role, Template,
};

impl From<wit::ProviderError> for ReadError {
    fn from(error: wit::ProviderError) -> Self {
        // The raw texts of the guest; `redaction` cleans them.
        match error {
            wit::ProviderError::NotFound => Self::NotFound,
            wit::ProviderError::Invalid(why) => Self::Invalid(why),
            wit::ProviderError::Denied(why) => Self::Denied { message: why, denial: None },
            wit::ProviderError::Unavailable(why) => Self::ProviderUnavailable(why),
            wit::ProviderError::Failed(why) => Self::ProviderFailed(why),
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
            part: None,
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
        Self {
            audience: annotations.audience.into_iter().map(role).collect(),
            priority: annotations.priority,
            last_modified: annotations.last_modified,
        }
    }
}

/// An audience, or the author of a message.
pub(super) fn role(role: wit::Role) -> Role {
    match role {
        wit::Role::User => Role::User,
        wit::Role::Assistant => Role::Assistant,
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
