//! Encodes a raster as JPEG or PNG, also so that it has at most so many bytes.

use belljar_guest::{Error, Result};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use crate::format::Format;
use crate::scale::{PIXEL, Raster};

/// The quality of a JPEG: artefacts are hard to see, and a picture of 512 pixels has about 50 KB.
const QUALITY: u8 = 85;

/// The longest side of a small picture, in pixels.
const SMALL: u32 = 512;

/// The longest side of an icon, in pixels.
const ICON: u32 = 64;

/// The white behind transparent pixels, which a JPEG cannot have.
const BACKGROUND: u32 = 255;

/// The form in which a caller wants a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Jpeg,
    Png,
}

/// An encoded picture.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mime_type: &'static str,
}

/// Encodes a picture from a file of `format`. Without `wanted`, a picture with transparent pixels becomes a PNG, and so does a
/// drawing, a screenshot or an icon from a format that loses nothing. Every other becomes a JPEG, which is a tenth as large.
pub(crate) fn encode(
    raster: &Raster,
    format: Format,
    profile: Option<&[u8]>,
    wanted: Option<Wanted>,
) -> Result<Encoded> {
    let wanted = wanted.unwrap_or_else(|| {
        let is_exact = matches!(format, Format::Png | Format::Gif | Format::Bmp);
        if !raster.is_opaque() || (is_exact && (raster.is_flat() || raster.width.max(raster.height) <= ICON)) {
            Wanted::Png
        } else {
            Wanted::Jpeg
        }
    });
    match wanted {
        Wanted::Jpeg => jpeg(raster, profile),
        Wanted::Png => png(raster, profile),
    }
}

fn jpeg(raster: &Raster, profile: Option<&[u8]>) -> Result<Encoded> {
    let unwritten = |error: jpeg_encoder::EncodingError| {
        Error::failed(format_args!("the picture cannot be written as JPEG: {error}"))
    };
    let mut rgb = Vec::new();
    let count = raster.width as usize * raster.height as usize;
    rgb.try_reserve_exact(count * 3).map_err(|_| no_room())?;
    rgb.extend(raster.pixels.as_chunks::<PIXEL>().0.iter().flat_map(|pixel| on_background(*pixel)));
    let side = |length: u32| u16::try_from(length).map_err(|_| no_room());
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, QUALITY);
    // Colours of a half of the size show in a small picture.
    let is_small = raster.width.max(raster.height) <= SMALL;
    encoder.set_sampling_factor(if is_small { SamplingFactor::F_1_1 } else { SamplingFactor::F_2_2 });
    if let Some(profile) = profile {
        encoder.add_icc_profile(profile).map_err(unwritten)?;
    }
    encoder.encode(&rgb, side(raster.width)?, side(raster.height)?, ColorType::Rgb).map_err(unwritten)?;
    Ok(Encoded { bytes, mime_type: Format::Jpeg.mime_type() })
}

fn png(raster: &Raster, profile: Option<&[u8]>) -> Result<Encoded> {
    let unwritten =
        |error: png::EncodingError| Error::failed(format_args!("the picture cannot be written as PNG: {error}"));
    let mut bytes = Vec::new();
    let mut info = png::Info::with_size(raster.width, raster.height);
    info.icc_profile = profile.map(Into::into);
    info.bit_depth = png::BitDepth::Eight;
    let opaque = raster.is_opaque();
    info.color_type = if opaque { png::ColorType::Rgb } else { png::ColorType::Rgba };
    let mut encoder = png::Encoder::with_info(&mut bytes, info).map_err(unwritten)?;
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header().map_err(unwritten)?;
    if opaque {
        let mut rgb = Vec::new();
        rgb.try_reserve_exact(raster.pixels.len() / PIXEL * 3).map_err(|_| no_room())?;
        rgb.extend(raster.pixels.as_chunks::<PIXEL>().0.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]));
        writer.write_image_data(&rgb).map_err(unwritten)?;
    } else {
        writer.write_image_data(&raster.pixels).map_err(unwritten)?;
    }
    writer.finish().map_err(unwritten)?;
    Ok(Encoded { bytes, mime_type: Format::Png.mime_type() })
}

fn on_background([red, green, blue, alpha]: [u8; PIXEL]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    [red, green, blue].map(|colour| {
        let mixed = (u32::from(colour) * alpha + BACKGROUND * (255 - alpha) + 127) / 255;
        u8::try_from(mixed).unwrap_or(u8::MAX)
    })
}

fn no_room() -> Error {
    Error::failed("the picture does not fit into the memory limit: ask for a smaller \"size\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparency_and_the_format_of_the_file_choose_the_format() {
        let opaque = Raster::filled(3, 2, [9, 8, 7, 255]).unwrap();
        let clear = Raster::filled(3, 2, [9, 8, 7, 0]).unwrap();
        for (raster, format, wanted, expected) in [
            (&opaque, Format::Jpeg, None, "image/jpeg"),
            (&opaque, Format::WebP, None, "image/jpeg"),
            (&clear, Format::WebP, None, "image/png"),
            (&opaque, Format::Png, None, "image/png"),
            (&opaque, Format::Png, Some(Wanted::Jpeg), "image/jpeg"),
            (&clear, Format::Jpeg, Some(Wanted::Jpeg), "image/jpeg"),
            (&opaque, Format::Jpeg, Some(Wanted::Png), "image/png"),
        ] {
            assert_eq!(encode(raster, format, None, wanted).unwrap().mime_type, expected, "{format:?} {wanted:?}");
        }
        assert_eq!(on_background([10, 20, 30, 0]), [255; 3]);
        assert_eq!(on_background([10, 20, 30, 255]), [10, 20, 30]);
    }
}
