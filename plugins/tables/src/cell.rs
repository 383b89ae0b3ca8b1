//! What a cell holds. Numbers are text, so that nothing is rounded: a decimal stays what it was in the file.

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    /// How many bytes of a long text were left out.
    pub(crate) cut: u64,
    /// The formula that the value was computed by, without the `=`.
    pub(crate) formula: Option<String>,
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Value {
    #[default]
    Empty,
    Text(String),
    /// As JSON writes it, and with no more digits than every reader keeps.
    Number(String),
    Boolean(bool),
    /// A date, a time or both, in ISO 8601.
    Moment(String),
    /// What a spreadsheet shows for an error, such as `#DIV/0!`.
    Error(String),
}

/// How many digits a double keeps, whatever they are.
const DIGITS: usize = 15;

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Cell { value, cut: 0, formula: None }
    }
}

impl Value {
    /// The value that a text stands for, if it can be written back as the same text: `007` and `+1` are texts.
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
        // Both are the shortest text that is this number and no other.
        let plain = number.to_string();
        Value::Number(if plain.len() > 25 { format!("{number:e}") } else { plain })
    }

    /// The value of a whole number: a text where a double could not hold it.
    pub(crate) fn of_integer(number: impl ToString) -> Self {
        let text = number.to_string();
        if text.trim_start_matches('-').len() <= DIGITS { Value::Number(text) } else { Value::Text(text) }
    }

    /// The value as text, empty for none.
    pub(crate) fn as_text(&self) -> &str {
        match self {
            Value::Empty => "",
            Value::Boolean(true) => "true",
            Value::Boolean(false) => "false",
            Value::Text(text) | Value::Number(text) | Value::Moment(text) | Value::Error(text) => text,
        }
    }

    /// Cuts a text after about so many bytes, and says how many were cut.
    pub(crate) fn cut(&mut self, longest: usize) -> u64 {
        let Value::Text(text) = self else { return 0 };
        let before = text.len();
        if before > longest {
            let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
        }
        (before - text.len()) as u64
    }
}

/// Whether a text is a JSON number, without an exponent, whose digits every reader keeps.
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
    fn only_what_can_be_written_back_is_a_number() {
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
