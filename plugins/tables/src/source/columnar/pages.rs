//! Pages of Parquet columns. Unpacks Zstandard, which the library reads only with C code, and refuses pages that do not fit
//! into memory.

use std::io::Read as _;
use std::sync::Arc;

use belljar_guest::{Error, Result};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader as _;
use parquet::file::serialized_reader::SerializedPageReader;
use ruzstd::decoding::StreamingDecoder;

use super::chunks::Chunks;

/// The largest page, unpacked, in bytes.
const LARGEST_PAGE: u64 = 16 * 1024 * 1024;

/// The size of a column in a row group up to which no page can be too large, in bytes.
const SAFE_CHUNK: i64 = 16 * 1024 * 1024;

type Parquet<T> = std::result::Result<T, ParquetError>;

/// Opens the pages of a column in a row group of `rows`.
pub(crate) fn open(
    chunks: &Arc<Chunks>,
    column: &ColumnChunkMetaData,
    rows: usize,
    file: &str,
) -> Result<Box<dyn PageReader>> {
    let name = column.column_path().string();
    let refused = |why: std::fmt::Arguments<'_>| {
        Error::failed(format_args!("the column \"{name}\" of \"{file}\" cannot be read: {why}"))
    };
    if column.file_path().is_some() {
        return Err(refused(format_args!("its values are in another file, as the footer says")));
    }
    let broken = |error: ParquetError| refused(format_args!("{error}"));
    // The library panics on such a footer.
    let numbers =
        [column.data_page_offset(), column.compressed_size(), column.dictionary_page_offset().unwrap_or_default()];
    if numbers.iter().any(|number| *number < 0) || column.uncompressed_size() < 0 {
        return Err(refused(format_args!("the footer gives it a negative position or size")));
    }
    if column.uncompressed_size() > SAFE_CHUNK {
        let offsets = [column.dictionary_page_offset(), Some(column.data_page_offset())];
        for offset in offsets.into_iter().flatten() {
            let size = page_size(chunks, offset).map_err(broken)?;
            if size.is_some_and(|size| size > LARGEST_PAGE) {
                return Err(refused(format_args!(
                    "a page in it has {} bytes, and at most {LARGEST_PAGE} fit; write the file with smaller pages, or ask for \
                     other columns",
                    size.unwrap_or_default()
                )));
            }
        }
    }
    let pages = match column.compression() {
        Compression::LZO => {
            return Err(refused(format_args!(
                "it is compressed with LZO; write the file with Zstandard, Snappy, Gzip, Brotli or LZ4"
            )));
        }
        Compression::ZSTD(_) => {
            let stored = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build();
            let stored = stored.map_err(broken)?;
            let pages = SerializedPageReader::new(chunks.clone(), &stored, rows, None).map_err(broken)?;
            return Ok(Box::new(ZstandardPages(pages)));
        }
        _ => SerializedPageReader::new(chunks.clone(), column, rows, None).map_err(broken)?,
    };
    Ok(Box::new(pages))
}

/// The unpacked size of the page at an offset, from the first fields of its header. `None` for a header of another form.
fn page_size(chunks: &Chunks, offset: i64) -> Parquet<Option<u64>> {
    let Ok(offset) = u64::try_from(offset) else { return Ok(None) };
    let mut head = Vec::new();
    chunks.get_read(offset)?.take(16).read_to_end(&mut head)?;
    Ok(size_in_header(&head))
}

/// In Thrift's compact form, the page's type and its unpacked size are the fields 1 and 2, each a variable-length integer.
fn size_in_header(head: &[u8]) -> Option<u64> {
    let mut bytes = head.iter().copied();
    let mut integer = || {
        // The field's number, relative to the one before, and the type "i32".
        if bytes.next()? != 0x15 {
            return None;
        }
        let mut value = 0_u64;
        for at in 0..5 {
            let byte = bytes.next()?;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                // Zigzag; sizes are not negative.
                return Some(value >> 1);
            }
        }
        None
    };
    integer()?;
    integer()
}

/// Pages whose data is unpacked here.
struct ZstandardPages(SerializedPageReader<Chunks>);

impl ZstandardPages {
    fn unpacked(page: Page) -> Parquet<Page> {
        Ok(match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
                let buf = unpack(&[], &buf)?;
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                Page::DictionaryPage { buf: unpack(&[], &buf)?, num_values, encoding, is_sorted }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                // The levels before the values are never compressed.
                let levels = (def_levels_byte_len as usize).saturating_add(rep_levels_byte_len as usize);
                let buf = match buf.split_at_checked(levels) {
                    Some((levels, values)) if is_compressed && !values.is_empty() => unpack(levels, values)?,
                    _ => buf,
                };
                Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics,
                }
            }
        })
    }
}

/// Unpacks a page, after bytes that are not packed.
fn unpack(before: &[u8], packed: &[u8]) -> Parquet<Bytes> {
    let broken = |error: &dyn std::fmt::Display| ParquetError::General(format!("Zstandard: {error}"));
    let mut out = before.to_vec();
    let mut rest = packed;
    // A page may have several frames.
    while !rest.is_empty() {
        let decoder = StreamingDecoder::new(&mut rest).map_err(|error| broken(&error))?;
        decoder.take(LARGEST_PAGE + 1).read_to_end(&mut out).map_err(|error| broken(&error))?;
        if out.len() as u64 > LARGEST_PAGE {
            return Err(broken(&format_args!("a page unpacks to more than {LARGEST_PAGE} bytes")));
        }
    }
    Ok(out.into())
}

impl Iterator for ZstandardPages {
    type Item = Parquet<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ZstandardPages {
    fn get_next_page(&mut self) -> Parquet<Option<Page>> {
        self.0.get_next_page()?.map(ZstandardPages::unpacked).transpose()
    }

    fn peek_next_page(&mut self) -> Parquet<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Parquet<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Parquet<bool> {
        self.0.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_in_its_header() {
        assert_eq!(size_in_header(&[0x15, 0x00, 0x15, 0x80, 0x02, 0x15]), Some(128));
        assert_eq!(size_in_header(&[0x15, 0x00, 0x25, 0x80]), None);
        assert_eq!(size_in_header(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(size_in_header(&[]), None);
    }

    #[test]
    fn data_that_is_not_zstandard_is_an_error() {
        assert!(unpack(&[], b"not packed").is_err());
        assert_eq!(unpack(b"ab", &[]).unwrap(), "ab");
    }
}
