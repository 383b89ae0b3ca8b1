//! JSON lines as a table: each line is an object, whose keys are columns, or an array.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use belljar_guest::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::cell::{Cell, Value};
use crate::column;
use crate::dialect::{Dialect, HEAD};
use crate::query::Query;
use crate::source::feed::{Budget, Feed, TextFile};
use crate::table::{ColumnPositions, End, Header, Row, ScanRequest, Source, Start, Total};

/// The lines from which the columns come.
const SAMPLE: usize = 200;

/// The most bytes of these lines.
const SAMPLE_BYTES: u64 = 1024 * 1024;

/// The longest line, in bytes.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// How many bytes after the requested rows are scanned to count rows.
const MAX_COUNTED_BYTES: u64 = 16 * 1024 * 1024;

/// A file of JSON lines.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    file: TextFile<'t>,
    dialect: Dialect,
    columns: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    row: u64,
    offset: u64,
}

/// The values of a line.
enum Record<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    /// A single value.
    Other,
}

struct Reader {
    feed: Feed,
    budget: Budget,
    line: Vec<u8>,
}

/// The result of reading a line.
enum Step {
    Line,
    Spent,
    TooLong,
    End,
}

impl Reader {
    /// Reads the next line that is not empty into `line`.
    fn next(&mut self) -> Result<Step> {
        self.line.clear();
        loop {
            let input = self.feed.next()?;
            if input.is_empty() {
                return Ok(if self.line.trim_ascii().is_empty() { Step::End } else { Step::Line });
            }
            let end = input.iter().position(|byte| *byte == b'\n');
            let part = input.get(..end.unwrap_or(input.len())).unwrap_or_default();
            if self.line.len() + part.len() > MAX_LINE_BYTES {
                return Ok(Step::TooLong);
            }
            self.line.extend_from_slice(part);
            let consumed = part.len() + usize::from(end.is_some());
            self.feed.consume(consumed);
            if end.is_some() {
                if self.line.trim_ascii().is_empty() {
                    self.line.clear();
                    continue;
                }
                // Parsing JSON takes about three times as long as parsing CSV.
                let spent = self.line.len() as u64 * 3;
                return Ok(if self.budget.take(spent) { Step::Line } else { Step::Spent });
            }
        }
    }
}

impl<'t> Lines<'t> {
    pub(crate) fn new(file: TextFile<'t>, query: &Query) -> Result<Self> {
        let dialect = Dialect::of(&file.head(HEAD)?, file.path, query)?;
        Ok(Lines { file, dialect, columns: None })
    }

    fn reader(&self, from: u64) -> Result<Reader> {
        Ok(Reader { feed: self.file.feed(&self.dialect, from)?, budget: Budget::new(), line: Vec::new() })
    }

    fn columns(&mut self) -> Result<Vec<String>> {
        if let Some(known) = &self.columns {
            return Ok(known.clone());
        }
        let mut reader = self.reader(self.dialect.start)?;
        let (mut names, mut known): (Vec<String>, HashMap<String, usize>) = (Vec::new(), HashMap::new());
        let mut read = 0;
        for _ in 0..SAMPLE {
            let Step::Line = reader.next()? else { break };
            read += reader.line.len() as u64;
            match parse(&reader.line) {
                Some(Record::Object(fields)) => {
                    for (name, _) in fields {
                        if names.len() < column::MAX_COLUMNS && !known.contains_key(&name) {
                            known.insert(name.clone(), names.len());
                            names.push(name);
                        }
                    }
                }
                Some(Record::Array(values)) => {
                    let wanted = values.len().min(column::MAX_COLUMNS);
                    while names.len() < wanted {
                        names.push(column::letters(names.len()));
                    }
                }
                Some(Record::Other) if names.is_empty() => names.push("value".to_owned()),
                _ => {}
            }
            if read > SAMPLE_BYTES {
                break;
            }
        }
        self.columns = Some(names.clone());
        Ok(names)
    }

