//! Reads Parquet files: only the wanted columns, and no row groups before the first wanted row.

mod chunks;
mod leaf;
mod nested;
mod pages;

use std::ops::Range;
use std::sync::Arc;

use belljar_guest::{Error, Result};
use belljar_tree::File;
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetStatisticsPolicy};
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::cell::Cell;
use crate::source::feed::Clock;
use crate::table::{End, Header, Row, ScanRequest, Source, Start, Total};

use chunks::Chunks;
use leaf::Leaf;
use nested::Node;

/// The most values that one read gives or searches. A value takes about a thousand units of fuel, and a call has five
/// billion.
const MAX_VALUES: u64 = 2_000_000;

/// The largest footer, in bytes. Unpacked, it takes several times as much memory.
const LARGEST_FOOTER: u64 = 8 * 1024 * 1024;

/// A Parquet file.
pub(crate) struct Columnar {
    metadata: Arc<ParquetMetaData>,
    chunks: Arc<Chunks>,
    name: String,
}

/// The wanted fields of a row group, while it is read.
struct Group<'n> {
    /// Each wanted field, with the positions of its leaves in `leaves`.
    fields: Vec<(&'n Node, Range<usize>)>,
    leaves: Vec<Leaf>,
}

impl std::fmt::Debug for Columnar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Columnar").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Columnar {
    pub(crate) fn open(file: File, name: &str, size: u64) -> Result<Self> {
        let chunks = Chunks::new(file, size);
        let refused =
            |why: std::fmt::Arguments<'_>| Error::failed(format_args!("\"{name}\" cannot be read as Parquet: {why}"));
        if let Some(footer) = chunks.footer()
            && footer > LARGEST_FOOTER
        {
            return Err(refused(format_args!(
                "its footer has {footer} bytes, and at most {LARGEST_FOOTER} fit; write it with fewer columns or larger row \
                 groups"
            )));
        }
        let options = ReadOptionsBuilder::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .build();
        let reader = SerializedFileReader::new_with_options(chunks.clone(), options)
            .map_err(|error| refused(format_args!("{error}")))?;
        Ok(Columnar { metadata: Arc::new(reader.metadata().clone()), chunks: Arc::new(chunks), name: name.to_owned() })
    }

    fn broken(&self, error: &ParquetError) -> Error {
        Error::failed(format_args!(
            "\"{}\" cannot be read as Parquet: {error}; a wanted column is damaged or encrypted",
            self.name
        ))
    }

    fn fields(&self) -> &[Arc<Type>] {
        self.metadata.file_metadata().schema().get_fields()
    }

    /// The number of rows in a row group.
    fn rows(&self, group: usize) -> u64 {
        u64::try_from(self.metadata.row_group(group).num_rows()).unwrap_or_default()
    }

    fn total(&self) -> u64 {
        (0..self.metadata.num_row_groups()).map(|group| self.rows(group)).fold(0, u64::saturating_add)
    }

    /// The nodes of all fields.
    fn nodes(&self) -> Result<Vec<Node>> {
        let mut first = 0;
        let mut nodes = Vec::new();
        for field in self.fields() {
            let node = Node::of(field, first)?;
            first += node.leaves;
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Opens the wanted fields of a row group, from its row `skipped`.
    fn group<'n>(&self, group: usize, wanted: &[&'n Node], skipped: u64) -> Result<Group<'n>> {
        let metadata = self.metadata.row_group(group);
        let rows = usize::try_from(self.rows(group)).unwrap_or(usize::MAX);
        let mut leaves = Vec::new();
        let mut fields = Vec::new();
        for node in wanted {
            let from = leaves.len();
            for at in node.first..node.first + node.leaves {
                let missing = || Error::failed(format_args!("\"{}\" lacks a column in a row group", self.name));
                let column = metadata.columns().get(at).ok_or_else(missing)?;
                let pages = pages::open(&self.chunks, column, rows, &self.name)?;
                let mut leaf = Leaf::new(column.column_descr_ptr(), pages);
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                if skipped > 0 {
                    leaf.skip(skipped).map_err(|error| self.broken(&error))?;
                }
                leaves.push(leaf);
            }
            fields.push((*node, from..leaves.len()));
        }
        Ok(Group { fields, leaves })
    }
}

impl Group<'_> {
    /// The next row. `None` if a column ends before the others.
    fn row(&mut self, most: usize, longest: usize) -> std::result::Result<Option<Vec<Cell>>, ParquetError> {
        for leaf in &mut self.leaves {
            if !leaf.fill(most)? {
                return Ok(None);
            }
        }
        let mut cells = Vec::with_capacity(self.fields.len());
        for (node, place) in &self.fields {
            let mut value = self.leaves.get_mut(place.clone()).map(|leaves| node.read(leaves)).unwrap_or_default();
            let cut = value.cut(longest);
            cells.push(Cell { value, cut, formula: None });
        }
        Ok(Some(cells))
    }
}

