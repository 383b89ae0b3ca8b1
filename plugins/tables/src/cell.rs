//! Cells and their values. Numbers are kept as text, because a conversion would round decimals.

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    /// The number of bytes cut from a long text.
    pub(crate) cut: u64,
    /// The formula of the cell, without the `=`.
    pub(crate) formula: Option<String>,
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Value {
    #[default]
    Empty,
    Text(String),
    /// A JSON number, with no more digits than a double represents exactly.
    Number(String),
    Boolean(bool),
    /// A date, a time or both, in ISO 8601.
    Moment(String),
    /// An error of a spreadsheet, such as `#DIV/0!`.
    Error(String),
    /// A list or a record, as JSON.
    Json(String),
}

/// The number of decimal digits that a double always preserves.
const DIGITS: usize = 15;

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Cell { value, cut: 0, formula: None }
    }
}

impl Value {
    /// Converts text to a value. Only text that converts back unchanged becomes a number: `007` and `+1` stay text.
    pub(crate) fn of_text(text: String) -> Self {
        match text.as_str() {
            "" => Value::Empty,
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            number if is_json_number(number) => Value::Number(text),
            _ => Value::Text(text),
        }
    }

    /// The value of a double.
    pub(crate) fn of_float(number: f64) -> Self {
        if !number.is_finite() {
            return Value::Text(number.to_string());
        }
        // Both formats give the shortest text that parses to this number.
        let plain = number.to_string();
        Value::Number(if plain.len() > 25 { format!("{number:e}") } else { plain })
    }

    /// The value of an integer. One that a double cannot represent becomes text.
    pub(crate) fn of_integer(number: impl ToString) -> Self {
        let text = number.to_string();
        if text.trim_start_matches('-').len() <= DIGITS { Value::Number(text) } else { Value::Text(text) }
    }

    /// The value as text; empty for an empty cell.
    pub(crate) fn as_text(&self) -> &str {
        match self {
            Value::Empty => "",
            Value::Boolean(true) => "true",
            Value::Boolean(false) => "false",
            Value::Text(text) | Value::Number(text) | Value::Moment(text) | Value::Error(text) | Value::Json(text) => {
                text
            }
        }
    }

    /// Cuts a text to at most `longest` bytes at a character boundary. Returns the number of bytes cut.
    pub(crate) fn cut(&mut self, longest: usize) -> u64 {
        let (Value::Text(text) | Value::Json(text)) = self else { return 0 };
        let before = text.len();
        if before <= longest {
            return 0;
        }
        text.truncate(text.floor_char_boundary(longest));
        let cut = (before - text.len()) as u64;
        // A part of JSON is not JSON.
        *self = Value::Text(std::mem::take(text));
        cut
    }
}

/// True if a text is a JSON number without an exponent, with at most [`DIGITS`] digits.
fn is_json_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return false,
        None => (unsigned, ""),
    };
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    !whole.is_empty()
        && is_digits(whole)
        && is_digits(fraction)
        && (whole == "0" || !whole.starts_with('0'))
        && whole.len() + fraction.len() <= DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_that_converts_back_is_a_number() {
        for number in ["0", "-1", "1.50", "0.1", "123456789012345"] {
            assert_eq!(Value::of_text(number.into()), Value::Number(number.into()), "{number}");
        }
        for text in ["007", "+1", "1.", ".5", "1e5", "1,5", "1 000", "NaN", "-", "TRUE", "1234567890123456", " 1"] {
            assert_eq!(Value::of_text(text.into()), Value::Text(text.into()), "{text}");
        }
        assert_eq!(Value::of_float(0.1), Value::Number("0.1".into()));
        assert_eq!(Value::of_float(1e300), Value::Number("1e300".into()));
        assert_eq!(Value::of_float(f64::NAN), Value::Text("NaN".into()));
        assert_eq!(Value::of_integer(u64::MAX), Value::Text("18446744073709551615".into()));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let mut value = Value::Text("aää".into());
        assert_eq!((value.cut(2), value.as_text()), (4, "a"));
        assert_eq!((value.cut(2), value.as_text()), (0, "a"));
    }
}
