//! Parses the query component of a reference.

use belljar_guest::{Error, Result, reference};

use crate::column;
use crate::filter::{Condition, Order};

/// Rows per read when the reference has no `rows`.
pub(crate) const ROWS: u64 = 100;

/// The most rows in one read.
pub(crate) const MAX_ROWS: u64 = 1000;

/// The parsed parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) rows: Option<(u64, u64)>,
    /// The last rows: so many, counted back from the end. Only for parts.
    pub(crate) last: Option<u64>,
    /// The position of the first row in the file, from the `nextRows` of an earlier read.
    pub(crate) from: Option<String>,
    pub(crate) range: Option<Range>,
    pub(crate) columns: Option<String>,
    pub(crate) format: Format,
    pub(crate) header: Option<bool>,
    pub(crate) delimiter: Option<u8>,
    /// True if quotes have no special meaning.
    pub(crate) is_unquoted: bool,
    pub(crate) encoding: Option<&'static encoding_rs::Encoding>,
    /// The lines or sheet rows before the header. `None`: a preamble is detected.
    pub(crate) skip: Option<usize>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) orders: Vec<Order>,
    /// The encoded parameters other than rows, position and range. Links to the next rows repeat them.
    kept: String,
}

/// The format of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Markdown,
    Json,
}

/// A rectangle of cells, counted from 0, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) rows: (u32, u32),
    pub(crate) columns: (usize, usize),
}

/// The most rows of a spreadsheet.
const MAX_SHEET_ROWS: u32 = 1_048_576;

const PARAMETERS: &str = "rows, columns, where, sort, range, format, header, skip, delimiter, quote, encoding";

impl Query {
    /// Parses the text after the `?`.
    pub(crate) fn parse(query: &str) -> Result<Query> {
        let mut wanted = Query::default();
        for (key, encoded) in reference::pairs(query) {
            let value = reference::decode(encoded)?;
            // A client that fills in a template may leave a variable empty.
            if value.is_empty() {
                continue;
            }
            let key = reference::decode(key)?;
            match key.as_str() {
                "rows" => wanted.rows = Some(rows(&value)?),
                "from" => wanted.from = Some(value),
                "range" => wanted.range = Some(Range::parse(&value).ok_or_else(|| not_a_range(&value))?),
                "columns" => wanted.columns = Some(value),
                "format" => wanted.format = format(&value)?,
                "header" => wanted.header = header(&value)?,
                "delimiter" => wanted.delimiter = Some(delimiter(&value)?),
                "quote" => {
                    wanted.is_unquoted = match value.as_str() {
                        "none" => true,
                        "double" => false,
                        other => {
                            return Err(Error::invalid(format_args!("quote \"{other}\": expected double or none")));
                        }
                    }
                }
                "encoding" => wanted.encoding = Some(encoding(&value)?),
                "skip" => wanted.skip = Some(skip(&value)?),
                "where" => wanted.conditions.extend(Condition::parse(&value)?),
                "sort" => wanted.orders.extend(Order::parse(&value)?),
                other => {
                    return Err(Error::invalid(format_args!(
                        "unknown parameter \"{other}\": expected one of {PARAMETERS}"
                    )));
                }
            }
            if !matches!(key.as_str(), "rows" | "from" | "range") {
                wanted.kept.push_str(&format!("&{key}={encoded}"));
            }
        }
        if wanted.range.is_some() && (wanted.rows.is_some() || wanted.columns.is_some()) {
            return Err(Error::invalid(
                "\"range\" already selects rows and columns: leave out \"rows\" and \"columns\"",
            ));
        }
        if wanted.range.is_some() && wanted.is_search() {
            return Err(Error::invalid(
                "\"range\" gives cells as they are: leave out \"where\" and \"sort\", or leave out \"range\"",
            ));
        }
        Ok(wanted)
    }

    /// True if rows are selected by conditions or sorted.
    pub(crate) fn is_search(&self) -> bool {
        !self.conditions.is_empty() || !self.orders.is_empty()
    }

