//! Pieces of content that tools and prompts give.

use serde::{Deserialize, Serialize};

use super::resource::{Annotations, Contents, Role};

/// A picture or a sound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// Its MIME type.
    pub mime_type: String,
    /// Its bytes.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

/// A resource that the client may read. `reference` is relative when it comes from a guest, and absolute after its check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Relative reference or absolute URI, see above.
    pub reference: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For people and models.
    pub description: Option<String>,
    /// The MIME type of the contents.
    pub mime_type: Option<String>,
    /// Size in bytes.
    pub size: Option<u64>,
}

/// The body of a [`Block`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BlockBody {
    /// Text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A resource of the mount, by name.
    Link(Link),
    /// A resource of the mount, with its contents.
    Embedded(Contents),
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The content.
    pub body: BlockBody,
    /// Hints for clients.
    pub annotations: Option<Annotations>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Whose message it is.
    pub role: Role,
    /// Its content.
    pub block: Block,
}
