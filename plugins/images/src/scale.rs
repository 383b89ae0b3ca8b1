//! Shrinks a picture while it is decoded: each pixel of the result is the mean of the area that it covers.
//!
//! Takes the rows of the source one after the other, and keeps one row of sums. So memory depends on the result, never on
//! the source. Knows nothing of formats.

use belljar_guest::{Error, Result};

/// The bytes of a pixel: red, green, blue, alpha.
pub(crate) const PIXEL: usize = 4;

/// A picture in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Rows from the top, four bytes a pixel. Colours are not multiplied by alpha.
    pub(crate) pixels: Vec<u8>,
}

/// Takes rows of a source, and makes a smaller raster of them.
#[derive(Debug)]
pub(crate) struct Scaler {
    source: (u32, u32),
    target: (u32, u32),
    /// The pixels of a row that each pixel of the result covers.
    spans: Vec<Span>,
    /// Sums of the rows of the current line of the result, four a pixel. Colours are multiplied by alpha.
    sums: Vec<u64>,
    /// Sums of one row of the source.
    row: Vec<u64>,
    /// The number of rows so far.
    rows: u32,
    pixels: Vec<u8>,
}

/// The pixels of a row that one pixel of the result covers. A pixel of the row has `target` units of a width in which a span
/// has `source` units.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// The first pixel, and its units in this span.
    start: usize,
    first: u64,
    /// The number of pixels after it that are covered whole.
    whole: usize,
    /// The units of the pixel after those.
    last: u64,
}

/// The dimensions of a picture that fits into a square of `side` pixels. Never larger than the picture.
pub(crate) fn fit((width, height): (u32, u32), side: u32) -> (u32, u32) {
    let longest = u64::from(width.max(height)).max(1);
    if longest <= u64::from(side) {
        return (width, height);
    }
    let shrink = |length: u32| {
        let shrunk = (u64::from(length) * u64::from(side) * 2 + longest) / (longest * 2);
        u32::try_from(shrunk).unwrap_or(side).max(1)
    };
    (shrink(width), shrink(height))
}

impl Raster {
    /// A raster of one colour. Fails if it does not fit into memory.
    pub(crate) fn filled(width: u32, height: u32, colour: [u8; PIXEL]) -> Result<Raster> {
        let mut pixels = Vec::new();
        let count = (width as usize).saturating_mul(height as usize);
        pixels.try_reserve_exact(count.saturating_mul(PIXEL)).map_err(|_| no_room(width, height))?;
        pixels.extend(std::iter::repeat_n(colour, count).flatten());
        Ok(Raster { width, height, pixels })
    }

    /// True if no pixel is transparent.
    pub(crate) fn is_opaque(&self) -> bool {
        self.pixels.chunks_exact(PIXEL).all(|pixel| pixel.last() == Some(&u8::MAX))
    }

    /// True if many pixels are the same as their neighbours, as in drawings and screenshots.
    pub(crate) fn is_flat(&self) -> bool {
        let (pixels, _) = self.pixels.as_chunks::<PIXEL>();
        let same = pixels.iter().zip(pixels.iter().skip(1)).filter(|(pixel, next)| pixel == next).count();
        same * 3 > pixels.len()
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.pixels.chunks_exact((self.width as usize).max(1) * PIXEL)
    }
}

impl Scaler {
    /// From a source of these dimensions to a result of `target`, which must not be larger.
    pub(crate) fn new(source: (u32, u32), target: (u32, u32)) -> Result<Scaler> {
        let target = (target.0.clamp(1, source.0.max(1)), target.1.clamp(1, source.1.max(1)));
        let mut pixels = Vec::new();
        let size = (target.0 as usize).saturating_mul(target.1 as usize).saturating_mul(PIXEL);
        pixels.try_reserve_exact(size).map_err(|_| no_room(target.0, target.1))?;
        let spans = spans(source.0, target.0);
        let sums = vec![0; target.0 as usize * PIXEL];
        Ok(Scaler { source, target, spans, row: sums.clone(), sums, rows: 0, pixels })
    }

