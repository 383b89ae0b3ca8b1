//! WebP: the whole picture at once, because its decoder has no other way. So memory decides how large it may be.

use std::io::{BufRead, Seek};

use belljar_guest::Result;
use image_webp::WebPDecoder;

use super::{Decoded, damaged, finish, reserve};
use crate::scale::{PIXEL, Scaler};

pub(super) fn decode<R: BufRead + Seek>(source: R, target: (u32, u32)) -> Result<Decoded> {
    let mut decoder = WebPDecoder::new(source).map_err(damaged)?;
    let size = decoder.dimensions();
    let channels: u64 = if decoder.has_alpha() { 4 } else { 3 };
    let pixels = u64::from(size.0) * u64::from(size.1);
    // The result, and the planes of a lossy picture or the pixels of a lossless one; an animation also has its canvas.
    let planes = match (decoder.is_animated(), decoder.is_lossy()) {
        (true, _) => 10,
        (false, true) => 2 + u64::from(decoder.has_alpha()),
        (false, false) => 5,
    };
    let bytes = pixels * (channels + planes);
    reserve(size, bytes)?;
    decoder.set_memory_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
    let profile = decoder.icc_profile().ok().flatten();
    let mut buffer = vec![0; usize::try_from(pixels * channels).unwrap_or(usize::MAX)];
    let read = if decoder.is_animated() {
        decoder.read_frame(&mut buffer).map(|_| ())
    } else {
        decoder.read_image(&mut buffer)
    };
    read.map_err(damaged)?;
    let mut scaler = Scaler::new(size, target)?;
    if channels == 3 {
        buffer.chunks_exact((size.0 as usize).max(1) * 3).for_each(|row| scaler.add::<3>(row));
    } else {
        buffer.chunks_exact((size.0 as usize).max(1) * PIXEL).for_each(|row| scaler.add::<PIXEL>(row));
    }
    finish(scaler, size.1, profile, None)
}
