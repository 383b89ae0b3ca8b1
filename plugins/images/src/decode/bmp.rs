//! BMP: the whole picture at once. Its files are as large as its pixels, so memory is seldom the reason for a refusal.

use std::io::{BufRead, Seek};

use belljar_guest::Result;
use zune_bmp::BmpDecoder;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

use super::{Decoded, damaged, finish, reserve};
use crate::scale::{PIXEL, Scaler};

/// The most pixels of a side that the decoder accepts. The caller has checked the product.
const MAX_SIDE: usize = 1 << 24;

pub(super) fn decode<R: BufRead + Seek>(source: R, target: (u32, u32)) -> Result<Decoded> {
    let options = DecoderOptions::default().set_max_width(MAX_SIDE).set_max_height(MAX_SIDE);
    let mut decoder = BmpDecoder::new_with_options(source, options);
    decoder.decode_headers().map_err(|error| damaged(format_args!("{error:?}")))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let size = (u32::try_from(width).unwrap_or_default(), u32::try_from(height).unwrap_or_default());
    reserve(size, decoder.output_buf_size().unwrap_or(usize::MAX) as u64)?;
    let colours = decoder.colorspace();
    let pixels = decoder.decode().map_err(|error| damaged(format_args!("{error:?}")))?;
    let mut scaler = Scaler::new(size, target)?;
    match colours {
        Some(ColorSpace::RGBA) => pixels.chunks_exact(width.max(1) * PIXEL).for_each(|row| scaler.add::<PIXEL>(row)),
        Some(ColorSpace::Luma) => pixels.chunks_exact(width.max(1)).for_each(|row| {
            let row: Vec<u8> = row.iter().flat_map(|gray| [*gray; 3]).collect();
            scaler.add::<3>(&row);
        }),
        _ => pixels.chunks_exact(width.max(1) * 3).for_each(|row| scaler.add::<3>(row)),
    }
    finish(scaler, size.1, None, None)
}
