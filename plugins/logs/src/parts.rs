//! Parts of log files as they are, and the logs of one directory.

use std::fs::File;
use std::io::Read as _;

use belljar_guest::{Contents, Error, Page, PartialReading, Parts, Range, Resource, Result, reference};
use belljar_tree::{join, read_part};

use crate::query::BY_DATE;
use crate::source::Budget;
use crate::store::LogFile;
use crate::{Logs, MAX_REFERENCE_BYTES, PAGE, TEXT, tail, unpack};

/// The bytes that the note at the beginning of a read may take.
const NOTE: u64 = 4 * 1024;

impl Parts for Logs {
    /// Without a range, the entries that the reference selects. A range gives the file as it is.
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let Some(range) = range else {
            let text = usize::try_from(most.saturating_sub(NOTE)).unwrap_or(usize::MAX);
            return Ok(self.contents(reference, text.min(tail::MAX_TEXT_BYTES))?.into());
        };
        let (path, query) = reference::split(reference);
        if !query.is_empty() || path.starts_with(&format!("{BY_DATE}/")) {
            return Err(Error::invalid(
                "a range of lines or bytes is of the file as it is: leave out the other parameters and the date, or ask for \
                 a number of lines, such as ?lines=200",
            ));
        }
        if path.is_empty() {
            return PartialReading::cut(single(self.contents("", tail::MAX_TEXT_BYTES)?.contents)?, Some(range), most);
        }
        let path = reference::decode(path)?;
        let log = self.store.find(&path)?;
        let file = log.files.first().ok_or(Error::NotFound)?;
        let mut read = match file.packed {
            true => PartialReading::cut(Contents::from_bytes(reference, unpacked(file)?), Some(range), most)?,
            false => read_part(&File::open(&file.path)?, reference, Some(range), most)?,
        };
        for contents in &mut read.contents {
            contents.mime_type = Some(if contents.is_text() { TEXT } else { "application/octet-stream" }.to_owned());
        }
        Ok(read)
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        let path = reference::decode(reference.strip_suffix('/').unwrap_or(reference))?;
        let (logs, directories) = self.store.below(&path)?;
        let directories = directories.into_iter().map(|name| {
            Resource::new(format!("{}/", reference::encode(&join(&path, &name))))
                .name(name)
                .mime_type("inode/directory")
        });
        let mut entries: Vec<Resource> = logs.iter().filter_map(|log| self.resource(log)).chain(directories).collect();
        entries.retain(|entry| entry.reference.len() <= MAX_REFERENCE_BYTES);
        entries.sort_by(|one, other| one.reference.cmp(&other.reference));
        Ok(Page::of(entries, cursor, PAGE))
    }
}

fn single(contents: Vec<Contents>) -> Result<Contents> {
    contents.into_iter().next().ok_or(Error::NotFound)
}

/// A compressed file, unpacked. Its parts cost as much as the whole file, so a large one is refused.
fn unpacked(file: &LogFile) -> Result<Vec<u8>> {
    const MOST: u64 = Budget::ALL / 4;
    let mut bytes = Vec::new();
    let damaged = |error: std::io::Error| Error::failed(format_args!("{} cannot be unpacked: {error}", file.name));
    let reader = unpack::reader(File::open(&file.path)?).map_err(damaged)?;
    reader.take(MOST + 1).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 > MOST {
        return Err(Error::invalid(format_args!(
            "\"{}\" unpacks to more than {} MiB: it has no parts; ask for entries, such as ?lines=1000, and continue with \
             \"before\"",
            file.name,
            MOST >> 20
        )));
    }
    Ok(bytes)
}
