//! Writes rows as Markdown or JSON. Contents of cells are escaped: they cannot end the cell, start a link or be HTML.

use std::fmt::Write as _;

use belljar_guest::{Extent, Unit};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cell::{Cell, Value};
use crate::column;
use crate::table::{Row, Total};

/// The most formulas shown below a table.
const FORMULAS: usize = 20;

/// The rows to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sheet<'a> {
    /// The path of the file, and the name of the sheet.
    pub(crate) title: &'a str,
    /// The indexes of the shown columns, counted from 0.
    pub(crate) columns: &'a [usize],
    /// The names of all columns.
    pub(crate) names: &'a [String],
    pub(crate) rows: &'a [Row],
    pub(crate) total: Total,
    /// The first of the rows that were asked for.
    pub(crate) start: u64,
    /// True if row numbers are those of the sheet, not of the rows below the header.
    pub(crate) is_range: bool,
    /// In a search, the number of the first row among the matching ones.
    pub(crate) first_match: Option<u64>,
    /// The query for the next rows.
    pub(crate) next_rows: Option<&'a str>,
    pub(crate) next_columns: Option<&'a str>,
    /// The number of the first of the next rows, outside a range and a search.
    pub(crate) next_row: Option<u64>,
    /// True if the two are arguments of the tool, not queries of a link.
    pub(crate) is_tool: bool,
    pub(crate) notes: &'a [String],
}

impl Sheet<'_> {
    fn name(&self, at: usize) -> String {
        self.names.get(at).cloned().unwrap_or_else(|| column::letters(at))
    }

    /// The shown rows and the total, as text.
    fn extent(&self) -> String {
        let unit = if self.is_range { "sheet rows" } else { "rows" };
        let of = match self.total {
            Total::Exactly(total) => format!(" of {}", grouped(total)),
            Total::About(total) => format!(" of about {}", grouped(total)),
            Total::Unknown => String::new(),
        };
        if let Some(first) = self.first_match {
            return match self.rows.len() as u64 {
                0 if self.total == Total::Exactly(0) => "no matching rows".to_owned(),
                0 => format!("none of these matching rows{of}"),
                1 => format!("matching row {}{of}", grouped(first)),
                count => format!("matching rows {}-{}{of}", grouped(first), grouped(first + count - 1)),
            };
        }
        match (self.rows.first(), self.rows.last()) {
            (Some(first), Some(last)) if first.number == last.number => {
                format!("{} {}{of}", unit.trim_end_matches('s'), grouped(first.number))
            }
            (Some(first), Some(last)) => format!("{unit} {}-{}{of}", grouped(first.number), grouped(last.number)),
            _ if self.total == Total::Exactly(0) => format!("no {unit}"),
            _ => format!("none of these {unit}{of}"),
        }
    }

    /// The rows as lines of the table, counted from 0. `None` for cells of a range and rows of a search.
    pub(crate) fn extent_in_lines(&self) -> Option<Extent> {
        if self.is_range || self.first_match.is_some() {
            return None;
        }
        let start = self.rows.first().map_or(self.start, |row| row.number).saturating_sub(1);
        // A page of empty rows has none to show, and the next one begins after them.
        let after = self.next_row.map_or(start, |next| next.saturating_sub(1).max(start));
        let end = self.rows.last().map_or(after, |row| row.number);
        let mut extent = Extent::open(Unit::Lines, start, end, self.next_rows.is_some());
        if let Total::Exactly(total) = self.total {
            extent.total = Some(total);
        }
        Some(extent)
    }

    /// The formulas of the shown cells, each with the position of its cell.
    fn formulas(&self) -> impl Iterator<Item = (String, &str)> {
        self.rows.iter().flat_map(move |row| {
            row.cells.iter().zip(self.columns).filter_map(move |(cell, at)| {
                let formula = cell.as_ref()?.formula.as_deref()?;
                let place = match self.is_range {
                    true => format!("{}{}", column::letters(*at), row.number),
                    false => format!("row {}, {}", row.number, self.name(*at)),
                };
                Some((place, formula))
            })
        })
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", inline(self.title));
        if self.columns.is_empty() {
            text.push_str("(no columns)\n");
        } else {
            text.push_str("| # |");
            for at in self.columns {
                let _ = write!(text, " {} |", inline(&self.name(*at)));
            }
            text.push_str("\n|---|");
            text.push_str(&"---|".repeat(self.columns.len()));
            text.push('\n');
            for row in self.rows {
                let _ = write!(text, "| {} |", row.number);
                for cell in &row.cells {
                    let _ = write!(text, " {} |", cell.as_ref().map(shown).unwrap_or_default());
                }
                text.push('\n');
            }
        }
        let _ = write!(text, "\n{}", self.extent());
        if let Some(next) = self.next_rows {
            let _ = match self.is_tool {
                true => write!(text, "; nextRows: {next}"),
                false => write!(text, "; [next rows]({next})"),
            };
        }
        text.push('\n');
        if let Some(next) = self.next_columns {
            let next = if self.is_tool { format!("next: {next}") } else { format!("[next columns]({next})") };
            let _ = writeln!(text, "\n{} of {} columns; {next}", self.columns.len(), self.names.len());
        }
        let mut formulas = self.formulas();
        let listed: Vec<String> = formulas
            .by_ref()
            .take(FORMULAS)
            .map(|(place, formula)| format!("- {}: {}", inline(&place), code(&format!("={formula}"))))
            .collect();
        if !listed.is_empty() {
            let more = formulas.count();
            let more = if more > 0 { format!("\n- {more} more") } else { String::new() };
            let _ = writeln!(text, "\nValues are as last saved. Formulas:\n\n{}{more}", listed.join("\n"));
        }
        for note in self.notes {
            let _ = writeln!(text, "\nNote: {}", inline(note));
        }
        text
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Option<String> {
        let total = match self.total {
            Total::Exactly(total) | Total::About(total) => Some(total),
            Total::Unknown => None,
        };
        let rows: Vec<Vec<Option<Box<RawValue>>>> =
            self.rows.iter().map(|row| row.cells.iter().map(|cell| cell.as_ref().and_then(raw)).collect()).collect();
        let formulas: Vec<Formula<'_>> = self.formulas().map(|(cell, formula)| Formula { cell, formula }).collect();
        let cut = self.rows.iter().flat_map(|row| row.cells.iter().flatten().map(move |cell| (row, cell)));
        let cut = cut
            .filter(|(_, cell)| cell.cut > 0)
            .map(|(row, cell)| format!("row {}: a text is cut, {} more bytes", row.number, cell.cut));
        let notes: Vec<String> = self.notes.iter().cloned().chain(cut).collect();
        let document = Document {
            table: self.title,
            columns: self.columns.iter().map(|at| self.name(*at)).collect(),
            first_row: self.rows.first().map(|row| row.number),
            first_match: self.first_match,
            row_numbers: self.is_gapped().then(|| self.rows.iter().map(|row| row.number).collect()),
            rows,
            total_rows: total,
            total_is_exact: matches!(self.total, Total::Exactly(_)),
            all_columns: self.names.len(),
            next_rows: self.next_rows,
            next_columns: self.next_columns,
            formulas,
            notes,
        };
        serde_json::to_string(&document).ok()
    }

    /// True if the numbers of the shown rows are not consecutive.
    fn is_gapped(&self) -> bool {
        self.rows.iter().zip(self.rows.iter().skip(1)).any(|(one, next)| one.number + 1 != next.number)
    }
}

