//! The images of a page. A JPEG is returned unchanged, every other image as PNG.

use std::fmt::Write as _;

use belljar_guest::{Error, Result};
use hayro_interpret::font::GlyphRun;
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageData, ImageDrawProps, InterpreterCache,
    InterpreterSettings, LumaData, SoftMask, interpret_page,
};
use hayro_syntax::Filter;
use hayro_syntax::object::{Dict, Object, Stream};
use hayro_syntax::page::Page;

/// The most images of a page that are listed.
const MAX_LISTED: usize = 500;

/// An encoded image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mime_type: &'static str,
}

/// Facts about an image that are known without unpacking it.
#[derive(Debug)]
struct ImageInfo {
    width: u32,
    height: u32,
    kind: &'static str,
}

/// Collects images in drawing order.
#[derive(Debug, Default)]
struct ImageCollector {
    known: Vec<ImageInfo>,
    /// The image to encode, counted from 0.
    wanted: Option<usize>,
    encoded: Option<Result<Picture>>,
}

/// The list of a page's images.
pub(crate) fn list(page: &Page<'_>, number: usize, base: &str) -> String {
    let mut collector = ImageCollector::default();
    run(page, &mut collector);
    let mut text = format!("# Images of page {number}\n\n");
    for (at, known) in collector.known.iter().take(MAX_LISTED).enumerate() {
        let image = at + 1;
        let _ = writeln!(
            text,
            "- [image {image}]({base}/{image}): {} by {} pixels, {}",
            known.width, known.height, known.kind
        );
    }
    match collector.known.len() {
        0 => text.push_str("(none)\n"),
        count if count > MAX_LISTED => {
            let _ = writeln!(text, "\n{} more images are not listed.", count - MAX_LISTED);
        }
        _ => {}
    }
    text
}

/// The number of images on a page.
pub(crate) fn count(page: &Page<'_>) -> usize {
    let mut collector = ImageCollector::default();
    run(page, &mut collector);
    collector.known.len()
}

/// The image `number`, counted from 1.
pub(crate) fn extract(page: &Page<'_>, number: usize) -> Result<Picture> {
    let mut collector = ImageCollector { wanted: number.checked_sub(1), ..ImageCollector::default() };
    run(page, &mut collector);
    let count = collector.known.len();
    collector
        .encoded
        .unwrap_or_else(|| Err(Error::invalid(format_args!("there is no image {number} on this page: it has {count}"))))
}

/// Interprets the page, and passes its images to `collector`.
fn run(page: &Page<'_>, collector: &mut ImageCollector) {
    let cache = InterpreterCache::new();
    let bounds = Rect::new(0.0, 0.0, 1.0, 1.0);
    let mut context = Context::new(Affine::IDENTITY, bounds, &cache, page.xref(), InterpreterSettings::default());
    interpret_page(page, &mut context, collector);
}

