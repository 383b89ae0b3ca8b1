//! The format of a picture, from its first bytes. A name says nothing: screenshots and downloads have wrong extensions.

/// A format that this provider knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Jpeg,
    Png,
    Gif,
    WebP,
    Bmp,
    Tiff,
    Avif,
    Heic,
    Jxl,
    Ico,
    Svg,
}

/// The number of bytes that show a format.
pub(crate) const HEAD: u64 = 512;

/// The sizes of the headers of BMP. Text may begin with `BM`, too.
const BMP_HEADERS: [u8; 7] = [12, 40, 52, 56, 64, 108, 124];

impl Format {
    /// The format of a file that begins with `head`. `None` if it is no picture.
    pub(crate) fn of(head: &[u8]) -> Option<Format> {
        match head {
            [0xff, 0xd8, 0xff, ..] => Some(Format::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Format::Png),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::WebP),
            [b'B', b'M', rest @ ..] => {
                let header = rest.get(12..16)?;
                matches!(header, [size, 0, 0, 0] if BMP_HEADERS.contains(size)).then_some(Format::Bmp)
            }
            // The second is the form for more than 4 GB.
            [b'I', b'I', b'*' | b'+', 0, ..] | [b'M', b'M', 0, b'*' | b'+', ..] => Some(Format::Tiff),
            [_, _, _, _, b'f', b't', b'y', b'p', brands @ ..] => media_file(head, brands),
            [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] | [0xff, 0x0a, ..] => Some(Format::Jxl),
            [0, 0, 1, 0, count, 0, _, _, _, 0, ..] if *count > 0 => Some(Format::Ico),
            _ => is_svg(head).then_some(Format::Svg),
        }
    }

    pub(crate) fn mime_type(self) -> &'static str {
        match self {
            Format::Jpeg => "image/jpeg",
            Format::Png => "image/png",
            Format::Gif => "image/gif",
            Format::WebP => "image/webp",
            Format::Bmp => "image/bmp",
            Format::Tiff => "image/tiff",
            Format::Avif => "image/avif",
            Format::Heic => "image/heic",
            Format::Jxl => "image/jxl",
            Format::Ico => "image/vnd.microsoft.icon",
            Format::Svg => "image/svg+xml",
        }
    }

    /// The name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Jpeg => "JPEG",
            Format::Png => "PNG",
            Format::Gif => "GIF",
            Format::WebP => "WebP",
            Format::Bmp => "BMP",
            Format::Tiff => "TIFF",
            Format::Avif => "AVIF",
            Format::Heic => "HEIC",
            Format::Jxl => "JPEG XL",
            Format::Ico => "ICO",
            Format::Svg => "SVG",
        }
    }

    /// Why pictures of this format are not decoded. `None` if they are.
    pub(crate) fn undecoded(self) -> Option<&'static str> {
        match self {
            Format::Jpeg | Format::Png | Format::Gif | Format::WebP | Format::Bmp => None,
            Format::Tiff => Some("a TIFF is a container of many codecs, also for the raw data of cameras"),
            Format::Avif => Some("no decoder of AV1 in safe Rust runs in WebAssembly"),
            Format::Heic => Some("no free decoder of HEVC in safe Rust runs in WebAssembly"),
            Format::Jxl => Some("no small decoder of JPEG XL runs in WebAssembly"),
            Format::Ico => Some("an icon file holds several pictures"),
            Format::Svg => Some("an SVG is a drawing as text, and has no pixels"),
        }
    }
}

/// The format of an ISO base media file, from its brands. Such a file can also be a film.
fn media_file(head: &[u8], brands: &[u8]) -> Option<Format> {
    let length = match head {
        [a, b, c, d, ..] => usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok()?,
        _ => return None,
    };
    let brands = brands.get(..length.checked_sub(8)?.min(brands.len()))?;
    let mut generic = false;
    for brand in brands.chunks_exact(4) {
        match brand {
            b"avif" | b"avis" => return Some(Format::Avif),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => return Some(Format::Heic),
            b"mif1" | b"msf1" | b"mif2" => generic = true,
            _ => {}
        }
    }
    generic.then_some(Format::Heic)
}

/// True if a text is an SVG: its first element is `svg`.
fn is_svg(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = match rest.get(..2) {
            Some("<!") if rest.starts_with("<!--") => "-->",
            Some("<!") => ">",
            Some("<?") => "?>",
            _ => break,
        };
        let Some((_, after)) = rest.split_once(end) else { return false };
        rest = after.trim_start();
    }
    let name =
        rest.strip_prefix('<').and_then(|rest| rest.split(|c: char| c.is_whitespace() || c == '>' || c == '/').next());
    matches!(name, Some("svg" | "svg:svg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide() {
        let bmp = b"BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0";
        for (head, format) in [
            (&b"\xff\xd8\xff\xe0"[..], Some(Format::Jpeg)),
            (b"\x89PNG\r\n\x1a\n", Some(Format::Png)),
            (b"GIF89a", Some(Format::Gif)),
            (b"RIFF\x24\0\0\0WEBPVP8 ", Some(Format::WebP)),
            (bmp, Some(Format::Bmp)),
            (b"BM is short for something", None),
            (b"II*\0", Some(Format::Tiff)),
            (b"\0\0\0\x1cftypmif1\0\0\0\0avif", Some(Format::Avif)),
            (b"\0\0\0\x14ftypmif1\0\0\0\0heic", Some(Format::Heic)),
            (b"\0\0\0\x14ftypisom\0\0\0\0mp42", None),
            (b"\0\0\0\x01ftyp", None),
            (b"\0\0\x01\0\x01\0\x10\x10\0\0", Some(Format::Ico)),
            (b"<svg xmlns=\"x\">", Some(Format::Svg)),
            (b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <a> -->\n<svg>", Some(Format::Svg)),
            (b"<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg\n", Some(Format::Svg)),
            (b"<html><svg>", None),
            (b"<!-- about <svg> -->", None),
            (b"text", None),
            (b"", None),
        ] {
            assert_eq!(Format::of(head), format, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
