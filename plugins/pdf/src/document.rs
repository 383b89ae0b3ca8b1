//! An open document: its bytes in memory, its password tried, its pages found. And why it could not be opened, when it
//! could not.

use std::io::Read as _;

use belljar_guest::{Error, Result};
use belljar_tree::Tree;
use hayro_syntax::object::{Dict, Name};
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::query::Place;

/// How much room has to be left beside the file: for what is unpacked of it.
const ROOM: usize = 8 * 1024 * 1024;

/// A document.
pub(crate) struct Document {
    pub(crate) pdf: Pdf,
    pub(crate) path: String,
    pub(crate) size: u64,
    /// It is encrypted, and was opened all the same.
    pub(crate) is_encrypted: bool,
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Document {
    /// Opens the document at a place with one of the passwords; the empty one is tried first.
    pub(crate) fn open(tree: &Tree, place: &Place, passwords: &[String]) -> Result<Document> {
        let path = place.path.as_str();
        let bytes = read(tree, place)?;
        let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
        if bytes.is_empty() {
            return Err(Error::failed(format_args!("\"{path}\" is empty: it has no bytes")));
        }
        let has_mark = head.windows(5).any(|part| part == b"%PDF-");
        let bytes: std::sync::Arc<Vec<u8>> = bytes.into();
        let mut result = Pdf::new(bytes.clone());
        let locked = LoadPdfError::Decryption(DecryptionError::PasswordProtected);
        for password in passwords {
            match &result {
                Err(error) if *error == locked => result = Pdf::new_with_password(bytes.clone(), password),
                _ => break,
            }
        }
        let pdf = result.map_err(|error| {
            let why = match error {
                LoadPdfError::Decryption(DecryptionError::PasswordProtected) if passwords.is_empty() => {
                    "is protected by a password: the operator can give it in the setting PASSWORD of this mount"
                }
                LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
                    "is protected by a password, which is none of those in the setting PASSWORD of this mount"
                }
                LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
                    "is encrypted in a way that this provider does not know (it knows RC4 and AES by password)"
                }
                LoadPdfError::Decryption(_) => "is encrypted, and what says how is damaged",
                LoadPdfError::Invalid if has_mark => "is too damaged to be read: no pages could be found in it",
                LoadPdfError::Invalid => "is no PDF, whatever its name says",
            };
            Error::failed(format_args!("\"{path}\" {why}"))
        })?;
        // Its pages are looked for everywhere in it when their tree is broken; whatever is found then may be none.
        let is_encrypted = is_encrypted(&bytes);
        Ok(Document { pdf, path: path.to_owned(), size: place.meta.size, is_encrypted })
    }

    /// How many pages there are.
    pub(crate) fn len(&self) -> usize {
        self.pdf.pages().len()
    }

    /// The root of what is not pages.
    pub(crate) fn root(&self) -> Option<Dict<'_>> {
        self.pdf.xref().get::<Dict<'_>>(self.pdf.xref().root_id())
    }

    /// Fails for a page that is not there.
    pub(crate) fn check(&self, page: usize) -> Result<()> {
        if page <= self.len() {
            return Ok(());
        }
        Err(Error::invalid(format_args!("there is no page {page}: \"{}\" has {}", self.path, pages(self.len()))))
    }

    /// The name of a kind of object.
    pub(crate) fn is_named(dict: &Dict<'_>, key: &[u8], name: &str) -> bool {
        dict.get::<Name<'_>>(key).is_some_and(|found| found.as_str() == name)
    }
}

/// `1 page`, `2 pages`.
pub(crate) fn pages(count: usize) -> String {
    if count == 1 { "1 page".to_owned() } else { format!("{count} pages") }
}

/// The whole file, if there is room for it.
fn read(tree: &Tree, place: &Place) -> Result<Vec<u8>> {
    let size = usize::try_from(place.meta.size).unwrap_or(usize::MAX);
    let mut bytes: Vec<u8> = Vec::new();
    let mut room: Vec<u8> = Vec::new();
    // Asked for before anything is read: a sandbox that runs out of memory later cannot say why.
    if bytes.try_reserve_exact(size).is_err() || room.try_reserve_exact(ROOM.saturating_add(size / 4)).is_err() {
        let needed = (size.saturating_add(size / 4) >> 20) + 24;
        return Err(Error::failed(format_args!(
            "\"{}\" has {size} bytes, for which there is no room: a document is held in memory as a whole. The operator can \
             raise the limit \"memory\" of this mount to about {needed}MiB",
            place.path
        )));
    }
    drop(room);
    tree.open(&place.path)?.take(place.meta.size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a trailer names a way of encryption. Trailers are at the end of a file, or at its beginning when it is made to
/// be read over a network.
fn is_encrypted(bytes: &[u8]) -> bool {
    const NEAR: usize = 64 * 1024;
    let head = bytes.get(..NEAR.min(bytes.len())).unwrap_or_default();
    let tail = bytes.get(bytes.len().saturating_sub(NEAR)..).unwrap_or_default();
    [head, tail].iter().any(|part| part.windows(8).any(|words| words == b"/Encrypt"))
}
