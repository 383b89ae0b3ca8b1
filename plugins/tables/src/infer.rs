//! Infers the types of columns from their values. Types describe the text: a decimal is not converted to a double.

use std::collections::BTreeMap;

use jiff::civil::{Date, DateTime, Time};

use crate::cell::{Cell, Value};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Boolean,
    Integer,
    Decimal,
    Date,
    DateTime,
    Time,
    Text,
    /// A list or a record.
    Nested,
    Error,
}

/// The number of examples per column.
const EXAMPLES: usize = 3;

/// The longest example, in characters.
const LONGEST_EXAMPLE: usize = 60;

/// The statistics of a column.
#[derive(Debug, Default)]
pub(crate) struct ColumnStats {
    kinds: BTreeMap<Type, u64>,
    pub(crate) empty: u64,
    pub(crate) examples: Vec<String>,
    /// The most digits after the decimal point.
    scale: usize,
    pub(crate) longest: usize,
    pub(crate) formulas: u64,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Decimal => "decimal",
            Type::Date => "date",
            Type::DateTime => "date-time",
            Type::Time => "time",
            Type::Text => "text",
            Type::Nested => "nested",
            Type::Error => "error",
        }
    }

    /// The type of a value; `None` for an empty cell.
    pub(crate) fn of(value: &Value) -> Option<Type> {
        Some(match value {
            Value::Empty => return None,
            Value::Boolean(_) => Type::Boolean,
            Value::Number(text) if text.contains(['.', 'e']) => Type::Decimal,
            Value::Number(_) => Type::Integer,
            Value::Moment(text) => moment(text).unwrap_or(Type::Text),
            Value::Error(_) => Type::Error,
            Value::Json(_) => Type::Nested,
            Value::Text(text) => of_text(text),
        })
    }
}

