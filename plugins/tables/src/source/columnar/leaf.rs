//! The values of one leaf column of a Parquet file, in batches.

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Span};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use crate::cell::Value;

/// The records that are decoded at once.
const BATCH: usize = 512;

/// What the values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Plain,
    Unsigned,
    Decimal(usize),
    Date,
    Time(Unit),
    Moment(Unit, bool),
    Text,
    Uuid,
    HalfFloat,
    Interval,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Millis,
    Micros,
    Nanos,
}

/// A leaf column, with the decoded values of the current batch.
pub(crate) struct Leaf {
    reader: ColumnReader,
    meaning: Meaning,
    max_definition: i16,
    has_repetition: bool,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    values: Values,
    /// The number of levels in the batch.
    levels: usize,
    /// The current level, and the next value.
    level: usize,
    value: usize,
}

enum Values {
    Booleans(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Leaf {
    pub(crate) fn new(column: ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        let (max_definition, has_repetition) = (column.max_def_level(), column.max_rep_level() > 0);
        let meaning = Meaning::of(&column);
        let (reader, values) = match column.physical_type() {
            Physical::BOOLEAN => {
                (ColumnReader::BoolColumnReader(ColumnReaderImpl::new(column, pages)), Values::Booleans(Vec::new()))
            }
            Physical::INT32 => {
                (ColumnReader::Int32ColumnReader(ColumnReaderImpl::new(column, pages)), Values::Int32(Vec::new()))
            }
            Physical::INT64 => {
                (ColumnReader::Int64ColumnReader(ColumnReaderImpl::new(column, pages)), Values::Int64(Vec::new()))
            }
            Physical::INT96 => {
                (ColumnReader::Int96ColumnReader(ColumnReaderImpl::new(column, pages)), Values::Int96(Vec::new()))
            }
            Physical::FLOAT => {
                (ColumnReader::FloatColumnReader(ColumnReaderImpl::new(column, pages)), Values::Floats(Vec::new()))
            }
            Physical::DOUBLE => {
                (ColumnReader::DoubleColumnReader(ColumnReaderImpl::new(column, pages)), Values::Doubles(Vec::new()))
            }
            Physical::BYTE_ARRAY => {
                (ColumnReader::ByteArrayColumnReader(ColumnReaderImpl::new(column, pages)), Values::Bytes(Vec::new()))
            }
            Physical::FIXED_LEN_BYTE_ARRAY => (
                ColumnReader::FixedLenByteArrayColumnReader(ColumnReaderImpl::new(column, pages)),
                Values::Fixed(Vec::new()),
            ),
        };
        Leaf {
            reader,
            meaning,
            max_definition,
            has_repetition,
            definitions: Vec::new(),
            repetitions: Vec::new(),
            values,
            levels: 0,
            level: 0,
            value: 0,
        }
    }

    /// Skips records. Only before the first value is read.
    pub(crate) fn skip(&mut self, records: usize) -> Result<usize, ParquetError> {
        macro_rules! skip {
            ($($kind:ident),*) => { match &mut self.reader { $(ColumnReader::$kind(reader) => reader.skip_records(records)),* } };
        }
        skip!(
            BoolColumnReader,
            Int32ColumnReader,
            Int64ColumnReader,
            Int96ColumnReader,
            FloatColumnReader,
            DoubleColumnReader,
            ByteArrayColumnReader,
            FixedLenByteArrayColumnReader
        )
    }

    /// Decodes the next records if the batch is used up. At most `most` records. False at the end of the column.
    pub(crate) fn fill(&mut self, most: usize) -> Result<bool, ParquetError> {
        if self.level < self.levels {
            return Ok(true);
        }
        self.definitions.clear();
        self.repetitions.clear();
        let count = BATCH.min(most.max(1));
        macro_rules! read {
            ($(($kind:ident, $values:ident)),*) => {
                match (&mut self.reader, &mut self.values) {
                    $((ColumnReader::$kind(reader), Values::$values(values)) => {
                        values.clear();
                        reader.read_records(count, Some(&mut self.definitions), Some(&mut self.repetitions), values)?.2
                    })*
                    _ => 0,
                }
            };
        }
        self.levels = read!(
            (BoolColumnReader, Booleans),
            (Int32ColumnReader, Int32),
            (Int64ColumnReader, Int64),
            (Int96ColumnReader, Int96),
            (FloatColumnReader, Floats),
            (DoubleColumnReader, Doubles),
            (ByteArrayColumnReader, Bytes),
            (FixedLenByteArrayColumnReader, Fixed)
        );
        (self.level, self.value) = (0, 0);
        Ok(self.levels > 0)
    }

    /// The definition level of the current value.
    pub(crate) fn definition(&self) -> i16 {
        if self.max_definition == 0 { 0 } else { self.definitions.get(self.level).copied().unwrap_or_default() }
    }

    /// The repetition level of the current value; 0 at the end of the batch, which is the end of a record.
    pub(crate) fn repetition(&self) -> i16 {
        if self.has_repetition { self.repetitions.get(self.level).copied().unwrap_or_default() } else { 0 }
    }

    /// Steps over the current value, and gives it. Empty if the level has no value.
    pub(crate) fn take(&mut self) -> Value {
        let has_value = self.definition() == self.max_definition && self.level < self.levels;
        self.level += 1;
        if !has_value {
            return Value::Empty;
        }
        let at = self.value;
        self.value += 1;
        self.value_at(at).unwrap_or_default()
    }

    fn value_at(&self, at: usize) -> Option<Value> {
        let meaning = self.meaning;
        Some(match &self.values {
            Values::Booleans(values) => Value::Boolean(*values.get(at)?),
            Values::Int32(values) => {
                let number = *values.get(at)?;
                match meaning {
                    Meaning::Unsigned => Value::of_integer(number as u32),
                    _ => integer(i64::from(number), meaning),
                }
            }
            Values::Int64(values) => integer(*values.get(at)?, meaning),
            Values::Int96(values) => int96(values.get(at)?),
            // The shortest text that parses to the same number.
            Values::Floats(values) => float32(*values.get(at)?),
            Values::Doubles(values) => Value::of_float(*values.get(at)?),
            Values::Bytes(values) => bytes(values.get(at)?.data(), meaning),
            Values::Fixed(values) => bytes(values.get(at)?.data(), meaning),
        })
    }
}

impl Meaning {
    fn of(column: &ColumnDescriptor) -> Self {
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => Unit::Millis,
            TimeUnit::MICROS => Unit::Micros,
            TimeUnit::NANOS => Unit::Nanos,
        };
        let scale = || usize::try_from(column.type_scale()).unwrap_or_default();
        match column.logical_type_ref() {
            Some(LogicalType::Integer(kind)) if !kind.is_signed => return Meaning::Unsigned,
            Some(LogicalType::Decimal(_)) => return Meaning::Decimal(scale()),
            Some(LogicalType::Date) => return Meaning::Date,
            Some(LogicalType::Time(kind)) => return Meaning::Time(unit(&kind.unit)),
            Some(LogicalType::Timestamp(kind)) => return Meaning::Moment(unit(&kind.unit), kind.is_adjusted_to_u_t_c),
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => return Meaning::Text,
            Some(LogicalType::Uuid) => return Meaning::Uuid,
            Some(LogicalType::Float16) => return Meaning::HalfFloat,
            _ => {}
        }
        match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Meaning::Text,
            ConvertedType::DECIMAL => Meaning::Decimal(scale()),
            ConvertedType::DATE => Meaning::Date,
            ConvertedType::TIME_MILLIS => Meaning::Time(Unit::Millis),
            ConvertedType::TIME_MICROS => Meaning::Time(Unit::Micros),
            // The old forms are defined as UTC.
            ConvertedType::TIMESTAMP_MILLIS => Meaning::Moment(Unit::Millis, true),
            ConvertedType::TIMESTAMP_MICROS => Meaning::Moment(Unit::Micros, true),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64 => {
                Meaning::Unsigned
            }
            ConvertedType::INTERVAL => Meaning::Interval,
            _ => Meaning::Plain,
        }
    }
}

