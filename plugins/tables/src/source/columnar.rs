//! Reads Parquet files: only the wanted columns, and no row groups before the first wanted row.

use std::io::{self, Read, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_guest::{Error, Result};
use belljar_tree::File;
use bytes::Bytes;
use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, ToSpan as _};
use parquet::basic::{Compression, LogicalType, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader as _, Length, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::cell::{Cell, Value};
use crate::table::{End, Header, Row, ScanRequest, Source, Start, Total};

/// The most values that one read scans. A value takes about a thousand units of fuel, and a call has five billion.
const MAX_VALUES: u64 = 2_000_000;

/// The largest column of a row group that is unpacked, in bytes.
const LARGEST_CHUNK: i64 = 48 * 1024 * 1024;

/// A Parquet file.
pub(crate) struct Columnar {
    reader: SerializedFileReader<Chunks>,
    name: String,
}

impl std::fmt::Debug for Columnar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Columnar").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A file that is read from several positions.
struct Chunks {
    file: Arc<Mutex<File>>,
    size: u64,
}

/// A reader of the file from a position.
struct FileReader {
    file: Arc<Mutex<File>>,
    position: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<FileReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(io::BufReader::new(FileReader { file: self.file.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // The length is from the file and may be wrong, so no more than the file's size is allocated.
        let length = length.min(usize::try_from(self.size.saturating_sub(start)).unwrap_or(usize::MAX));
        let mut bytes = Vec::with_capacity(length);
        FileReader { file: self.file.clone(), position: start }.take(length as u64).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Columnar {
    pub(crate) fn open(file: File, name: &str, size: u64) -> Result<Self> {
        let chunks = Chunks { file: Arc::new(Mutex::new(file)), size };
        let reader = SerializedFileReader::new(chunks)
            .map_err(|error| Error::failed(format_args!("\"{name}\" cannot be read as Parquet: {error}")))?;
        Ok(Columnar { reader, name: name.to_owned() })
    }

    fn broken(&self, error: &ParquetError) -> Error {
        Error::failed(format_args!("\"{}\" cannot be read as Parquet: {error}", self.name))
    }

    fn fields(&self) -> Vec<Arc<Type>> {
        self.reader.metadata().file_metadata().schema().get_fields().to_vec()
    }

    /// The leaf columns of a top-level field, with their indexes.
    fn leaves(&self, top: &str) -> Vec<(usize, Arc<ColumnDescriptor>)> {
        let columns = self.reader.metadata().file_metadata().schema_descr().columns();
        let of_top =
            columns.iter().enumerate().filter(|(_, leaf)| leaf.path().parts().first().is_some_and(|part| part == top));
        of_top.map(|(at, leaf)| (at, leaf.clone())).collect()
    }

    /// Fails if a wanted column of a row group cannot be unpacked.
    fn check(&self, group: usize, names: &[String]) -> Result<()> {
        let metadata = self.reader.metadata().row_group(group);
        for name in names {
            for (at, _) in self.leaves(name) {
                let Some(column) = metadata.columns().get(at) else { continue };
                if matches!(column.compression(), Compression::ZSTD(_) | Compression::LZO) {
                    return Err(Error::failed(format_args!(
                        "the column \"{name}\" of \"{}\" is compressed with {}, which this provider cannot unpack: it reads \
                         Parquet that is compressed with Snappy, Gzip, Brotli or LZ4, or not at all",
                        self.name,
                        if column.compression() == Compression::LZO { "LZO" } else { "Zstandard" }
                    )));
                }
                if column.uncompressed_size() > LARGEST_CHUNK {
                    return Err(Error::failed(format_args!(
                        "the column \"{name}\" of \"{}\" has {} bytes in one row group, and at most {LARGEST_CHUNK} fit: write \
                         it with smaller row groups, or ask for other columns",
                        self.name,
                        column.uncompressed_size()
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Source for Columnar {
    fn header(&mut self) -> Result<Header> {
        let names: Vec<String> = self.fields().iter().map(|field| field.name().to_owned()).collect();
        Ok(Header { width: names.len(), names })
    }

    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End> {
        let rows = |group: usize| u64::try_from(self.reader.metadata().row_group(group).num_rows()).unwrap_or_default();
        let total: u64 = (0..self.reader.num_row_groups()).map(rows).fold(0, u64::saturating_add);
        let fields = self.fields();
        let mut end = End { total: Total::Exactly(total), next: None, notes: Vec::new() };
        let mut chosen: Vec<usize> = wanted.columns.iter().copied().filter(|at| *at < fields.len()).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let names: Vec<String> =
            chosen.iter().filter_map(|at| fields.get(*at)).map(|field| field.name().to_owned()).collect();
        let schema = self.reader.metadata().file_metadata().schema();
        let projection = Type::group_type_builder(schema.name())
            .with_fields(chosen.iter().filter_map(|at| fields.get(*at)).cloned().collect())
            .build()
            .map_err(|error| self.broken(&error))?;
        let stated: Vec<Option<Arc<ColumnDescriptor>>> =
            names.iter().map(|name| self.leaves(name).into_iter().next().map(|(_, leaf)| leaf)).collect();

        let (mut number, mut values) = (1_u64, 0_u64);
        for group in 0..self.reader.num_row_groups() {
            let count = rows(group);
            if number.saturating_add(count) <= wanted.start.row {
                number += count;
                continue;
            }
            self.check(group, &names)?;
            let reader = self.reader.get_row_group(group).map_err(|error| self.broken(&error))?;
            let iter =
                RowIter::from_row_group(Some(projection.clone()), &*reader).map_err(|error| self.broken(&error))?;
            for row in iter {
                let row = row.map_err(|error| self.broken(&error))?;
                values += names.len() as u64;
                if number >= wanted.start.row {
                    let columns: Vec<(String, Field)> = row.into_columns();
                    let cells = columns.iter().zip(&stated).map(|((_, field), leaf)| {
                        let mut value = value(field, leaf.as_deref());
                        let cut = value.cut(wanted.longest);
                        Cell { value, cut, formula: None }
                    });
                    let cells: Vec<Cell> = cells.collect();
                    let cell = |at: &usize| chosen.binary_search(at).ok().and_then(|place| cells.get(place)).cloned();
                    let row = Row { number, cells: wanted.columns.iter().map(cell).collect(), width: fields.len() };
                    if !each(row) {
                        end.next = (number < total).then(|| Start { row: number + 1, from: None });
                        return Ok(end);
                    }
                }
                if values > MAX_VALUES && number < wanted.start.row {
                    return Err(Error::failed(format_args!(
                        "row {} of \"{}\" is too far into its row group, which begins with row {}: ask for fewer columns, or \
                         write the file with smaller row groups",
                        wanted.start.row,
                        self.name,
                        number - values / (names.len() as u64).max(1) + 1
                    )));
                }
                if values > MAX_VALUES {
                    end.next = (number < total).then(|| Start { row: number + 1, from: None });
                    return Ok(end);
                }
                number += 1;
            }
        }
        Ok(end)
    }

    fn stated_types(&self) -> Option<Vec<String>> {
        let name = |field: &Arc<Type>| match &**field {
            Type::PrimitiveType { .. } => {
                let leaf = self.leaves(field.name()).into_iter().next();
                leaf.map_or_else(|| "unknown".to_owned(), |(_, leaf)| type_name(&leaf))
            }
            Type::GroupType { .. } => match field.get_basic_info().logical_type_ref() {
                Some(LogicalType::List) => "list".to_owned(),
                Some(LogicalType::Map) => "map".to_owned(),
                _ => "record".to_owned(),
            },
        };
        Some(self.fields().iter().map(name).collect())
    }
}

fn type_name(leaf: &ColumnDescriptor) -> String {
    let name = match (leaf.logical_type_ref(), leaf.physical_type()) {
        (Some(LogicalType::Decimal { .. }), _) => {
            return format!("decimal({},{})", leaf.type_precision(), leaf.type_scale());
        }
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), _) => "text",
        (Some(LogicalType::Date), _) => "date",
        (Some(LogicalType::Time { .. }), _) => "time",
        (Some(LogicalType::Timestamp { .. }), _) | (_, Physical::INT96) => "date-time",
        (_, Physical::BOOLEAN) => "boolean",
        (_, Physical::INT32 | Physical::INT64) => "integer",
        (_, Physical::FLOAT | Physical::DOUBLE) => "number",
        (_, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY) => "bytes",
    };
    name.to_owned()
}

fn value(field: &Field, leaf: Option<&ColumnDescriptor>) -> Value {
    let stated = leaf.and_then(|leaf| leaf.logical_type_ref());
    match field {
        Field::Null => Value::Empty,
        Field::Bool(truth) => Value::Boolean(*truth),
        Field::Byte(number) => Value::of_integer(*number),
        Field::Short(number) => Value::of_integer(*number),
        Field::Int(number) => Value::of_integer(*number),
        Field::Long(number) => match stated {
            Some(LogicalType::Timestamp(kind)) if kind.unit == TimeUnit::NANOS => {
                moment(SignedDuration::from_nanos(*number), kind.is_adjusted_to_u_t_c)
            }
            Some(LogicalType::Time { .. }) => time(SignedDuration::from_nanos(*number)),
            _ => Value::of_integer(*number),
        },
        Field::UByte(number) => Value::of_integer(*number),
        Field::UShort(number) => Value::of_integer(*number),
        Field::UInt(number) => Value::of_integer(*number),
        Field::ULong(number) => Value::of_integer(*number),
        Field::Float16(number) => Value::of_float(f64::from(*number)),
        // The shortest text that parses to the same number.
        Field::Float(number) => Value::of_text(number.to_string()),
        Field::Double(number) => Value::of_float(*number),
        // With scale 0, the library writes a trailing decimal point.
        Field::Decimal(_) => Value::of_text(field.to_string().trim_end_matches('.').to_owned()),
        Field::Str(text) if text.is_empty() => Value::Empty,
        Field::Str(text) => Value::Text(text.clone()),
        Field::Bytes(bytes) => Value::Text(match std::str::from_utf8(bytes.data()) {
            Ok(text) if !text.contains(char::is_control) => text.to_owned(),
            _ => format!("0x{}", bytes.data().iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        }),
        Field::Date(days) => {
            let date = Date::constant(1970, 1, 1).checked_add((*days).days());
            Value::Moment(date.map_or_else(|_| field.to_string(), |date| date.to_string()))
        }
        Field::TimeMillis(count) => time(SignedDuration::from_millis(i64::from(*count))),
        Field::TimeMicros(count) => time(SignedDuration::from_micros(*count)),
        Field::TimestampMillis(count) => moment(SignedDuration::from_millis(*count), is_utc(stated)),
        Field::TimestampMicros(count) => moment(SignedDuration::from_micros(*count), is_utc(stated)),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => Value::Text(field.to_string()),
    }
}

fn is_utc(stated: Option<&LogicalType>) -> bool {
    matches!(stated, Some(LogicalType::Timestamp(kind)) if kind.is_adjusted_to_u_t_c)
}

fn moment(since: SignedDuration, is_utc: bool) -> Value {
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    match epoch.checked_add(since) {
        Ok(moment) => Value::Moment(format!("{moment}{}", if is_utc { "Z" } else { "" })),
        Err(_) => Value::Text(format!("{since:?} since 1970")),
    }
}

fn time(since: SignedDuration) -> Value {
    match Time::midnight().checked_add(since) {
        Ok(time) => Value::Moment(time.to_string()),
        Err(_) => Value::Text(format!("{since:?} since midnight")),
    }
}