impl Source for Columnar {
    fn header(&mut self) -> Result<Header> {
        let names: Vec<String> = self.fields().iter().map(|field| field.name().to_owned()).collect();
        Ok(Header { width: names.len(), names })
    }

    fn last(&mut self, count: u64) -> Result<Option<Start>> {
        Ok(Some(Start { row: self.total().saturating_sub(count) + 1, from: None }))
    }

    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End> {
        let total = self.total();
        let nodes = self.nodes()?;
        let mut end = End { total: Total::Exactly(total), next: None, notes: Vec::new() };
        let mut chosen: Vec<usize> = wanted.columns.iter().copied().filter(|at| *at < nodes.len()).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let chosen_nodes: Vec<&Node> = chosen.iter().filter_map(|at| nodes.get(*at)).collect();
        let next = |number: u64| (number <= total).then_some(Start { row: number, from: None });
        let (mut number, mut values, mut clock) = (1_u64, 0_u64, Clock::new());
        for at in 0..self.metadata.num_row_groups() {
            let count = self.rows(at);
            if number.saturating_add(count) <= wanted.start.row {
                number += count;
                continue;
            }
            let skipped = wanted.start.row.saturating_sub(number);
            let last = number + count;
            number += skipped;
            let mut group = self.group(at, &chosen_nodes, skipped)?;
            while number < last {
                let most = usize::try_from(wanted.last.saturating_sub(number).saturating_add(1)).unwrap_or(usize::MAX);
                let Some(cells) = group.row(most, wanted.longest).map_err(|error| self.broken(&error))? else {
                    return Err(Error::failed(format_args!(
                        "\"{}\" is damaged: a column ends before row {number}",
                        self.name
                    )));
                };
                values += group.leaves.len().max(1) as u64;
                let cell = |at: &usize| chosen.binary_search(at).ok().and_then(|place| cells.get(place)).cloned();
                let row = Row { number, cells: wanted.columns.iter().map(cell).collect(), width: nodes.len() };
                number += 1;
                if !each(row) || values > MAX_VALUES || clock.is_over() {
                    end.next = next(number);
                    return Ok(end);
                }
            }
        }
        Ok(end)
    }

    fn stated_types(&self) -> Option<Vec<String>> {
        let columns = self.metadata.file_metadata().schema_descr().columns();
        let mut leaf = 0;
        let mut names = Vec::new();
        for field in self.fields() {
            let node = Node::of(field, leaf).ok()?;
            let name = match field.get_basic_info().logical_type_ref() {
                _ if node.is_leaf() => columns.get(leaf).map_or("unknown".to_owned(), |leaf| type_name(leaf)),
                Some(LogicalType::List) => "list".to_owned(),
                Some(LogicalType::Map) => "map".to_owned(),
                Some(LogicalType::Variant(_)) => "variant".to_owned(),
                _ => match field.get_basic_info().converted_type() {
                    ConvertedType::LIST => "list".to_owned(),
                    ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => "map".to_owned(),
                    _ if columns.get(leaf).is_some_and(|leaf| leaf.max_rep_level() > 0) && field.is_primitive() => {
                        "list".to_owned()
                    }
                    _ => "record".to_owned(),
                },
            };
            leaf += node.leaves;
            names.push(name);
        }
        Some(names)
    }
}

fn type_name(leaf: &ColumnDescriptor) -> String {
    let logical = leaf.logical_type_ref();
    let name = match (logical, leaf.converted_type(), leaf.physical_type()) {
        (Some(LogicalType::Decimal(_)), ..) | (_, ConvertedType::DECIMAL, _) => {
            return format!("decimal({},{})", leaf.type_precision(), leaf.type_scale());
        }
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json), ..)
        | (_, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON, _) => "text",
        (Some(LogicalType::Date), ..) | (_, ConvertedType::DATE, _) => "date",
        (Some(LogicalType::Time(_)), ..) | (_, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS, _) => "time",
        (Some(LogicalType::Timestamp(_)), ..)
        | (_, ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS, _)
        | (.., Physical::INT96) => "date-time",
        (Some(LogicalType::Uuid), ..) => "uuid",
        (_, ConvertedType::INTERVAL, _) => "duration",
        (Some(LogicalType::Float16), ..) | (.., Physical::FLOAT | Physical::DOUBLE) => "number",
        (.., Physical::BOOLEAN) => "boolean",
        (.., Physical::INT32 | Physical::INT64) => "integer",
        (.., Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY) => "bytes",
    };
    name.to_owned()
}
