//! The pieces of content that tools and prompts give: conversion, size, masking and check.

use super::convert::role;
use super::fields::{
    ENTRY_CHARGE, MAX_SAFE_INTEGER, clean_annotations, clean_description, clean_meta, clean_name, meta_bytes,
    name_or_uri, text_bytes, unless_unguarded, valid_mime_type,
};
use super::function::MountContext;
use super::generated::call_types as wit;
use super::redaction::{mask_annotations, mask_contents, mask_optional};
use crate::grants::secrets::Redactor;
use crate::model::bounds::MAX_BLOCKS;
use crate::model::{Block, BlockBody, Contents, Guard, Link, Media, Message, ReadError, reference, text};

impl From<wit::Media> for Media {
    fn from(media: wit::Media) -> Self {
        Self { mime_type: media.mime_type, data: media.data }
    }
}

impl From<wit::Link> for Link {
    fn from(link: wit::Link) -> Self {
        let wit::Link { reference, name, title, description, mime_type, size } = link;
        Self { reference, name, title, description, mime_type, size }
    }
}

impl From<wit::Block> for Block {
    fn from(block: wit::Block) -> Self {
        let body = match block.body {
            wit::BlockBody::Text(text) => BlockBody::Text(text),
            wit::BlockBody::Image(media) => BlockBody::Image(media.into()),
            wit::BlockBody::Audio(media) => BlockBody::Audio(media.into()),
            wit::BlockBody::Link(link) => BlockBody::Link(link.into()),
            wit::BlockBody::Embedded(contents) => BlockBody::Embedded(contents.into()),
        };
        Self { body, annotations: block.annotations.map(Into::into) }
    }
}

impl From<wit::Message> for Message {
    fn from(message: wit::Message) -> Self {
        Self { role: role(message.role), block: message.block.into() }
    }
}

/// The size of a block in bytes.
pub(super) fn bytes(block: &Block) -> usize {
    let body = match &block.body {
        BlockBody::Text(text) => text.len(),
        BlockBody::Image(media) | BlockBody::Audio(media) => media.mime_type.len() + media.data.len(),
        BlockBody::Link(Link { reference, name, title, description, mime_type, size: _ }) => {
            let texts = [title, description, mime_type].into_iter().map(|text| text_bytes(text.as_ref()));
            reference.len() + name.len() + texts.sum::<usize>()
        }
        BlockBody::Embedded(contents) => {
            contents.reference.len()
                + text_bytes(contents.mime_type.as_ref())
                + contents.body.len()
                + meta_bytes(&contents.meta)
        }
    };
    ENTRY_CHARGE + body
}

/// Masks the secrets in a block.
pub(super) fn mask(block: &mut Block, redactor: &Redactor) {
    let Block { body, annotations } = block;
    match body {
        BlockBody::Text(text) => redactor.mask(text),
        BlockBody::Image(Media { mime_type, data }) | BlockBody::Audio(Media { mime_type, data }) => {
            redactor.mask(mime_type);
            redactor.mask_bytes(data);
        }
        BlockBody::Link(Link { reference, name, title, description, mime_type, size: _ }) => {
            [reference, name].into_iter().for_each(|text| redactor.mask(text));
            [title, description, mime_type].into_iter().for_each(|text| mask_optional(text, redactor));
        }
        BlockBody::Embedded(contents) => mask_contents(contents, redactor),
    }
    mask_annotations(annotations, redactor);
}

/// Checks the number of blocks in a reply of `function`.
pub(super) fn check_number(count: usize, function: &str) -> Result<(), ReadError> {
    let most = MAX_BLOCKS.get();
    match count > most {
        true => Err(ReadError::BadOutput(format!("{function} gave {count} pieces of content; the limit is {most}"))),
        false => Ok(()),
    }
}

