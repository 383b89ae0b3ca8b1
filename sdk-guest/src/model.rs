//! The data that a provider receives and returns, as plain types with builders. The fields are those of
//! `wit/provider.wit`, which describes each in full. Only `export` uses the generated types.

use std::time::{Duration, SystemTime};

use crate::{Error, Result};

pub(crate) mod ask;
pub(crate) mod block;
pub(crate) mod part;
pub(crate) mod prompt;
#[cfg(feature = "tools")]
mod schema;
pub(crate) mod skill;
#[cfg(feature = "tools")]
pub(crate) mod tool;

/// The last time of RFC 3339, in seconds since 1970.
const YEAR_10000: u64 = 253_402_300_800;

/// The description of a provider, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// A name for people.
    pub title: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The purpose of the provider, in a sentence or two.
    pub description: Option<String>,
}

/// One entry of the list: a resource without its contents.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Resource {
    /// The reference for `read`: relative to the mount and percent-encoded; see [`reference`](crate::reference).
    pub reference: String,
    /// A short name for programs and logs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// Its contents and when to use it.
    pub description: Option<String>,
    /// Media type of the contents.
    pub mime_type: Option<String>,
    /// Size of the contents in bytes.
    pub size: Option<u64>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// A family of resources that can be read, but are not all listed.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Template {
    /// A relative URI template (RFC 6570), such as `cities/{name}` or `{+path}`.
    pub template: String,
    /// A short name for programs and logs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The purpose of the template and the meaning of its variables.
    pub description: Option<String>,
    /// Media type of the contents, if all resources of the template have the same one.
    pub mime_type: Option<String>,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
    /// Pictures for user interfaces.
    pub icons: Vec<Icon>,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// Hints about how a client may use a resource.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// The intended audience; empty: unspecified.
    pub audience: Vec<Role>,
    /// From 0.0 (optional) to 1.0 (effectively required).
    pub priority: Option<f64>,
    /// The time of the last change, in RFC 3339: `2026-07-28T09:30:00Z`.
    pub last_modified: Option<String>,
}

/// The intended audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person in front of the client.
    User,
    /// The model.
    Assistant,
}

/// A picture that stands for a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// The location: a `data:` or `https:` URI.
    pub src: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The sizes it is made for, each as `48x48` or `any`.
    pub sizes: Vec<String>,
}

/// One page of the list.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The entries, in the list's order.
    pub resources: Vec<Resource>,
    /// The start of the next page; `None` on the last one. Must contain everything that the next call needs.
    pub next_cursor: Option<String>,
}

/// The result of reading a resource. Made from one [`Contents`] with `into()`, or from several with [`Reading::new`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// At least one content; several when the resource consists of parts.
    pub contents: Vec<Contents>,
    /// How long the host may serve this reading from its cache. `None`: the host must not cache it.
    pub fresh_for: Option<Duration>,
}

/// One content of a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// The reference of this content: the requested one, or one below it.
    pub reference: String,
    /// Media type of the body.
    pub mime_type: Option<String>,
    /// The content itself.
    pub body: Body,
    /// Further data: a key and the JSON text of its value.
    pub meta: Vec<(String, String)>,
}

/// Text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes that are not text. The provider returns them unencoded; the host encodes them in base64 for clients.
    Blob(Vec<u8>),
}

impl Body {
    /// The number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for it")]
    pub fn len(&self) -> usize {
        match self {
            Body::Text(text) => text.len(),
            Body::Blob(bytes) => bytes.len(),
        }
    }
}

/// A variable of a template, or an argument of a prompt, and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its name; for a variable, without operator: `path` for `{+path}`.
    pub name: String,
    /// Its value, not percent-encoded, and possibly incomplete.
    pub value: String,
}

/// Suggested values of a variable or an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestions {
    /// Whole values, best first.
    pub values: Vec<String>,
    /// The total number of values, if it is known and `values` does not contain all of them.
    pub total: Option<u32>,
}

