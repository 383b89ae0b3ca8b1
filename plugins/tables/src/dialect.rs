//! The dialect of a text file: encoding, delimiter and quotes. Detected from the beginning of the file, unless the query
//! sets them.

use csv_core::{ReadFieldResult, ReaderBuilder};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

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
    /// The byte offset of the table: after a byte order mark and a `sep=` line.
    pub(crate) start: u64,
}

impl Dialect {
    /// Detects the dialect of a file from its first bytes.
    pub(crate) fn of(head: &[u8], name: &str, query: &Query) -> Dialect {
        let (mut encoding, mark) = encoding_of(head);
        encoding = query.encoding.unwrap_or(encoding);
        let body = head.get(mark..).unwrap_or_default();
        let decoded;
        let body = if is_wide(encoding) {
            decoded = encoding.decode_without_bom_handling(body).0;
            decoded.as_bytes()
        } else {
            body
        };
        // Spreadsheet programs write a first line such as `sep=;` to declare the delimiter.
        let (named, line) = separator_line(body);
        let width = if is_wide(encoding) { 2 } else { 1 };
        let quotes = !query.is_unquoted;
        let rest = body.get(line..).unwrap_or_default();
        let delimiter = query.delimiter.or(named).unwrap_or_else(|| most_likely(rest, name, quotes));
        Dialect { encoding, delimiter, quotes, start: (mark + line * width) as u64 }
    }

    /// A parser for this dialect.
    pub(crate) fn parser(&self) -> csv_core::Reader {
        ReaderBuilder::new().delimiter(self.delimiter).quoting(self.quotes).build()
    }

    /// True for UTF-16, which must be decoded before it is parsed.
    pub(crate) fn is_wide(&self) -> bool {
        is_wide(self.encoding)
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
        if self.encoding != UTF_8 && !self.is_wide() {
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

/// The encoding of a file from its first bytes, and the length of its byte order mark.
fn encoding_of(head: &[u8]) -> (&'static Encoding, usize) {
    if let Some((encoding, mark)) = Encoding::for_bom(head) {
        return (encoding, mark);
    }
    // In UTF-16, every other byte of ASCII text is zero.
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let half = head.len() / 2;
    if half > 1 && zeros(1) * 2 > half && zeros(0) == 0 {
        return (UTF_16LE, 0);
    }
    if half > 1 && zeros(0) * 2 > half && zeros(1) == 0 {
        return (UTF_16BE, 0);
    }
    match std::str::from_utf8(head) {
        Ok(_) => (UTF_8, 0),
        Err(error) if error.error_len().is_none() => (UTF_8, 0),
        Err(_) => (WINDOWS_1252, 0),
    }
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
        Dialect::of(head, name, &Query::default())
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