    /// The first and the last row to read.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let (first, last) = self.rows.unwrap_or((1, ROWS));
        (first, last.min(first.saturating_add(MAX_ROWS - 1)))
    }

    /// The same query for other rows.
    pub(crate) fn with_rows(&self, first: u64, last: u64, from: Option<&str>) -> String {
        let from = from.map(|from| format!("&from={from}")).unwrap_or_default();
        format!("?rows={first}-{last}{from}{}", self.kept)
    }

    /// The same query for another rectangle.
    pub(crate) fn with_range(&self, range: Range) -> String {
        format!("?range={range}{}", self.kept)
    }

    /// The same query for other columns of the same rows.
    pub(crate) fn with_columns(&self, columns: &str) -> String {
        let kept: String = self
            .kept
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.starts_with("columns="))
            .map(|pair| format!("&{pair}"))
            .collect();
        let (first, last) = self.bounds();
        format!("?rows={first}-{last}&columns={columns}{kept}")
    }
}

impl Range {
    /// `B2:D10`, `B2`, `B:D`, `2:10`.
    pub(crate) fn parse(text: &str) -> Option<Range> {
        let text = text.replace('$', "");
        let (first, last) = text.split_once(':').unwrap_or((&text, &text));
        let ((first_column, first_row), (last_column, last_row)) = (corner(first)?, corner(last)?);
        let columns = (first_column.unwrap_or(0), last_column.unwrap_or(column::MAX_COLUMNS - 1));
        let rows = (first_row.unwrap_or(0), last_row.unwrap_or(MAX_SHEET_ROWS - 1));
        (columns.0 <= columns.1 && rows.0 <= rows.1).then_some(Range { rows, columns })
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let corner = |row: u32, at: usize| format!("{}{}", column::letters(at), row + 1);
        write!(f, "{}:{}", corner(self.rows.0, self.columns.0), corner(self.rows.1, self.columns.1))
    }
}

/// The column and the row of `B2`, `B` or `2`, counted from 0.
fn corner(text: &str) -> Option<(Option<usize>, Option<u32>)> {
    let letters = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = text.get(letters.len()..)?;
    let at = match letters {
        "" => None,
        letters if letters.bytes().all(|byte| byte.is_ascii_alphabetic()) => Some(column::index(letters)?),
        _ => return None,
    };
    let row = match digits {
        "" => None,
        digits => Some(digits.parse::<u32>().ok().filter(|row| (1..=MAX_SHEET_ROWS).contains(row))? - 1),
    };
    (at.is_some() || row.is_some()).then_some((at, row))
}

fn not_a_range(text: &str) -> Error {
    Error::invalid(format_args!("\"{text}\" is not a range: expected a form such as A1:D20, B:D or 2:10"))
}

/// `101-200`, `101-`, `7`.
fn rows(text: &str) -> Result<(u64, u64)> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|row| *row > 0);
    let parsed = match text.split_once('-') {
        Some((first, last)) if last.trim().is_empty() => {
            number(first).map(|first| (first, first.saturating_add(ROWS - 1)))
        }
        Some((first, last)) => number(first).zip(number(last)).filter(|(first, last)| first <= last),
        None => number(text).map(|row| (row, row)),
    };
    parsed.ok_or_else(|| {
        Error::invalid(format_args!(
            "rows \"{text}\": expected a row or a range, such as 1-100, 101- or 7, counted from 1 without the header"
        ))
    })
}

fn format(text: &str) -> Result<Format> {
    match text {
        "markdown" | "md" => Ok(Format::Markdown),
        "json" => Ok(Format::Json),
        other => Err(Error::invalid(format_args!("format \"{other}\": expected markdown or json"))),
    }
}

fn header(text: &str) -> Result<Option<bool>> {
    match text {
        "yes" => Ok(Some(true)),
        "no" => Ok(Some(false)),
        "auto" => Ok(None),
        other => Err(Error::invalid(format_args!("header \"{other}\": expected yes, no or auto"))),
    }
}

