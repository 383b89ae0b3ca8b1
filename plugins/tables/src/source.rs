//! The kinds of files. Detected from the first bytes, because names are often wrong.

pub(crate) mod biff;
pub(crate) mod book;
pub(crate) mod columnar;
pub(crate) mod delimited;
pub(crate) mod feed;
pub(crate) mod lines;
pub(crate) mod ods;
pub(crate) mod package;
pub(crate) mod packed;
pub(crate) mod serial;
pub(crate) mod shared;
pub(crate) mod sheet;
pub(crate) mod signature;
pub(crate) mod tags;
pub(crate) mod xlsx;

use std::io::{Read as _, Seek as _, SeekFrom};

use belljar_guest::{Error, Result};
use belljar_tree::File;

use packed::Packing;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Delimiter-separated text: CSV, TSV.
    Delimited(Option<Packing>),
    /// A JSON value in each line.
    Lines(Option<Packing>),
    /// A workbook: several tables.
    Book(Format),
    Parquet,
}

/// The format of a workbook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Xlsx,
    Xlsb,
    Xls,
    /// The records of old Excel versions without a container: versions 2 to 5.
    OldXls,
    Ods,
}

/// The extensions of text files, which may be packed.
const TEXTS: [&str; 6] = ["csv", "tsv", "tab", "psv", "jsonl", "ndjson"];

/// The extensions of other files.
const OTHERS: [&str; 6] = ["xlsx", "xlsm", "xlsb", "xls", "ods", "parquet"];

/// The bytes from which the kind of a file is detected.
const HEAD: usize = 4096;

fn has_extension(name: &str, known: &[&str]) -> bool {
    let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
    extension.is_some_and(|extension| known.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

/// True if a file of this name is served.
pub(crate) fn is_served(name: &str) -> bool {
    has_extension(name, &TEXTS)
        || has_extension(name, &OTHERS)
        || Packing::stripped(name).is_some_and(|stem| has_extension(stem, &TEXTS))
}

impl Kind {
    /// The kind according to the extension.
    pub(crate) fn by_name(name: &str) -> Kind {
        let name = Packing::stripped(name).unwrap_or(name).to_ascii_lowercase();
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("xlsx" | "xlsm") => Kind::Book(Format::Xlsx),
            Some("xlsb") => Kind::Book(Format::Xlsb),
            Some("xls") => Kind::Book(Format::Xls),
            Some("ods") => Kind::Book(Format::Ods),
            Some("parquet") => Kind::Parquet,
            Some("jsonl" | "ndjson") => Kind::Lines(None),
            _ => Kind::Delimited(None),
        }
    }

    /// The kind according to the contents. Fails for contents that are no table.
    pub(crate) fn of(file: &mut File, name: &str) -> Result<Kind> {
        let mut head = Vec::new();
        file.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        file.seek(SeekFrom::Start(0))?;
        let Some(packing) = Packing::of(&head) else { return Kind::of_bytes(&head, name) };
        let mut unpacked = Vec::new();
        let text = packing.open(&mut *file).take(HEAD as u64).read_to_end(&mut unpacked);
        file.seek(SeekFrom::Start(0))?;
        if let Err(error) = text {
            return Err(Error::failed(format_args!(
                "\"{name}\" cannot be unpacked from {}: {error}; unpack it first",
                packing.name()
            )));
        }
        match Kind::of_bytes(&unpacked, Packing::stripped(name).unwrap_or(name))? {
            Kind::Delimited(_) => Ok(Kind::Delimited(Some(packing))),
            Kind::Lines(_) => Ok(Kind::Lines(Some(packing))),
            Kind::Book(_) | Kind::Parquet => Err(Error::failed(format_args!(
                "\"{name}\" is a workbook or Parquet file that is packed with {}: unpack it first",
                packing.name()
            ))),
        }
    }

    /// The kind according to the first bytes.
    pub(crate) fn of_bytes(head: &[u8], name: &str) -> Result<Kind> {
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            // The first entry of an OpenDocument file is its MIME type. Other workbooks are told apart by their parts.
            let is_ods = head.windows(22).any(|part| part == b"opendocument.spreadshe");
            return Ok(Kind::Book(if is_ods { Format::Ods } else { Format::Xlsx }));
        }
        if head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
            return Ok(Kind::Book(Format::Xls));
        }
        if head.starts_with(b"PAR1") {
            return Ok(Kind::Parquet);
        }
        if biff::is_old(head) {
            return Ok(Kind::Book(Format::OldXls));
        }
        if let Some(actual) = signature::not_a_table(head) {
            return Err(Error::failed(format_args!("\"{name}\" is not a table: it is {actual}")));
        }
        let is_lines = Kind::by_name(name) == Kind::Lines(None) || lines::is_object(head);
        Ok(if is_lines { Kind::Lines(None) } else { Kind::Delimited(None) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_known_extensions_are_served() {
        for name in ["a.csv", "A.CSV", "b.tar.tsv", "x.parquet", "x.xlsm", "a.csv.gz", "b.jsonl.zst", "x.xlsb"] {
            assert!(is_served(name), "{name}");
        }
        for name in ["csv", ".csv", "a.txt", "a.xlsx.gz", "a.gz", "a."] {
            assert!(!is_served(name), "{name}");
        }
        assert_eq!(Kind::by_name("A.XLSX"), Kind::Book(Format::Xlsx));
    }
}