impl<'a> Device<'a> for ImageCollector {
    fn draw_image(&mut self, image: Image<'a, '_>, _: ImageDrawProps<'a>) {
        let kind = match &image {
            Image::Stencil(_) => "a stencil (PNG)",
            Image::Raster(raster) if is_plain_jpeg(raster.stream()) => "JPEG",
            Image::Raster(_) => "PNG",
        };
        let known = ImageInfo { width: image.width(), height: image.height(), kind };
        if self.wanted == Some(self.known.len()) {
            self.encoded = Some(encode_image(&image, &known));
        }
        self.known.push(known);
    }

    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// True if an image is a JPEG that looks the same outside the document: no CMYK, no mask, no `Decode` array.
fn is_plain_jpeg(stream: &Stream<'_>) -> bool {
    let dict: &Dict<'_> = stream.dict();
    let is_common = matches!(
        dict.get::<Object<'_>>("ColorSpace"),
        Some(Object::Name(name)) if matches!(name.as_str(), "DeviceRGB" | "DeviceGray")
    ) || matches!(dict.get::<Object<'_>>("ColorSpace"), Some(Object::Array(array)) if array.iter::<Object<'_>>().next().is_some_and(
        |first| matches!(first, Object::Name(name) if matches!(name.as_str(), "ICCBased" | "CalRGB" | "CalGray"))
    ));
    matches!(stream.filters().as_slice(), [Filter::DctDecode])
        && is_common
        && !["SMask", "Mask", "Decode"].iter().any(|key| dict.contains_key(key))
        && jpeg_channels(&stream.raw_data()).is_some_and(|channels| channels != 4)
}

/// The number of channels of a JPEG, from its frame header.
fn jpeg_channels(bytes: &[u8]) -> Option<u8> {
    let mut at = 2;
    while let [0xff, marker, high, low, rest @ ..] = bytes.get(at..)? {
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return rest.get(5).copied();
        }
        if *marker == 0xda {
            return None;
        }
        at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    None
}

fn encode_image(image: &Image<'_, '_>, known: &ImageInfo) -> Result<Picture> {
    let pixels = (known.width as usize).saturating_mul(known.height as usize);
    // Reserve memory for the unpacked pixels, their mask and the PNG first. A sandbox that runs out of memory later cannot
    // report the reason.
    let mut room: Vec<u8> = Vec::new();
    if pixels == 0 || room.try_reserve_exact(pixels.saturating_mul(8)).is_err() {
        return Err(Error::failed(format_args!(
            "the image has {} by {} pixels, too many for the memory limit: the operator can raise the limit \"memory\" of \
             this mount to about {}MiB",
            known.width,
            known.height,
            (pixels.saturating_mul(10) >> 20) + 32
        )));
    }
    drop(room);
    let mut made = None;
    match image {
        Image::Raster(raster) if is_plain_jpeg(raster.stream()) => {
            return Ok(Picture { bytes: raster.stream().raw_data().into_owned(), mime_type: "image/jpeg" });
        }
        Image::Raster(raster) => raster.with_rgba(|data, alpha| made = Some(encode(data, alpha)), None),
        Image::Stencil(stencil) => stencil.with_stencil(
            // Painted pixels become dark, as on paper.
            |mask, _| {
                made = Some(encode_gray(mask.width, mask.height, mask.data.iter().map(|value| 255 - value).collect()))
            },
            None,
        ),
    }
    let bytes = made.ok_or_else(|| Error::failed("the image is damaged, or compressed with an unsupported method"))?;
    let bytes = bytes.map_err(|error| Error::failed(format_args!("the image cannot be written as PNG: {error}")))?;
    Ok(Picture { bytes, mime_type: "image/png" })
}

fn encode(image: ImageData, alpha: Option<LumaData>) -> Result<Vec<u8>, png::EncodingError> {
    let alpha = alpha.filter(|alpha| (alpha.width, alpha.height) == (image.width(), image.height()));
    match (image, alpha) {
        (ImageData::Rgb(rgb), None) => encode_png(rgb.width, rgb.height, png::ColorType::Rgb, &rgb.data),
        (ImageData::Luma(luma), None) => encode_gray(luma.width, luma.height, luma.data),
        (ImageData::Rgb(rgb), Some(alpha)) => {
            let pixels = rgb.data.chunks_exact(3).zip(&alpha.data);
            let data: Vec<u8> = pixels.flat_map(|(rgb, alpha)| rgb.iter().copied().chain([*alpha])).collect();
            encode_png(rgb.width, rgb.height, png::ColorType::Rgba, &data)
        }
        (ImageData::Luma(luma), Some(alpha)) => {
            let data: Vec<u8> = luma.data.iter().zip(&alpha.data).flat_map(|(gray, alpha)| [*gray, *alpha]).collect();
            encode_png(luma.width, luma.height, png::ColorType::GrayscaleAlpha, &data)
        }
    }
}

fn encode_gray(width: u32, height: u32, data: Vec<u8>) -> Result<Vec<u8>, png::EncodingError> {
    encode_png(width, height, png::ColorType::Grayscale, &data)
}

/// Encodes pixels as PNG.
fn encode_png(width: u32, height: u32, color: png::ColorType, data: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(data)?;
    writer.finish()?;
    Ok(bytes)
}
