//! Zip archives that have the same bytes on each machine.

use std::io::{Cursor, Write as _};

use anyhow::Result;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

use crate::tree::Tree;

/// Packs a tree as a zip archive. Its times are the first of the format, 1980-01-01: zip has no time zones.
pub(crate) fn pack(tree: &Tree) -> Result<Vec<u8>> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, file) in tree.iter() {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .system(System::Unix)
            .unix_permissions(if file.is_program { 0o755 } else { 0o644 });
        writer.start_file(path, options)?;
        writer.write_all(&file.bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}
