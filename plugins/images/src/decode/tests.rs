//! Caps, truncated pictures, and the depths of BMP.

use std::io::Cursor;

use super::*;
use crate::format::Format;

fn shown(bytes: &[u8], side: u32, caps: Caps) -> Result<Decoded> {
    let format = Format::of(bytes).unwrap();
    let facts = Facts::of(format, &mut Cursor::new(bytes));
    decode(Cursor::new(bytes), &facts, side, caps)
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut info = ::png::Info::with_size(width, height);
    info.color_type = ::png::ColorType::Grayscale;
    info.bit_depth = ::png::BitDepth::Eight;
    let mut writer = ::png::Encoder::with_info(&mut bytes, info).unwrap().write_header().unwrap();
    let rows: Vec<u8> = (0..height).flat_map(|y| vec![u8::try_from(y % 256).unwrap(); width as usize]).collect();
    writer.write_image_data(&rows).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A BMP of two columns and two rows.
fn bmp(bits: u8, compression: u8, masks: &[u32], height: i32, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0\x02\0\0\0".to_vec();
    bytes.extend(height.to_le_bytes());
    bytes.extend([1, 0, bits, 0, compression, 0, 0, 0]);
    bytes.resize(54, 0);
    bytes.extend(masks.iter().flat_map(|mask| mask.to_le_bytes()));
    bytes[10] = u8::try_from(bytes.len()).unwrap();
    bytes.extend(pixels);
    bytes
}

#[test]
fn caps_are_read_from_the_setting() {
    assert_eq!(Caps::parse(None).unwrap().pixels, MAX_PIXELS);
    assert_eq!(Caps::parse(Some(" 9 ")).unwrap().pixels, 9);
    for wrong in ["0", "many", "-1"] {
        let why = Caps::parse(Some(wrong)).unwrap_err().to_string();
        assert!(why.contains("expected a number of pixels"), "{why}");
    }
}

#[test]
fn pixels_are_counted_before_they_are_decoded() {
    let why = shown(&png(30, 20), 10, Caps { pixels: 599 }).unwrap_err().to_string();
    assert!(why.contains("30 by 20 pixels") && why.contains(SETTING), "{why}");
    let decoded = shown(&png(30, 20), 10, Caps { pixels: 600 }).unwrap();
    assert_eq!((decoded.raster.width, decoded.raster.height, decoded.missing), (10, 7, None));
    let why = reserve((9, 9), u64::MAX / 2).unwrap_err().to_string();
    assert!(why.contains("more than the memory limit") && why.contains("raise the limit \"memory\""), "{why}");
}

#[test]
fn a_truncated_picture_shows_its_rows() {
    let whole = png(64, 200);
    let caps = Caps { pixels: MAX_PIXELS };
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    let decoded = shown(&cut, 200, caps).unwrap();
    let why = decoded.missing.unwrap();
    assert!(why.starts_with("damaged: ") && why.ends_with("of 200 rows are shown"), "{why}");
    assert!(!decoded.raster.is_opaque());
    assert!(shown(&whole[..40], 200, caps).is_err());
}

#[test]
fn bmp_of_all_depths_has_the_right_colours() {
    let caps = Caps { pixels: MAX_PIXELS };
    let (red, blue, green, white) = ([255, 0, 0, 255], [0, 0, 255, 255], [0, 255, 0, 255], [255; 4]);
    let palette = [0x00ff_0000, 0x0000_00ff, 0x0000_ff00, 0x00ff_ffff];
    for (bytes, expected) in [
        (bmp(24, 0, &[], -2, b"\0\0\xff\xff\0\0..\0\xff\0\xff\xff\xff.."), [red, blue, green, white]),
        (bmp(24, 0, &[], 2, b"\0\xff\0\xff\xff\xff..\0\0\xff\xff\0\0.."), [red, blue, green, white]),
        (bmp(8, 0, &palette, -2, b"\0\x01..\x02\x03.."), [red, blue, green, white]),
        (bmp(4, 0, &palette, -2, b"\x01...\x23..."), [red, blue, green, white]),
        (bmp(1, 0, &palette[..2], -2, b"\x40...\x80..."), [red, blue, blue, red]),
        (bmp(16, 0, &[], -2, b"\0\x7c\x1f\0\xe0\x03\xff\x7f"), [red, blue, green, white]),
        (bmp(16, 3, &[0xf800, 0x07e0, 0x1f], -2, b"\0\xf8\x1f\0\xe0\x07\xff\xff"), [red, blue, green, white]),
        (bmp(32, 0, &[], -2, b"\0\0\xff\0\xff\0\0\0\0\xff\0\0\xff\xff\xff\0"), [red, blue, green, white]),
    ] {
        let decoded = shown(&bytes, 100, caps).unwrap();
        // The palette has blue, green and red in this order.
        assert_eq!(decoded.raster.pixels, expected.concat(), "{bytes:?}");
    }
    let why = shown(&bmp(8, 1, &[], 2, b""), 9, caps).unwrap_err().to_string();
    assert!(why.contains("compression 1"), "{why}");
    let cut = shown(&bmp(24, 0, &[], 2, b"\0\xff\0\xff\xff\xff.."), 9, caps).unwrap();
    assert_eq!(cut.raster.pixels, [[0; 4], [0; 4], green, white].concat());
    assert!(cut.missing.is_some());
}

#[test]
fn formats_without_a_decoder_say_why() {
    let why = shown(b"\0\0\0\x10ftypavif\0\0\0\0", 9, Caps { pixels: 9 }).unwrap_err().to_string();
    assert!(why.contains("AVIF is not decoded here, because"), "{why}");
}