fn of_text(text: &str) -> Type {
    if ["true", "false"].iter().any(|word| word.eq_ignore_ascii_case(text)) {
        return Type::Boolean;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_number = digits(whole)
        && digits(fraction)
        && digits(exponent)
        && !exponent.is_empty()
        && !(whole.is_empty() && fraction.is_empty());
    // Digits with a leading zero are an identifier, not a number.
    if is_number && (whole.len() < 2 || !whole.starts_with('0')) {
        return if unsigned.bytes().all(|byte| byte.is_ascii_digit()) { Type::Integer } else { Type::Decimal };
    }
    moment(text).unwrap_or(Type::Text)
}

/// The type of a date or time in ISO 8601. The library accepts further forms that other programs do not parse.
fn moment(text: &str) -> Option<Type> {
    let bytes = text.as_bytes();
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    if !(5..=40).contains(&bytes.len()) || !bytes.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    if is(4, b'-') && is(7, b'-') {
        if bytes.len() == 10 {
            return text.parse::<Date>().ok().map(|_| Type::Date);
        }
        // Only offsets are accepted as time zones, not names.
        let spaced = text.replacen(' ', "T", 1);
        let local = spaced.trim_end_matches('Z').trim_end_matches("UTC").trim_end();
        let local = local
            .get(11..)
            .and_then(|rest| rest.find(['+', '-']))
            .map_or(local, |at| local.get(..11 + at).unwrap_or(local));
        return (is(10, b'T') || is(10, b' ')).then(|| local.parse::<DateTime>().ok())?.map(|_| Type::DateTime);
    }
    (is(2, b':') && bytes.len() <= 18).then(|| text.parse::<Time>().ok())?.map(|_| Type::Time)
}

impl ColumnStats {
    /// Adds a cell to the statistics; `None` where the row is too short.
    pub(crate) fn add(&mut self, cell: Option<&Cell>) {
        let Some(cell) = cell else {
            self.empty += 1;
            return;
        };
        self.formulas += u64::from(cell.formula.is_some());
        let Some(kind) = Type::of(&cell.value) else {
            self.empty += 1;
            return;
        };
        *self.kinds.entry(kind).or_default() += 1;
        let text = cell.value.as_text();
        self.longest = self.longest.max(text.len() + usize::try_from(cell.cut).unwrap_or(usize::MAX));
        if kind == Type::Decimal {
            let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
            self.scale = self.scale.max(fraction.bytes().take_while(u8::is_ascii_digit).count());
        }
        if self.examples.len() < EXAMPLES {
            let mut example: String = text.chars().take(LONGEST_EXAMPLE).collect();
            if example.len() < text.len() || cell.cut > 0 {
                example.push_str(" ...");
            }
            if !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }

    /// The common type of all values, or `mixed` with the count of each type.
    pub(crate) fn type_name(&self) -> String {
        let kinds: Vec<Type> = self.kinds.keys().copied().filter(|kind| *kind != Type::Error).collect();
        match kinds.as_slice() {
            [] if self.kinds.is_empty() => "empty".to_owned(),
            [] => "error".to_owned(),
            [kind] => kind.name().to_owned(),
            [Type::Integer, Type::Decimal] => Type::Decimal.name().to_owned(),
            [Type::Date, Type::DateTime] => Type::DateTime.name().to_owned(),
            _ => {
                let counts = self.kinds.iter().map(|(kind, count)| format!("{count} {}", kind.name()));
                format!("mixed ({})", counts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The most digits after the decimal point; `None` for a column without decimals.
    pub(crate) fn scale(&self) -> Option<usize> {
        self.kinds.contains_key(&Type::Decimal).then_some(self.scale)
    }

    /// The number of errors among the values.
    pub(crate) fn errors(&self) -> u64 {
        self.kinds.get(&Type::Error).copied().unwrap_or_default()
    }
}

/// True if the first row looks like column names: mostly text. Years do not count, because they are common as names.
pub(crate) fn has_header(rows: &[Vec<String>]) -> bool {
    let Some(first) = rows.first() else { return false };
    let is_year = |text: &str| text.len() == 4 && (text.starts_with("19") || text.starts_with("20"));
    let named = first.iter().filter(|text| !text.trim().is_empty());
    let (mut texts, mut values) = (0, 0);
    for text in named {
        match of_text(text.trim()) {
            Type::Text => texts += 1,
            Type::Integer if is_year(text.trim()) => {}
            _ => values += 1,
        }
    }
    texts > values
}

/// The number of rows before the header: titles and remarks, which have few cells, before a table whose rows have many.
/// `rows` are the first rows.
pub(crate) fn preamble(rows: &[Vec<String>]) -> usize {
    /// The most rows that are taken for a preamble.
    const MOST: usize = 12;
    let filled = |row: &Vec<String>| row.iter().filter(|text| !text.trim().is_empty()).count();
    let count = |width: usize| rows.iter().filter(|row| row.len() == width).count();
    let Some(width) = rows.iter().map(Vec::len).max_by_key(|width| (count(*width), *width)).filter(|width| *width > 1)
    else {
        return 0;
    };
    let is_header = |row: &Vec<String>| row.len() >= width && filled(row) >= (2 * width).div_ceil(3).max(2);
    let is_remark = |row: &Vec<String>| {
        filled(row) <= (width / 3).max(1)
            || (row.len() != width && row.first().is_some_and(|text| text.starts_with('#')))
    };
    match rows.iter().position(is_header) {
        Some(found) if (1..=MOST).contains(&found) => {
            let (before, table) = rows.split_at(found);
            let is_table = table.len() > 1 && count(width) * 2 > table.len() && has_header(table);
            if is_table && before.iter().all(is_remark) { found } else { 0 }
        }
        _ => 0,
    }
}

/// A remark for the reader about the rows of a preamble.
pub(crate) fn preamble_note(rows: &[Vec<String>]) -> String {
    let texts: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells: Vec<&str> = row.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
            format!("\"{}\"", cells.join(" "))
        })
        .collect();
    let rows = if texts.len() == 1 { "row is".to_owned() } else { format!("{} rows are", texts.len()) };
    format!(
        "the first {rows} left out, because the names of the columns are below: {}; skip=0 keeps all rows",
        texts.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> &'static str {
        of_text(text).name()
    }

    #[test]
    fn types_describe_the_text() {
        for (text, name) in [
            ("1", "integer"),
            ("-99999999999999999999", "integer"),
            ("0.10", "decimal"),
            ("1e5", "decimal"),
            ("007", "text"),
            ("1,5", "text"),
            ("-", "text"),
            (".", "text"),
            ("2026-11-21", "date"),
            ("2026-02-30", "text"),
            ("20261121", "integer"),
            ("2026-11-21T10:00:00Z", "date-time"),
            ("2026-11-21 10:00:00.123+01:00", "date-time"),
            ("2026-11-21 10:00", "date-time"),
            ("2026-11-21 nonsense", "text"),
            ("10:15:00", "time"),
            ("25:15:00", "text"),
            ("TRUE", "boolean"),
            ("=1+1", "text"),
        ] {
            assert_eq!(of(text), name, "{text}");
        }
    }

    #[test]
    fn a_column_has_one_type_or_is_mixed() {
        let seen = |values: &[&str]| {
            let mut seen = ColumnStats::default();
            values.iter().for_each(|text| seen.add(Some(&Value::of_text((*text).into()).into())));
            seen
        };
        let decimal = seen(&["1", "2.50", ""]);
        assert_eq!((decimal.type_name().as_str(), decimal.scale(), decimal.empty), ("decimal", Some(2), 1));
        assert_eq!(seen(&["1", "x", "2"]).type_name(), "mixed (2 integer, 1 text)");
        assert_eq!(seen(&["2026-11-21", "2026-11-21T10:00:00"]).type_name(), "date-time");
        assert_eq!(seen(&["", ""]).type_name(), "empty");
        assert_eq!(seen(&["a", "a", "b", "c", "d"]).examples, ["a", "b", "c"]);
    }

    #[test]
    fn a_header_is_mostly_text() {
        let row = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(has_header(&[row(&["id", "name"]), row(&["1", "x"])]));
        assert!(has_header(&[row(&["country", "2020", "2021"])]));
        assert!(!has_header(&[row(&["1", "x"]), row(&["2", "y"])]));
        assert!(!has_header(&[row(&["2026-11-21", "1.5", "note"])]));
        assert!(!has_header(&[]));
    }

    #[test]
    fn a_preamble_has_fewer_cells_than_the_table_below() {
        let of = |text: &str| {
            let rows: Vec<Vec<String>> =
                text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
            preamble(&rows)
        };
        assert_eq!(of("Report\nof 2026\nid,name,amount\n1,x,2\n2,y,3"), 2);
        assert_eq!(of("Report,,\nid,name,amount\n1,x,2\n2,y,3"), 1);
        assert_eq!(of("# made by, a program\nid,name,amount\n1,x,2\n2,y,3"), 1);
        for table in [
            "id,name,amount\n1,x,2",
            "id,,\n1,2,3\n4,5,6",
            "1\n1,2\n1,2",
            "#id,name\na,b\nc,d",
            "a\nb\nc",
            "a,b\nx\ny",
            "",
            "a\nx,y",
        ] {
            assert_eq!(of(table), 0, "{table}");
        }
    }
}
