//! PNG: row by row. An interlaced picture is decoded whole, because its rows come in seven passes.

use std::io::{BufRead, Seek};

use belljar_guest::Result;
use png::{ColorType, Limits, Transformations};

use super::{Decoded, damaged, finish, reserve};
use crate::scale::Scaler;

/// The memory of a decoder beside the pixels: a row, the window of the compression, text, the profile.
const DECODER_BYTES: usize = 8 * 1024 * 1024;

pub(super) fn decode<R: BufRead + Seek>(source: R, target: (u32, u32)) -> Result<Decoded> {
    let mut decoder = png::Decoder::new_with_limits(source, Limits { bytes: DECODER_BYTES });
    decoder.set_transformations(Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(damaged)?;
    let size = reader.info().size();
    let profile = reader.info().icc_profile.as_ref().map(|profile| profile.to_vec());
    let (color, _) = reader.output_color_type();
    let profile = profile.filter(|_| !matches!(color, ColorType::Grayscale | ColorType::GrayscaleAlpha));
    let mut scaler = Scaler::new(size, target)?;
    let mut failure = None;
    let mut spread = Vec::new();
    if reader.info().interlaced {
        let bytes = reader.output_buffer_size().unwrap_or(usize::MAX);
        reserve(size, bytes as u64)?;
        let mut pixels = vec![0; bytes];
        failure = reader.next_frame(&mut pixels).err().map(|error| error.to_string());
        if failure.is_some() && pixels.iter().all(|byte| *byte == 0) {
            return Err(damaged(failure.unwrap_or_default()));
        }
        for row in pixels.chunks_exact((size.0 as usize).max(1) * color.samples()) {
            add(&mut scaler, color, row, &mut spread);
        }
        let mut decoded = finish(scaler, size.1, profile, None)?;
        decoded.missing = failure.map(|why| format!("damaged: {why}"));
        return Ok(decoded);
    }
    for _ in 0..size.1 {
        match reader.next_row() {
            Ok(Some(row)) => add(&mut scaler, color, row.data(), &mut spread),
            Ok(None) => break,
            Err(error) => {
                failure = Some(error.to_string());
                break;
            }
        }
    }
    finish(scaler, size.1, profile, failure)
}

/// Adds a row. `spread` is space for the row in another form.
fn add(scaler: &mut Scaler, color: ColorType, row: &[u8], spread: &mut Vec<u8>) {
    spread.clear();
    match color {
        ColorType::Grayscale => {
            spread.extend(row.iter().flat_map(|gray| [*gray; 3]));
            scaler.add::<3>(spread);
        }
        ColorType::GrayscaleAlpha => {
            let (pixels, _) = row.as_chunks();
            spread.extend(pixels.iter().flat_map(|[gray, alpha]| [*gray, *gray, *gray, *alpha]));
            scaler.add::<4>(spread);
        }
        ColorType::Rgba => scaler.add::<4>(row),
        // The transformation leaves no palette.
        ColorType::Rgb | ColorType::Indexed => scaler.add::<3>(row),
    }
}
