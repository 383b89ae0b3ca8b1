//! The data of a provider: its description, listed resources and templates, contents.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::meta::PARTS;
use super::part::Part;

/// How a provider describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// For people.
    pub title: Option<String>,
    /// The provider's own version.
    pub version: Option<String>,
    /// The purpose of the provider.
    pub description: Option<String>,
}

/// The audience of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The human user.
    User,
    /// The language model.
    Assistant,
}

/// Hints for the client about a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Annotations {
    /// The audience; empty if unspecified.
    pub audience: Vec<Role>,
    /// From 0 (optional) to 1 (effectively required).
    pub priority: Option<f64>,
    /// RFC 3339.
    pub last_modified: Option<String>,
}

/// A picture for a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// The picture's MIME type.
    pub mime_type: Option<String>,
    /// `48x48`, `any`.
    pub sizes: Vec<String>,
}

/// Entries of `_meta`: pairs of a name and JSON text.
pub type Meta = Vec<(String, String)>;

/// One entry of a listing. `reference` is relative when it comes from a guest. The catalog makes it absolute after its
/// checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Relative reference or absolute URI, see above.
    pub reference: String,
    /// The name for programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// The MIME type of the contents.
    pub mime_type: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

#[cfg(test)]
impl Resource {
    /// An entry with nothing but a reference and a name.
    pub fn named(reference: &str, name: &str) -> Self {
        Self {
            reference: reference.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            annotations: None,
            icons: Vec::new(),
            meta: Vec::new(),
        }
    }
}

/// A family of resources, named by an RFC 6570 template. Relative or absolute as [`Resource::reference`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// The RFC 6570 template.
    pub template: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// The MIME type, if all resources have the same one.
    pub mime_type: Option<String>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

#[cfg(test)]
impl Template {
    /// An entry with nothing but a template and a name.
    pub fn named(template: &str, name: &str) -> Self {
        Self {
            template: template.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: Vec::new(),
            meta: Vec::new(),
        }
    }
}

/// One page of a provider's listing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The entries.
    pub resources: Vec<Resource>,
    /// The provider's cursor for the next page; `None` on the last page.
    pub next: Option<String>,
}

/// Text or bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Valid UTF-8.
    Text(String),
    /// Arbitrary bytes.
    Blob(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Body {
    /// Length in bytes, before any encoding.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }

    /// True if the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, Self::Text(_)) { "text" } else { "blob" };
        write!(f, "{kind} of {} bytes", self.len())
    }
}

/// One part of the result of a read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// Relative when it comes from a guest; the gateway makes it absolute after its checks.
    pub reference: String,
    /// MIME type.
    pub mime_type: Option<String>,
    /// The body.
    pub body: Body,
    /// Entries of `_meta` for the client.
    pub meta: Meta,
}

impl Resource {
    /// Says in `_meta` that the resource is longer than one read gives, and is read in parts. `limit` is the length that one
    /// read gives in bytes; `None` if there are no parts.
    #[inline]
    pub fn mark_parts(&mut self, limit: Option<u64>) {
        if let (Some(limit), Some(size)) = (limit, self.size)
            && size > limit
        {
            self.meta.push((PARTS.to_owned(), format!("{{\"most\":{limit}}}")));
        }
    }
}

/// The result of a read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// At least one part.
    pub contents: Vec<Contents>,
    /// How long the provider allows caches to serve this result. `None`: not at all.
    pub fresh_for: Option<Duration>,
    /// The position of the contents, if they are a part of the resource.
    pub part: Option<Part>,
}

impl Reading {
    /// The bodies of the contents, in their order.
    pub fn bodies_mut(&mut self) -> Vec<&mut Body> {
        self.contents.iter_mut().map(|contents| &mut contents.body).collect()
    }
}