    fn hint(&self, position: Position) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        (position.row, position.offset, self.file.mark(position.offset, 64)?).hash(&mut hasher);
        Ok(format!("{}-{}-{:016x}", position.row, position.offset, hasher.finish()))
    }

    fn start_at(&self, position: Position) -> Result<Start> {
        let from = if self.dialect.has_positions() { Some(self.hint(position)?) } else { None };
        Ok(Start { row: position.row, from })
    }

    fn position(&self, start: &Start) -> Result<Position> {
        let first = Position { row: 1, offset: self.dialect.start };
        let Some(hint) = &start.from else { return Ok(first) };
        let mut parts = hint.split('-').map(str::parse::<u64>);
        let (Some(Ok(row)), Some(Ok(offset))) = (parts.next(), parts.next()) else { return Ok(first) };
        let position = Position { row, offset };
        let is_inside = self.file.text_size().is_none_or(|size| offset <= size);
        Ok(if (2..=start.row).contains(&row) && is_inside && self.hint(position)? == *hint { position } else { first })
    }

    fn too_long(&self, row: u64) -> Error {
        Error::failed(format_args!(
            "line {row} of \"{}\" is longer than {} MiB: expected one JSON object in each line",
            self.file.path,
            MAX_LINE_BYTES / (1024 * 1024)
        ))
    }
}

impl Source for Lines<'_> {
    fn header(&mut self) -> Result<Header> {
        let names = self.columns()?;
        Ok(Header { width: names.len(), names })
    }

    fn last(&mut self, count: u64) -> Result<Option<Start>> {
        let mut here = Position { row: 1, offset: self.dialect.start };
        let mut reader = self.reader(here.offset)?;
        let mut positions: VecDeque<Position> = VecDeque::new();
        loop {
            positions.push_back(here);
            if positions.len() as u64 > count {
                positions.pop_front();
            }
            match reader.next()? {
                Step::Line => here = Position { row: here.row + 1, offset: reader.feed.offset() },
                Step::End => {
                    positions.pop_back();
                    let first = Position { row: 1, offset: self.dialect.start };
                    return self.start_at(positions.front().copied().unwrap_or(first)).map(Some);
                }
                Step::Spent | Step::TooLong => return Ok(None),
            }
        }
    }

    fn scan(&mut self, wanted: &ScanRequest<'_>, each: &mut dyn FnMut(Row) -> bool) -> Result<End> {
        let names: HashMap<String, usize> =
            self.columns()?.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
        let mut here = self.position(&wanted.start)?;
        let mut reader = self.reader(here.offset)?;
        let places = ColumnPositions::of(wanted.columns);
        let mut end = End { total: Total::Unknown, next: None, notes: Vec::new() };
        end.notes.extend(self.dialect.note());
        let (mut broken, mut unknown): (Vec<u64>, Vec<String>) = (Vec::new(), Vec::new());
        let mut is_full = false;
        let mut counted = 0_u64;
        loop {
            match reader.next()? {
                Step::Line => {}
                Step::TooLong if is_full => break,
                Step::TooLong => return Err(self.too_long(here.row)),
                Step::End => {
                    end.total = Total::Exactly(here.row.saturating_sub(1));
                    break;
                }
                Step::Spent => {
                    if !is_full {
                        end.next = Some(self.start_at(here)?);
                        if here.row < wanted.start.row {
                            end.notes.push(format!(
                                "stopped at row {} on the way to row {}: this is the limit of one read, the next rows \
                                 continue from there",
                                here.row, wanted.start.row
                            ));
                            end.next = Some(Start { row: wanted.start.row, ..self.start_at(here)? });
                        }
                    }
                    break;
                }
            }
            let number = here.row;
            if is_full {
                if end.next.is_none() {
                    end.next = Some(self.start_at(here)?);
                }
                counted += reader.line.len() as u64;
                if wanted.is_search || counted > MAX_COUNTED_BYTES {
                    break;
                }
            } else if number >= wanted.start.row {
                let mut cells: Vec<Option<Cell>> = vec![None; places.count()];
                let mut width = names.len();
                let mut put = |at: usize, value: &RawValue| {
                    for place in places.at(at) {
                        if let Some(slot) = cells.get_mut(*place) {
                            let mut value = value_of(value.get());
                            let cut = value.cut(wanted.longest);
                            *slot = Some(Cell { value, cut, formula: None });
                        }
                    }
                };
                match parse(&reader.line) {
                    Some(Record::Object(fields)) => {
                        for (name, value) in fields {
                            match names.get(&name) {
                                Some(at) => put(*at, value),
                                None if unknown.len() < 10 && !unknown.contains(&name) => unknown.push(name),
                                None => {}
                            }
                        }
                    }
                    Some(Record::Array(values)) => {
                        width = values.len();
                        values.into_iter().enumerate().for_each(|(at, value)| put(at, value));
                    }
                    Some(Record::Other) => {
                        if let Ok(value) = serde_json::from_slice::<&RawValue>(&reader.line) {
                            put(0, value);
                        }
                    }
                    None => {
                        broken.push(number);
                        let text = String::from_utf8_lossy(&reader.line).into_owned();
                        let mut value = Value::Text(text);
                        let cut = value.cut(wanted.longest);
                        if let Some(slot) = cells.first_mut() {
                            *slot = Some(Cell { value, cut, formula: None });
                        }
                    }
                }
                is_full = !each(Row { number, cells, width });
            }
            here = Position { row: number + 1, offset: reader.feed.offset() };
        }
        if let Some(first) = broken.first() {
            end.notes.push(format!(
                "{} of these lines are not JSON, such as line {first}: its text is in the first column",
                broken.len()
            ));
        }
        if !unknown.is_empty() {
            end.notes.push(format!(
                "these rows have further keys, which the first {SAMPLE} lines do not have: {}",
                unknown.join(", ")
            ));
        }
        Ok(end)
    }
}

