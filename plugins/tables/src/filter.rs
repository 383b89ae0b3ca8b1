//! Conditions on rows, and the order of sorted rows.

use std::cmp::Ordering;

use belljar_guest::{Error, Result};

use crate::cell::{Cell, Value};
use crate::column;

/// The most conditions, and the most columns to sort by.
const MOST: usize = 20;

/// How a cell is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    ContainsNot,
}

/// The operators. A longer one comes before those that it begins with.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    ("<>", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!~", Operator::ContainsNot),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
    ("\u{2260}", Operator::NotEqual),
];

/// A condition such as `amount>10`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    column: String,
    operator: Operator,
    /// Without quotes. Empty for a comparison with an empty cell.
    operand: String,
    /// True if quotes make the operand a text, such as `"007"`.
    is_text: bool,
}

/// A column to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    column: String,
    is_descending: bool,
}

/// Conditions and orders over cells. Each cell has its position among the scanned cells of a row.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    tests: Vec<(usize, Condition)>,
    orders: Vec<(usize, bool)>,
}

impl Condition {
    /// Parses conditions that are joined by ` and `.
    pub(crate) fn parse(text: &str) -> Result<Vec<Condition>> {
        let mut conditions: Vec<Condition> = Vec::new();
        for part in parts(text) {
            conditions.push(Condition::one(part)?);
        }
        if conditions.len() > MOST {
            return Err(Error::invalid(format_args!(
                "where has {} conditions: expected at most {MOST}",
                conditions.len()
            )));
        }
        Ok(conditions)
    }

