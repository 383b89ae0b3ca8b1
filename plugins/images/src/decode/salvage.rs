//! A damaged JPEG: decoded at full size by a decoder that goes on after an error.

use std::io::{BufRead, Seek, SeekFrom};

use belljar_guest::{Error, Result};
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::{Decoded, finish, reserve};
use crate::facts::Facts;
use crate::scale::Scaler;

/// Decodes what is left of a picture. `why` is the error of the decoder that gave up, and is the error here, too, if nothing
/// is left.
pub(super) fn decode<R: BufRead + Seek>(
    mut source: R,
    facts: &Facts,
    target: (u32, u32),
    why: Error,
) -> Result<Decoded> {
    let size = facts.size.unwrap_or_default();
    let pixels = u64::from(size.0) * u64::from(size.1);
    let coefficients = if facts.is_progressive { facts.jpeg_samples * 2 } else { 0 };
    if reserve(size, pixels * 4 + coefficients).is_err() || source.seek(SeekFrom::Start(0)).is_err() {
        return Err(why);
    }
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::from(u16::MAX));
    let options = options.set_max_height(usize::from(u16::MAX)).jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(source, options);
    // The memory was reserved for the dimensions of the first header.
    if decoder.decode_headers().is_err() || decoder.dimensions() != Some((size.0 as usize, size.1 as usize)) {
        return Err(why);
    }
    let Ok(bytes) = decoder.decode() else { return Err(why) };
    let mut scaler = Scaler::new(size, target)?;
    let width = size.0 as usize;
    match decoder.output_colorspace() {
        Some(ColorSpace::RGB) => bytes.chunks_exact(width * 3).for_each(|row| scaler.add::<3>(row)),
        Some(ColorSpace::Luma) => bytes.chunks_exact(width).for_each(|row| {
            let row: Vec<u8> = row.iter().flat_map(|gray| [*gray; 3]).collect();
            scaler.add::<3>(&row);
        }),
        _ => return Err(why),
    }
    let mut decoded = finish(scaler, size.1, None, None)?;
    decoded.missing = Some(match why {
        Error::Failed(why) => why,
        why => why.to_string(),
    });
    Ok(decoded)
}