/// Parses a line and its values. For fuzzing.
pub(crate) fn fuzz(line: &[u8]) {
    match parse(line) {
        Some(Record::Object(fields)) => fields.iter().for_each(|(_, value)| drop(value_of(value.get()))),
        Some(Record::Array(values)) => values.iter().for_each(|value| drop(value_of(value.get()))),
        Some(Record::Other) | None => {}
    }
    is_object(line);
}

/// True if the first line is a JSON object of its own.
pub(crate) fn is_object(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"{") && line.len() < head.len() && matches!(parse(line), Some(Record::Object(_)))
}

/// The values of a line. `None` for text that is not JSON.
fn parse(line: &[u8]) -> Option<Record<'_>> {
    let line = line.trim_ascii();
    match line.first()? {
        b'{' => serde_json::from_slice::<Fields<'_>>(line).ok().map(|fields| Record::Object(fields.0)),
        b'[' => serde_json::from_slice::<Items<'_>>(line).ok().map(|items| Record::Array(items.0)),
        _ => serde_json::from_slice::<&RawValue>(line).ok().map(|_| Record::Other),
    }
}

/// The fields of an object in the order of the text.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    fields.push(pair);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> std::result::Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(value) = values.next_element()? {
                    items.push(value);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Values)
    }
}

/// The value of a JSON text.
fn value_of(json: &str) -> Value {
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) if text.is_empty() => Value::Empty,
            Ok(text) => Value::Text(text),
            Err(_) => Value::Text(json.to_owned()),
        },
        Some(b'{' | b'[') => Value::Json(json.to_owned()),
        Some(b't') => Value::Boolean(true),
        Some(b'f') => Value::Boolean(false),
        Some(b'n') | None => Value::Empty,
        // Numbers keep their digits.
        Some(_) if json.bytes().filter(u8::is_ascii_digit).count() <= 17 => Value::Number(json.to_owned()),
        Some(_) => Value::Text(json.to_owned()),
    }
}
