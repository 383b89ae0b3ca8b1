//! Opens a document: reads the file into memory, tries the passwords and finds the pages. Every failure names its reason.

use std::io::Read as _;

use belljar_guest::{Error, Result};
use belljar_tree::Tree;
use hayro_syntax::object::{Dict, Name};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::query::Place;

/// The memory that must be free beside the file for unpacked streams, in bytes.
const UNPACK_BYTES: usize = 8 * 1024 * 1024;

/// A document.
pub(crate) struct Document {
    pub(crate) pdf: Pdf,
    pub(crate) path: String,
    pub(crate) size: u64,
    /// True if the document is encrypted; a password, perhaps the empty one, has opened it.
    pub(crate) is_encrypted: bool,
    /// True if the attached files are encrypted with a password that is not known. The rest of the document is not encrypted.
    pub(crate) has_locked_files: bool,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Document {
    /// Opens the document at `place`. Tries the empty password first, then `passwords` in order.
    pub(crate) fn open(tree: &Tree, place: &Place, passwords: &[String]) -> Result<Document> {
        let path = place.path.as_str();
        let bytes = read(tree, place)?;
        let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
        if bytes.is_empty() {
            return Err(Error::failed(format_args!("\"{path}\" is empty: the file has 0 bytes")));
        }
        let has_header = head.windows(5).any(|part| part == b"%PDF-");
        let bytes: std::sync::Arc<Vec<u8>> = bytes.into();
        let mut result = Pdf::new(bytes.clone());
        let locked = LoadPdfError::Decryption(DecryptionError::PasswordProtected);
        for password in passwords {
            match &result {
                Err(error) if *error == locked => result = Pdf::new_with_password(bytes.clone(), password),
                _ => break,
            }
        }
        let mut has_locked_files = false;
        if result.is_err()
            && let Some(open) = without_file_encryption(&bytes)
        {
            result = Pdf::new(std::sync::Arc::new(open));
            has_locked_files = true;
        }
        let pdf = result.map_err(|error| {
            let why = match error {
                LoadPdfError::Decryption(DecryptionError::PasswordProtected) if passwords.is_empty() => {
                    "is protected by a password: the operator can give it in the setting PASSWORD of this mount"
                }
                LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
                    "is protected by a password, and no password in the setting PASSWORD of this mount opens it"
                }
                LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
                    "is encrypted with an unsupported method; supported are RC4 and AES with a password"
                }
                LoadPdfError::Decryption(_) => "is encrypted, and its encryption dictionary is damaged",
                LoadPdfError::Invalid if has_header => "is too damaged to be read: no pages were found in it",
                LoadPdfError::Invalid => "is not a PDF document: it has no %PDF- header",
            };
            Error::failed(format_args!("\"{path}\" {why}"))
        })?;
        let is_encrypted = is_encrypted(&bytes);
        Ok(Document { pdf, path: path.to_owned(), size: place.meta.size, is_encrypted, has_locked_files })
    }

    /// The number of pages. Can be 0: a document with a broken page tree opens, even if the repair finds no page.
    pub(crate) fn len(&self) -> usize {
        self.pdf.pages().len()
    }

    /// The document catalog: the root of outline, names and attachments.
    pub(crate) fn root(&self) -> Option<Dict<'_>> {
        self.pdf.xref().get::<Dict<'_>>(self.pdf.xref().root_id())
    }

    /// Fails if the document has no page of this number.
    pub(crate) fn check(&self, page: usize) -> Result<()> {
        if page <= self.len() {
            return Ok(());
        }
        Err(Error::invalid(format_args!("there is no page {page}: \"{}\" has {}", self.path, pages(self.len()))))
    }

    /// True if the entry `key` of `dict` is this name.
    pub(crate) fn is_named(dict: &Dict<'_>, key: &[u8], name: &str) -> bool {
        dict.get::<Name<'_>>(key).is_some_and(|found| found.as_str() == name)
    }
}

