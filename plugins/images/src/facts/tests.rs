//! Headers of all formats, also endless and truncated ones.

use std::io::Cursor;

use super::*;

fn facts(format: Format, bytes: &[u8]) -> Facts {
    Facts::of(format, &mut Cursor::new(bytes))
}

/// A GIF with so many frames, each after an extension with a delay.
fn gif(frames: usize) -> Vec<u8> {
    let mut bytes = b"GIF89a\x03\0\x02\0\x80\0\0abcdef".to_vec();
    bytes.extend(b"!\xff\x0bNETSCAPE2.0\x03\x01\x05\0\0");
    for _ in 0..frames {
        bytes.extend(b"!\xf9\x04\0\x0a\0\0\0,\0\0\0\0\x05\0\x02\0\0\x02\x02D\x01\0");
    }
    bytes.push(b';');
    bytes
}

#[test]
fn a_gif_is_as_large_as_its_first_frame() {
    let one = facts(Format::Gif, &gif(1));
    assert_eq!((one.size, one.animation, one.damage), (Some((5, 2)), None, None));
    let three = facts(Format::Gif, &gif(3)).animation;
    assert_eq!(three, Some(Animation { frames: 3, duration: 300, plays: Some(5) }));
}

#[test]
fn endless_lists_of_blocks_and_chunks_end() {
    let endless = facts(Format::Gif, &gif(MAX_STEPS));
    assert_eq!(endless.damage, Some("the file has too many parts to visit all of them"));
    assert!(endless.animation.is_some_and(|animation| animation.frames > 1000));
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x10\x04\0\0\0crc0".to_vec();
    png.extend(b"\0\0\0\0abCdcrc0".repeat(MAX_STEPS));
    let endless = facts(Format::Png, &png);
    assert_eq!((endless.size, endless.bits, endless.colour), (Some((1, 1)), Some(16), Some("grey with alpha")));
    assert!(endless.damage.is_some());
}

#[test]
fn a_webp_must_not_hold_more_than_it_says() {
    let picture = b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x10\0\x08\0";
    let plain = [b"RIFF\0\0\0\0WEBP".as_slice(), picture].concat();
    assert_eq!(facts(Format::WebP, &plain).size, Some((16, 8)));
    let within = |width: u8| [b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0", &[width, 0, 0, 7, 0, 0][..], picture].concat();
    assert_eq!(facts(Format::WebP, &within(15)).size, Some((16, 8)));
    let wrong = facts(Format::WebP, &within(14));
    assert_eq!((wrong.size, wrong.damage), (None, Some("a header of the file is damaged")));
}

#[test]
fn headers_of_jpeg_are_read_as_decoders_do() {
    let jpeg = |marker: u8, ids: &[u8], transform: Option<u8>| {
        let mut bytes = vec![0xff, 0xd8];
        if let Some(transform) = transform {
            bytes.extend(b"\xff\xee\0\x0eAdobe\0\0\0\0\0\0");
            bytes.push(transform);
        }
        // Bytes between segments, and a fill byte.
        bytes.extend([1, 2, 0xff, 0xff, marker, 0, 8 + 3 * u8::try_from(ids.len()).unwrap(), 8, 0, 20, 0, 30]);
        bytes.push(u8::try_from(ids.len()).unwrap());
        for (at, id) in ids.iter().enumerate() {
            bytes.extend([*id, if at == 0 { 0x22 } else { 0x11 }, 0]);
        }
        bytes.extend([0xff, 0xda]);
        facts(Format::Jpeg, &bytes)
    };
    for (marker, ids, transform, colour) in [
        (0xc0, &[1][..], None, "grey"),
        (0xc0, &[1, 2, 3], None, "ycbcr"),
        (0xc2, b"RGB", None, "rgb"),
        (0xc0, &[1, 2, 3], Some(0), "rgb"),
        (0xc0, &[1, 2, 3, 4], Some(2), "ycck"),
        (0xc0, &[1, 2, 3, 4], Some(0), "cmyk"),
    ] {
        let found = jpeg(marker, ids, transform);
        assert_eq!((found.size, found.bits, found.colour), (Some((30, 20)), Some(8), Some(colour)));
        assert_eq!((found.is_progressive, found.damage), (marker == 0xc2, None));
    }
    // Two by two blocks of the first component, one of each other, for 2 by 2 units of 16 pixels.
    assert_eq!(jpeg(0xc0, &[1, 2, 3], None).jpeg_samples, 4 * 64 * 6);
}

#[test]
fn truncated_files_say_so() {
    for (format, bytes) in [
        (Format::Jpeg, &b"\xff\xd8\xff\xe0\0"[..]),
        (Format::Jpeg, b"\xff\xd8"),
        (Format::Png, b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0"),
        (Format::Gif, b"GIF89a\x01"),
        (Format::Bmp, b"BM\0\0"),
    ] {
        let found = facts(format, bytes);
        assert_eq!((found.size, found.damage), (None, Some("the file is truncated")), "{format:?} {bytes:?}");
    }
    assert!(facts(Format::Avif, b"\0\0\0\x10ftypavif\0\0\0\0").damage.is_some());
    assert_eq!(facts(Format::Svg, b"<svg/>").damage, None);
}
