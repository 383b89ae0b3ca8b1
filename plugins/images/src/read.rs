//! Reads a picture: its bytes, or a smaller picture that is made of it.

use std::io::BufReader;

use belljar_guest::{Contents, Error, Result};
use belljar_tree::{File, Tree};

use crate::decode::{Decoded, decode};
use crate::encode::{Encoded, Wanted, encode};
use crate::exif;
use crate::facts::Facts;
use crate::hide::hide;
use crate::orient::upright;
use crate::query::{Picture, Query};
use crate::scale::{PIXEL, Raster, Scaler, fit};
use crate::{Settings, orient};

/// How many bytes of a file are read at once.
const BUFFER: usize = 64 * 1024;

/// The longest side of a picture that is made because the file does not fit into an answer. Twice of it takes twice the fuel
/// for a screenshot of 3,840 by 2,160 pixels, more than a call has.
const SMALLER: u32 = 1024;

/// The smallest side of a picture that is made because the file does not fit into an answer.
const MIN_SIDE: u32 = 64;

/// The bytes of an answer that are left for the note beside a picture.
const NOTE_BYTES: u64 = 2048;

/// A small picture, upright.
#[derive(Debug)]
pub(crate) struct Thumbnail {
    pub(crate) raster: Raster,
    pub(crate) profile: Option<Vec<u8>>,
    pub(crate) missing: Option<String>,
    /// The dimensions of the file's picture, upright.
    pub(crate) full: (u32, u32),
}

/// A file as a source for parsers.
pub(crate) fn source(tree: &Tree, picture: &Picture) -> Result<BufReader<File>> {
    Ok(BufReader::with_capacity(BUFFER, tree.open(&picture.path)?))
}

/// The facts of a picture.
pub(crate) fn facts(tree: &Tree, picture: &Picture) -> Result<Facts> {
    Ok(Facts::of(picture.format, &mut source(tree, picture)?))
}

/// The contents of a picture: a smaller one if the query has a size, or if the file has more than `most` bytes.
pub(crate) fn picture(
    tree: &Tree,
    reference: &str,
    picture: &Picture,
    query: &Query,
    settings: Settings,
    most: u64,
) -> Result<Vec<Contents>> {
    if query.size.is_none() && picture.meta.size <= most {
        let bytes = original(tree, picture, settings)?;
        return Ok(vec![Contents::blob(reference, bytes).mime_type(picture.format.mime_type())]);
    }
    let room = most.saturating_sub(NOTE_BYTES);
    let (name, bytes) = (&picture.path, picture.meta.size);
    if let (Some(why), None) = (picture.format.undecoded(), query.size) {
        return Err(Error::failed(format_args!(
            "\"{name}\" has {bytes} bytes, more than the {most} of an answer, and cannot be made smaller, because {why}: read it in \
             parts, such as ?bytes=0-65535"
        )));
    }
    let thumbnail =
        thumbnail(tree, picture, query.size.unwrap_or(SMALLER), settings).map_err(|error| named(name, error))?;
    // A photo as PNG would not fit either.
    let wanted =
        query.format.or_else(|| (query.size.is_none() && thumbnail.raster.is_opaque()).then_some(Wanted::Jpeg));
    let (encoded, (width, height)) = encode_within(&thumbnail, picture, wanted, room)?;
    let mut notes = Vec::new();
    if query.size.is_none() {
        notes.push(format!(
            "\"{name}\" has {bytes} bytes, more than the {most} of an answer: this is a smaller picture of {width} by {height} pixels \
             instead of {} by {}; read the file in parts with ?bytes=0-65535",
            thumbnail.full.0, thumbnail.full.1
        ));
    }
    notes.extend(thumbnail.missing.as_ref().map(|missing| format!("\"{name}\" is {missing}")));
    let mut contents = vec![Contents::blob(reference, encoded.bytes).mime_type(encoded.mime_type)];
    if !notes.is_empty() {
        contents.push(Contents::text(reference, format!("[{}]\n", notes.join("; "))).mime_type("text/plain"));
    }
    Ok(contents)
}

/// The bytes of a file, without its position unless the operator shows it.
pub(crate) fn original(tree: &Tree, picture: &Picture, settings: Settings) -> Result<Vec<u8>> {
    let size = usize::try_from(picture.meta.size).unwrap_or(usize::MAX);
    // As it is read, as it is rebuilt, and as it is handed over.
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(size.saturating_mul(3)).map_err(|_| {
        Error::failed(format_args!(
            "\"{}\" has {size} bytes, too many for the memory limit: read a smaller picture with \"size\", or let the operator raise \
             the limit \"memory\" of this mount to about {}MiB",
            picture.path,
            (size.saturating_mul(3) >> 20) + 16
        ))
    })?;
    drop(room);
    let bytes = tree.read(&picture.path, picture.meta.size)?;
    if settings.shows_gps {
        Ok(bytes)
    } else {
        hide(picture.format, bytes).map_err(|error| named(&picture.path, error))
    }
}

/// A picture that fits into a square of `side` pixels.
pub(crate) fn thumbnail(tree: &Tree, picture: &Picture, side: u32, settings: Settings) -> Result<Thumbnail> {
    let facts = facts(tree, picture)?;
    let orientation = facts.exif.as_deref().map_or(1, exif::orientation);
    let Decoded { raster, profile, missing } = decode(source(tree, picture)?, &facts, side, settings.caps)?;
    let (width, height) = facts.size.unwrap_or_default();
    let full = if orient::is_turned(orientation) { (height, width) } else { (width, height) };
    Ok(Thumbnail { raster: upright(raster, orientation)?, profile, missing, full })
}

/// Encodes a picture so that it has at most `most` bytes: at half the size as often as necessary.
fn encode_within(
    thumbnail: &Thumbnail,
    picture: &Picture,
    wanted: Option<Wanted>,
    most: u64,
) -> Result<(Encoded, (u32, u32))> {
    let mut smaller: Option<Raster> = None;
    loop {
        let raster = smaller.as_ref().unwrap_or(&thumbnail.raster);
        let encoded = encode(raster, picture.format, thumbnail.profile.as_deref(), wanted)?;
        if encoded.bytes.len() as u64 <= most {
            return Ok((encoded, (raster.width, raster.height)));
        }
        let side = raster.width.max(raster.height) / 2;
        if side < MIN_SIDE {
            return Err(Error::failed(format_args!(
                "no picture fits into the {most} bytes of an answer: the operator can raise the limit \"result\" of this mount"
            )));
        }
        smaller = Some(shrunk(raster, side)?);
    }
}

fn shrunk(raster: &Raster, side: u32) -> Result<Raster> {
    let size = (raster.width, raster.height);
    let mut scaler = Scaler::new(size, fit(size, side))?;
    raster.rows().for_each(|row| scaler.add::<PIXEL>(row));
    Ok(scaler.finish().0)
}

/// An error that names the file.
pub(crate) fn named(name: &str, error: Error) -> Error {
    match error {
        Error::Failed(why) => Error::Failed(format!("\"{name}\": {why}")),
        Error::Denied(why) => Error::Denied(format!("\"{name}\": {why}")),
        other => other,
    }
}