/// `1 page`, `2 pages`.
pub(crate) fn pages(count: usize) -> String {
    if count == 1 { "1 page".to_owned() } else { format!("{count} pages") }
}

/// Reads the whole file. Fails if the memory limit leaves too little room for it.
fn read(tree: &Tree, place: &Place) -> Result<Vec<u8>> {
    let size = usize::try_from(place.meta.size).unwrap_or(usize::MAX);
    let mut bytes: Vec<u8> = Vec::new();
    let mut room: Vec<u8> = Vec::new();
    // Reserved before the read: a sandbox that runs out of memory later cannot report the reason.
    if bytes.try_reserve_exact(size).is_err() || room.try_reserve_exact(UNPACK_BYTES.saturating_add(size / 4)).is_err()
    {
        let needed = (size.saturating_add(size / 4) >> 20) + 24;
        return Err(Error::failed(format_args!(
            "\"{}\" has {size} bytes, too many for the memory limit: a document is held in memory as a whole. The operator \
             can raise the limit \"memory\" of this mount to about {needed}MiB",
            place.path
        )));
    }
    drop(room);
    tree.open(&place.path)?.take(place.meta.size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if a trailer has the key `/Encrypt`. A trailer is near the end of the file. In a linearized file, it is near the
/// beginning.
fn is_encrypted(bytes: &[u8]) -> bool {
    const NEAR: usize = 64 * 1024;
    let head = bytes.get(..NEAR.min(bytes.len())).unwrap_or_default();
    let tail = bytes.get(bytes.len().saturating_sub(NEAR)..).unwrap_or_default();
    [head, tail].iter().any(|part| part.windows(8).any(|words| words == b"/Encrypt"))
}

/// The document without its entry `/Encrypt`, if only the attached files are encrypted (ISO 32000-1, 7.6.5: the filters for
/// streams and strings are `Identity`).
pub(crate) fn without_file_encryption(bytes: &[u8]) -> Option<Vec<u8>> {
    const KEY: &[u8] = b"/Encrypt";
    let places: Vec<usize> = find_all(bytes, KEY)
        .filter(|at| bytes.get(at + KEY.len()).is_some_and(|next| next.is_ascii_whitespace() || *next == b'<'))
        .collect();
    let after = bytes.get(places.last()? + KEY.len()..)?;
    // Binary strings may follow the reference.
    let near = String::from_utf8_lossy(after.get(..after.len().min(32)).unwrap_or_default());
    let reference: Vec<&str> = near.split_ascii_whitespace().take(3).collect();
    let dictionary = match reference.as_slice() {
        [number, generation, mark] if mark.starts_with('R') => {
            let head = format!("{number} {generation} obj");
            let at = find_all(bytes, head.as_bytes())
                .filter(|at| at.checked_sub(1).and_then(|before| bytes.get(before)).is_none_or(|b| !b.is_ascii_digit()))
                .last()?;
            let body = bytes.get(at..)?;
            body.get(..find_all(body, b"endobj").next()?)?
        }
        _ => after.get(..after.len().min(2048))?,
    };
    let is_identity = |key: &[u8]| {
        let values: Vec<usize> = find_all(dictionary, key).collect();
        values.iter().all(|at| {
            let value = dictionary.get(at + key.len()..).unwrap_or_default();
            value.trim_ascii_start().starts_with(b"/Identity")
        })
    };
    if !is_identity(b"/StmF") || !is_identity(b"/StrF") || find_all(dictionary, b"/EFF").next().is_none() {
        return None;
    }
    let mut open = bytes.to_vec();
    for at in places {
        // A key of the same length that has no meaning.
        open.get_mut(at..at + KEY.len())?.copy_from_slice(b"/EncNone");
    }
    Some(open)
}

/// The places of `part` in `bytes`.
fn find_all<'a>(bytes: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(part.len()).enumerate().filter(move |(_, window)| *window == part).map(|(at, _)| at)
}