impl Unit {
    fn duration(self, count: i64) -> SignedDuration {
        match self {
            Unit::Millis => SignedDuration::from_millis(count),
            Unit::Micros => SignedDuration::from_micros(count),
            Unit::Nanos => SignedDuration::from_nanos(count),
        }
    }
}

fn integer(number: i64, meaning: Meaning) -> Value {
    match meaning {
        Meaning::Unsigned => Value::of_integer(number as u64),
        Meaning::Decimal(scale) => decimal(number < 0, number.unsigned_abs().to_string(), scale),
        Meaning::Date => {
            let days = Span::new().try_days(number).ok();
            let date = days.and_then(|days| Date::constant(1970, 1, 1).checked_add(days).ok());
            date.map_or_else(
                || Value::Text(format!("{number} days since 1970")),
                |date| Value::Moment(date.to_string()),
            )
        }
        Meaning::Time(unit) => {
            let since = unit.duration(number);
            match Time::midnight().checked_add(since) {
                Ok(time) => Value::Moment(time.to_string()),
                Err(_) => Value::Text(format!("{since:?} since midnight")),
            }
        }
        Meaning::Moment(unit, is_utc) => moment(unit.duration(number), is_utc),
        _ => Value::of_integer(number),
    }
}

fn moment(since: SignedDuration, is_utc: bool) -> Value {
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    match epoch.checked_add(since) {
        Ok(moment) => Value::Moment(format!("{moment}{}", if is_utc { "Z" } else { "" })),
        Err(_) => Value::Text(format!("{since:?} since 1970")),
    }
}

/// Nanoseconds of a day, and the Julian day. Old programs write timestamps without a zone in this form.
fn int96(value: &Int96) -> Value {
    /// The Julian day of 1970-01-01.
    const EPOCH: i64 = 2_440_588;
    let [low, high, day] = match value.data() {
        [low, high, day] => [*low, *high, *day],
        _ => [0; 3],
    };
    let nanos = (i64::from(high) << 32) | i64::from(low);
    let days = i64::from(day as i32) - EPOCH;
    let since = SignedDuration::from_secs(days.saturating_mul(86_400)).checked_add(SignedDuration::from_nanos(nanos));
    since.map_or_else(|| Value::Text(format!("{days} days since 1970")), |since| moment(since, false))
}

