//! The dialect of a text file: encoding, delimiter and quotes. Detected from the beginning of the file, unless the query
//! sets them.

use belljar_guest::{Error, Result};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use csv_core::{ReadFieldResult, ReaderBuilder};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::query::Query;

/// How many bytes of a file the detection reads.
pub(crate) const HEAD: usize = 64 * 1024;

/// How many rows the detection compares.
const ROWS: usize = 50;

/// The dialect of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) encoding: &'static Encoding,
    pub(crate) delimiter: u8,
    pub(crate) quotes: bool,
    /// The byte offset of the table: after a byte order mark, skipped lines and a `sep=` line.
    pub(crate) start: u64,
    /// True if the encoding is a guess from the frequency of bytes.
    pub(crate) is_guess: bool,
}

impl Dialect {
    /// Detects the dialect of a file from its first bytes. Fails if the lines to skip are not within them.
    pub(crate) fn of(head: &[u8], name: &str, query: &Query) -> Result<Dialect> {
        let Detected { mut encoding, mark, mut is_guess } = encoding_of(head);
        if let Some(given) = query.encoding {
            (encoding, is_guess) = (given, false);
        }
        let body = head.get(mark..).unwrap_or_default();
        let decoded;
        let body = if is_wide(encoding) || encoding == ISO_2022_JP {
            decoded = encoding.decode_without_bom_handling(body).0;
            decoded.as_bytes()
        } else {
            body
        };
        let skipped = skipped(body, query.skip.unwrap_or_default())?;
        let rest = body.get(skipped..).unwrap_or_default();
        // Spreadsheet programs write a first line such as `sep=;` to declare the delimiter.
        let (named, line) = separator_line(rest);
        let quotes = !query.is_unquoted;
        let delimiter = query
            .delimiter
            .or(named)
            .unwrap_or_else(|| most_likely(rest.get(line..).unwrap_or_default(), name, quotes));
        let before = body.get(..skipped + line).unwrap_or_default();
        let before = match is_wide(encoding) {
            true => 2 * std::str::from_utf8(before).map_or(0, |text| text.encode_utf16().count()),
            false => before.len(),
        };
        Ok(Dialect { encoding, delimiter, quotes, start: (mark + before) as u64, is_guess })
    }

    /// A remark for the reader about a guessed encoding.
    pub(crate) fn note(&self) -> Option<String> {
        self.is_guess.then(|| {
            format!(
                "the text is not UTF-8; from its bytes it was taken for {}, and encoding= sets another",
                self.encoding.name()
            )
        })
    }

    /// A parser for this dialect.
    pub(crate) fn parser(&self) -> csv_core::Reader {
        ReaderBuilder::new().delimiter(self.delimiter).quoting(self.quotes).build()
    }

    /// True for UTF-16.
    pub(crate) fn is_wide(&self) -> bool {
        is_wide(self.encoding)
    }

    /// True for text that must be decoded before it is parsed: UTF-16, and encodings in which the delimiter can be a part of
    /// another character. In all encodings of several bytes, such a part is at least `@`.
    pub(crate) fn is_decoded(&self) -> bool {
        self.is_wide()
            || self.encoding == ISO_2022_JP
            || (self.delimiter >= b'@' && !self.encoding.is_single_byte() && self.encoding != UTF_8)
    }

    /// True if rows have positions in the file, so that a later read can start there.
    pub(crate) fn has_positions(&self) -> bool {
        self.is_wide() || !self.is_decoded()
    }

    /// The delimiter as the parameter `delimiter` names it.
    pub(crate) fn delimiter_name(&self) -> String {
        match self.delimiter {
            b',' => "comma".to_owned(),
            b';' => "semicolon".to_owned(),
            b'\t' => "tab".to_owned(),
            b'|' => "pipe".to_owned(),
            b' ' => "space".to_owned(),
            other => char::from(other).to_string(),
        }
    }

    /// Decodes a cell. Bytes that are invalid in UTF-8 are decoded as Windows-1252, which has a character for every byte.
    pub(crate) fn decode(&self, mut bytes: &[u8], is_cut: bool) -> String {
        if self.encoding != UTF_8 && !self.is_decoded() {
            return self.encoding.decode_without_bom_handling(bytes).0.into_owned();
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => return text.to_owned(),
            // The cell was cut within a character.
            Err(error) if is_cut && error.error_len().is_none() => {
                bytes = bytes.get(..error.valid_up_to()).unwrap_or_default();
            }
            Err(_) => {}
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        }
    }
}

fn is_wide(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// A detected encoding.
struct Detected {
    encoding: &'static Encoding,
    /// The length of the byte order mark.
    mark: usize,
    is_guess: bool,
}

/// The encoding of a file from its first bytes.
fn encoding_of(head: &[u8]) -> Detected {
    let sure = |encoding, mark| Detected { encoding, mark, is_guess: false };
    if let Some((encoding, mark)) = Encoding::for_bom(head) {
        return sure(encoding, mark);
    }
    // In UTF-16, every other byte of ASCII text is zero.
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let half = head.len() / 2;
    let (even, odd) = (zeros(0), zeros(1));
    if half > 1 && odd * 2 > half && even * 20 < odd {
        return sure(UTF_16LE, 0);
    }
    if half > 1 && even * 2 > half && odd * 20 < even {
        return sure(UTF_16BE, 0);
    }
    if memchr::memmem::find(head, b"\x1b$").is_some() && head.is_ascii() {
        return Detected { encoding: ISO_2022_JP, mark: 0, is_guess: true };
    }
    if is_mostly_utf8(head) {
        return sure(UTF_8, 0);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, false);
    // A guess never is UTF-8 here, because the text is not.
    Detected { encoding: detector.guess(None, Utf8Detection::Deny), mark: 0, is_guess: true }
}

/// True for UTF-8 with few damaged characters. These are decoded as Windows-1252, each cell on its own.
fn is_mostly_utf8(head: &[u8]) -> bool {
    if std::str::from_utf8(head).is_ok() {
        return true;
    }
    let (mut valid, mut damaged) = (0, 0);
    for chunk in head.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        // An incomplete character at the end is cut by the size of the head.
        damaged += usize::from(!chunk.invalid().is_empty());
    }
    let is_cut = std::str::from_utf8(head).is_err_and(|error| error.error_len().is_none());
    damaged == 0 || (is_cut && damaged == 1) || damaged * 20 < valid
}

