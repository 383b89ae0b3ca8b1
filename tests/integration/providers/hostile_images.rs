//! Hostile rows about pictures: bombs, endless lists of parts, loops, and headers that contradict each other. The attacker
//! writes files; the provider is the real `images`.

use belljar_tests::Site;
use flate2::{Compression, Crc, write::ZlibEncoder};
use std::io::Write as _;

use crate::expect::{Expect, limit, matching};
use crate::row::{Guest, Row, Stops, hostile_guest};

/// A row of the provider over files that `fill` writes with the given function.
fn pictures(
    id: &'static str,
    attack: &'static str,
    fill: impl Fn(&dyn Fn(&str, &[u8])) + Send + Sync + 'static,
) -> Row {
    let directory = format!("pictures-{}", id.to_lowercase());
    let config = format!("fs = {{ \"/d\" = \"{directory}\" }}");
    let mut row = hostile_guest(id, attack).config(&config).prepare(move |site: &Site| {
        fill(&|name, bytes| {
            site.write(format!("{directory}/{name}"), bytes);
        });
    });
    if let Some(mount) = row.mounts.first_mut() {
        mount.guest = Guest::Built("images");
    }
    row
}

/// Expects an error of the provider with these words.
fn refused(words: &'static str) -> Expect {
    matching(move |answer| match answer {
        Err(error) if error.message.contains(words) => Ok(format!("refused: {words}")),
        other => Err(format!("{other:?}").chars().take(300).collect()),
    })
}

