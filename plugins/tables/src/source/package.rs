//! Checks a zipped workbook by its central directory before anything is unpacked. A workbook that unpacks to more than the
//! memory allows is refused with a reason.

use std::collections::HashMap;
use std::io::{BufReader, Read as _};

use belljar_guest::{Error, Result};
use belljar_tree::File;
use quick_xml::Reader;
use quick_xml::events::Event;
use zip::ZipArchive;

use crate::source::Format;

/// The largest part that is unpacked as a whole, in bytes: shared strings, styles, the content of an OpenDocument file.
const LARGEST_WHOLE: u64 = 16 * 1024 * 1024;

/// The highest accepted compression ratio of a part of at least [`SUSPICIOUS`] bytes. Genuine tables stay below; a part
/// above it is refused as a zip bomb.
const MAX_RATIO: u64 = 250;

/// The unpacked size from which the compression ratio is checked, in bytes.
const SUSPICIOUS: u64 = 32 * 1024 * 1024;

/// The largest list of sheets that is read, in bytes.
const LARGEST_LIST: u64 = 1024 * 1024;

/// A zipped workbook.
pub(crate) struct Package {
    archive: ZipArchive<BufReader<File>>,
    sizes: HashMap<String, u64>,
}

/// A sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) is_hidden: bool,
}

impl std::fmt::Debug for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Package").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl Package {
    /// Opens a workbook. Fails if it would unpack to too much.
    pub(crate) fn open(file: File, name: &str) -> Result<Self> {
        let broken = |error| Error::failed(format_args!("\"{name}\" is a damaged workbook: {error}"));
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(broken)?;
        let mut sizes = HashMap::new();
        for at in 0..archive.len() {
            let entry = archive.by_index_raw(at).map_err(broken)?;
            let (size, packed) = (entry.size(), entry.compressed_size().max(1));
            let part = entry.name().map_err(broken)?.into_owned();
            if size > SUSPICIOUS && size / packed > MAX_RATIO {
                return Err(Error::failed(format_args!(
                    "\"{name}\" is refused: \"{part}\" in it unpacks to {size} bytes, {} times its compressed size",
                    size / packed
                )));
            }
            let whole = ["styles.xml", "sharedStrings.bin"];
            if size > LARGEST_WHOLE && whole.iter().any(|end| part.ends_with(end)) {
                return Err(Error::failed(format_args!(
                    "\"{name}\" is too large for this provider: \"{part}\" in it has {size} bytes, and at most {LARGEST_WHOLE} \
                     fit. As XLSX, CSV or Parquet it can be larger"
                )));
            }
            sizes.insert(part, size);
        }
        let mut package = Package { archive, sizes };
        if package.is_encrypted() {
            return Err(Error::failed(format_args!(
                "\"{name}\" is protected by a password: save it without a password"
            )));
        }
        Ok(package)
    }

    /// The format that the parts show. Fails for an archive that is no workbook.
    pub(crate) fn format(&self, name: &str, assumed: Format) -> Result<Format> {
        let has = |end: &str| self.sizes.keys().any(|part| part.to_ascii_lowercase().ends_with(end));
        if has("xl/workbook.bin") {
            return Ok(Format::Xlsb);
        }
        if has("xl/workbook.xml") {
            return Ok(Format::Xlsx);
        }
        let refused = |actual: &str| Err(Error::failed(format_args!("\"{name}\" is not a table: it is {actual}")));
        if self.sizes.contains_key("content.xml") {
            if assumed == Format::Ods {
                return Ok(Format::Ods);
            }
            return refused("an OpenDocument file that is no spreadsheet");
        }
        if has("word/document.xml") {
            return refused("a Word document");
        }
        if has("ppt/presentation.xml") {
            return refused("a PowerPoint presentation");
        }
        if has("index/document.iwa") || has("index.zip") {
            return refused("a Numbers, Pages or Keynote document: save it as .xlsx or .csv");
        }
        let mut parts: Vec<&str> = self.sizes.keys().map(String::as_str).take(5).collect();
        parts.sort_unstable();
        refused(&format!(
            "a zip archive with {}: unpack it first",
            if parts.is_empty() { "no files".to_owned() } else { parts.join(", ") }
        ))
    }

    /// True if the parts of an OpenDocument file are encrypted.
    fn is_encrypted(&mut self) -> bool {
        let mut manifest = String::new();
        let read = self
            .archive
            .by_name("META-INF/manifest.xml")
            .ok()
            .map(|part| part.take(LARGEST_LIST).read_to_string(&mut manifest));
        read.is_some() && manifest.contains("encryption-data")
    }

    pub(crate) fn into_archive(self) -> ZipArchive<BufReader<File>> {
        self.archive
    }

    /// The unpacked size of the shared texts, in bytes.
    pub(crate) fn texts_size(&self) -> u64 {
        let texts = self.sizes.iter().filter(|(name, _)| name.to_ascii_lowercase().ends_with("xl/sharedstrings.xml"));
        texts.map(|(_, size)| *size).sum()
    }

    /// The unpacked size of all sheets together, in bytes: the upper bound for reading one of them to its end.
    pub(crate) fn sheets_size(&self) -> u64 {
        let sheets = self.sizes.iter().filter(|(name, _)| name.contains("worksheets/") || *name == "content.xml");
        sheets.map(|(_, size)| *size).sum()
    }

    /// The sheets of an Excel workbook, read from its list of sheets. `None` if there is no such list.
    pub(crate) fn sheets(&mut self) -> Option<Vec<Sheet>> {
        let name = self.sizes.keys().find(|name| name.ends_with("xl/workbook.xml"))?.clone();
        let mut xml = String::new();
        self.archive.by_name(&name).ok()?.take(LARGEST_LIST).read_to_string(&mut xml).ok()?;
        let mut reader = Reader::from_str(&xml);
        let mut sheets = Vec::new();
        loop {
            match reader.read_event().ok()? {
                Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "sheet" => {
                    let attribute = |key: &str| {
                        let found = element.try_get_attribute(key).ok()??;
                        found.normalized_value(quick_xml::XmlVersion::Implicit1_0).ok().map(|value| value.into_owned())
                    };
                    let is_hidden = attribute("state").is_some_and(|state| state != "visible");
                    sheets.extend(attribute("name").map(|name| Sheet { name, is_hidden }));
                }
                Event::Eof => return Some(sheets),
                _ => {}
            }
        }
    }
}