fn float32(number: f32) -> Value {
    if !number.is_finite() {
        return Value::Text(number.to_string());
    }
    let plain = number.to_string();
    Value::Number(if plain.len() > 25 { format!("{number:e}") } else { plain })
}

/// A decimal number from its unscaled digits.
fn decimal(is_negative: bool, digits: String, scale: usize) -> Value {
    let digits = if digits.len() <= scale { format!("{digits:0>width$}", width = scale + 1) } else { digits };
    let (whole, fraction) = digits.split_at_checked(digits.len() - scale).unwrap_or((&digits, ""));
    let sign = if is_negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Value::of_text(format!("{sign}{whole}{point}{fraction}"))
}

/// The decimal digits of a big-endian integer in two's complement, and true if it is negative.
fn digits(bytes: &[u8]) -> (bool, String) {
    let is_negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut rest: Vec<u8> = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in rest.iter_mut().rev() {
            let (sum, overflow) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, overflow);
        }
    }
    let mut parts = Vec::new();
    while rest.iter().any(|byte| *byte != 0) {
        let mut remainder = 0_u64;
        for byte in &mut rest {
            let all = (remainder << 8) | u64::from(*byte);
            *byte = (all / 1_000_000_000) as u8;
            remainder = all % 1_000_000_000;
        }
        // The quotient of a digit may exceed a byte only if the remainder were larger than the divisor.
        parts.push(remainder);
    }
    let mut text = parts.last().map_or_else(|| "0".to_owned(), u64::to_string);
    for part in parts.iter().rev().skip(1) {
        text.push_str(&format!("{part:09}"));
    }
    (is_negative, text)
}

fn bytes(data: &[u8], meaning: Meaning) -> Value {
    let hexadecimal = |data: &[u8]| data.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match (meaning, data) {
        // The longest decimal that the format's writers make has 76 digits in 32 bytes.
        (Meaning::Decimal(scale), data) if data.len() <= 64 => {
            let (is_negative, digits) = digits(data);
            decimal(is_negative, digits, scale)
        }
        (Meaning::HalfFloat, [low, high]) => half(u16::from_le_bytes([*low, *high])),
        (Meaning::Uuid, data) if data.len() == 16 => {
            let text = hexadecimal(data);
            let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
            Value::Text([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
        }
        (Meaning::Interval, [a, b, c, d, e, f, g, h, i, j, k, l]) => {
            let (months, days) = (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes([*e, *f, *g, *h]));
            let millis = u32::from_le_bytes([*i, *j, *k, *l]);
            Value::Text(format!("P{months}M{days}DT{}.{:03}S", millis / 1000, millis % 1000))
        }
        (Meaning::Text, data) => match std::str::from_utf8(data) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Text(format!("0x{}", hexadecimal(data))),
        },
        (_, data) => Value::Text(match std::str::from_utf8(data) {
            Ok(text) if !text.contains(char::is_control) => text.to_owned(),
            _ => format!("0x{}", hexadecimal(data)),
        }),
    }
}

/// The number of a half-precision float.
fn half(bits: u16) -> Value {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff) / 1024.0);
    let size = match exponent {
        0 => fraction * 2_f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2_f32.powi(exponent - 15),
    };
    float32(if bits & 0x8000 == 0 { size } else { -size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_length_keep_their_digits() {
        let of = |bytes: &[u8], scale| {
            let (is_negative, digits) = digits(bytes);
            decimal(is_negative, digits, scale).as_text().to_owned()
        };
        assert_eq!(of(&[0x04, 0xd2], 2), "12.34");
        assert_eq!(of(&[0xff], 2), "-0.01");
        assert_eq!(of(&[0x00], 0), "0");
        assert_eq!(of(&[], 1), "0.0");
        assert_eq!(
            of(&(-123_456_789_012_345_678_901_234_567_890_i128).to_be_bytes(), 3),
            "-123456789012345678901234567.890"
        );
        assert_eq!(of(&[0x80, 0, 0, 0, 0, 0, 0, 0], 0), i64::MIN.to_string());
    }

    #[test]
    fn half_floats_and_old_timestamps() {
        for (bits, text) in
            [(0x3c00, "1"), (0xc000, "-2"), (0x3555, "0.33325195"), (1, "0.000000059604645"), (0x7c00, "inf")]
        {
            assert_eq!(half(bits).as_text(), text);
        }
        let mut old = Int96::new();
        old.set_data(1_000_000_000, 0, 2_440_589);
        assert_eq!(int96(&old), Value::Moment("1970-01-02T00:00:01".into()));
        let mut odd = Int96::new();
        odd.set_data(u32::MAX, u32::MAX, u32::MAX);
        int96(&odd);
    }
}