/// The methods that [`Resource`] and [`Template`] share.
macro_rules! describing {
    ($type:ty) => {
        impl $type {
            /// Sets the name. By default, the name is the reference or the template.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.name = name.into();
                self
            }

            /// Sets the name for people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.title = Some(title.into());
                self
            }

            /// Sets the description.
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.description = Some(description.into());
                self
            }

            /// Sets the media type.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the hints for clients.
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.annotations = Some(annotations);
                self
            }

            /// Adds a picture.
            pub fn icon(mut self, icon: Icon) -> Self {
                self.icons.push(icon);
                self
            }

            /// Adds further data: `json` is the JSON text of one value.
            pub fn meta(mut self, key: impl Into<String>, json: impl Into<String>) -> Self {
                self.meta.push((key.into(), json.into()));
                self
            }
        }
    };
}

describing!(Resource);
describing!(Template);

impl Info {
    /// A provider with this name for people.
    pub fn new(title: impl Into<String>) -> Self {
        Info { title: Some(title.into()), ..Info::default() }
    }

    /// Sets the version, such as `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl Resource {
    /// An entry for `reference`, which is also its name until [`name`](Resource::name) gives a better one.
    pub fn new(reference: impl Into<String>) -> Self {
        let reference = reference.into();
        Resource { name: reference.clone(), reference, ..Resource::default() }
    }

    /// Sets the size in bytes.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }
}

impl Template {
    /// A template, which is also its name until [`name`](Template::name) gives a better one.
    pub fn new(template: impl Into<String>) -> Self {
        let template = template.into();
        Template { name: template.clone(), template, ..Template::default() }
    }
}

impl Annotations {
    /// Annotations without any hint.
    pub fn new() -> Self {
        Annotations::default()
    }

    /// Adds an intended audience.
    pub fn audience(mut self, role: Role) -> Self {
        self.audience.push(role);
        self
    }

    /// Sets the priority, from 0.0 to 1.0.
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the time of the last change, such as a file's. Leaves out times before 1970 and after 9999.
    pub fn last_modified_at(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok().filter(|since| since.as_secs() < YEAR_10000);
        self.last_modified = since.map(|_| humantime::format_rfc3339_seconds(time).to_string());
        self
    }

    /// Sets the time of the last change, in RFC 3339.
    pub fn last_modified(mut self, rfc3339: impl Into<String>) -> Self {
        self.last_modified = Some(rfc3339.into());
        self
    }
}

impl Icon {
    /// A picture at a `data:` or `https:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Icon { src: src.into(), ..Icon::default() }
    }

    /// Sets the media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size, as `48x48` or `any`.
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }
}

impl Page {
    /// A page with these entries. It is the last page, unless [`next_cursor`](Page::next_cursor) sets a cursor.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Self {
        Page { resources: resources.into_iter().collect(), next_cursor: None }
    }

    /// Sets the cursor of the next page.
    pub fn next_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.next_cursor = Some(cursor.into());
        self
    }

    /// The page of at most `size` entries that comes after `cursor`, from entries in ascending byte order of their
    /// references.
    ///
    /// The cursor is the last reference of the previous page. Entries may appear and disappear between two calls, and no
    /// other entry is skipped or listed twice. `entries` is consumed only as far as needed.
    pub fn of(entries: impl IntoIterator<Item = Resource>, cursor: Option<&str>, size: usize) -> Self {
        let mut rest =
            entries.into_iter().skip_while(|entry| cursor.is_some_and(|cursor| entry.reference.as_str() <= cursor));
        let resources: Vec<Resource> = rest.by_ref().take(size.max(1)).collect();
        let next_cursor = rest.next().and(resources.last().map(|last| last.reference.clone()));
        Page { resources, next_cursor }
    }

    /// The page of at most `size` entries at `cursor`, which is the number of entries before it. For entries in any fixed
    /// order that seldom change. `entries` is consumed only as far as needed.
    ///
    /// Fails with [`Error::Invalid`] for a cursor that is not a number, or beyond the end.
    pub fn at_offset(entries: impl IntoIterator<Item = Resource>, cursor: Option<&str>, size: usize) -> Result<Self> {
        let foreign =
            |cursor: &str| Error::invalid(format_args!("the cursor \"{cursor}\" is not one of this provider's"));
        let offset = match cursor {
            None => 0,
            Some(cursor) if cursor.bytes().all(|b| b.is_ascii_digit()) => {
                cursor.parse().map_err(|_| foreign(cursor))?
            }
            Some(cursor) => return Err(foreign(cursor)),
        };
        let mut rest = entries.into_iter();
        let skipped = rest.by_ref().take(offset).count();
        if let Some(cursor) = cursor.filter(|_| skipped < offset) {
            return Err(foreign(cursor));
        }
        let resources: Vec<Resource> = rest.by_ref().take(size.max(1)).collect();
        let next_cursor = rest.next().map(|_| (offset + resources.len()).to_string());
        Ok(Page { resources, next_cursor })
    }
}

