//! Reads the workbooks of Excel 2 to 4, and of Excel 5 without a container: a stream of records (BIFF).

use encoding_rs::{Encoding, WINDOWS_1252};

use crate::cell::Value;
use crate::source::book::PositionedCell;
use crate::source::package::Sheet;
use crate::source::serial::{self, Form};

/// The records of a workbook: version 2 has other numbers for some than 3, 4 and 5.
mod record {
    pub(super) const BOF: [u16; 4] = [0x0009, 0x0209, 0x0409, 0x0809];
    pub(super) const EOF: u16 = 0x000a;
    pub(super) const DATE_MODE: u16 = 0x0022;
    pub(super) const FILE_PASS: u16 = 0x002f;
    pub(super) const CODE_PAGE: u16 = 0x0042;
    pub(super) const BOUND_SHEET: u16 = 0x0085;
    pub(super) const SHEET_HEADER: u16 = 0x008f;
}

/// An old workbook, read as a whole.
#[derive(Default)]
pub(crate) struct OldXls {
    sheets: Vec<(Sheet, Vec<Stored>)>,
    /// The sheets that are no tables.
    pub(crate) left_out: usize,
}

struct Stored {
    row: u32,
    column: usize,
    value: Value,
}

/// True if a file begins like an old workbook: a record that begins a sheet, with a possible length.
pub(crate) fn is_old(head: &[u8]) -> bool {
    let [a, b, c, d, _, _, kind, kind_high, ..] = head else { return false };
    let (id, length) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
    let kind = u16::from_le_bytes([*kind, *kind_high]);
    record::BOF.contains(&id) && matches!(length, 4..=16) && matches!(kind, 0x05 | 0x10 | 0x20 | 0x40 | 0x100)
}

/// The state of the records so far.
struct Reader {
    /// The version: 2 to 5.
    version: u8,
    encoding: &'static Encoding,
    is_1904: bool,
    /// The forms of the number formats, and of the styles.
    formats: Vec<(u16, Form)>,
    styles: Vec<u16>,
    /// The style of the next cell in version 2, if its number does not fit into a cell.
    next_style: Option<u16>,
    names: Vec<(String, bool)>,
}

/// Parses a workbook. An error is a text.
pub(crate) fn parse(bytes: &[u8]) -> Result<OldXls, String> {
    let mut reader = Reader {
        version: 2,
        encoding: WINDOWS_1252,
        is_1904: false,
        formats: Vec::new(),
        styles: Vec::new(),
        next_style: None,
        names: Vec::new(),
    };
    let mut book = OldXls { sheets: Vec::new(), left_out: 0 };
    // The substreams around the current record, each true if it is a sheet.
    let mut open: Vec<bool> = Vec::new();
    let mut rest = bytes;
    while let Some(([a, b, c, d], after)) = rest.split_first_chunk::<4>().map(|(head, after)| (*head, after)) {
        let (id, length) = (u16::from_le_bytes([a, b]), usize::from(u16::from_le_bytes([c, d])));
        let Some((data, next)) = after.split_at_checked(length) else { break };
        rest = next;
        if record::BOF.contains(&id) {
            let kind = data.get(2..4).and_then(|kind| kind.try_into().ok()).map_or(0, u16::from_le_bytes);
            if open.is_empty() {
                reader.version = match (id, data) {
                    (0x0009, _) => 2,
                    (0x0209, _) => 3,
                    (0x0409, _) => 4,
                    (_, [_, 0x06, ..]) => return Err("it is a stream of Excel 97 without its container".to_owned()),
                    _ => 5,
                };
            }
            let is_sheet = kind == 0x10;
            if is_sheet {
                let at = book.sheets.len() + book.left_out;
                let (name, is_hidden) = reader.names.get(at).cloned().unwrap_or((format!("Sheet {}", at + 1), false));
                book.sheets.push((Sheet { name, is_hidden }, Vec::new()));
            } else if matches!(kind, 0x20 | 0x40) {
                book.left_out += 1;
            }
            open.push(is_sheet);
            continue;
        }
        match id {
            record::EOF => {
                open.pop();
            }
            record::FILE_PASS => return Err("it is protected by a password: save it without a password".to_owned()),
            _ => reader.global(id, data),
        }
        if open.last() == Some(&true)
            && let Some((_, cells)) = book.sheets.last_mut()
        {
            reader.cell(id, data, cells);
        }
    }
    Ok(book)
}