    fn one(text: &str) -> Result<Condition> {
        let text = text.trim();
        let wrong = || {
            Error::invalid(format_args!(
                "where \"{text}\": expected a column, an operator (=, !=, <, <=, >, >= or ~ for \"contains\", !~) and a value, \
                 such as amount>10, name~anna, day>=2026-01-31 or note= for empty cells"
            ))
        };
        let (column, rest) = match text.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((column, rest)) => (column, rest.trim_start()),
            None => {
                let at = text
                    .char_indices()
                    .find(|(at, _)| operator(text.get(*at..).unwrap_or_default()).is_some())
                    .map(|(at, _)| at)
                    .ok_or_else(wrong)?;
                text.split_at(at)
            }
        };
        let (sign, operator) = operator(rest).ok_or_else(wrong)?;
        let operand = rest.get(sign.len()..).unwrap_or_default().trim();
        let quoted = operand.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        if column.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Condition {
            column: column.trim().to_owned(),
            operator,
            operand: quoted.unwrap_or(operand).to_owned(),
            is_text: quoted.is_some(),
        })
    }

    fn holds(&self, cell: Option<&Cell>) -> bool {
        let value = cell.map_or(&Value::Empty, |cell| &cell.value);
        let text = value.as_text();
        let contains = || text.to_lowercase().contains(&self.operand.to_lowercase());
        match self.operator {
            Operator::Contains => contains(),
            Operator::ContainsNot => !contains(),
            Operator::Equal => self.equals(value),
            Operator::NotEqual => !self.equals(value),
            Operator::Less => self.compare(value) == Some(Ordering::Less),
            Operator::Greater => self.compare(value) == Some(Ordering::Greater),
            Operator::LessOrEqual => matches!(self.compare(value), Some(Ordering::Less | Ordering::Equal)),
            Operator::GreaterOrEqual => matches!(self.compare(value), Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    fn equals(&self, value: &Value) -> bool {
        let text = value.as_text();
        if self.operand.is_empty() || text.is_empty() {
            return self.operand.is_empty() && text.is_empty();
        }
        text == self.operand
            || (matches!(value, Value::Boolean(_)) && text.eq_ignore_ascii_case(&self.operand))
            || (!self.is_text && !is_identifier(text) && self.compare(value) == Some(Ordering::Equal))
    }

    /// Compares a cell with the operand. `None` if they have no order: an empty cell, or a text and a number.
    fn compare(&self, value: &Value) -> Option<Ordering> {
        let (text, operand) = (value.as_text(), self.operand.as_str());
        if text.is_empty() || operand.is_empty() {
            return None;
        }
        if !self.is_text && is_number(operand) {
            return is_number(text.trim()).then(|| compare_numbers(text.trim(), operand))?;
        }
        // A day is compared with the day of a moment.
        let is_day = is_day(operand) && text.len() > 10 && is_day(text.get(..10).unwrap_or_default());
        let text = if is_day { text.get(..10).unwrap_or_default() } else { text };
        Some(separated(text).cmp(&separated(operand)))
    }
}

impl Order {
    /// Parses columns that are separated by commas; `-` before one of them reverses its order.
    pub(crate) fn parse(text: &str) -> Result<Vec<Order>> {
        let orders: Vec<Order> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| match part.strip_prefix('-') {
                Some(column) => Order { column: column.trim().to_owned(), is_descending: true },
                None => Order { column: part.to_owned(), is_descending: false },
            })
            .collect();
        match orders.len() {
            0 => Err(Error::invalid("sort: expected columns, such as -amount,name")),
            count if count > MOST => {
                Err(Error::invalid(format_args!("sort has {count} columns: expected at most {MOST}")))
            }
            _ => Ok(orders),
        }
    }
}

impl Filter {
    /// Finds the columns of conditions and orders. Adds those that are not among `columns`, which are scanned.
    pub(crate) fn new(
        conditions: &[Condition],
        orders: &[Order],
        names: &[String],
        columns: &mut Vec<usize>,
    ) -> Result<Self> {
        let mut place = |name: &str| -> Result<usize> {
            let found = column::one(name, names)?;
            if let Some(at) = columns.iter().position(|column| *column == found) {
                return Ok(at);
            }
            columns.push(found);
            Ok(columns.len() - 1)
        };
        let mut filter = Filter::default();
        for condition in conditions {
            filter.tests.push((place(&condition.column)?, condition.clone()));
        }
        for order in orders {
            filter.orders.push((place(&order.column)?, order.is_descending));
        }
        Ok(filter)
    }

    /// True if a row meets all conditions.
    pub(crate) fn holds(&self, cells: &[Option<Cell>]) -> bool {
        self.tests.iter().all(|(at, condition)| condition.holds(cells.get(*at).and_then(Option::as_ref)))
    }

    /// The order of two rows. Empty cells come last in both directions.
    pub(crate) fn order(&self, one: &[Option<Cell>], other: &[Option<Cell>]) -> Ordering {
        for (at, is_descending) in &self.orders {
            let (left, right) = (text_at(one, *at), text_at(other, *at));
            let order = match (left.is_empty(), right.is_empty()) {
                (true, true) => continue,
                (true, false) => return Ordering::Greater,
                (false, true) => return Ordering::Less,
                _ => match (is_number(left), is_number(right)) {
                    (true, true) => compare_numbers(left, right).unwrap_or(Ordering::Equal),
                    // Numbers come before texts.
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                    (false, false) => separated(left).cmp(&separated(right)),
                },
            };
            if order != Ordering::Equal {
                return if *is_descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

fn text_at(cells: &[Option<Cell>], at: usize) -> &str {
    cells.get(at).and_then(Option::as_ref).map_or("", |cell| cell.value.as_text())
}

/// The parts of a text between ` and `, as far as each of them has an operator.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = text.get(from..).and_then(|rest| rest.to_ascii_lowercase().find(" and ")) {
        let at = from + found;
        let (before, after) = (text.get(start..at).unwrap_or_default(), text.get(at + 5..).unwrap_or_default());
        let is_quoted = !before.matches('"').count().is_multiple_of(2);
        // In `name=salt and pepper`, the word belongs to the value.
        let next = after.to_ascii_lowercase().find(" and ").map_or(after, |end| after.get(..end).unwrap_or_default());
        if !is_quoted && next.char_indices().any(|(at, _)| operator(next.get(at..).unwrap_or_default()).is_some()) {
            parts.push(before);
            start = at + 5;
        }
        from = at + 5;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn operator(text: &str) -> Option<(&'static str, Operator)> {
    OPERATORS.iter().find(|(sign, _)| text.starts_with(sign)).copied()
}

/// A moment with a space and one with a `T` are equal.
fn separated(text: &str) -> std::borrow::Cow<'_, str> {
    if text.as_bytes().get(10) == Some(&b' ') && is_day(text.get(..10).unwrap_or_default()) {
        return text.replacen(' ', "T", 1).into();
    }
    text.into()
}

fn is_day(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match (text.get(..4), text.get(4..5), text.get(5..7), text.get(7..8), text.get(8..)) {
        (Some(year), Some("-"), Some(month), Some("-"), Some(day)) => {
            day.len() == 2 && digits(year) && digits(month) && digits(day)
        }
        _ => false,
    }
}

/// True for digits with a leading zero, which name something.
fn is_identifier(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && text.ends_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.parse::<f64>().is_ok()
}

/// Compares two numbers exactly: decimals digit by digit, others as doubles.
fn compare_numbers(one: &str, other: &str) -> Option<Ordering> {
    let (left, right) = (one.parse::<f64>().ok()?, other.parse::<f64>().ok()?);
    let is_plain = |text: &str| !text.contains(['e', 'E']);
    if left != right || !is_plain(one) || !is_plain(other) {
        return left.partial_cmp(&right);
    }
    // Equal as doubles, so of the same sign or both zero.
    let split = |text: &str| -> (String, String) {
        let digits = text.trim_start_matches(['+', '-']);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        (whole.trim_start_matches('0').to_owned(), fraction.trim_end_matches('0').to_owned())
    };
    let ((whole, fraction), (other_whole, other_fraction)) = (split(one), split(other));
    let order = whole.len().cmp(&other_whole.len()).then(whole.cmp(&other_whole)).then(fraction.cmp(&other_fraction));
    Some(if left < 0.0 { order.reverse() } else { order })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, text: &str) -> bool {
        let all = Condition::parse(condition).unwrap();
        let cell = Cell::from(Value::of_text(text.to_owned()));
        all.iter().all(|one| one.holds(Some(&cell)))
    }

    #[test]
    fn numbers_dates_and_texts_are_compared_by_their_kind() {
        for (condition, cell, expected) in [
            ("a>10", "9", false),
            ("a>10", "10.5", true),
            ("a >= 10", "10.0", true),
            ("a>10", "x", false),
            ("a>10", "", false),
            ("a=1", "1.00", true),
            ("a=7", "007", false),
            ("a=007", "007", true),
            ("a!=1", "", true),
            ("a=", "", true),
            ("a=", "0", false),
            ("a!=", "x", true),
            ("a>9007199254740992", "9007199254740993", true),
            ("a<-1.5", "-1.6", true),
            ("a=true", "true", true),
            ("a~ANN", "Anna", true),
            ("a!~ann", "Anna", false),
            ("a=anna", "Anna", false),
            ("a=2026-11-21", "2026-11-21T10:00:00", true),
            ("a>2026-11-21", "2026-11-21T10:00:00", false),
            ("a>=2026-11-21", "2026-11-21 10:00", true),
            ("a<2026-12", "2026-11-30", true),
            ("a=2026-11-21T10:00:00", "2026-11-21 10:00:00", true),
            ("a>b", "c", true),
            ("a=\"1\"", "1.0", false),
            ("a=salt and pepper", "salt and pepper", true),
            ("a>1 and a<3", "2", true),
            ("a>1 AND a<3", "3", false),
        ] {
            assert_eq!(holds(condition, cell), expected, "{condition}: {cell}");
        }
    }

    #[test]
    fn wrong_conditions_say_the_form() {
        for wrong in ["", "amount", ">5", "\"a\" 5", " and "] {
            let Err(Error::Invalid(why)) = Condition::parse(wrong) else { panic!("{wrong}") };
            assert!(why.contains("such as amount>10"), "{why}");
        }
        let quoted = Condition::parse("\"a=b\" = \"x and y=z\" and c=1").unwrap();
        assert_eq!((quoted[0].column.as_str(), quoted[0].operand.as_str(), quoted.len()), ("a=b", "x and y=z", 2));
    }

    #[test]
    fn sorted_rows_have_empty_cells_last() {
        let row = |text: &str| vec![Some(Cell::from(Value::of_text(text.to_owned())))];
        let sorted = |sort: &str, texts: &[&str]| {
            let (mut columns, names) = (vec![0], ["a".to_owned()]);
            let filter = Filter::new(&[], &Order::parse(sort).unwrap(), &names, &mut columns).unwrap();
            let mut rows: Vec<_> = texts.iter().map(|text| row(text)).collect();
            rows.sort_by(|one, other| filter.order(one, other));
            rows.iter().map(|row| row[0].as_ref().unwrap().value.as_text().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(sorted("a", &["10", "", "9", "x", "-1"]), ["-1", "9", "10", "x", ""]);
        assert_eq!(sorted("-a", &["10", "", "9"]), ["10", "9", ""]);
    }
}