    /// Adds the next row, three or four bytes a pixel. A row that is too short is padded with transparent pixels.
    pub(crate) fn add<const CHANNELS: usize>(&mut self, row: &[u8]) {
        if self.rows >= self.source.1 {
            return;
        }
        if self.source == self.target {
            let pixels = row.as_chunks::<CHANNELS>().0.iter().take(self.source.0 as usize);
            self.pixels.extend(pixels.flat_map(rgba));
            self.rows += 1;
            self.pixels.resize(self.rows as usize * self.target.0 as usize * PIXEL, 0);
            return;
        }
        self.sum_row::<CHANNELS>(row);
        // The row has `target` units of a height in which a line of the result has `source` units.
        let (source, target) = (u64::from(self.source.1), u64::from(self.target.1));
        let start = u64::from(self.rows) * target;
        let first = target.min(source - start % source);
        self.rows += 1;
        add_weighted(&mut self.sums, &self.row, first);
        if (start + first).is_multiple_of(source) {
            self.end_line();
            add_weighted(&mut self.sums, &self.row, target - first);
        }
    }

    /// The result, and the number of rows that were given. Lines without a row are transparent.
    pub(crate) fn finish(mut self) -> (Raster, u32) {
        let whole = self.target.0 as usize * self.target.1 as usize * PIXEL;
        if self.pixels.len() < whole && self.rows > 0 && self.source != self.target {
            self.end_line();
        }
        self.pixels.resize(whole, 0);
        (Raster { width: self.target.0, height: self.target.1, pixels: self.pixels }, self.rows)
    }

    /// Sums up the pixels of each span. Vectors of wasm halve the fuel.
    #[cfg_attr(target_family = "wasm", target_feature(enable = "simd128"))]
    fn sum_row<const CHANNELS: usize>(&mut self, row: &[u8]) {
        let (pixels, _) = row.as_chunks::<CHANNELS>();
        let (cells, _) = self.row.as_chunks_mut::<PIXEL>();
        let unit = u64::from(self.target.0);
        for (cell, span) in cells.iter_mut().zip(&self.spans) {
            *cell = [0; PIXEL];
            let mut covered = pixels.get(span.start..).unwrap_or_default().iter();
            // Whole pixels are added first and weighed once: this loop is most of the work.
            let first = covered.next();
            let mut whole = [0; PIXEL];
            for pixel in covered.by_ref().take(span.whole) {
                weigh(&mut whole, premultiplied(pixel), 1);
            }
            weigh(cell, whole, unit);
            if let Some(pixel) = first {
                weigh(cell, premultiplied(pixel), span.first);
            }
            if span.last > 0
                && let Some(pixel) = covered.next()
            {
                weigh(cell, premultiplied(pixel), span.last);
            }
        }
    }

    /// Writes the current line of the result.
    fn end_line(&mut self) {
        let (sums, _) = self.sums.as_chunks::<PIXEL>();
        let whole = (u64::from(self.source.0) * u64::from(self.source.1)).max(1);
        for [red, green, blue, alpha] in sums {
            let colour = |sum: &u64| byte((sum + alpha / 2).checked_div(*alpha).unwrap_or_default());
            let alpha = byte((alpha + whole / 2) / whole);
            self.pixels.extend([colour(red), colour(green), colour(blue), alpha]);
        }
        self.sums.fill(0);
    }
}

fn spans(source: u32, target: u32) -> Vec<Span> {
    let (source, target) = (u64::from(source), u64::from(target));
    let index = |units: u64| usize::try_from(units / target).unwrap_or(usize::MAX);
    (0..target)
        .map(|cell| {
            let (from, to) = (cell * source, (cell + 1) * source);
            let start = index(from);
            let first = (target - from % target).min(to - from);
            let rest = to - from - first;
            Span { start, first, whole: index(rest), last: rest % target }
        })
        .collect()
}

fn weigh(cell: &mut [u64; PIXEL], pixel: [u64; PIXEL], weight: u64) {
    for (sum, value) in cell.iter_mut().zip(pixel) {
        *sum += value * weight;
    }
}

#[cfg_attr(target_family = "wasm", target_feature(enable = "simd128"))]
fn add_weighted(sums: &mut [u64], row: &[u64], weight: u64) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += value * weight;
    }
}

fn rgba<const CHANNELS: usize>(pixel: &[u8; CHANNELS]) -> [u8; PIXEL] {
    match pixel.as_slice() {
        [red, green, blue, alpha] => [*red, *green, *blue, *alpha],
        [red, green, blue] => [*red, *green, *blue, u8::MAX],
        _ => [0; PIXEL],
    }
}

