//! Pieces of content: what tools and prompts return.

use super::{Annotations, Contents, Role};

/// One piece of content, with hints for clients. Made from text or [`Contents`] with `into()`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Block {
    /// The content.
    pub body: BlockBody,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
}

/// The content of a [`Block`].
#[derive(Debug, Clone, PartialEq)]
pub enum BlockBody {
    /// Text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A resource of this mount, by name. The host leaves it out for clients that do not know links.
    Link(Link),
    /// A resource of this mount, with its contents.
    Embedded(Contents),
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Media type, such as `image/png`. The host checks that the bytes begin as this type does.
    pub mime_type: String,
    /// The bytes, unencoded; the host encodes them in base64 for clients.
    pub data: Vec<u8>,
}

/// A resource that the client may read if it needs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// A reference below this mount.
    pub reference: String,
    /// A short name for programs and logs.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The contents of the resource.
    pub description: Option<String>,
    /// Media type of the contents.
    pub mime_type: Option<String>,
    /// Size of the contents in bytes.
    pub size: Option<u64>,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Whose message it is.
    pub role: Role,
    /// Its content.
    pub block: Block,
}

impl Block {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Block::from(BlockBody::Text(text.into()))
    }

    /// A picture of this media type.
    pub fn image(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Block::from(BlockBody::Image(Media { mime_type: mime_type.into(), data: data.into() }))
    }

    /// A sound of this media type.
    pub fn audio(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Block::from(BlockBody::Audio(Media { mime_type: mime_type.into(), data: data.into() }))
    }

    /// A resource of this mount, by name.
    pub fn link(link: Link) -> Self {
        Block::from(BlockBody::Link(link))
    }

    /// A resource of this mount, with its contents.
    pub fn embedded(contents: Contents) -> Self {
        Block::from(BlockBody::Embedded(contents))
    }

    /// Sets the hints for clients.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = Some(annotations);
        self
    }
}

impl From<BlockBody> for Block {
    fn from(body: BlockBody) -> Self {
        Block { body, annotations: None }
    }
}

impl From<&str> for Block {
    fn from(text: &str) -> Self {
        Block::text(text)
    }
}

impl From<String> for Block {
    fn from(text: String) -> Self {
        Block::text(text)
    }
}

impl From<Contents> for Block {
    fn from(contents: Contents) -> Self {
        Block::embedded(contents)
    }
}

impl From<Link> for Block {
    fn from(link: Link) -> Self {
        Block::link(link)
    }
}

impl Link {
    /// A link to `reference`, which is also its name until [`name`](Link::name) gives a better one.
    pub fn new(reference: impl Into<String>) -> Self {
        let reference = reference.into();
        Link { name: reference.clone(), reference, ..Link::default() }
    }

    /// Sets the name.
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

    /// Sets the size in bytes.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }
}

impl Message {
    /// A message of the person.
    pub fn user(block: impl Into<Block>) -> Self {
        Message { role: Role::User, block: block.into() }
    }

    /// A message of the model.
    pub fn assistant(block: impl Into<Block>) -> Self {
        Message { role: Role::Assistant, block: block.into() }
    }
}