impl Reader {
    /// Records that hold for the whole workbook.
    fn global(&mut self, id: u16, data: &[u8]) {
        match (id, data) {
            (record::DATE_MODE, [mode, ..]) => self.is_1904 = *mode == 1,
            (record::CODE_PAGE, [low, high, ..]) => self.encoding = code_page(u16::from_le_bytes([*low, *high])),
            (record::SHEET_HEADER, [_, _, _, _, length, name @ ..]) => {
                let name = name.get(..usize::from(*length)).unwrap_or(name);
                self.names.push((self.text(name), false));
            }
            (record::BOUND_SHEET, [_, _, _, _, hidden, _, length, name @ ..]) => {
                let name = name.get(..usize::from(*length)).unwrap_or(name);
                self.names.push((self.text(name), hidden & 3 != 0));
            }
            // Number formats: in versions 2 to 4 they are numbered by their order.
            (0x001e, [length, text @ ..]) if self.version < 4 => {
                self.format(None, text.get(..usize::from(*length)).unwrap_or(text));
            }
            (0x001e | 0x041e, [low, high, length, text @ ..]) => {
                let number = (self.version > 4).then(|| u16::from_le_bytes([*low, *high]));
                self.format(number, text.get(..usize::from(*length)).unwrap_or(text));
            }
            // Styles.
            (0x0043, [_, _, format, ..]) => self.styles.push(u16::from(format & 0x3f)),
            (0x0243 | 0x0443, [_, format, ..]) => self.styles.push(u16::from(*format)),
            (0x00e0, [_, _, low, high, ..]) => self.styles.push(u16::from_le_bytes([*low, *high])),
            (0x0044, [low, high, ..]) => self.next_style = Some(u16::from_le_bytes([*low, *high])),
            _ => {}
        }
    }

    fn format(&mut self, number: Option<u16>, text: &[u8]) {
        let number = number.unwrap_or(u16::try_from(self.formats.len()).unwrap_or(u16::MAX));
        let form = serial::form(&self.text(text));
        self.formats.push((number, form));
    }

    fn text(&self, bytes: &[u8]) -> String {
        self.encoding.decode_without_bom_handling(bytes).0.into_owned()
    }

    /// A record of a cell, with the cells so far.
    fn cell(&mut self, id: u16, data: &[u8], cells: &mut Vec<Stored>) {
        if matches!(id, 0x0007 | 0x0207) {
            self.result(data, cells);
            return;
        }
        let [row, row_high, column, column_high, after @ ..] = data else { return };
        let (row, column) = (u16::from_le_bytes([*row, *row_high]), u16::from_le_bytes([*column, *column_high]));
        // In version 2, three bytes of attributes, and records with small numbers.
        let is_second = self.version == 2;
        let Some((attributes, value)) = after.split_at_checked(if is_second { 3 } else { 2 }) else { return };
        let form = self.form(attributes, is_second);
        let value = match (id, value) {
            (0x0002, [low, high, ..]) if is_second => {
                number(f64::from(u16::from_le_bytes([*low, *high])), form, self.is_1904)
            }
            (0x0003 | 0x0203, value) => double(value).map(|found| serial::value(found, form, self.is_1904)),
            (0x0004, [_, text @ ..]) if is_second => some_text(self.text(text)),
            (0x0204 | 0x0004 | 0x00d6, [low, high, text @ ..]) => {
                let length = usize::from(u16::from_le_bytes([*low, *high]));
                some_text(self.text(text.get(..length).unwrap_or(text)))
            }
            (0x0005 | 0x0205, [code, is_error, ..]) => Some(match is_error {
                0 => Value::Boolean(*code != 0),
                _ => error(*code),
            }),
            (0x0006 | 0x0206 | 0x0406, value) => match value.get(..8) {
                // The text follows in a record of its own.
                Some([0, .., 0xff, 0xff]) => Some(Value::Text(String::new())),
                Some([1, _, truth, .., 0xff, 0xff]) => Some(Value::Boolean(*truth != 0)),
                Some([2, _, code, .., 0xff, 0xff]) => Some(error(*code)),
                Some([3, .., 0xff, 0xff]) => None,
                _ => double(value).map(|found| serial::value(found, form, self.is_1904)),
            },
            (0x027e, [a, b, c, d, ..]) => number(rk([*a, *b, *c, *d]), form, self.is_1904),
            (0x00bd, _) => {
                // Several numbers of a row, each with a style, and the last column.
                for (at, part) in after.chunks_exact(6).enumerate() {
                    if let [low, high, a, b, c, d] = part {
                        let form = self.form(&[*low, *high], false);
                        let value = serial::value(rk([*a, *b, *c, *d]), form, self.is_1904);
                        cells.push(Stored { row: u32::from(row), column: usize::from(column) + at, value });
                    }
                }
                return;
            }
            _ => return,
        };
        if let Some(value) = value {
            cells.push(Stored { row: u32::from(row), column: usize::from(column), value });
        }
    }

    /// The text of the formula before.
    fn result(&self, data: &[u8], cells: &mut [Stored]) {
        let text = match (self.version, data) {
            (2, [_, text @ ..]) => text,
            (_, [low, high, text @ ..]) => text.get(..usize::from(u16::from_le_bytes([*low, *high]))).unwrap_or(text),
            _ => return,
        };
        if let Some(Stored { value, .. }) = cells.last_mut()
            && matches!(value, Value::Text(text) if text.is_empty())
        {
            *value = Value::Text(self.text(text));
        }
    }

