//! Exif data: what the camera says of a picture. Parsed by the crate `kamadak-exif`, which reads only the fields that are
//! asked for.

use std::fmt::{self, Write as _};
use std::io::{BufRead, Read as _, Seek};

use exif::{Context, Exif, Field, In, Reader, Tag, Value};
use serde_json::{Map, Value as Json, json};

use crate::format::Format;

/// The fields that are shown, by their names in the standard. Others are numbers for programs, or the camera's own.
const SHOWN: [Tag; 40] = [
    Tag::Make,
    Tag::Model,
    Tag::LensMake,
    Tag::LensModel,
    Tag::LensSpecification,
    Tag::DateTimeOriginal,
    Tag::OffsetTimeOriginal,
    Tag::SubSecTimeOriginal,
    Tag::DateTimeDigitized,
    Tag::DateTime,
    Tag::ExposureTime,
    Tag::FNumber,
    Tag::PhotographicSensitivity,
    Tag::ExposureBiasValue,
    Tag::ExposureProgram,
    Tag::ExposureMode,
    Tag::MeteringMode,
    Tag::Flash,
    Tag::FocalLength,
    Tag::FocalLengthIn35mmFilm,
    Tag::MaxApertureValue,
    Tag::ApertureValue,
    Tag::ShutterSpeedValue,
    Tag::BrightnessValue,
    Tag::SubjectDistance,
    Tag::DigitalZoomRatio,
    Tag::WhiteBalance,
    Tag::LightSource,
    Tag::SceneCaptureType,
    Tag::Contrast,
    Tag::Saturation,
    Tag::Sharpness,
    Tag::ColorSpace,
    Tag::XResolution,
    Tag::YResolution,
    Tag::Software,
    Tag::Artist,
    Tag::Copyright,
    Tag::ImageDescription,
    Tag::ExifVersion,
];

/// The fields of a position that are shown if the operator allows it.
const POSITION: [Tag; 8] = [
    Tag::GPSLatitude,
    Tag::GPSLongitude,
    Tag::GPSAltitude,
    Tag::GPSImgDirection,
    Tag::GPSSpeed,
    Tag::GPSDateStamp,
    Tag::GPSTimeStamp,
    Tag::GPSMapDatum,
];

/// The most bytes of a value that are shown.
const MAX_VALUE: usize = 300;

/// What Exif data says.
#[derive(Debug)]
pub(crate) struct Camera {
    /// How the picture is turned: 1 to 8, as in the standard. 1 is upright.
    pub(crate) orientation: u8,
    pub(crate) fields: Map<String, Json>,
    /// The position. `None` if there is none.
    pub(crate) position: Option<Map<String, Json>>,
}

/// The orientation in Exif data; 1 without one.
pub(crate) fn orientation(data: &[u8]) -> u8 {
    parse(data).map_or(1, |exif| orientation_of(&exif))
}

/// Parses Exif data. `None` if it is damaged.
pub(crate) fn read(data: &[u8]) -> Option<Camera> {
    let exif = parse(data)?;
    let fields = SHOWN.iter().filter_map(|tag| shown(&exif, *tag)).collect();
    let mut position: Map<String, Json> = POSITION.iter().filter_map(|tag| shown(&exif, *tag)).collect();
    for (name, tag, side, negative) in [
        ("latitude", Tag::GPSLatitude, Tag::GPSLatitudeRef, b"S"),
        ("longitude", Tag::GPSLongitude, Tag::GPSLongitudeRef, b"W"),
    ] {
        if let Some(degrees) = degrees(&exif, tag) {
            let is_negative = field(&exif, side).is_some_and(|side| matches!(&side.value, Value::Ascii(text) if text.first().is_some_and(|text| text.starts_with(negative))));
            position.insert(name.to_owned(), json!(if is_negative { -degrees } else { degrees }));
        }
    }
    let has_position = exif.fields().any(|field| field.tag.context() == Context::Gps);
    Some(Camera { orientation: orientation_of(&exif), fields, position: has_position.then_some(position) })
}

/// Exif data in a file whose format this crate does not walk. A TIFF is read up to `most` bytes.
pub(crate) fn in_container<R: BufRead + Seek>(source: &mut R, format: Format, most: u64) -> Option<Vec<u8>> {
    if format == Format::Tiff {
        let mut data = Vec::new();
        source.take(most).read_to_end(&mut data).ok()?;
        return Some(data);
    }
    let read = Reader::new().continue_on_error(true).read_from_container(source);
    Some(read.or_else(|error| error.distill_partial_result(|_| {})).ok()?.buf().to_vec())
}

fn parse(data: &[u8]) -> Option<Exif> {
    let read = Reader::new().continue_on_error(true).read_raw(data.to_vec());
    read.or_else(|error| error.distill_partial_result(|_| {})).ok()
}

fn field(exif: &Exif, tag: Tag) -> Option<&Field> {
    exif.get_field(tag, In::PRIMARY)
}

fn orientation_of(exif: &Exif) -> u8 {
    let value = field(exif, Tag::Orientation).and_then(|field| field.value.get_uint(0));
    value.and_then(|value| u8::try_from(value).ok()).filter(|value| (1..=8).contains(value)).unwrap_or(1)
}

/// A field as name and text.
fn shown(exif: &Exif, tag: Tag) -> Option<(String, Json)> {
    let field = field(exif, tag)?;
    let mut text = Short(String::new());
    // An error means that the text is full.
    let _ = match &field.value {
        Value::Ascii(parts) => parts.iter().try_for_each(|part| write!(text, "{}", String::from_utf8_lossy(part))),
        _ => write!(text, "{}", field.display_value().with_unit(exif)),
    };
    let clean: String = text.0.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.trim();
    (!clean.is_empty()).then(|| (tag.to_string(), json!(clean)))
}

/// Degrees, minutes and seconds as degrees, rounded to about ten centimetres.
fn degrees(exif: &Exif, tag: Tag) -> Option<f64> {
    let Value::Rational(parts) = &field(exif, tag)?.value else { return None };
    let [degrees, minutes, seconds] = parts.first_chunk()?;
    let sum = degrees.to_f64() + minutes.to_f64() / 60.0 + seconds.to_f64() / 3600.0;
    sum.is_finite().then(|| (sum * 1e6).round() / 1e6)
}

/// A text that takes so many bytes at most.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.0.len() >= MAX_VALUE {
                return Err(fmt::Error);
            }
            self.0.push(c);
        }
        Ok(())
    }
}
