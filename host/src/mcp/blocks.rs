//! Converts the blocks of tools and prompts to rmcp's types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, Resource, ResourceContents, Role, TextContent,
};

use super::{bodies, convert};
use crate::model::{self, Block, BlockBody, Body, Contents, Link, Media, MountName};

/// The author of a message.
pub(super) fn role(role: model::Role) -> Role {
    match role {
        model::Role::User => Role::User,
        model::Role::Assistant => Role::Assistant,
    }
}

/// A block of a provider of `mount`.
pub(super) fn block(block: Block, mount: &MountName) -> ContentBlock {
    let annotations = block.annotations.map(convert::annotations);
    match block.body {
        BlockBody::Text(text) => {
            let mut out = TextContent::new(text);
            out.annotations = annotations;
            ContentBlock::Text(out)
        }
        BlockBody::Image(Media { mime_type, data }) => {
            let mut out = ImageContent::new(STANDARD.encode(data), mime_type);
            out.annotations = annotations;
            ContentBlock::Image(out)
        }
        BlockBody::Audio(Media { mime_type, data }) => {
            let mut out = AudioContent::new(STANDARD.encode(data), mime_type);
            out.annotations = annotations;
            ContentBlock::Audio(out)
        }
        BlockBody::Link(link) => {
            let Link { reference, name, title, description, mime_type, size } = link;
            let mut out = Resource::new(reference, name);
            (out.title, out.description, out.mime_type, out.size) = (title, description, mime_type, size);
            out.annotations = annotations;
            ContentBlock::resource_link(out)
        }
        BlockBody::Embedded(contents) => {
            let mut out = EmbeddedResource::new(embedded(contents, mount));
            out.annotations = annotations;
            ContentBlock::Resource(out)
        }
    }
}

fn embedded(contents: Contents, mount: &MountName) -> ResourceContents {
    let Contents { reference: uri, mime_type, body, meta } = contents;
    let meta = Some(convert::meta(meta, mount));
    let is_text = matches!(body, Body::Text(_));
    let body = bodies::encode(body);
    match is_text {
        true => ResourceContents::TextResourceContents { uri, mime_type, text: body, meta },
        false => ResourceContents::BlobResourceContents { uri, mime_type, blob: body, meta },
    }
}

/// Bytes that a block takes in a message, without escapes.
pub(super) fn encoded_len(block: &Block) -> usize {
    match &block.body {
        BlockBody::Text(text) => text.len(),
        BlockBody::Image(media) | BlockBody::Audio(media) => media.data.len().div_ceil(3) * 4,
        BlockBody::Link(_) => 0,
        BlockBody::Embedded(contents) => bodies::encoded_len(&contents.body),
    }
}
