//! The schema of a table: its columns with types, numbers of empty cells and examples, from the first rows.

use std::fmt::Write as _;

use belljar_guest::Result;
use serde::Serialize;

use crate::column;
use crate::infer::ColumnStats;
use crate::render::{grouped, inline};
use crate::table::{Header, ScanRequest, Source, Start, Total};

/// The most rows, columns and cells that a schema is inferred from.
const ROWS: u64 = 10_000;
const COLUMNS: usize = 2000;
const CELLS: usize = 300_000;

/// A schema.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schema {
    table: String,
    /// Further facts: format, encoding, delimiter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    facts: Vec<String>,
    has_header: bool,
    rows: Option<u64>,
    rows_is_exact: bool,
    /// The number of rows from which the types, the numbers of empty cells and the examples come.
    rows_looked_at: u64,
    columns: Vec<Column>,
    #[serde(skip_serializing_if = "is_zero")]
    columns_left_out: usize,
    #[serde(skip_serializing_if = "is_zero")]
    ragged_rows: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A column.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Column {
    name: String,
    letters: String,
    r#type: String,
    /// True if the type is declared in the file.
    type_is_stated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<usize>,
    empty: u64,
    #[serde(skip_serializing_if = "is_zero")]
    errors: u64,
    #[serde(skip_serializing_if = "is_zero")]
    formulas: u64,
    longest: usize,
    examples: Vec<String>,
}

/// True for a field that is left out of the JSON.
fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl Schema {
    /// Infers the schema of a table.
    pub(crate) fn of(source: &mut dyn Source, table: &str, facts: Vec<String>) -> Result<Schema> {
        let Header { names: header, width } = source.header()?;
        let width = width.max(header.len());
        let columns: Vec<usize> = (0..width.min(COLUMNS)).collect();
        let mut seen: Vec<ColumnStats> = columns.iter().map(|_| ColumnStats::default()).collect();
        let (mut looked, mut cells, mut ragged, mut widest) = (0_u64, 0, 0, width);
        let wanted = ScanRequest {
            start: Start { row: 1, from: None },
            last: ROWS,
            columns: &columns,
            longest: 200,
            is_search: false,
        };
        let end = source.scan(&wanted, &mut |row| {
            looked += 1;
            cells += columns.len();
            ragged += usize::from(row.width != width);
            widest = widest.max(row.width);
            for (seen, cell) in seen.iter_mut().zip(&row.cells) {
                seen.add(cell.as_ref());
            }
            row.number < ROWS && cells < CELLS
        })?;
        let stated = source.stated_types();
        let names = column::names(&header, widest);
        let described = seen.iter().zip(&columns).map(|(seen, at)| {
            let own = stated.as_ref().and_then(|types| types.get(*at));
            Column {
                name: names.get(*at).cloned().unwrap_or_default(),
                letters: column::letters(*at),
                r#type: own.cloned().unwrap_or_else(|| seen.type_name()),
                type_is_stated: own.is_some(),
                scale: seen.scale().filter(|_| own.is_none()),
                empty: seen.empty,
                errors: seen.errors(),
                formulas: seen.formulas,
                longest: seen.longest,
                examples: seen.examples.clone(),
            }
        });
        let columns_described = described.collect();
        let (rows, rows_is_exact) = match end.total {
            Total::Exactly(rows) => (Some(rows), true),
            Total::About(rows) => (Some(rows), false),
            Total::Unknown => (None, false),
        };
        Ok(Schema {
            table: table.to_owned(),
            facts,
            has_header: !header.is_empty(),
            rows,
            rows_is_exact,
            rows_looked_at: looked,
            columns: columns_described,
            columns_left_out: widest.saturating_sub(columns.len()),
            // A sheet does not store empty cells, so its rows cannot be too short.
            ragged_rows: if source.rows_can_be_ragged() { ragged } else { 0 },
            notes: end.notes,
        })
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let rows = match (self.rows, self.rows_is_exact) {
            (Some(rows), true) => format!("{} rows", grouped(rows)),
            (Some(rows), false) => format!("about {} rows", grouped(rows)),
            (None, _) => "an unknown number of rows".to_owned(),
        };
        let is_stated = self.columns.first().is_some_and(|column| column.type_is_stated);
        let header = match (is_stated, self.has_header) {
            (true, _) => "named by the file",
            (false, true) => "the first row names them",
            (false, false) => "without a header",
        };
        let mut text = format!(
            "# {}: schema\n\n{rows}, {} columns, {header}",
            inline(&self.table),
            self.columns.len() + self.columns_left_out
        );
        for fact in &self.facts {
            let _ = write!(text, "; {}", inline(fact));
        }
        let _ = write!(
            text,
            ". Types are from {}.\n\n",
            match is_stated {
                true => "the file itself".to_owned(),
                false => format!("the first {} rows", grouped(self.rows_looked_at)),
            }
        );
        text.push_str("| column | | type | empty | longest | examples |\n|---|---|---|---|---|---|\n");
        for column in &self.columns {
            let mut kind = column.r#type.clone();
            if let Some(scale) = column.scale.filter(|scale| *scale > 0) {
                let _ = write!(kind, ", scale {scale}");
            }
            if column.errors > 0 {
                let _ = write!(kind, ", {} errors", column.errors);
            }
            if column.formulas > 0 {
                let _ = write!(kind, ", {} formulas", column.formulas);
            }
            let examples: Vec<String> = column.examples.iter().map(|example| inline(example)).collect();
            let _ = writeln!(
                text,
                "| {} | {} | {kind} | {} | {} | {} |",
                inline(&column.name),
                column.letters,
                grouped(column.empty),
                column.longest,
                examples.join("; ")
            );
        }
        if self.columns_left_out > 0 {
            let _ = writeln!(text, "\n{} more columns are left out.", self.columns_left_out);
        }
        if self.ragged_rows > 0 {
            let _ =
                writeln!(text, "\n{} rows have more or fewer cells than the others.", grouped(self.ragged_rows as u64));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nNote: {}", inline(note));
        }
        text
    }
}