/// The JSON form of the rows.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    table: &'a str,
    columns: Vec<String>,
    first_row: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_match: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row_numbers: Option<Vec<u64>>,
    rows: Vec<Vec<Option<Box<RawValue>>>>,
    total_rows: Option<u64>,
    total_is_exact: bool,
    all_columns: usize,
    next_rows: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_columns: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    formulas: Vec<Formula<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A formula, in JSON.
#[derive(Debug, Serialize)]
struct Formula<'a> {
    cell: String,
    formula: &'a str,
}

/// A value in JSON. A number keeps the digits of the file.
fn raw(cell: &Cell) -> Option<Box<RawValue>> {
    let json = match &cell.value {
        Value::Empty => return None,
        Value::Number(text) | Value::Json(text) => text.clone(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Text(text) | Value::Moment(text) | Value::Error(text) => serde_json::to_string(text).ok()?,
    };
    RawValue::from_string(json).ok()
}

/// A cell in a Markdown table.
fn shown(cell: &Cell) -> String {
    let text = inline(cell.value.as_text());
    if cell.cut > 0 { format!("{text} ... ({} more bytes)", cell.cut) } else { text }
}

/// Text escaped for use within a line of Markdown.
pub(crate) fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.trim().chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' | '|' | '[' | ']' | '`' | '*' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            // Only an ampersand that could begin an entity is escaped.
            '&' if rest.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '#') => out.push_str("&amp;"),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\r' => out.push_str("<br>"),
            '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text as a Markdown code span. The fence is longer than any run of backticks in the text.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// `12345` as `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + 6);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_cells_are_escaped() {
        for (text, markdown) in [
            ("a|b", "a\\|b"),
            ("line\r\nline\nx", "line<br>line<br>x"),
            ("<script>", "&lt;script>"),
            ("[x](http://y)", "\\[x\\](http://y)"),
            ("AT&T & &lt;", "AT&amp;T & &amp;lt;"),
            ("a\0b\tc", "a\u{fffd}b c"),
            ("=cmd|'/c calc'!A1", "=cmd\\|'/c calc'!A1"),
            ("`*~\\", "\\`\\*\\~\\\\"),
        ] {
            assert_eq!(inline(text), markdown);
        }
        assert_eq!(code("a``b`"), "``` a``b` ```");
        assert_eq!(code("=A1"), "`=A1`");
        assert_eq!([grouped(0), grouped(999), grouped(1000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }
}
