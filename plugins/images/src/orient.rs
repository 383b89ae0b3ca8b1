//! Turns a picture upright, as its Exif orientation says (Exif 2.32, 4.6.5.1.8).

use belljar_guest::Result;

use crate::scale::{PIXEL, Raster};

/// True if an orientation exchanges width and height.
pub(crate) fn is_turned(orientation: u8) -> bool {
    (5..=8).contains(&orientation)
}

/// The upright picture.
pub(crate) fn upright(raster: Raster, orientation: u8) -> Result<Raster> {
    let (width, height) = (raster.width, raster.height);
    if !(2..=8).contains(&orientation) || width == 0 || height == 0 {
        return Ok(raster);
    }
    let turned = if is_turned(orientation) { (height, width) } else { (width, height) };
    let mut result = Raster::filled(turned.0, turned.1, [0; PIXEL])?;
    let (source, _) = raster.pixels.as_chunks::<PIXEL>();
    let (target, _) = result.pixels.as_chunks_mut::<PIXEL>();
    for (row, y) in target.chunks_exact_mut(turned.0 as usize).zip(0..) {
        for (pixel, x) in row.iter_mut().zip(0..) {
            let (from_x, from_y) = match orientation {
                2 => (width - 1 - x, y),
                3 => (width - 1 - x, height - 1 - y),
                4 => (x, height - 1 - y),
                5 => (y, x),
                6 => (y, height - 1 - x),
                7 => (width - 1 - y, height - 1 - x),
                _ => (width - 1 - y, x),
            };
            if let Some(from) = source.get(from_y as usize * width as usize + from_x as usize) {
                *pixel = *from;
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_orientation_moves_the_corners() {
        let pixels: Vec<u8> = (1..=6).flat_map(|value| [value, value, value, 255]).collect();
        let raster = Raster { width: 3, height: 2, pixels };
        for (orientation, width, expected) in [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [4, 1, 5, 2, 6, 3]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [3, 6, 2, 5, 1, 4]),
            (9, 3, [1, 2, 3, 4, 5, 6]),
        ] {
            let upright = upright(raster.clone(), orientation).unwrap();
            let values: Vec<u8> = upright.pixels.iter().copied().step_by(4).collect();
            assert_eq!((upright.width, values.as_slice()), (width, &expected[..]), "{orientation}");
        }
    }
}
