//! The kinds of files. Detected from the first bytes, because names are often wrong.

pub(crate) mod book;
pub(crate) mod columnar;
pub(crate) mod delimited;
pub(crate) mod feed;
pub(crate) mod package;
pub(crate) mod sheet;

use std::io::{Read as _, Seek as _, SeekFrom};

use belljar_guest::{Error, Result};
use belljar_tree::File;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Delimiter-separated text: CSV, TSV.
    Delimited,
    /// A workbook: several tables.
    Book(Format),
    Parquet,
}

/// The format of a workbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Xlsx,
    Xls,
    Ods,
}

/// The extensions of served files.
const EXTENSIONS: [&str; 9] = ["csv", "tsv", "tab", "xlsx", "xlsm", "xls", "ods", "parquet", "psv"];

/// True if a file of this name is served.
pub(crate) fn is_served(name: &str) -> bool {
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    extension.is_some_and(|extension| EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

impl Kind {
    /// The kind according to the extension.
    pub(crate) fn by_name(name: &str) -> Kind {
        let name = name.to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("xlsx" | "xlsm") => Kind::Book(Format::Xlsx),
            Some("xls") => Kind::Book(Format::Xls),
            Some("ods") => Kind::Book(Format::Ods),
            Some("parquet") => Kind::Parquet,
            _ => Kind::Delimited,
        }
    }

    /// The kind according to the contents. Fails for a known format that is not a table.
    pub(crate) fn of(file: &mut File, name: &str) -> Result<Kind> {
        let mut head = Vec::new();
        file.by_ref().take(512).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        let head = head.as_slice();
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            // The first entry of an OpenDocument file is its MIME type.
            let is_ods = head.windows(22).any(|part| part == b"opendocument.spreadshe");
            return Ok(Kind::Book(if is_ods { Format::Ods } else { Format::Xlsx }));
        }
        if head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
            return Ok(Kind::Book(Format::Xls));
        }
        if head.starts_with(b"PAR1") {
            return Ok(Kind::Parquet);
        }
        let unreadable = [
            (&b"%PDF"[..], "a PDF document"),
            (b"\x1f\x8b", "compressed with gzip: unpack it first"),
            (b"SQLite format 3", "an SQLite database"),
            (b"<html", "an HTML page"),
            (b"<!DOCTYPE html", "an HTML page"),
            (b"PARE", "an encrypted Parquet file, which cannot be read"),
        ];
        match unreadable.iter().find(|(magic, _)| head.starts_with(magic)) {
            Some((_, actual)) => Err(Error::failed(format_args!("\"{name}\" is not a table: it is {actual}"))),
            None => Ok(Kind::Delimited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_known_extensions_are_served() {
        for name in ["a.csv", "A.CSV", "b.tar.tsv", "x.parquet", "x.xlsm"] {
            assert!(is_served(name), "{name}");
        }
        for name in ["csv", ".csv", "a.txt", "a.csv.gz", "a."] {
            assert!(!is_served(name), "{name}");
        }
        assert_eq!(Kind::by_name("A.XLSX"), Kind::Book(Format::Xlsx));
    }
}
