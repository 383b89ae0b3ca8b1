//! GIF: the first frame on its transparent screen, row by row.

use std::io::BufRead;

use belljar_guest::Result;
use gif::{ColorOutput, DecodeOptions};

use super::{Decoded, damaged, finish, reserve};
use crate::scale::{PIXEL, Scaler};

pub(super) fn decode<R: BufRead>(source: R, target: (u32, u32)) -> Result<Decoded> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.allow_unknown_blocks(true);
    let mut decoder = options.read_info(source).map_err(damaged)?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = match decoder.next_frame_info() {
        Ok(Some(frame)) => frame.clone(),
        Ok(None) => return Err(damaged("it has no frame")),
        Err(error) => return Err(damaged(error)),
    };
    let size = crate::facts::gif_size(screen, (frame.left, frame.top), (frame.width, frame.height));
    let palette = decoder.palette().map(<[u8]>::to_vec).unwrap_or_default();
    let (colours, _) = palette.as_chunks::<3>();
    // Decoders show an index beyond the palette as black.
    let mut table = [[0, 0, 0, u8::MAX]; 256];
    for (entry, [red, green, blue]) in table.iter_mut().zip(colours) {
        *entry = [*red, *green, *blue, u8::MAX];
    }
    if let Some(entry) = frame.transparent.and_then(|index| table.get_mut(usize::from(index))) {
        *entry = [0; PIXEL];
    }
    let mut scaler = Scaler::new(size, target)?;
    let mut whole = Vec::new();
    let mut failure = None;
    let width = usize::from(frame.width);
    if frame.interlaced {
        let bytes = width * usize::from(frame.height);
        reserve(size, bytes as u64)?;
        whole.resize(bytes, 0);
        failure = decoder.read_into_buffer(&mut whole).err().map(|error| error.to_string());
    }
    let mut interlaced = whole.chunks_exact(width.max(1));
    let mut indices = vec![0; width];
    let mut row = vec![0; size.0 as usize * PIXEL];
    for y in 0..size.1 {
        row.fill(0);
        let is_within = (u32::from(frame.top)..u32::from(frame.top) + u32::from(frame.height)).contains(&y);
        if is_within && frame.interlaced {
            if let Some(row) = interlaced.next() {
                indices.copy_from_slice(row);
            }
        } else if is_within {
            indices.fill(0);
            match decoder.fill_buffer(&mut indices) {
                Ok(true) => {}
                Ok(false) => {
                    failure = Some("its data ends early".to_owned());
                    break;
                }
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        if is_within {
            let (pixels, _) = row.as_chunks_mut::<PIXEL>();
            for (pixel, index) in pixels.iter_mut().skip(usize::from(frame.left)).zip(&indices) {
                *pixel = table.get(usize::from(*index)).copied().unwrap_or_default();
            }
        }
        scaler.add::<PIXEL>(&row);
    }
    if frame.interlaced {
        // A part of an interlaced frame has pixels everywhere.
        let mut decoded = finish(scaler, size.1, None, None)?;
        decoded.missing = failure.map(|why| format!("damaged: {why}"));
        return Ok(decoded);
    }
    finish(scaler, size.1, None, failure)
}