/// Expects a picture.
fn picture() -> Expect {
    matching(|answer| match answer {
        Ok(result) if result["contents"][0]["blob"].is_string() => Ok("a small picture".to_owned()),
        other => Err(format!("{other:?}").chars().take(300).collect()),
    })
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        pictures("PIC-01", "headers claim billions of pixels", |write| {
            let side = [0x7f, 0xff, 0xff, 0xff];
            write("a.png", &png(side, side, &[(b"IDAT", packed(99))]));
            write("a.gif", b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;");
            write("a.jpg", &jpeg(0xc0, [0xff, 0xdc], [0xff, 0xdc], 1));
            write("a.bmp", b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\0\0\xff\xff\xff\x7f\x01\0\x18\0\0\0\0\0");
        })
        .read("a.png?size=64", refused("million are decoded"))
        .read("a.gif?size=64", refused("million are decoded"))
        .read("a.jpg?size=64", refused("million are decoded"))
        .read("a.bmp?size=64", refused("million are decoded"))
        .peak(48)
        .stopped(Stops::Structure("pixels are counted before anything is decoded")),
        pictures("PIC-02", "a profile of a kilobyte that unpacks to a hundred megabytes", |write| {
            let profile = [b"x\0\0".as_slice(), &packed(100 << 20)].concat();
            write("a.png", &png([0, 0, 0, 1], [0, 0, 0, 1], &[(b"iCCP", profile), (b"IDAT", packed(2))]));
        })
        .read("a.png?size=64", picture())
        .peak(64)
        .stopped(Stops::Structure("a decoder unpacks at most 8 MiB beside the pixels")),
        pictures("PIC-03", "a GIF of a million frames", |write| {
            let frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0";
            write("a.gif", &[b"GIF89a\x01\0\x01\0\x80\0\0abcdef".as_slice(), &frame.repeat(1_000_000)].concat());
        })
        .read("a.gif/info", Expect::Contains(&["too many parts to visit all of them"]))
        .read("a.gif?size=64", picture())
        .stopped(Stops::Structure("200,000 parts of a file are visited; a thumbnail needs the first frame")),
        pictures("PIC-04", "a PNG of 600,000 empty chunks", |write| {
            let mut bytes = png([0, 0, 0, 1], [0, 0, 0, 1], &[]);
            let (chunk, end) = (part(b"abCd", &[]), part(b"IDAT", &packed(2)));
            bytes.truncate(33);
            bytes.extend(chunk.repeat(600_000));
            write("a.png", &[bytes, end].concat());
        })
        .read("a.png/info", Expect::Contains(&["too many parts to visit all of them", "\"width\": 1"]))
        .read("a.png?size=64", picture())
        .read("a.png", picture())
        .stopped(Stops::Structure("200,000 parts of a file are visited; decoders skip unknown ones")),
        pictures("PIC-05", "Exif data whose directories lead to each other", |write| {
            // Directory 8 leads to itself, to a GPS directory that is directory 8, and to a list of itself.
            let mut exif = b"Exif\0\0II*\0\x08\0\0\0\x03\0".to_vec();
            for (tag, count) in [(0x8769_u16, 1_u32), (0x8825, 1), (0x014a, u32::MAX)] {
                exif.extend(tag.to_le_bytes().into_iter().chain([4, 0]).chain(count.to_le_bytes()).chain([8, 0, 0, 0]));
            }
            exif.extend([8, 0, 0, 0]);
            let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1, 0, u8::try_from(exif.len() + 2).unwrap_or(u8::MAX)];
            bytes.extend(exif);
            bytes.extend(jpeg(0xc0, [0, 8], [0, 8], 1).get(2..).unwrap_or_default());
            write("a.jpg", &bytes);
        })
        .read("a.jpg", picture())
        .read("a.jpg/info", Expect::Contains(&["\"orientation\": 1"]))
        .read("a.jpg?size=64", picture())
        .stopped(Stops::Structure("64 directories of Exif data are visited, each once")),
        pictures("PIC-06", "a progressive JPEG that is refined two thousand times", |write| {
            write("a.jpg", &jpeg(0xc2, [8, 0], [8, 0], 2000));
        })
        .limits("fuel = 1_000_000_000")
        .read("a.jpg?size=64", limit("fuel"))
        .stopped_by(&["fuel"]),
        pictures("PIC-07", "a WebP that holds a picture of 16,383 pixels in a canvas of one", |write| {
            let mut bytes = b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
            bytes.extend(b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\xff\x3f\xff\x3f");
            write("a.webp", &bytes);
        })
        .read("a.webp?size=64", refused("its header has no dimensions"))
        .read("a.webp/info", Expect::Contains(&["a header of the file is damaged"]))
        .peak(48)
        .stopped(Stops::Structure("the dimensions of all headers are compared before anything is decoded")),
    ]
}

/// So many zeros, compressed.
fn packed(zeros: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = vec![0; zeros.min(1 << 20)];
    for _ in 0..zeros.div_ceil(block.len().max(1)) {
        encoder.write_all(&block).expect("memory takes every byte");
    }
    encoder.finish().expect("memory takes every byte")
}

/// A grey PNG of 8 bits with these chunks.
fn png(width: [u8; 4], height: [u8; 4], chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let header = [width.as_slice(), &height, &[8, 0, 0, 0, 0]].concat();
    let mut bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &part(b"IHDR", &header)].concat();
    chunks.iter().for_each(|(kind, data)| bytes.extend(part(kind, data)));
    bytes
}

fn part(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).expect("a short chunk");
    let body = [kind.as_slice(), data].concat();
    let mut sum = Crc::new();
    sum.update(&body);
    [length.to_be_bytes().as_slice(), &body, &sum.sum().to_be_bytes()].concat()
}

/// A grey JPEG whose scans have no data: a decoder takes them as zeros.
fn jpeg(frame: u8, height: [u8; 2], width: [u8; 2], scans: usize) -> Vec<u8> {
    let mut bytes = b"\xff\xd8\xff\xdb\0\x43\0".to_vec();
    bytes.extend([1; 64]);
    bytes.extend([0xff, frame, 0, 11, 8, height[0], height[1], width[0], width[1], 1, 1, 0x11, 0]);
    // One code of one bit, for the value 0.
    for class in [0x00, 0x10] {
        bytes.extend([0xff, 0xc4, 0, 20, class, 1]);
        bytes.extend([0; 16]);
    }
    let (last, first) = if frame == 0xc2 { (0, 0x00) } else { (63, 0x00) };
    for _ in 0..scans {
        bytes.extend([0xff, 0xda, 0, 8, 1, 1, 0, 0, last, first, 0]);
    }
    bytes.extend([0xff, 0xd9]);
    bytes
}
