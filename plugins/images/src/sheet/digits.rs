//! Draws the numbers of pictures.

use belljar_guest::Result;

use crate::scale::{PIXEL, Raster};

/// The rows of each digit, three pixels wide, the left one in the highest bit.
const DIGITS: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 7, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 1, 1, 1],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];

/// Pixels of the sheet for one pixel of a digit.
const SCALE: u32 = 3;

const INK: [u8; PIXEL] = [255, 255, 255, 255];
const LABEL: [u8; PIXEL] = [0, 0, 0, 255];

/// A number, light on a dark label.
pub(super) fn number(number: usize) -> Result<Raster> {
    let text = number.to_string();
    let digits: Vec<[u8; 5]> =
        text.bytes().filter_map(|byte| DIGITS.get(usize::from(byte.checked_sub(b'0')?)).copied()).collect();
    let (columns, rows) = (u32::try_from(digits.len()).unwrap_or(1) * 4 + 1, 7);
    let mut raster = Raster::filled(columns * SCALE, rows * SCALE, LABEL)?;
    let (pixels, _) = raster.pixels.as_chunks_mut::<PIXEL>();
    for (row, y) in pixels.chunks_exact_mut((columns * SCALE) as usize).zip(0..) {
        for (pixel, x) in row.iter_mut().zip(0..) {
            if is_ink(&digits, x / SCALE, y / SCALE) {
                *pixel = INK;
            }
        }
    }
    Ok(raster)
}

/// True if a digit covers this pixel. A margin of one pixel is around each digit.
fn is_ink(digits: &[[u8; 5]], x: u32, y: u32) -> bool {
    let (Some(x), Some(y)) = (x.checked_sub(1), y.checked_sub(1)) else { return false };
    let row = digits.get(x as usize / 4).and_then(|digit| digit.get(y as usize));
    x % 4 < 3 && row.is_some_and(|row| row >> (2 - x % 4) & 1 == 1)
}