/// A pixel whose colours are multiplied by alpha.
fn premultiplied<const CHANNELS: usize>(pixel: &[u8; CHANNELS]) -> [u64; PIXEL] {
    let [red, green, blue, alpha] = rgba(pixel).map(u64::from);
    [red * alpha, green * alpha, blue * alpha, alpha]
}

fn byte(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

fn no_room(width: u32, height: u32) -> Error {
    let needed = ((u64::from(width) * u64::from(height)) >> 17) + 32;
    Error::failed(format_args!(
        "a picture of {width} by {height} pixels does not fit into the memory limit: ask for a smaller \"size\", or let the \
         operator raise the limit \"memory\" of this mount to about {needed}MiB"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(source: (u32, u32), target: (u32, u32), pixel: impl Fn(u32, u32) -> [u8; 4]) -> Raster {
        let mut scaler = Scaler::new(source, target).unwrap();
        for y in 0..source.1 {
            let row: Vec<u8> = (0..source.0).flat_map(|x| pixel(x, y)).collect();
            scaler.add::<4>(&row);
        }
        let (raster, rows) = scaler.finish();
        assert_eq!(rows, source.1);
        raster
    }

    #[test]
    fn a_picture_fits_into_the_square_and_never_grows() {
        for (size, side, expected) in [
            ((4000, 3000), 256, (256, 192)),
            ((3000, 4000), 256, (192, 256)),
            ((100, 50), 256, (100, 50)),
            ((65_535, 1), 256, (256, 1)),
            ((1, 1), 1, (1, 1)),
            ((u32::MAX, u32::MAX), 9, (9, 9)),
        ] {
            assert_eq!(fit(size, side), expected, "{size:?} {side}");
        }
    }

    #[test]
    fn the_mean_stays_for_any_ratio() {
        for source in [(7, 5), (8, 8), (13, 31), (100, 3)] {
            for target in [(1, 1), (3, 2), (7, 3), source] {
                let raster =
                    scaled(source, target, |x, _| if x % 2 == 0 { [200, 10, 0, 255] } else { [0, 10, 200, 255] });
                let pixels = f64::from(raster.width * raster.height);
                let mean = |channel: usize| {
                    raster.pixels.iter().skip(channel).step_by(4).map(|v| f64::from(*v)).sum::<f64>() / pixels
                };
                let even = f64::from(source.0.div_ceil(2)) / f64::from(source.0);
                assert!((mean(0) - 200.0 * even).abs() < 1.5, "{source:?} {target:?}: {}", mean(0));
                assert!((mean(1) - 10.0).abs() < 0.01 && mean(3) == 255.0, "{source:?} {target:?}");
            }
        }
    }

    #[test]
    fn transparent_pixels_do_not_colour_their_neighbours() {
        let raster = scaled((2, 1), (1, 1), |x, _| if x == 0 { [255, 0, 0, 255] } else { [0, 255, 0, 0] });
        assert_eq!(raster.pixels, [255, 0, 0, 128]);
        assert!(!raster.is_opaque());
    }

    #[test]
    fn missing_rows_are_transparent() {
        let mut scaler = Scaler::new((2, 4), (1, 2)).unwrap();
        scaler.add::<3>(&[9, 9, 9, 9, 9, 9]);
        let (raster, rows) = scaler.finish();
        assert_eq!((rows, raster.pixels), (1, vec![9, 9, 9, 128, 0, 0, 0, 0]));
        let mut scaler = Scaler::new((2, 2), (2, 2)).unwrap();
        scaler.add::<3>(&[9, 9, 9]);
        scaler.add::<3>(&[1; 30]);
        scaler.add::<3>(&[1; 30]);
        assert_eq!(scaler.finish().0.pixels, [9, 9, 9, 255, 0, 0, 0, 0, 1, 1, 1, 255, 1, 1, 1, 255]);
    }

    #[test]
    fn a_raster_that_is_too_large_is_refused() {
        assert!(Raster::filled(u32::MAX, u32::MAX, [0; 4]).is_err());
        assert!(Scaler::new((u32::MAX, u32::MAX), (u32::MAX, u32::MAX)).is_err());
    }
}