fn delimiter(text: &str) -> Result<u8> {
    match (text, text.as_bytes()) {
        ("comma", _) => Ok(b','),
        ("semicolon", _) => Ok(b';'),
        ("tab", _) => Ok(b'\t'),
        ("pipe", _) => Ok(b'|'),
        ("space", _) => Ok(b' '),
        (_, [byte]) if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\r' | b'\n') => {
            Ok(*byte)
        }
        _ => Err(Error::invalid(format_args!(
            "delimiter \"{text}\": expected comma, semicolon, tab, pipe, space or one ASCII punctuation character"
        ))),
    }
}

fn encoding(text: &str) -> Result<&'static encoding_rs::Encoding> {
    // Other programs write `utf_16_le` and `latin-1`.
    let plain = text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let plain = match plain.as_str() {
        "utf16le" => "utf-16le",
        "utf16be" => "utf-16be",
        other => other,
    };
    let of = |label: &str| encoding_rs::Encoding::for_label(label.trim().as_bytes());
    let known = of(text).or_else(|| of(plain));
    known.filter(|known| *known != encoding_rs::REPLACEMENT && known.name() != "x-user-defined").ok_or_else(|| {
        Error::invalid(format_args!(
            "encoding \"{text}\": expected a name such as utf-8, utf-16le, windows-1252, windows-1251, koi8-r, iso-8859-2, \
             shift_jis, gbk, gb18030, big5 or euc-kr"
        ))
    })
}

fn skip(text: &str) -> Result<usize> {
    /// The most lines to skip.
    const MOST: usize = 100_000;
    text.parse().ok().filter(|lines| *lines <= MOST).ok_or_else(|| {
        Error::invalid(format_args!("skip \"{text}\": expected the number of lines before the header, at most {MOST}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_parsed_and_links_select_the_next_rows() {
        let of = |query| Query::parse(query).unwrap().bounds();
        assert_eq!(of(""), (1, 100));
        assert_eq!(of("rows=101-250"), (101, 250));
        assert_eq!(of("rows=7"), (7, 7));
        assert_eq!(of("rows=7-"), (7, 106));
        assert_eq!(of("rows=1-5000"), (1, 1000));
        let query = Query::parse("rows=1-5&columns=a%2Cb&format=json&from=1-2").unwrap();
        assert_eq!(query.with_rows(6, 10, Some("77-ff")), "?rows=6-10&from=77-ff&columns=a%2Cb&format=json");
        assert_eq!(query.with_columns("3-4"), "?rows=1-5&columns=3-4&format=json");
    }

    #[test]
    fn ranges_have_the_form_of_a_spreadsheet() {
        let of = |text| Range::parse(text).map(|range| range.to_string());
        assert_eq!(of("b2:D10").as_deref(), Some("B2:D10"));
        assert_eq!(of("$B$2").as_deref(), Some("B2:B2"));
        assert_eq!(of("B:D").as_deref(), Some("B1:D1048576"));
        assert_eq!(of("2:3").as_deref(), Some("A2:XFD3"));
        for wrong in ["", ":", "B2:A1", "B0", "XFE1", "A1048577", "A1:B2:C3", "1A", "ä1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn errors_say_the_expected_form() {
        for (query, expected) in [
            ("rows=0", "such as 1-100"),
            ("rows=5-1", "such as 1-100"),
            ("range=1A", "A1:D20"),
            ("format=xml", "markdown or json"),
            ("header=maybe", "yes, no or auto"),
            ("delimiter=xx", "semicolon"),
            ("encoding=utf-32", "windows-1252"),
            ("encoding=x-user-defined", "shift_jis"),
            ("skip=-1", "before the header"),
            ("where=amount", "such as amount>10"),
            ("sort=,", "-amount,name"),
            ("range=A1&where=a=1", "leave out"),
            ("limit=5", "rows, columns, where"),
            ("range=A1&rows=5", "leave out"),
        ] {
            let Err(Error::Invalid(why)) = Query::parse(query) else { panic!("{query}") };
            assert!(why.contains(expected), "{query}: {why}");
        }
        assert_eq!(Query::parse("rows=&format="), Ok(Query::default()));
    }
}