impl Reading {
    /// A reading of several contents. For a single one, use `contents.into()`.
    pub fn new(contents: impl IntoIterator<Item = Contents>) -> Self {
        Reading { contents: contents.into_iter().collect(), fresh_for: None }
    }

    /// Lets the host serve this reading from its cache for this time. The operator may set a shorter time.
    pub fn fresh_for(mut self, time: Duration) -> Self {
        self.fresh_for = Some(time);
        self
    }
}

impl From<Contents> for Reading {
    fn from(contents: Contents) -> Self {
        Reading::new([contents])
    }
}

impl Contents {
    /// Text.
    pub fn text(reference: impl Into<String>, text: impl Into<String>) -> Self {
        Contents::with(reference.into(), Body::Text(text.into()))
    }

    /// Bytes that are not text.
    pub fn blob(reference: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Contents::with(reference.into(), Body::Blob(bytes.into()))
    }

    /// Text when the bytes are valid UTF-8, a blob otherwise.
    pub fn from_bytes(reference: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let body = String::from_utf8(bytes.into()).map_or_else(|error| Body::Blob(error.into_bytes()), Body::Text);
        Contents::with(reference.into(), body)
    }

    /// Sets the media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds further data: `json` is the JSON text of one value.
    pub fn meta(mut self, key: impl Into<String>, json: impl Into<String>) -> Self {
        self.meta.push((key.into(), json.into()));
        self
    }

    /// True if the body is text.
    pub fn is_text(&self) -> bool {
        matches!(self.body, Body::Text(_))
    }

    fn with(reference: String, body: Body) -> Self {
        Contents { reference, mime_type: None, body, meta: Vec::new() }
    }
}

impl Argument {
    /// A name and its value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Argument { name: name.into(), value: value.into() }
    }
}

impl Suggestions {
    /// The most values that clients get.
    pub const MAX: usize = 100;

    /// These values, best first.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Suggestions { values: values.into_iter().map(Into::into).collect(), total: None }
    }

    /// Sets the total number of values.
    pub fn total(mut self, total: u32) -> Self {
        self.total = Some(total);
        self
    }

    /// The known values that begin with `prefix`, ignoring the case of ASCII letters: at most
    /// [`Suggestions::MAX`], and the number of all.
    pub fn starting_with<S: AsRef<str>>(prefix: &str, known: impl IntoIterator<Item = S>) -> Self {
        let begins = |value: &str| value.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        let mut values = Vec::new();
        let mut total: u32 = 0;
        for value in known.into_iter().filter(|value| begins(value.as_ref())) {
            total = total.saturating_add(1);
            if values.len() < Suggestions::MAX {
                values.push(value.as_ref().to_owned());
            }
        }
        Suggestions { values, total: Some(total) }
    }
}

#[cfg(test)]
mod tests;
