//! Positions of all kinds, in files that the tests make.

use crate::exif;
use crate::format::Format;

use super::*;

/// Exif data with an orientation, a GPS directory of two values, and a second directory.
pub(crate) fn exif_data(big: bool) -> Vec<u8> {
    let mut data = if big { b"MM\0*".to_vec() } else { b"II*\0".to_vec() };
    let short =
        |data: &mut Vec<u8>, value: u16| data.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
    let long =
        |data: &mut Vec<u8>, value: u32| data.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
    let entry = |data: &mut Vec<u8>, tag: u16, kind: u16, count: u32, value: u32| {
        short(data, tag);
        short(data, kind);
        long(data, count);
        long(data, value);
    };
    let of_short = |value: u32| if big { value << 16 } else { value };
    long(&mut data, 8);
    short(&mut data, 3);
    entry(&mut data, 0x0112, 3, 1, of_short(6));
    entry(&mut data, 0x8825, 4, 1, 50);
    entry(&mut data, 0x9000, 7, 4, 0x3032_3330);
    long(&mut data, 0);
    assert_eq!(data.len(), 50);
    short(&mut data, 2);
    entry(&mut data, 1, 2, 2, if big { 0x4e00_0000 } else { 0x4e });
    entry(&mut data, 2, 5, 3, 80);
    long(&mut data, 0);
    for part in [48, 1, 51, 1, 24, 1] {
        long(&mut data, part);
    }
    data
}

#[test]
fn the_gps_directory_is_taken_out_and_the_rest_stays() {
    for big in [false, true] {
        let data = exif_data(big);
        let before = exif::read(&data).unwrap();
        assert_eq!((before.orientation, before.position.unwrap()["latitude"].as_f64()), (6, Some(48.856_667)));
        let mut hidden = data.clone();
        assert_eq!(tiff::blank(&mut hidden, &mut Budget::default()), Ok(true));
        let after = exif::read(&hidden).unwrap();
        assert_eq!((after.orientation, after.position, after.fields), (6, None, before.fields));
        assert_eq!(hidden.len(), data.len());
        assert!(hidden[50..].iter().all(|byte| *byte == 0), "{hidden:?}");
        assert_eq!(tiff::blank(&mut hidden, &mut Budget::default()), Ok(false));
    }
}

