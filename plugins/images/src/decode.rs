//! Decodes the first frame of a picture to a small raster. Memory is checked before it is allocated.
//!
//! A file can claim any dimensions, so three things bound the work. A picture of more pixels than [`Caps::pixels`] is refused.
//! The memory that its decoder will need is reserved once, and given back, before decoding. And the host bounds fuel and time.
//! The modules below know one format each; `scale` shrinks.

mod bmp;
mod gif;
mod jpeg;
mod png;
mod salvage;
mod webp;

use std::io::{BufRead, Seek};

use belljar_guest::{Error, Result};

use crate::facts::Facts;
use crate::scale::{Raster, Scaler, fit};

/// A decoded picture. It is not upright yet: its file may say how to turn it.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) raster: Raster,
    /// The colour profile, if the pixels belong to one.
    pub(crate) profile: Option<Vec<u8>>,
    /// Why only a part of the picture could be decoded.
    pub(crate) missing: Option<String>,
}

/// What a call may decode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    /// The most pixels of a picture.
    pub(crate) pixels: u64,
}

/// The name of the setting for [`Caps::pixels`].
pub(crate) const SETTING: &str = "MAX_PIXELS";

/// The most pixels without the setting. Under the default limits, pictures of so many pixels are decoded; the README has the
/// fuel that each format takes.
const MAX_PIXELS: u64 = 50_000_000;

/// The longest colour profile that is passed on. Those of screens and cameras have about 500 bytes, those of printers up to
/// megabytes.
const MAX_PROFILE: usize = 16 * 1024;

impl Caps {
    /// The caps with this value of the setting.
    pub(crate) fn parse(setting: Option<&str>) -> Result<Caps> {
        let pixels = match setting.map(str::trim).filter(|text| !text.is_empty()) {
            None => MAX_PIXELS,
            Some(text) => text.parse().ok().filter(|pixels| *pixels > 0).ok_or_else(|| {
                Error::failed(format_args!(
                    "the setting {SETTING} is \"{text}\": expected a number of pixels, such as 100000000"
                ))
            })?,
        };
        Ok(Caps { pixels })
    }
}

/// Decodes a picture so that it fits into a square of `side` pixels.
pub(crate) fn decode<R: BufRead + Seek>(mut source: R, facts: &Facts, side: u32, caps: Caps) -> Result<Decoded> {
    if let Some(why) = facts.format.undecoded() {
        return Err(Error::failed(format_args!(
            "{} is not decoded here, because {why}: read it without \"size\"",
            facts.format.name()
        )));
    }
    let (width, height) =
        facts.size.ok_or_else(|| Error::failed("the picture is damaged: its header has no dimensions"))?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels == 0 {
        return Err(Error::failed(format_args!(
            "the picture has {width} by {height} pixels: there is nothing to show"
        )));
    }
    if pixels > caps.pixels {
        return Err(Error::failed(format_args!(
            "the picture has {width} by {height} pixels, {} million, and at most {} million are decoded: read it without \
             \"size\", or let the operator raise the setting {SETTING} and the limits \"fuel\" and \"time\" of this mount",
            pixels.div_ceil(1_000_000),
            caps.pixels / 1_000_000
        )));
    }
    let target = fit((width, height), side);
    let mut decoded = match facts.format {
        crate::format::Format::Jpeg => match jpeg::decode(&mut source, facts, target) {
            Err(Error::Failed(why)) if why.starts_with(DAMAGED) => {
                salvage::decode(source, facts, target, Error::Failed(why))
            }
            result => result,
        },
        crate::format::Format::Png => png::decode(source, target),
        crate::format::Format::Gif => gif::decode(source, target),
        crate::format::Format::WebP => webp::decode(source, target),
        _ => bmp::decode(source, target),
    }?;
    decoded.profile = decoded.profile.filter(|profile| profile.len() <= MAX_PROFILE);
    Ok(decoded)
}

/// Fails unless so many bytes can be allocated now.
fn reserve((width, height): (u32, u32), bytes: u64) -> Result<()> {
    let mut room: Vec<u8> = Vec::new();
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    room.try_reserve_exact(size).map_err(|_| {
        Error::failed(format_args!(
            "the picture has {width} by {height} pixels, and decoding it takes {} MiB, more than the memory limit: read it without \
             \"size\", or let the operator raise the limit \"memory\" of this mount to about {}MiB",
            bytes >> 20,
            (bytes >> 20) + 16
        ))
    })
}

/// The result of a scaler that got all rows of a picture, or some of them before an error.
fn finish(scaler: Scaler, height: u32, profile: Option<Vec<u8>>, failure: Option<String>) -> Result<Decoded> {
    let (raster, rows) = scaler.finish();
    let missing = match failure {
        Some(why) if rows == 0 => return Err(damaged(why)),
        Some(why) => Some(format!("damaged: {why}; {rows} of {height} rows are shown")),
        None if rows < height => Some(format!("truncated: {rows} of {height} rows are shown")),
        None => None,
    };
    Ok(Decoded { raster, profile, missing })
}

/// How an error of damaged data begins.
const DAMAGED: &str = "the picture is damaged: ";

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::failed(format_args!("{DAMAGED}{why}; its bytes can be read without \"size\""))
}

#[cfg(test)]
mod tests;
