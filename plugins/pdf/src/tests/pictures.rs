//! Tests of the images of pages.

use super::*;

/// Width, height and pixels of a PNG.
fn decoded(bytes: Vec<u8>) -> (u32, u32, png::ColorType, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, info.color_type, pixels)
}

#[test]
fn images_are_listed_and_read() {
    let fixture = Fixture::new();
    let list = fixture.text("images.pdf/pages/1/images");
    let lines: Vec<&str> = list.lines().skip(2).collect();
    assert_eq!(lines.len(), 5, "{list}");
    assert_eq!(lines[0], "- [image 1](images/1): 60 by 40 pixels, JPEG");
    let jpeg = fixture.one("images.pdf/pages/1/images/1");
    assert_eq!(jpeg.mime_type.as_deref(), Some("image/jpeg"));
    assert_eq!(jpeg.body, Body::Blob(fs::read(fixtures().join("photo.jpg")).unwrap()));
    // The same picture with lossless compression: the pixels equal the drawn ones.
    let (width, height, color, pixels) = decoded(fixture.blob("images.pdf/pages/1/images/2"));
    assert_eq!((width, height, color), (60, 40, png::ColorType::Rgb));
    assert_eq!(&pixels[..6], [0, 0, 128, 4, 0, 128]);
    assert_eq!(&pixels[pixels.len() - 3..], [59 * 4, 39 * 6, 128]);
    let (width, height, _, pixels) = decoded(fixture.blob("images.pdf/pages/1/images/3"));
    assert_eq!((width, height), (16, 16));
    let step = pixels.len() / 256;
    assert_eq!((pixels[0], pixels[step], pixels[2 * step]), (0, 255, 0));
    // CMYK becomes RGB.
    let (width, _, color, pixels) = decoded(fixture.blob("images.pdf/pages/1/images/4"));
    assert_eq!((width, color), (60, png::ColorType::Rgb));
    assert!(pixels[2] > pixels[0], "{:?}", &pixels[..3]);
    // Transparency is kept.
    let (_, _, color, pixels) = decoded(fixture.blob("images.pdf/pages/1/images/5"));
    assert_eq!(color, png::ColorType::Rgba);
    assert!(pixels[3] < 20 && pixels[pixels.len() - 1] > 235, "{} {}", pixels[3], pixels[pixels.len() - 1]);
    assert!(fixture.error("images.pdf/pages/1/images/6").contains("there is no image 6 on this page: it has 5"));
    assert!(fixture.text("latin.pdf/pages/1/images").contains("(none)"));
}

#[test]
fn a_scanned_page_is_marked() {
    let text = Fixture::new().text("scanned.pdf");
    assert_eq!(text, "[page 1 of 1: no text, 1 image, perhaps scanned]\n\n");
}