    fn form(&mut self, attributes: &[u8], is_second: bool) -> Form {
        let format = match attributes {
            [first, second, _] if is_second => {
                let style = u16::from(first & 0x3f);
                let style = if style == 0x3f { self.next_style.unwrap_or(style) } else { style };
                let own = u16::from(second & 0x3f);
                self.styles.get(usize::from(style)).copied().unwrap_or(own)
            }
            [low, high, ..] => {
                let style = usize::from(u16::from_le_bytes([*low, *high]));
                self.styles.get(style).copied().unwrap_or_default()
            }
            _ => 0,
        };
        let known = self.formats.iter().find(|(number, _)| *number == format);
        match known {
            Some((_, form)) => *form,
            None if self.version > 4 => serial::built_in(u32::from(format)),
            None => Form::Number,
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the arms of a match have this type")]
fn number(number: f64, form: Form, is_1904: bool) -> Option<Value> {
    Some(serial::value(number, form, is_1904))
}

fn some_text(text: String) -> Option<Value> {
    (!text.is_empty()).then_some(Value::Text(text))
}

fn double(bytes: &[u8]) -> Option<f64> {
    bytes.first_chunk::<8>().map(|bytes| f64::from_le_bytes(*bytes))
}

/// A number in four bytes: the upper half of a double or an integer, perhaps to be divided by 100.
fn rk(bytes: [u8; 4]) -> f64 {
    let bits = u32::from_le_bytes(bytes);
    let number = match bits & 2 {
        0 => f64::from_bits(u64::from(bits & !3) << 32),
        _ => f64::from((bits as i32) >> 2),
    };
    if bits & 1 == 0 { number } else { number / 100.0 }
}

fn error(code: u8) -> Value {
    let text = match code {
        0x00 => "#NULL!",
        0x07 => "#DIV/0!",
        0x0f => "#VALUE!",
        0x17 => "#REF!",
        0x1d => "#NAME?",
        0x24 => "#NUM!",
        0x2a => "#N/A",
        _ => "#ERROR!",
    };
    Value::Error(text.to_owned())
}

fn code_page(number: u16) -> &'static Encoding {
    let label = match number {
        866 => "ibm866",
        874 => "windows-874",
        932 => "shift_jis",
        936 => "gbk",
        949 => "euc-kr",
        950 => "big5",
        1250..=1258 => return Encoding::for_label(format!("windows-{number}").as_bytes()).unwrap_or(WINDOWS_1252),
        10_000 | 0x8000 => "macintosh",
        _ => "windows-1252",
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}

impl OldXls {
    pub(crate) fn sheets(&self) -> Vec<Sheet> {
        self.sheets.iter().map(|(sheet, _)| sheet.clone()).collect()
    }

    /// The cells of a sheet in the order of rows.
    pub(crate) fn cells(&self, sheet: &str) -> Vec<PositionedCell> {
        let found = self.sheets.iter().find(|(known, _)| known.name == sheet);
        let mut cells: Vec<PositionedCell> = found
            .map(|(_, cells)| cells.as_slice())
            .unwrap_or_default()
            .iter()
            .filter(|cell| cell.value.as_text() != "")
            .map(|cell| PositionedCell { row: cell.row, column: cell.column, value: cell.value.clone(), formula: None })
            .collect();
        cells.sort_by_key(|cell| (cell.row, cell.column));
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u16, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len()).unwrap();
        [&id.to_le_bytes()[..], &length.to_le_bytes(), data].concat()
    }

    #[test]
    fn a_workbook_of_excel_2_has_numbers_texts_and_dates() {
        let cell =
            |row: u8, column: u8, format: u8, value: &[u8]| [&[row, 0, column, 0, 0, format, 0][..], value].concat();
        let bytes = [
            record(0x0009, &[2, 0, 0x10, 0]),
            record(0x001e, b"\x07General"),
            record(0x001e, b"\x0ayyyy-mm-dd"),
            record(0x0004, &cell(0, 0, 0, b"\x04gr\xfcn")),
            record(0x0002, &cell(1, 0, 0, &[7, 0])),
            record(0x0003, &cell(1, 1, 1, &45_943_f64.to_le_bytes())),
            record(0x0005, &cell(1, 2, 0, &[7, 1])),
            record(0x0006, &cell(1, 3, 0, &[0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0])),
            record(0x0007, b"\x03abc"),
            record(0x000a, &[]),
        ]
        .concat();
        assert!(is_old(&bytes));
        let book = parse(&bytes).unwrap();
        let cells = book.cells("Sheet 1");
        let texts: Vec<&str> = cells.iter().map(|cell| cell.value.as_text()).collect();
        assert_eq!(texts, ["grün", "7", "2025-10-13", "#DIV/0!", "abc"]);
        for end in 0..bytes.len() {
            let _ = parse(bytes.get(..end).unwrap());
        }
    }

    #[test]
    fn short_numbers_are_unpacked() {
        assert_eq!(rk(0x3ff0_0000_u32.to_le_bytes()), 1.0);
        assert_eq!(rk(((1234_u32 << 2) | 3).to_le_bytes()), 12.34);
        assert_eq!(rk(((-5_i32 << 2) as u32 | 2).to_le_bytes()), -5.0);
        assert!(!is_old(b"\x09\x08,a,b,c\n"));
        assert!(!is_old(b"a,b\n"));
    }
}