/// The length of the first `lines` lines.
fn skipped(body: &[u8], lines: usize) -> Result<usize> {
    let mut at = 0;
    for line in 0..lines {
        let rest = body.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'\n').or_else(|| rest.iter().position(|byte| *byte == b'\r')) {
            Some(end) => at += end + 1,
            None if body.len() < HEAD => return Ok(body.len()),
            None => {
                return Err(Error::invalid(format_args!(
                    "skip={lines}: expected at most the {line} lines in the first {HEAD} bytes; read later rows with rows="
                )));
            }
        }
    }
    Ok(at)
}

/// The delimiter that a first line `sep=;` names, and the length of that line.
fn separator_line(body: &[u8]) -> (Option<u8>, usize) {
    let Some([delimiter, rest @ ..]) = body.strip_prefix(b"sep=") else { return (None, 0) };
    let end = match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => return (None, 0),
    };
    (Some(*delimiter), 5 + end)
}

/// The delimiter that gives the most rows the same number of cells, and at least two cells.
fn most_likely(body: &[u8], name: &str, quotes: bool) -> u8 {
    let is_tabbed = [".tsv", ".tab"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
    let candidates = if is_tabbed { *b"\t,;|" } else { *b",\t;|" };
    let mut best = ((0, 0), candidates[0]);
    for delimiter in candidates {
        let score = score(body, delimiter, quotes);
        if score > best.0 {
            best = (score, delimiter);
        }
    }
    best.1
}

/// The share of rows with the most common number of cells, in thousandths, and this number.
fn score(body: &[u8], delimiter: u8, quotes: bool) -> (usize, usize) {
    let mut parser = ReaderBuilder::new().delimiter(delimiter).quoting(quotes).build();
    let (mut input, mut scratch) = (body, [0; 1024]);
    let (mut widths, mut width) = (Vec::new(), 0);
    while widths.len() < ROWS {
        let (result, read, _) = parser.read_field(input, &mut scratch);
        input = input.get(read..).unwrap_or_default();
        match result {
            ReadFieldResult::Field { record_end } => {
                width += 1;
                if record_end {
                    widths.push(width);
                    width = 0;
                }
            }
            ReadFieldResult::OutputFull => {}
            // The last row may be cut, so it counts only if it is also the first row.
            ReadFieldResult::InputEmpty if widths.is_empty() => widths.push(width + 1),
            ReadFieldResult::InputEmpty | ReadFieldResult::End => break,
        }
    }
    let count = |width: usize| widths.iter().filter(|other| **other == width).count();
    let common = widths.iter().copied().max_by_key(|width| (count(*width), *width)).unwrap_or_default();
    if common < 2 { (0, 0) } else { (count(common) * 1000 / widths.len(), common) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &[u8], name: &str) -> Dialect {
        Dialect::of(head, name, &Query::default()).unwrap()
    }

    #[test]
    fn the_delimiter_gives_rows_of_equal_width() {
        for (head, delimiter) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n3,5;4,5\n", b';'),
            ("a\tb, c\n1\t2\n", b'\t'),
            ("a|b\n1|2", b'|'),
            ("\"x;y\",b\n\"1;2\",3\n", b','),
            ("one\ntwo\n", b','),
            ("", b','),
            ("name,note\nx,\"a;b\nc;d\"\n", b','),
        ] {
            assert_eq!(char::from(of(head.as_bytes(), "x.csv").delimiter), char::from(delimiter), "{head:?}");
        }
        assert_eq!(of(b"one, two\n", "x.tsv").delimiter, b',');
        assert_eq!(of(b"one\n", "x.tsv").delimiter, b'\t');
        let named = of(b"sep=;\r\na,b;c\n", "x.csv");
        assert_eq!((named.delimiter, named.start), (b';', 7));
    }

    #[test]
    fn encodings_are_detected_by_marks_and_invalid_bytes() {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        for (head, encoding, start) in [
            (b"\xef\xbb\xbfa,b\n".to_vec(), UTF_8, 3),
            ("ä,b\n".into(), UTF_8, 0),
            (b"gr\xfc\xdfe,b\n".to_vec(), WINDOWS_1252, 0),
            (b"a,\xc3".to_vec(), UTF_8, 0),
            ([b"\xff\xfe".to_vec(), wide("a\tb\n")].concat(), UTF_16LE, 2),
            (wide("a;b\n1;2\n"), UTF_16LE, 0),
            ("a;b\n1;2\n".encode_utf16().flat_map(u16::to_be_bytes).collect(), UTF_16BE, 0),
            (wide("sep=;\na;b\n"), UTF_16LE, 12),
        ] {
            let dialect = of(&head, "x.csv");
            assert_eq!((dialect.encoding, dialect.start), (encoding, start), "{head:?}");
        }
        assert_eq!(of(b"a,b\n", "x.csv").decode(b"gr\xfcn", false), "grün");
        assert_eq!(of(b"a,b\n", "x.csv").decode("grü".as_bytes().get(..3).unwrap(), true), "gr");
    }
}