/// Checks a block in a reply of `function`, and makes the names in it absolute.
pub(super) fn check(block: Block, function: &str, names: &dyn MountContext) -> Result<Block, ReadError> {
    let refuse = |why: String| ReadError::BadOutput(format!("{function} gave {why}"));
    let absolute = |given: &str| {
        let shown = || text::quoted(given, 100);
        reference::check(given).map_err(|why| refuse(format!("the reference {}, which {why}", shown())))?;
        names.absolute(given).map_err(|why| refuse(format!("the reference {}, and {why}", shown())))
    };
    let body = match block.body {
        BlockBody::Text(text) => BlockBody::Text(text),
        BlockBody::Image(media) => BlockBody::Image(check_media(media, "image", refuse)?),
        BlockBody::Audio(media) => BlockBody::Audio(check_media(media, "audio", refuse)?),
        BlockBody::Link(link) => {
            let uri = absolute(&link.reference)?;
            BlockBody::Link(Link {
                name: name_or_uri(clean_name(link.name), &uri),
                reference: uri,
                title: link.title.map(clean_name),
                description: link.description.map(clean_description),
                mime_type: valid_mime_type(link.mime_type),
                size: link.size.filter(|size| *size <= MAX_SAFE_INTEGER),
            })
        }
        BlockBody::Embedded(contents) => BlockBody::Embedded(Contents {
            reference: absolute(&contents.reference)?,
            mime_type: valid_mime_type(contents.mime_type),
            body: contents.body,
            meta: clean_meta(contents.meta),
        }),
    };
    let annotations = unless_unguarded(block.annotations, |given| given.and_then(clean_annotations));
    Ok(Block { body, annotations })
}

/// Checks that `media` is of `class` and that its bytes are what its type says.
fn check_media(media: Media, class: &str, refuse: impl Fn(String) -> ReadError) -> Result<Media, ReadError> {
    if !Guard::Media.is_on() {
        return Ok(media);
    }
    let shown = text::quoted(&media.mime_type, 80);
    let mime = valid_mime_type(Some(media.mime_type));
    let Some(mime_type) = mime.filter(|mime| mime.split_once('/').is_some_and(|(kind, _)| kind == class)) else {
        return Err(refuse(format!("content of the class \"{class}\" with the type {shown}; expected {class}/...")));
    };
    if essence(&mime_type) == "image/svg+xml" {
        let why = format!("a picture of the type {shown}, which can hold scripts; expected an embedded resource");
        return Err(refuse(why));
    }
    match is_of_type(&media.data, &mime_type) {
        true => Ok(Media { mime_type, data: media.data }),
        false => Err(refuse(format!("bytes that are not of their type {shown}"))),
    }
}

/// A media type in lower case, without parameters, by the name that `infer` uses.
fn essence(mime: &str) -> String {
    let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (class, subtype) = essence.split_once('/').unwrap_or_default();
    let subtype = subtype.strip_prefix("x-").unwrap_or(subtype);
    let subtype = match subtype {
        "mp3" => "mpeg",
        "wave" | "vnd.wave" => "wav",
        "jpg" => "jpeg",
        "mp4" => "m4a",
        "vnd.microsoft.icon" => "icon",
        "ms-bmp" => "bmp",
        other => other,
    };
    format!("{class}/{subtype}")
}

/// True if `data` begins as contents of the type `mime` do.
fn is_of_type(data: &[u8], mime: &str) -> bool {
    let wanted = essence(mime);
    infer::get(data).is_some_and(|found| essence(found.mime_type()) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_what_they_claim_to_be() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
        let wav = b"RIFF\x24\0\0\0WAVEfmt ".as_slice();
        for (data, mime) in [
            (png, "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"GIF89a\x01\0\x01\0", "image/gif"),
            (wav, "audio/wav"),
            (wav, "audio/x-wav"),
            (b"ID3\x04\0\0\0\0\0\0", "audio/mpeg"),
        ] {
            assert!(is_of_type(data, mime), "{mime}");
        }
        for (data, mime) in [
            (png, "image/jpeg"),
            (b"<html><script>".as_slice(), "image/png"),
            (b"", "image/png"),
            (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
            (png, "audio/wav"),
            (wav, "audio/mpeg"),
        ] {
            assert!(!is_of_type(data, mime), "{mime}");
        }
    }
}