#[test]
fn loops_and_wrong_offsets_end() {
    for (at, value) in [(4, 8_u32), (46, 8), (30, 8), (30, u32::MAX), (4, u32::MAX), (76, 50)] {
        let mut data = exif_data(false);
        data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        tiff::blank(&mut data, &mut Budget::default()).unwrap();
        assert!(exif::read(&data).is_none_or(|camera| camera.position.is_none()), "{at} {value}");
    }
    let mut many = exif_data(false);
    many[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
    many.resize(1 << 20, 0x25);
    assert!(tiff::blank(&mut many.clone(), &mut Budget::default()).is_ok());
    let why = everywhere(&mut b"II*\0\x08\0\0\0\0\0".repeat(20_000)).unwrap_err().to_string();
    assert!(why.contains("a position in it cannot be removed") && why.contains("GPS = \"show\""), "{why}");
}

#[test]
fn positions_in_xmp_become_spaces() {
    let xmp = |inner: &str| format!("<x:xmpmeta><rdf:RDF>{inner}</rdf:RDF></x:xmpmeta>");
    for (inner, expected) in [
        (r#"<a exif:GPSLatitude="1,2N" dc:t="x"/>"#, r#"<a                         dc:t="x"/>"#),
        ("<a exif:GpsLongitude = '1'/>", "<a                        />"),
        ("<e:GPSx>1</e:GPSx><t>x</t>", "                  <t>x</t>"),
        ("<e:GPSx/><t>x</t>", "         <t>x</t>"),
        ("<drone:Latitude>1</drone:Latitude>", "                                  "),
        ("<t>x</t>", "<t>x</t>"),
    ] {
        let mut bytes = xmp(inner).into_bytes();
        xmp::blank_packets(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), xmp(expected), "{inner}");
    }
    // What is not understood takes the whole packet with it.
    for inner in ["<t>my gps is broken</t>", "<e:GPSx>1", r#"<a e:GPSx="1"#, "&lt;GPSx&gt;"] {
        let mut bytes = xmp(inner).into_bytes();
        xmp::blank_packets(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.to_lowercase().contains("gps") && text.starts_with("<x:xmpmeta>"), "{text}");
    }
}

/// A JPEG of segments: markers and contents.
fn jpeg(segments: &[(u8, &[u8])], after: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    for (marker, contents) in segments {
        bytes.extend([0xff, *marker]);
        bytes.extend(u16::try_from(contents.len() + 2).unwrap().to_be_bytes());
        bytes.extend(*contents);
    }
    bytes.extend([0xff, 0xda, 0, 2, 1, 0xff, 0, 2, 0xff, 0xd0, 3, 0xff, 0xd9]);
    bytes.extend(after);
    bytes
}

#[test]
fn a_jpeg_ends_with_its_first_picture_and_keeps_its_other_segments() {
    let exif = [b"Exif\0\0".as_slice(), &exif_data(true)].concat();
    let extended = b"http://ns.adobe.com/xmp/extension/\0GPSLat";
    let profile = b"ICC_PROFILE\0\x01\x01gps";
    let segments: [(u8, &[u8]); 4] =
        [(0xe1, &exif), (0xe1, extended), (0xe2, profile), (0xeb, b"JP {\"exif:GPSLatitude\":1}")];
    let hidden = hide(Format::Jpeg, jpeg(&segments, b"ftypmp42 film")).unwrap();
    assert_eq!(hidden.len(), jpeg(&segments, b"").len());
    let text = String::from_utf8_lossy(&hidden);
    assert!(!text.contains("GPS") && text.contains("gps") && text.contains("ICC_PROFILE"), "{text}");
    assert_eq!(exif::orientation(&hidden[12..]), 6);
    let cut = &jpeg(&segments, b"")[..40];
    assert_eq!(hide(Format::Jpeg, cut.to_vec()).unwrap().len(), 40);
}

/// A chunk of a PNG.
pub(crate) fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(data.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(kind);
    bytes.extend(data);
    bytes.extend(crc32fast::hash(&bytes[4..]).to_be_bytes());
    bytes
}

#[test]
fn the_chunks_of_a_png_are_rebuilt() {
    let signature = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
    let (end, title) = (chunk(b"IEND", b""), chunk(b"tEXt", b"Title\0gps is no position here"));
    let png = |chunks: &[&[u8]]| [&signature, &header, &chunks.concat(), &title, &end].map(Vec::as_slice).concat();
    let mut blank = exif_data(false);
    tiff::blank(&mut blank, &mut Budget::default()).unwrap();
    let xmp = |text: &str| chunk(b"iTXt", format!("XML:com.adobe.xmp\0\0\0\0\0<rdf:RDF>{text}</rdf:RDF>").as_bytes());
    for (given, expected) in [
        (chunk(b"eXIf", &exif_data(false)), chunk(b"eXIf", &blank)),
        (xmp("<e:GPSx/>"), xmp("         ")),
        (xmp("<t/>"), xmp("<t/>")),
        (chunk(b"zTXt", b"Raw profile type exif\0\0packed"), Vec::new()),
        (chunk(b"tEXt", b"exif:GPSLatitude\x0048/1"), Vec::new()),
        (chunk(b"caBX", b"c2pa GPSLatitude"), Vec::new()),
        (chunk(b"iCCP", b"gps"), chunk(b"iCCP", b"gps")),
    ] {
        assert_eq!(hide(Format::Png, png(&[&given])), Ok(png(&[&expected])), "{}", String::from_utf8_lossy(&given));
    }
    let followed = [png(&[]), b"film".to_vec()].concat();
    assert_eq!(hide(Format::Png, followed), Ok(png(&[])));
    for length in [0, 8, 20, 50] {
        let cut = png(&[])[..length].to_vec();
        assert_eq!(hide(Format::Png, cut.clone()), Ok(cut), "{length}");
    }
}

#[test]
fn metadata_of_another_form_is_refused() {
    assert!(matches!(hide(Format::Jxl, b"\0\0\0\x0cJXL \r\n\x87\n....brobExif".to_vec()), Err(Error::Denied(_))));
    assert!(matches!(hide(Format::Tiff, b"II+\0\x08\0\0\0".to_vec()), Err(Error::Denied(_))));
    assert!(hide(Format::Jxl, b"\xff\x0a".to_vec()).is_ok());
}
